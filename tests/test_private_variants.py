"""Luck of the best of many submissions against the public fault report, tables of order statistics and simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.errors import DataError, UsageError
from benchwright.ranking_game.private_variants import (
    expected_maximum,
    panel_lift,
    report_item_variants,
    report_variants,
    variants_to_explain,
)

ROWS = {"developer": ["a", "a", "b"], "n_items": [100, 100, 100], "score": [0.5, 0.6, 0.55], "public": [0, 1, 1]}


def test_best_of_five_private_variants(shared: Path) -> None:
    found = report_variants(pl.read_csv(shared / "cases" / "C37" / "submissions.csv"))
    assert found.developers == ("dev1", "dev2")
    assert found.best.tolist() == [0.66, 0.65]
    assert found.mean.tolist() == pytest.approx([0.604, 0.65])
    assert found.by_mean == ("dev2", "dev1")
    assert found.variants.tolist() == [5, 1]
    assert found.lift.tolist() == pytest.approx([0.056973, 0.0], abs=5e-7)
    assert found.lead[0] == pytest.approx(0.01)
    assert found.explained_by == (2, None)
    assert found.sigma[0] * expected_maximum(2) == pytest.approx(0.027639, abs=1e-6)
    assert "order by mean: dev2, dev1" in str(found)
    assert found.to_frame().height == 2
    assert found.to_dict()["lead"][1] is None


@pytest.mark.parametrize(("n", "value"), [(3, 3 / (2 * np.pi**0.5)), (10, 1.538753), (100, 2.507594), (1000, 3.241436)])
def test_expected_maximum_of_normals(n: int, value: float) -> None:
    """Values of Tippett (1925) and Harter (1961)."""
    assert expected_maximum(n) == pytest.approx(value, abs=2e-6)


def test_number_of_variants_is_the_least_that_explains() -> None:
    for lead in (0.001, 0.5, 1.0, 2.0, 3.3, 5.0):
        n = variants_to_explain(lead, 1.0)
        assert n is not None
        assert expected_maximum(n) >= lead > expected_maximum(max(n - 1, 1)) - 1e-12
    assert variants_to_explain(-0.1, 1.0) == 1
    assert variants_to_explain(0.1, 0.0) is None
    assert variants_to_explain(10.0, 1.0) is None


def test_luck_on_shared_items_is_less_than_on_items_of_their_own() -> None:
    rng, m, n = np.random.default_rng(3), 500, 6
    own = (rng.random((n, m)) < 0.6) * 1.0
    alike = np.where(rng.random((n, m)) < 0.8, own[0], own)
    independent = expected_maximum(n) * float(own.std(axis=1).mean()) / m**0.5
    assert panel_lift(own, rng=rng) == pytest.approx(independent, rel=0.1)
    assert panel_lift(alike, rng=rng) < 0.75 * independent
    assert panel_lift(own, rng=np.random.default_rng(5)) == panel_lift(own, rng=np.random.default_rng(5))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"score": [0.5, 1.6, 0.55]}, DataError, r"scores must lie in \[0, 1\]"),
        ({"n_items": [100, 0, 1]}, DataError, "`n_items` must be whole numbers, at least 1"),
        ({"public": [0, 0, 1]}, DataError, "a has no public submission"),
        ({"score": None}, UsageError, "lack the column.s. score"),
    ],
)
def test_bad_submissions(change: dict[str, Any], error: type[Exception], text: str) -> None:
    table = {name: values for name, values in (ROWS | change).items() if values is not None}
    with pytest.raises(error, match=text):
        report_variants(pl.DataFrame(table))


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match="`n` must lie in 1"):
        expected_maximum(0)
    with pytest.raises(UsageError, match="`sigma` must be a finite number >= 0"):
        variants_to_explain(0.1, -1.0)
    with pytest.raises(DataError, match="no submissions"):
        report_variants(pl.DataFrame(ROWS).clear())
    with pytest.raises(UsageError, match="must hold a variant and an item"):
        panel_lift(np.empty((2, 0)), rng=np.random.default_rng())


def item_rows(scores: np.ndarray, developer: str = "a", **columns: Any) -> pl.DataFrame:
    """One row a variant and item of a (variants, items) table."""
    variants, items = scores.shape
    table = {"developer": developer, "variant": np.repeat(np.arange(variants), items).astype(str)}
    table |= {"doc_id": np.tile(np.arange(items), variants).astype(str), "score": scores.ravel()}
    return pl.DataFrame(table | columns)


def test_variants_that_share_items_have_less_luck() -> None:
    """Against simulation: the mean lead of the best of n variants that agree on most items over their common worth."""
    rng, m, n, agree = np.random.default_rng(1), 400, 4, 0.7

    def draw() -> np.ndarray:
        common = rng.random(m) < 0.6
        return np.where(rng.random((n, m)) < agree, common, rng.random((n, m)) < 0.6) * 1.0

    truth = float(np.mean([(x := draw().mean(axis=1)).max() - x.mean() for _ in range(3000)]))
    luck = [report_item_variants(item_rows(draw()), rng=rng, replicates=300).lift[0] for _ in range(40)]
    assert np.mean(luck) == pytest.approx(truth, rel=0.1)
    assert truth < 0.9 * (0.24 / m) ** 0.5 * expected_maximum(n)


def test_report_of_item_scores() -> None:
    rng = np.random.default_rng(2)
    many = item_rows((rng.random((3, 50)) < 0.6) * 1.0, "many", public=[0] * 50 + [1] * 100)
    one = item_rows((rng.random((1, 50)) < 0.5) * 1.0, "one", public=[1] * 50)
    missing = pl.concat([many, one]).filter((pl.col("variant") != "1") | (pl.col("doc_id") != "7"))
    found = report_item_variants(missing, rng=rng)
    place = found.developers.index("many")
    kept = many.filter(pl.col("doc_id") != "7").group_by("variant", maintain_order=True).agg(pl.col("score").mean())
    assert found.best[place] == pytest.approx(max(kept["score"][1:]))
    assert found.mean[place] == pytest.approx(kept["score"].mean())
    assert found.lift[1 - place] == 0.0
    assert any("1 of 50 items not common to all left out" in note for note in found.notes)
    assert found.notes[0] in str(found)
    assert found.to_dict()["notes"] == list(found.notes)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"score": 2.0}, DataError, r"scores must lie in \[0, 1\]"),
        ({"doc_id": "0"}, DataError, "a, 0: item 0 is there twice"),
        ({"public": 0}, DataError, "a has no public submission"),
        ({"variant": ["0", "0", "1", "1"], "doc_id": ["0", "1", "2", "3"]}, DataError, "no item in common"),
        ({"score": None}, UsageError, "lack the column.s. score"),
    ],
)
def test_bad_item_scores(change: dict[str, Any], error: type[Exception], text: str) -> None:
    rows = item_rows(np.array([[0.0, 1.0], [1.0, 1.0]]))
    if change.get("score", 0) is None:
        rows = rows.drop("score")
    else:
        rows = rows.with_columns(
            **{name: pl.Series(value) if isinstance(value, list) else pl.lit(value) for name, value in change.items()}
        )
    with pytest.raises(error, match=text):
        report_item_variants(rows, rng=np.random.default_rng())
