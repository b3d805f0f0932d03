"""Tasks of lm-evaluation-harness: its train split to tune on, and its own evaluation, item by item.

An example to tune on is the request that lm-eval would make of the right choice, without other examples before it: the
model learns what it will be asked. Items without a choice (free answers) are refused.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchwright.tuning.evaluate import frame_of
from benchwright.tuning.failures import RunError, failure_of
from benchwright.tuning.items import Item
from benchwright.tuning.libraries import load
from benchwright.tuning.models import OpenModel
from benchwright.tuning.protocol import Benchmark


class LmEvalTask:
    """A task by name; ``examples`` are its train split, ``score`` evaluates it."""

    def __init__(self, benchmark: Benchmark, folder: Path) -> None:
        self._name, self._limit = str(benchmark.task), benchmark.limit
        include = None if benchmark.include is None else str(folder / benchmark.include)
        with _quietly():
            tasks = load("lm_eval.tasks")
            manager = tasks.TaskManager(include_path=include)
            if self._name not in manager.all_tasks:
                raise RunError("data", f"lm-eval has no task {self._name}", hint="see: lm-eval ls tasks")
            try:
                made = tasks.get_task_dict([self._name], manager)
            except Exception as error:
                raise _no_data(self._name, error) from None
        self._made, found = made, list(made.values())
        self._task = found[0]
        if len(found) != 1 or isinstance(self._task, dict):
            raise RunError("data", f"{self._name} is a group of tasks", hint="give its tasks one by one")
        if self._task.OUTPUT_TYPE != "multiple_choice":
            raise RunError(
                "data",
                f"{self._name} has no choices ({self._task.OUTPUT_TYPE}): its items have no gold probability",
                hint="take a multiple-choice task",
            )
        if not self._task.has_training_docs():
            raise RunError(
                "data",
                f"{self._name} has no train split: tune-before-test needs one",
                hint="take another task, or files of your own with `train` and `test`",
            )

    def items(self) -> tuple[Item, ...]:
        """The train split as items, whose right choices are what is learned."""
        found = []
        for place, doc in enumerate(self._task.training_docs()):
            try:
                context = self._task.fewshot_context(doc, num_fewshot=0)
                requests = self._task.construct_requests(doc=doc, ctx=context, metadata=(self._name, place, 1))
                pairs = tuple((str(request.args[0]), str(request.args[1])) for request in requests)
                gold = self._gold(doc)
            except Exception as error:
                raise failure_of(error, f"item {place} of the train split of {self._name}") from None
            if gold is not None:
                choices = len(self._task.doc_to_choice(doc))
                found.append(Item(str(place), pairs[:choices], gold))
        if not found:
            raise RunError("data", f"the train split of {self._name} has no item with a right choice")
        return tuple(found)

    def score(self, opened: OpenModel, *, batch: int, max_length: int) -> pl.DataFrame:
        """Evaluate the model with lm-eval; a row an item."""
        mixed = {"mixed_precision_dtype": "bfloat16"} if opened.precision == "bfloat16" else {}
        try:
            with _quietly():
                huggingface, evaluator = load("lm_eval.models.huggingface"), load("lm_eval.evaluator")
                wrapped = huggingface.HFLM(
                    pretrained=opened.model,
                    tokenizer=opened.tokenizer,
                    batch_size=batch,
                    max_length=max_length,
                    truncation=True,
                    backend="causal",
                    **mixed,
                )
                done = evaluator.evaluate(wrapped, self._made, limit=self._limit, log_samples=True, bootstrap_iters=0)
        except Exception as error:
            raise failure_of(error, f"evaluating {self._name}") from None
        opened.model.train()
        return self._rows(_once(done["samples"][self._name]))

    def _rows(self, samples: Sequence[dict[str, Any]]) -> pl.DataFrame:
        gold, logprob, chars = [], [], []
        for sample in samples:
            choices = [str(choice) for choice in self._task.doc_to_choice(sample["doc"])]
            gold.append(self._gold(sample["doc"]))
            logprob.append(np.array([float(response[0]) for response in sample["filtered_resps"][: len(choices)]]))
            chars.append([len(choice) for choice in choices])
        names = [str(sample["doc_id"]) for sample in samples]
        table = frame_of(names, [None] * len(names), gold, logprob, chars)
        for name in ("acc", "acc_norm"):  # lm-eval's own, where several choices may be right
            own = pl.Series(name, [_number(sample.get(name)) for sample in samples], dtype=pl.Float64)
            table = table.with_columns(pl.coalesce(own, pl.col(name)).alias(name))
        return table

    def _gold(self, doc: Any) -> int | None:
        """The place of the right choice; the first of several, None where there is none."""
        gold = self._task.doc_to_text(doc) if self._task.multiple_input else self._task.doc_to_target(doc)
        choices = self._task.doc_to_choice(doc)
        if isinstance(gold, list):
            gold = gold[0] if gold else None
        if isinstance(gold, str):
            gold = choices.index(gold) if gold in choices else None
        return int(gold) if gold is not None and 0 <= int(gold) < len(choices) else None


def _once(samples: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples of the first filter, by item."""
    found: dict[int, dict[str, Any]] = {}
    for sample in samples:
        found.setdefault(sample["doc_id"], sample)
    return [found[key] for key in sorted(found)]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | np.number) else None


def _no_data(name: str, error: Exception) -> RunError:
    said = " ".join(str(error).split())[:300]
    return RunError(
        "data",
        f"lm-eval cannot load the data of {name}: {type(error).__name__}: {said}",
        hint="check the network, or the hub's cache; offline, give a task file whose data are on this machine",
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep progress bars and log lines of the library to itself."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
