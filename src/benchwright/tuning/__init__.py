"""The tuning experiment: every model gets the same common tuning, and is measured per item along the way."""
