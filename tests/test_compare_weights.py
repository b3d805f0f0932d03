"""Two sets of weights: what moved, what flipped, and what exceeds its intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchwright.board.compare import compare
from benchwright.board.scheme import WeightScheme
from benchwright.board.weight_changes import RULE, WeightChanges
from benchwright.errors import DataError, UsageError


def write(path: Path, rows: list[tuple[object, ...]], columns: str = "task,doc_id,weight") -> Path:
    lines = [columns, *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def changes(
    folder: Path, old: list[tuple[object, ...]], new: list[tuple[object, ...]], columns: str = ""
) -> WeightChanges:
    named = columns or "task,doc_id,weight"
    found = compare(write(folder / "old.csv", old, named), write(folder / "new.csv", new, named))
    assert found.kind == "weights"
    assert found.board is None
    assert found.weights is not None
    return found.weights


def rows(part: WeightChanges) -> dict[str, dict[str, object]]:
    return {f"{row['task']}/{row['doc_id']}": row for row in part.frame.iter_rows(named=True)}


def test_the_same_weights_on_another_scale_have_not_changed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(1, 1, size=30)
    old = [("t", i, w) for i, w in enumerate(weights)]
    new = [("t", i, 7 * w) for i, w in reversed([*enumerate(weights)])]
    part = changes(tmp_path, old, new)
    assert part.share_moved == pytest.approx(0, abs=1e-14)
    assert part.counts["sign_flips"] == 0
    assert part.spearman.value == pytest.approx(1)
    assert np.isnan(part.spearman.lo)  # nothing to say of an interval at 1
    np.testing.assert_allclose(part.frame["share_change"], 0, atol=1e-15)


def test_items_come_and_go_and_shares_are_of_all_items(tmp_path: Path) -> None:
    part = changes(tmp_path, [("a", 1, 1), ("a", 2, 3)], [("a", 2, 2), ("b", 1, 1), ("b", 2, 1)])
    found = rows(part)
    assert {name: row["status"] for name, row in found.items()} == {
        "a/1": "removed",
        "a/2": "common",
        "b/1": "added",
        "b/2": "added",
    }
    assert found["a/2"]["share_change"] == pytest.approx(0.5 - 0.75)
    assert found["a/1"]["new_weight"] is None
    assert part.share_moved == pytest.approx(0.5)
    assert part.counts == {
        "common": 1,
        "added": 2,
        "removed": 1,
        "sign_flips": 0,
        "became_0": 0,
        "were_0": 0,
        "with_intervals": 0,
        "settled": None,
    }
    assert np.isnan(part.spearman.value)  # one item has no order
    assert "no change is called settled" in str(part)


def test_order_and_flips(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(0.5, 1, size=40)
    y = x + rng.normal(0, 0.5, size=40)
    part = changes(tmp_path, [("t", i, w) for i, w in enumerate(x)], [("t", i, w) for i, w in enumerate(y)])
    assert part.counts["sign_flips"] == int((x * y < 0).sum()) > 0
    assert part.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert part.kendall.value == pytest.approx(stats.kendalltau(x, y).statistic)
    assert part.spearman.lo < part.spearman.value < part.spearman.hi
    assert part.frame["share_change"].abs().is_sorted(descending=True)
    assert "negative" in str(part)


def test_intervals_of_rank_correlations_cover() -> None:
    """Of 400 samples of 60 items, some 95 % hold the correlation of the population."""
    from benchwright.board.weight_changes import _correlation

    rng = np.random.default_rng(2)
    rho, truth = 0.6, 6 / np.pi * np.arcsin(0.3)  # Spearman's of a normal pair
    held = 0
    for _ in range(400):
        x, y = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=60).T
        found = _correlation("spearman", x, y)
        held += found.lo <= truth <= found.hi
    assert 0.92 <= held / 400 <= 0.98


def test_a_change_is_settled_only_where_intervals_do_not_overlap(tmp_path: Path) -> None:
    columns = "task,doc_id,weight,weight_lo,weight_hi"
    old = [("t", 1, 1, 0.9, 1.1), ("t", 2, 1, 0.9, 1.1), ("t", 3, 2, 1.8, 2.2), ("t", 4, 1, None, None)]
    new = [("t", 1, 2, 1.7, 2.3), ("t", 2, 1.1, 1.0, 1.2), ("t", 3, 0.9, 0.5, 1.0), ("t", 4, 1, 0.9, 1.1)]
    part = changes(tmp_path, old, new, columns)
    assert {name: row["settled"] for name, row in rows(part).items()} == {
        "t/1": True,
        "t/2": False,
        "t/3": True,
        "t/4": None,
    }
    assert (part.counts["settled"], part.counts["with_intervals"]) == (2, 3)
    assert RULE in str(part)
    assert "conservative" in RULE
    first = rows(part)["t/1"]
    assert (first["old_lo"], first["old_hi"]) == (pytest.approx(0.9 / 5), pytest.approx(1.1 / 5))


def test_a_negative_sum_keeps_the_ends_of_intervals_in_order(tmp_path: Path) -> None:
    columns = "task,doc_id,weight,weight_lo,weight_hi"
    old = [("t", 1, -3, -3.5, -2.5), ("t", 2, 1, 0.5, 1.5)]
    part = changes(tmp_path, old, old, columns)
    row = rows(part)["t/1"]
    assert row["old_share"] == pytest.approx(-0.75)
    assert (row["old_lo"], row["old_hi"]) == (pytest.approx(-3.5 / 4), pytest.approx(-2.5 / 4))
    assert "do not sum to more than 0" in str(part)


def test_published_shares_come_first_where_both_have_them(tmp_path: Path) -> None:
    columns = "task,doc_id,weight,published_weight,published_share,published_lo,published_hi"
    rows_of = {"old": [(5, 2, 0.5, 0.4, 0.6)] * 2, "new": [(5, 6, 0.75, 0.7, 0.8), (5, 2, 0.25, 0.2, 0.3)]}
    files = {
        name: write(tmp_path / f"{name}.csv", [("t", i, *row) for i, row in enumerate(given)], columns)
        for name, given in rows_of.items()
    }
    part = compare(files["old"], files["new"]).weights
    assert part is not None
    assert part.share_moved == pytest.approx(0.25)
    assert part.counts["settled"] == 2
    found = rows(part)["t/0"]
    assert (found["new_lo"], found["new_hi"]) == (pytest.approx(0.7), pytest.approx(0.8))
    plain = compare(files["old"], files["new"], column="weight").weights
    assert plain is not None
    assert plain.share_moved == 0
    with pytest.raises(UsageError, match="no weights in a column gain"):
        compare(files["old"], files["new"], column="gain")


def test_weights_dropped_to_0_and_taken_up_are_counted(tmp_path: Path) -> None:
    part = changes(tmp_path, [("t", 1, 0), ("t", 2, 1), ("t", 3, 1)], [("t", 1, 2), ("t", 2, 0), ("t", 3, 0)])
    assert (part.counts["became_0"], part.counts["were_0"], part.counts["sign_flips"]) == (2, 1, 0)


def test_a_column_that_one_side_lacks_is_said(tmp_path: Path) -> None:
    both = write(tmp_path / "both.csv", [("t", 1, 1, 5), ("t", 2, 1, 5)], "task,doc_id,published_weight,weight")
    published = write(tmp_path / "published.csv", [("t", 1, 3), ("t", 2, 1)], "task,doc_id,published_weight")
    plain = write(tmp_path / "plain.csv", [("t", 1, 3), ("t", 2, 1)])
    found = compare(both, plain)
    assert found.weights is not None
    assert found.weights.frame["old_weight"].to_list() == [5, 5]
    assert any(note.endswith("both.csv has published_weight") for note in found.notes)
    other = compare(published, plain).weights
    assert other is not None
    assert "old weights are the column published_weight, new ones weight" in str(other)


def test_published_weights_that_are_all_0_are_passed_over(tmp_path: Path) -> None:
    columns = "task,doc_id,weight,published_weight,published_share"
    old = write(tmp_path / "old.csv", [("t", 1, 1, 0, None), ("t", 2, 1, 0, None)], columns)
    part = compare(old, old).weights
    assert part is not None
    assert part.frame["old_weight"].to_list() == [1, 1]


def test_weights_of_tasks_are_compared(tmp_path: Path) -> None:
    part = changes(tmp_path, [("a", 1), ("b", 1)], [("a", 3), ("b", 1)], "task,weight")
    assert part.share_moved == pytest.approx(0.25)
    assert part.frame["doc_id"].null_count() == 2


def test_schemes_are_compared_with_their_choices(tmp_path: Path) -> None:
    table = pl.DataFrame({"task": ["a", "a"], "doc_id": ["1", "2"], "weight": [1.0, 1.0]})
    old = WeightScheme(table, rule="plain", assumptions={"risk": 1.0, "same": 1})
    new = WeightScheme(
        table.with_columns(weight=pl.Series([1.0, 3.0])), rule="optimal", assumptions={"risk": 10.0, "same": 1}
    )
    for name, scheme in (("old", old), ("new", new)):
        (tmp_path / f"{name}.json").write_text(scheme.to_json(), encoding="utf-8")
    found = compare(tmp_path / "old.json", tmp_path / "new.json")
    assert found.choices.rows() == [("rule", '"plain"', '"optimal"'), ("risk", "1.0", "10.0")]
    assert found.weights is not None
    assert found.weights.share_moved == pytest.approx(0.25)
    csv = write(tmp_path / "new.csv", [("a", 1, 1.0), ("a", 2, 3.0)])
    against = compare(tmp_path / "new.json", csv).weights
    assert against is not None
    assert against.share_moved == 0


def test_a_scheme_changed_by_hand_is_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"task": ["a", "a"], "doc_id": ["1", "2"], "weight": [1.0, 1.0]})
    text = WeightScheme(table).to_json()
    (tmp_path / "old.json").write_text(text, encoding="utf-8")
    (tmp_path / "new.json").write_text(text.replace('["a", "2", 1.0]', '["a", "2", 9.0]'), encoding="utf-8")
    with pytest.raises(DataError, match="not the hash of the content"):
        compare(tmp_path / "old.json", tmp_path / "new.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("task,doc_id,weight\na,1,x\n", "line 2, column `weight`"),
        ("task,doc_id,weight\na,1,1\na,1,2\n", "appears 2 times"),
        ("task,doc_id,weight\na,1,0\n", "all weights are 0"),
        ("task,doc_id,weight\n", "no rows"),
        ("task,doc_id,weight\na,1,1\n".encode("utf-16").decode("latin-1"), "nothing could be read"),
    ],
)
def test_damaged_weights_are_named(tmp_path: Path, content: str, said: str) -> None:
    good = write(tmp_path / "good.csv", [("a", 1, 1)])
    bad = tmp_path / "bad.csv"
    bad.write_bytes(content.encode("latin-1"))
    for pair in ((good, bad), (bad, good)):
        with pytest.raises((DataError, UsageError), match="bad") as raised:
            compare(*pair)
        assert said in str(raised.value)


def test_weights_of_other_items_are_refused(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old.csv", [("a", 1, 1)]), write(tmp_path / "new.csv", [("b", 1, 1)])
    with pytest.raises(DataError, match="no item in common") as raised:
        compare(old, new)
    assert raised.value.hint is not None
    assert "(a, 1)" in raised.value.hint
    assert "(b, 1)" in raised.value.hint
