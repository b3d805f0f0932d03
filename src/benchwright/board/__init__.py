"""Leaderboards scored with published weights: schemes, missing items, scales, uncertainty, frozen boards."""
