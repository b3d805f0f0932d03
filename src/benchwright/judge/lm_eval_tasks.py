"""Items of lm-evaluation-harness' own tasks, by name; the library loads only when one is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchwright.errors import DataError, UsageError

PREFIX = "lm-eval:"


def task_items(names: str) -> Iterator[tuple[None, str, int, str, list[str] | None]]:
    """Yield the items of tasks or groups, names separated by commas: no line, task, doc_id, question, choices.

    doc_id counts the documents that the harness evaluates, as its logs do.

    Raises
    ------
    UsageError
        lm-eval is not installed, or knows no such task.
    DataError
        It cannot load the task's data.
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
    try:
        return _documents(get_task_dict(asked, manager))
    except Exception as error:  # of the library that holds the data, or of the task's own code
        raise DataError(f"lm-eval cannot load {names}: {type(error).__name__}: {error}") from None


def _documents(tasks: dict[Any, Any]) -> Iterator[tuple[None, str, int, str, list[str] | None]]:
    for name, task in tasks.items():
        if isinstance(task, dict):  # a group
            yield from _documents(task)
            continue
        for place, document in enumerate(task.eval_docs):
            question = str(task.doc_to_text(document))
            choices = [] if task.config.doc_to_choice is None else task.doc_to_choice(document)
            stated = all(str(choice) in question for choice in choices)  # as in the questions of MMLU
            yield None, str(name), place, question, None if stated else choices
