"""Groups of items that carry one weight, and shares that are fixed: from columns and from files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import benchwright as bw
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.mechanism.item_weights import ItemWeights
from tables import write_rows, write_tables

QUICK = {"resampling.replicates": 100, "published.draws": 60, "welfare.neutral": 1.0}


def weighed(folder: Path, **published: object) -> ItemWeights:
    source = folder / "source"
    if not source.exists():
        write_tables(source)
    choices = QUICK | {f"published.{name}": value for name, value in published.items()}
    found = bw.audit(source, config=Config().replace(choices, source="test")).weights
    assert found is not None
    return found


def shares(weights: ItemWeights) -> dict[tuple[str, int], float]:
    rows = weights.items.select("task", "doc_id", "published_share").iter_rows()
    return {(task, doc_id): share for task, doc_id, share in rows}


@pytest.mark.parametrize("column", ["quadrant", "cheapest_axis", "family"])
def test_one_weight_within_any_column(tmp_path: Path, column: str) -> None:
    weights = weighed(tmp_path, equal_within=column)
    layer = bw.audit(tmp_path / "source", config=Config().replace(QUICK, source="test")).items
    joined = weights.items.select("task", "doc_id", "published_weight").join(layer, on=["task", "doc_id"])
    by_group = joined.group_by(column).agg(low=pl.col("published_weight").min(), high=pl.col("published_weight").max())
    assert joined.height == weights.items.height
    assert by_group["low"].to_list() == by_group["high"].to_list()
    assert set(weights.prices) == {"non_negative", "equal_within"}


def test_groups_of_a_file_and_items_that_it_does_not_name(tmp_path: Path) -> None:
    write_rows(tmp_path / "groups.csv", [["task", "doc_id", "group"], ["alpha", 0, "a"], ["beta", 1, "a"]])
    found = shares(weighed(tmp_path, equal_within=str(tmp_path / "groups.csv")))
    assert found["alpha", 0] == found["beta", 1]
    assert len({*found.values()}) > 2


def test_fixed_shares_are_kept(tmp_path: Path) -> None:
    write_rows(tmp_path / "fixed.csv", [["task", "doc_id", "share"], ["alpha", 0, 0.25], ["gamma", 5, 0.0]])
    weights = weighed(tmp_path, fixed_shares=str(tmp_path / "fixed.csv"))
    found = shares(weights)
    assert found["alpha", 0] == pytest.approx(0.25)
    assert found["gamma", 5] == 0
    assert sum(found.values()) == pytest.approx(1)
    assert weights.prices["fixed_shares"] > 0


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    write_rows(path, [["task", "doc_id", "group"], ["alpha", 0, "a"], ["alpha", 0, "b"]])
    with pytest.raises(DataError, match=r"\(alpha, 0\) stands twice"):
        weighed(tmp_path, equal_within=str(path))
    write_rows(path, [["task", "doc_id", "group"], ["other", 0, "a"]])
    with pytest.raises(DataError, match="none of its 1 items carries a weight here"):
        weighed(tmp_path, equal_within=str(path))
    write_rows(path, [["task", "doc_id", "share"], ["other", 0, 0.5]])
    with pytest.raises(DataError, match=r"\(other, 0\) carries no weight here"):
        weighed(tmp_path, fixed_shares=str(path))
    write_rows(path, [["task", "doc_id", "share"], ["alpha", 0, 0.7], ["beta", 0, 0.6]])
    with pytest.raises(UsageError, match="`fixed_shares` and `non_negative` clash"):
        weighed(tmp_path, fixed_shares=str(path))
    with pytest.raises(UsageError, match=r"no such column\nHint: there are none, task, .*quadrant"):
        weighed(tmp_path, equal_within="nonsense")
