"""Scores by effort, and curves fitted to them: what a benchmark's score costs in tuning steps, tokens or examples."""
