"""From what a user has (a game file, scores by effort, tables before and after, submissions) to its answer."""
