"""Items of lm-evaluation-harness' own tasks, by name; the library loads only when one is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchwright.errors import UsageError

PREFIX = "lm-eval:"


def task_items(names: str) -> Iterator[tuple[None, str, int, str, list[str] | None]]:
    """Yield the items of tasks or groups, names separated by commas: no line, task, doc_id, question, choices.

    doc_id counts the documents that the harness evaluates, as its logs do.

    Raises
    ------
    UsageError
        lm-eval is not installed, or knows no such task.
    """
    try:
        from lm_eval.tasks import TaskManager, get_task_dict
    except ImportError:
        raise UsageError(
            f"ITEMS {PREFIX}{names} needs lm-eval, which is not installed",
            hint="pip install lm-eval, or write the items into a file with task, doc_id, question and choices",
        ) from None
    asked = [name.strip() for name in names.split(",") if name.strip()]
    manager = TaskManager()
    unknown = [name for name in asked if name not in manager.all_tasks]
    if unknown or not asked:
        raise UsageError(f"lm-eval has no task {', '.join(unknown) or '(no name given)'}", hint="see: lm_eval ls tasks")
    return _documents(get_task_dict(asked, manager))


def _documents(tasks: dict[Any, Any]) -> Iterator[tuple[None, str, int, str, list[str] | None]]:
    for name, task in tasks.items():
        if isinstance(task, dict):  # a group
            yield from _documents(task)
            continue
        for place, document in enumerate(task.eval_docs):
            choices = task.doc_to_choice(document) if task.config.doc_to_choice is not None else None
            yield None, str(name), place, str(task.doc_to_text(document)), choices
