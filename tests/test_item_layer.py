"""The item layer of a report as a source: the same weights again, other choices without the tables behind it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import benchwright as bw
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.logs.item_layer import layer_path, read_item_layer
from tables import write_tables

QUICK = {"resampling.replicates": 100, "resampling.level": 0.9}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    report = bw.audit(write_tables(tmp_path / "source"), config=Config().replace(QUICK, source="test"))
    return bw.write_report(report, tmp_path / "out", page=False, figures=False)


def weights_of(source: Path, **choices: float) -> pl.DataFrame:
    config = Config().replace(QUICK | {key.replace("__", "."): value for key, value in choices.items()}, source="test")
    weighed = bw.audit(source, config=config).weights
    assert weighed is not None
    return weighed.items.select("task", "doc_id", "weight", "cost_usd", "sigma2", "welfare")


def test_the_layer_gives_the_same_weights_as_the_tables(folder: Path, tmp_path: Path) -> None:
    assert weights_of(folder).equals(weights_of(tmp_path / "source"))
    assert weights_of(folder / "items.parquet", welfare__neutral=2.0).equals(
        weights_of(tmp_path / "source", welfare__neutral=2.0)
    )


def test_what_is_a_layer(folder: Path, tmp_path: Path) -> None:
    assert layer_path(folder) == folder / "items.parquet"
    assert layer_path(folder / "items.parquet") == folder / "items.parquet"
    rows = tmp_path / "rows.parquet"
    pl.DataFrame({"task": ["a"]}).write_parquet(rows)
    (tmp_path / "text.parquet").write_text("no parquet", encoding="utf-8")
    assert [layer_path(path) for path in (rows, tmp_path / "text.parquet", tmp_path / "source", tmp_path)] == [None] * 4


def test_an_item_twice_no_section_and_judges_are_refused(folder: Path, tmp_path: Path) -> None:
    layer, kept = pl.read_parquet(folder / "items.parquet"), {"benchwright.columns": "{}"}
    path = tmp_path / "items.parquet"
    pl.concat([layer, layer.head(1)]).write_parquet(path, metadata=kept)
    with pytest.raises(DataError, match=r"\(alpha, 0\) stands twice"):
        bw.audit(path)
    layer.select("task", "doc_id", "slope_pt").write_parquet(path, metadata=kept)
    with pytest.raises(DataError, match=r"none of welfare, slopes on a priced axis and noise is in it"):
        bw.audit(path)
    layer.drop("doc_id").write_parquet(path, metadata=kept)
    with pytest.raises(DataError, match="no item key"):
        bw.audit(path)
    with pytest.raises(UsageError, match="keeps no loadings"):
        bw.audit(folder, judges=[tmp_path / "other.jsonl"])


def test_the_level_of_rank_intervals_comes_with_them(folder: Path, tmp_path: Path) -> None:
    axes = ("PT", "SFT", "RL")
    assert read_item_layer(folder / "items.parquet", axes=axes).rank_level == 0.95  # of the tables, not of this report
    layer, path = pl.read_parquet(folder / "items.parquet"), tmp_path / "items.parquet"
    described = {"benchwright.columns": "{}"}
    for metadata, level in ((described, 0.95), (described | {"benchwright.rank_level": "0.6"}, 0.6)):
        layer.write_parquet(path, metadata=metadata)
        assert read_item_layer(path, axes=axes).rank_level == level
    again = bw.write_report(bw.audit(path), tmp_path / "again", page=False, figures=False)
    assert read_item_layer(again / "items.parquet", axes=axes).rank_level == 0.6
    for wrong in ("high", "1.5", "nan"):
        layer.write_parquet(path, metadata=described | {"benchwright.rank_level": wrong})
        with pytest.raises(DataError, match=r"rank_level = '.*' is no level"):
            read_item_layer(path, axes=axes)


def test_sections_can_be_left_out(folder: Path) -> None:
    tables = read_item_layer(folder / "items.parquet", axes=("PT", "SFT", "RL"), without=("noise",))
    assert tables.noise is None
    assert tables.cost is not None
    assert tables.axes == ("PT", "SFT", "RL")
