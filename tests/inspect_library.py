"""What inspect-ai itself makes of logs, as JSON, for the test that compares our reader with it.

``python tests/inspect_library.py NEW OUT LOG...`` lets the library write logs into the folder NEW, with its mock
model and no network, and puts what it reads in them and in each LOG into the file OUT. It is a process of its own
because the library changes the standard zipfile module and does not work where warnings are errors.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any


def write_logs(folder: Path) -> None:
    """Let the library evaluate its mock model: two epochs, a failing sample, scores of every kind, both formats."""
    from inspect_ai import Epochs, Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, accuracy, match, mean, scorer, stderr
    from inspect_ai.solver import generate, solver

    def answers() -> Any:
        output = ModelOutput.from_content("mockllm/model", "yes")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it fetches a token table
        while True:
            yield output

    @solver
    def fails(epoch: int) -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            if state.sample_id == 3 and state.epoch == epoch:
                raise ValueError("broken on purpose")
            return state

        return solve

    @scorer(metrics=[mean(), stderr()])
    def kinds() -> Any:
        values = [0.25, "P", True, float("nan"), "no", "0.75", -2, None]

        async def score(state: Any, target: Any) -> Any:
            value = values[(state.sample_id + state.epoch) % len(values)]
            return None if value is None else Score(value=value)

        return score

    @scorer(metrics={"right": [accuracy(), stderr()], "*": [mean()]})
    def parts() -> Any:
        async def score(state: Any, target: Any) -> Any:
            if state.sample_id == 4:
                return Score(value=float("nan"), reason="refusal")
            return Score(value={"right": "CIPN"[state.sample_id % 4], "length": state.sample_id / 7})

        return score

    samples = [Sample(id=i, input=f"question {i}", target="no" if i % 3 else "yes") for i in range(9)]
    shared = {"name": "mock", "dataset": samples}
    for log_format in ("eval", "json"):
        epochs = Task(
            solver=[fails(epoch=2), generate()],
            scorer=[match(), kinds(), parts()],
            epochs=Epochs(2, ["mean", "max"]),
            fail_on_error=False,
            **shared,
        )
        whole = Task(solver=[generate()], scorer=match(), **shared)
        broken = Task(solver=[fails(epoch=1), generate()], scorer=match(), **shared)
        for task in (epochs, whole, broken):
            model = get_model("mockllm/model", custom_outputs=answers(), memoize=False)
            evaluate(task, model=model, log_dir=str(folder), log_format=log_format, display="none")


def reading(path: str) -> dict[str, Any]:
    """Return what the library reads in a log, values (also those of a dictionary) as its `value_to_float` has them."""
    from inspect_ai.log import read_eval_log
    from inspect_ai.scorer import value_to_float

    to_float = value_to_float()

    def number(value: Any) -> Any:
        return value if value is None else to_float(value)

    def worth(value: Any) -> Any:
        return {key: number(part) for key, part in value.items()} if isinstance(value, dict) else number(value)

    log = read_eval_log(path)
    results = log.results.scores if log.results else []
    return {
        "model": log.eval.model,
        "task": log.eval.task,
        "created": log.eval.created,
        "status": log.status,
        "scorers": [score.name for score in results] or [scorer.name for scorer in log.eval.scorers or []],
        "samples": [
            {
                "id": str(sample.id),
                "epoch": sample.epoch,
                "error": sample.error is not None,
                "scores": {
                    name: {"value": worth(score.value), "reason": score.reason}
                    for name, score in (sample.scores or {}).items()
                },
            }
            for sample in log.samples or []
        ],
        "stated": [
            {
                "name": score.name,
                "scorer": score.scorer,
                "reducer": score.reducer,
                "n": score.scored_samples,
                "metrics": {key: metric.value for key, metric in score.metrics.items()},
            }
            for score in results
        ],
    }


def main(new: str, out: str, *logs: str) -> None:
    """Write the logs, read these and the given ones."""

    def no_network(*_: Any, **__: Any) -> Any:
        raise OSError("no network in this test")

    socket.getaddrinfo = no_network
    write_logs(Path(new))
    paths = [*logs, *(str(path) for path in sorted(Path(new).iterdir()))]
    Path(out).write_text(json.dumps({path: reading(path) for path in paths}))


if __name__ == "__main__":
    main(*sys.argv[1:])
