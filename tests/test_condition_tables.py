"""Long tables that name the condition of each score, read as scores before and after tuning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchwright.errors import DataError, UsageError
from benchwright.game_answers.inputs import answer_file
from benchwright.ranking_game.protocols import ProtocolComparison

Scores = Mapping[tuple[str, str, str], float]
BOTH: Scores = {
    (model, task, condition): round(0.2 + 0.1 * k + 0.05 * t + 0.2 * (condition == "tuned") * (k % 2), 3)
    for k, model in enumerate("abcd")
    for t, task in enumerate(("arc", "mmlu"))
    for condition in ("tuned", "base")
}


def write(file: Path, scores: Scores, *, more: str = "") -> Path:
    lines = [f"{model},{task},acc,{condition},{score}" for (model, task, condition), score in scores.items()]
    file.write_text("\n".join(["model,task,metric,condition,value", *lines]) + "\n" + more, encoding="utf-8")
    return file


def compared(file: Path, **options: Any) -> ProtocolComparison:
    found = answer_file(file, **options)
    assert isinstance(found, ProtocolComparison)
    return found


def test_the_same_as_a_wide_table(tmp_path: Path) -> None:
    long = compared(write(tmp_path / "long.csv", BOTH))
    header = ["model", *(f"{task}_{when}" for task in ("arc", "mmlu") for when in ("before", "after"))]
    rows = [
        [m, *(str(BOTH[m, task, condition]) for task in ("arc", "mmlu") for condition in ("base", "tuned"))]
        for m in "abcd"
    ]
    wide = tmp_path / "wide.csv"
    wide.write_text("\n".join(",".join(row) for row in [header, *rows]), encoding="utf-8")
    other = compared(wide)
    assert long.tau == other.tau
    np.testing.assert_array_equal(long.move, other.move)
    assert long.notes == ("base is compared with tuned",)


def test_which_conditions_and_scores(tmp_path: Path) -> None:
    three = BOTH | {(m, t, "longer"): v for (m, t, c), v in BOTH.items() if c == "tuned"}
    file = write(tmp_path / "three.csv", three, more="a,arc,brier,base,0.1\n")
    with pytest.raises(UsageError, match="3 conditions are there: tuned, base, longer"):
        compared(file)
    with pytest.raises(UsageError, match=r"1 task with several kinds of scores, e\.g\. arc: acc, brier") as bad:
        compared(file, conditions=("base", "longer"))
    assert bad.value.hint == "choose one with --metric"
    found = compared(file, conditions=("base", "longer"), metric="acc")
    assert found.tau == compared(write(tmp_path / "two.csv", BOTH)).tau
    assert compared(file, conditions=("base", "tuned"), metric="acc", models=["!d"]).models == ("a", "b", "c")
    for conditions in (("base",), ("base", "base")):
        with pytest.raises(UsageError, match="must be two different names"):
            compared(file, conditions=conditions)
    with pytest.raises(UsageError, match="no condition is named `bas`"):
        compared(file, conditions=("bas", "tuned"))


def test_lower_is_better_and_what_is_missing(tmp_path: Path) -> None:
    text = write(tmp_path / "acc.csv", BOTH).read_text(encoding="utf-8")
    lower = tmp_path / "lower.csv"
    lower.write_text(text.replace("acc", "brier_score"), encoding="utf-8")
    up, down = compared(tmp_path / "acc.csv"), compared(lower)
    np.testing.assert_array_equal(up.rank, 5 - down.rank)
    gaps = compared(write(tmp_path / "gaps.csv", BOTH, more="e,arc,acc,base,0.3\nf,arc,acc,base,\n"))
    assert gaps.models == ("a", "b", "c", "d")
    assert gaps.notes[1:] == ("without a score under one of them, left out: e", "1 score missing or not finite")
    assert gaps.to_dict()["notes"] == list(gaps.notes)
    assert "left out: e" in str(gaps)
    with pytest.raises(DataError, match=r"1 row of twice.csv name what an earlier one names") as bad:
        compared(write(tmp_path / "twice.csv", BOTH, more="a,arc,acc,base,0.5\n"))
    assert "line 18" in str(bad.value)


def test_columns_that_are_no_pair_are_named(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text(
        "model,a_before,a_after,b_before,b_after,c_before,c_aftr\nx,1,2,3,4,5,6\ny,2,1,4,3,6,5\n", encoding="utf-8"
    )
    assert compared(file).notes == ("columns not read: c_before, c_aftr",)


def test_published_runs(shared: Path) -> None:
    found = compared(
        shared / "data" / "trajectories" / "ttt-emergence" / "direct_vs_ft.csv",
        conditions=("base", "e3/mmluaux"),
        metric="acc",
    )
    assert (len(found.models), found.tasks) == (53, ("mmlu", "truthfulqa_mc2_mc", "winogrande_mc"))
    assert found.tau == pytest.approx((0.5901, 0.7394), abs=1e-4)
