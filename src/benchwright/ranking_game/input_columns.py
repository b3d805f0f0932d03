"""The columns by which a table is known for scores before and after tuning, or for submissions."""

from __future__ import annotations

from collections.abc import Iterable

from benchwright.logs.table_columns import ROLES, plain

SUBMISSIONS = ("developer", "n_items", "score", "public")
ITEM_SUBMISSIONS = ("developer", "variant", "doc_id", "score")
PAIRS = (("_before", "_after"), ("_direct", "_tuned"))
LONG = ("task", "direct", "tuned")


def paired_tasks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the tasks that a wide table has before and after, with their two columns.

    >>> paired_tasks(["model", "arc_before", "arc_after", "mmlu_before"])
    {'arc': ('arc_before', 'arc_after')}
    """
    known = {plain(name): name for name in names}
    return {
        word.removesuffix(before): (name, known[word.removesuffix(before) + after])
        for before, after in PAIRS
        for word, name in known.items()
        if word.endswith(before) and word.removesuffix(before) + after in known
    }


def model_column(names: Iterable[str]) -> str | None:
    """Return the column that names the models."""
    known = {plain(name): name for name in names}
    return next((known[word] for word in ROLES["model"] if word in known), None)
