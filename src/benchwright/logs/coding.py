"""How the numbers of a matrix are coded: what they look like, and the item rows that they become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchwright.logs.table_columns import higher_is_better


@dataclass(slots=True)
class Coding:
    """What the numbers of a matrix look like, and how they are passed on."""

    total: int | None = None
    count: int = 0
    binary: bool = True
    whole: bool = True
    low: float = float("inf")
    high: float = float("-inf")

    def see(self, value: float) -> None:
        """Take a number into account."""
        self.count += 1
        if value not in (0.0, 1.0):
            self.binary = False
            self.whole = self.whole and value.is_integer()
        self.low, self.high = min(self.low, value), max(self.high, value)

    @property
    def metric(self) -> str:
        """What the numbers are called."""
        if self.total is not None or self.binary:
            return "correct"
        return "log_odds" if self.low < 0 else "count" if self.whole and self.high > 1 else "score"

    def text(self) -> str:
        """Say how the numbers are coded."""
        if not self.count:
            return "no numbers"
        if self.total is not None:
            return f"counts of right answers out of {self.total}; value = count / {self.total}"
        if self.binary:
            return "0 and 1"
        span = f"{self.low:g} to {self.high:g}"
        if self.low >= 0 and self.high <= 1:
            return f"scores from {span}"
        if self.low < 0:
            return f"numbers from {span}, taken for log-odds and kept as they are"
        if self.whole:
            reason = "counts without a total, kept as they are; name the first column `item (out of N)` to divide by N"
            return f"whole numbers from {span}: {reason}"
        return f"numbers from {span}, kept as they are"


def item_block(task: Any, ids: Any, values: Sequence[Any], lines: Any, coding: Coding, file: str) -> dict[str, Any]:
    """Return the columns of item rows; a missing number is unscored, a text unreadable."""
    total = coding.total
    found, status = [], []
    for value in values:
        bad = value == "" or (value is not None and total is not None and not 0 <= value <= total)
        status.append("unreadable" if bad else "unscored" if value is None else "scored")
        found.append(None if bad or value is None else value if total is None else value / total)
    metric = coding.metric
    return {
        "task": task,
        "doc_id": ids,
        "metric": metric,
        "value": found,
        "higher_is_better": higher_is_better(metric),
        "status": status,
        "trials": total or 1,
        "line": lines,
        "file": file,
    }
