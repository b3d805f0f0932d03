"""The tidy item panel: what logs hold, one row per model, run, task, item and metric."""
