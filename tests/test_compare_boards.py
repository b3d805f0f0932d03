"""Two releases of a board: models, ranks, scores, and what of it is beyond doubt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchwright.board.board_changes import BoardChanges
from benchwright.board.compare import compare
from benchwright.board.folder import write_board
from benchwright.board.scheme import WeightScheme
from benchwright.board.scoring import score_board
from benchwright.board.values import BoardValues
from benchwright.errors import BenchwrightError, DataError
from benchwright.panel.ingest import read_logs

FULL = "model,score,standard_error,rank,rank_lo,rank_hi"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def changes(folder: Path, old: str, new: str) -> BoardChanges:
    found = compare(write(folder / "old.csv", old), write(folder / "new.csv", new))
    assert found.kind == "board"
    assert found.weights is None
    assert found.board is not None
    return found.board


def column(part: BoardChanges, name: str) -> dict[str, object]:
    return dict(part.frame.select("model", name).iter_rows())


def test_scores_ranks_and_settled_changes(tmp_path: Path) -> None:
    old = f"{FULL}\nx,0.9,0.01,1,1,1\ny,0.7,0.03,2,2,3\nz,0.6,0.04,3,2,3"
    new = f"{FULL}\ny,0.95,0.04,1,1,1\nx,0.9,0.01,2,2,3\nz,0.8,0.03,3,2,3"
    part = changes(tmp_path, old, new)
    assert part.frame["model"].to_list() == ["y", "x", "z"]
    assert column(part, "rank_change") == {"x": -1, "y": 1, "z": 0}
    assert column(part, "settled") == {"x": True, "y": True, "z": False}
    assert column(part, "score_change") == pytest.approx({"x": 0.0, "y": 0.25, "z": 0.2})
    assert column(part, "standard_error") == pytest.approx({"x": 0.01 * 2**0.5, "y": 0.05, "z": 0.05})
    assert column(part, "p") == pytest.approx({"x": 1.0, "y": 2 * stats.norm.sf(5), "z": 2 * stats.norm.sf(4)})
    assert column(part, "p_corrected")["z"] == pytest.approx(6 * stats.norm.sf(4))
    assert column(part, "p_corrected")["x"] == 1.0
    assert part.tau_b == pytest.approx(1 / 3)
    assert not part.paired
    assert part.counts == {
        "common": 3,
        "added": 0,
        "removed": 0,
        "rank_changes": 2,
        "rank_changes_settled": 2,
        "scores_compared": 3,
        "score_changes": 2,
    }
    text = str(part)
    for words in ("independent samples", "conservative", "Bonferroni"):
        assert words in text


def test_a_new_model_pushes_nobody_down_and_settles_nothing(tmp_path: Path) -> None:
    old = f"{FULL}\nx,0.9,0.01,1,1,1\ny,0.7,0.03,2,2,2\nw,0.1,0.03,3,3,3"
    new = f"{FULL}\nq,0.99,0.01,1,1,1\nx,0.9,0.01,2,2,2\ny,0.7,0.03,3,3,3"
    part = changes(tmp_path, old, new)
    assert column(part, "status") == {"q": "added", "x": "common", "y": "common", "w": "removed"}
    assert column(part, "rank_change") == {"q": None, "x": 0, "y": 0, "w": None}
    assert column(part, "new_rank") == {"q": 1, "x": 2, "y": 3, "w": None}
    assert part.frame["settled"].null_count() == 4
    assert part.counts["rank_changes_settled"] is None
    assert "the models differ" in str(part)


def test_tables_without_errors_and_ranks_test_nothing(tmp_path: Path) -> None:
    part = changes(tmp_path, "name,score\nx,0.5\ny,0.4", "name,score\nx,0.3\ny,0.4")
    assert column(part, "rank_change") == {"x": -1, "y": 1}
    assert part.frame["standard_error"].null_count() == part.frame["p"].null_count() == 2
    assert part.counts["score_changes"] is None
    assert "no score change is tested" in str(part)


def test_a_model_without_a_score_has_no_change(tmp_path: Path) -> None:
    part = changes(tmp_path, "model,score\nx,0.5\ny,0.4\nz,0.1", "model,score\nx,\ny,0.4\nz,0.2")
    assert column(part, "score_change")["x"] is None
    assert column(part, "rank_change") == {"x": None, "y": 0, "z": 0}


def log(values: dict[str, list[float]]) -> str:
    lines = ["item," + ",".join(values)]
    lines += [f"q{i}," + ",".join(str(x) for x in row) for i, row in enumerate(zip(*values.values(), strict=True))]
    return "\n".join(lines)


def test_item_scores_on_both_sides_pair_the_changes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    before = {name: (rng.random(60) < p).astype(float).tolist() for name, p in (("A", 0.6), ("B", 0.5))}
    after = {name: [1.0 if rng.random() < 0.2 else x for x in xs] for name, xs in before.items()}
    old, new = write(tmp_path / "old.csv", log(before)), write(tmp_path / "new.csv", log(after))
    part = compare(old, new).board
    assert part is not None
    assert part.paired
    for name in before:
        d = np.array(after[name]) - np.array(before[name])
        assert column(part, "score_change")[name] == pytest.approx(d.mean())
        assert column(part, "standard_error")[name] == pytest.approx(d.std(ddof=1) / 60**0.5)
        assert column(part, "p")[name] == pytest.approx(stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue)
    assert set(column(part, "n_items").values()) == {60}
    assert "paired" in str(part)
    assert "taken for the same: old and new" in str(compare(old, new))
    for path in (old, new):  # panels of the same logs say the same
        read_logs([path], path.with_suffix(""))
    panels = compare(tmp_path / "old", tmp_path / "new").board
    assert panels is not None
    assert panels.frame.equals(part.frame)


def test_scores_that_are_not_0_or_1_are_tested_by_z(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    before = {"A": rng.random(40).tolist()}
    after = {"A": (np.array(before["A"]) + rng.normal(0.02, 0.05, 40)).tolist()}
    part = compare(write(tmp_path / "old.csv", log(before)), write(tmp_path / "new.csv", log(after))).board
    assert part is not None
    d = np.array(after["A"]) - np.array(before["A"])
    assert column(part, "p")["A"] == pytest.approx(2 * stats.norm.sf(abs(d.mean()) / (d.std(ddof=1) / 40**0.5)))


def test_items_of_one_side_alone_add_their_own_noise(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.random(30), rng.random(50)
    old, new = write(tmp_path / "old.csv", log({"A": x.tolist()})), write(tmp_path / "new.csv", log({"A": y.tolist()}))
    part = compare(old, new).board
    assert part is not None
    z = np.zeros((2, 50))
    z[0, :30], z[1] = (x - x.mean()) / 30, (y - y.mean()) / 50
    gap = z[1] - z[0]
    assert column(part, "score_change")["A"] == pytest.approx(y.mean() - x.mean())
    assert column(part, "standard_error")["A"] == pytest.approx(np.sqrt(50 / 49 * np.square(gap).sum()))
    assert column(part, "n_items")["A"] == 30


def test_rescored_boards_pair_what_their_weights_change(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    n = 60
    frame = pl.DataFrame(
        {
            "model": np.repeat(["A", "B"], n),
            "task": np.tile(np.repeat(["s", "t"], n // 2), 2),
            "doc_id": np.tile(np.arange(n), 2),
            "value": rng.random(2 * n),
        }
    )
    values = BoardValues.from_frame(frame)
    weights = values.items.with_columns(weight=pl.Series(rng.random(n)))
    boards = {"old": score_board(values), "new": score_board(values, WeightScheme(weights, rule="drawn"))}
    for name, one in boards.items():
        write_board(one, tmp_path / name)
    found = compare(tmp_path / "old", tmp_path / "new")
    assert found.kind == "board"
    assert found.board is not None
    assert found.weights is not None
    assert found.board.paired
    assert ("rule", '"plain average of items"', '"drawn"') in found.choices.rows()
    shares = weights["weight"].to_numpy() / weights["weight"].sum()
    for place, model in enumerate("AB"):
        x = values.values[:, place]
        gap = shares * (x - shares @ x) - (x - x.mean()) / n
        error = sum(30 / 29 * np.square(part - part.mean()).sum() for part in (gap[:30], gap[30:])) ** 0.5  # by task
        assert column(found.board, "score_change")[model] == pytest.approx(shares @ x - x.mean())
        assert column(found.board, "standard_error")[model] == pytest.approx(error)
    against = compare(tmp_path / "old", tmp_path / "old")
    assert against.board is not None
    assert against.board.counts["rank_changes"] == 0
    assert against.choices.height == 0


def test_items_of_other_names_are_not_paired(tmp_path: Path) -> None:
    old = write(tmp_path / "old.csv", "item,A,B\nq1,1,0\nq2,0,0")
    new = write(tmp_path / "new.csv", "item,A,B\np1,1,1\np2,1,0")
    found = compare(old, new)
    assert found.board is not None
    assert not found.board.paired
    assert column(found.board, "score_change") == {"A": 0.5, "B": 0.5}
    assert "not paired" in str(found)


def test_another_metric_is_said(tmp_path: Path) -> None:
    for name, metric in (("old", "acc"), ("new", "f1")):
        rows = [f"{model},t,{item},{metric},{item % 2}" for model in "xy" for item in range(4)]
        write(tmp_path / f"{name}.csv", "\n".join(["model,task,item_id,metric,score", *rows]))
    assert "task t: the metric was acc and is f1" in str(compare(tmp_path / "old.csv", tmp_path / "new.csv"))


def test_a_folder_with_a_leaderboard_is_a_board(tmp_path: Path) -> None:
    for name, score in (("old", 0.5), ("new", 0.7)):
        write(tmp_path / name / "leaderboard.csv", f"model,score\nx,{score}\ny,0.6")
    part = compare(tmp_path / "old", tmp_path / "new").board
    assert part is not None
    assert column(part, "rank_change") == {"x": 1, "y": -1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,score\nx,high\ny,1", "line 2, column `score`"),
        ("model,score\nx,1\nx,2", "appears 2 times"),
        ("model,score", "no rows"),
    ],
)
def test_damaged_boards_are_named(tmp_path: Path, text: str, said: str) -> None:
    good, bad = write(tmp_path / "good.csv", "model,score\nx,1"), write(tmp_path / "bad.csv", text)
    with pytest.raises(BenchwrightError, match="bad") as raised:
        compare(good, bad)
    assert said in str(raised.value)


def test_boards_of_other_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no model in common"):
        changes(tmp_path, "model,score\nx,1", "model,score\ny,1")
