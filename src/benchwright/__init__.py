"""benchwright: design LLM benchmarks and leaderboards as incentives."""

__version__ = "0.1.0"
