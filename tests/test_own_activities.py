"""Welfare of one's own: a table of activity values, one list for both framings, one value per item."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from benchwright import audit
from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.logs.item_tables import read_item_tables
from benchwright.logs.welfare_tables import read_activities
from benchwright.report.build import write_report
from tables import AXES, JUDGE, write_rows, write_tables

FEW = Config().replace({"resampling.replicates": 100, "published.draws": 39}, source="test")


def own(path: Path, *rows: list[object], header: tuple[str, ...] = ("activity", "value")) -> Path:
    write_rows(path, [list(header), *rows])
    return path


def test_a_table_of_ones_own_is_read_with_one_value_or_two(tmp_path: Path) -> None:
    one = read_activities(own(tmp_path / "one.csv", ["refusing", 5], ["warning", 2.5]))
    assert one.select("activity", "label", "auto", "aug", "dropped").rows() == [
        ("refusing", "refusing", 5.0, 5.0, False),
        ("warning", "warning", 2.5, 2.5, False),
    ]
    header = ("activity", "name", "definition", "auto", "aug")
    two = read_activities(own(tmp_path / "two.csv", ["a", "Ay", "what it is", 1, 4], header=header))
    assert two.select("label", "auto", "aug").rows() == [("Ay", 1.0, 4.0)]


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([["a", 7]], ("activity", "value"), r"line 2, column `value`: must lie in 1 \.\. 5, got `7`"),
        ([["a", 2], ["a", 3]], ("activity", "value"), r"\(a\) appears 2 times"),
        ([["a", 2]], ("activity", "auto"), r"column `value`: missing; give one value, or auto and aug"),
        ([["a", 2]], ("concept", "value"), r"column `activity`: missing"),
    ],
)
def test_a_table_with_faults_names_them(
    tmp_path: Path, rows: list[list[object]], header: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_activities(own(tmp_path / "own.csv", *rows, header=header))


@pytest.mark.slow
def test_the_table_serves_an_audit_with_a_judge(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables")
    values = own(tmp_path / "own.csv", ["x", 5], ["y", 1])
    lines = [json.loads(line) for line in (folder / JUDGE).read_text().splitlines()]
    mine = [line | {"ranked_gwa_ids": ["x", "y"], "perspective": "both"} for line in lines[::2]]
    (folder / JUDGE).write_text("".join(json.dumps(line) + "\n" for line in mine))
    tables = read_item_tables(folder, axes=AXES, activities=values)
    assert tables.loadings["default"].height == len(lines)
    found = audit_items(tables, FEW).welfare
    assert found is not None
    assert found.items["w_auto_raw"].unique().to_list() == [5.5]
    assert found.items["w_aug_raw"].unique().to_list() == [5.5]
    report = audit(folder, activities=values, config=FEW)
    assert report.weights is not None
    assert any("Welfare is not drawn" in note for note in report.weights.notes)
    page = (write_report(report, tmp_path / "out") / "report.html").read_text(encoding="utf-8")
    assert "slots go to activities that are valued high under both framings" in page
    assert "value under automation (1 to 5)" in page
    assert "worker" not in str(report).lower()
    assert "workers want" not in page
    assert "workers said" not in page


def test_one_value_per_item_is_the_welfare_as_it_stands(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables")
    keys = read_item_tables(folder, axes=AXES).loadings["default"].select("task", "doc_id").unique(maintain_order=True)
    (folder / JUDGE).unlink()
    keys.with_columns(value=pl.int_range(pl.len()) / 4).write_csv(folder / "welfare.csv")
    report = audit(folder, config=FEW)
    assert report.audit.welfare is not None
    assert report.audit.welfare.items["w_auto"].to_list() == [place / 4 for place in range(keys.height)]
    assert report.audit.welfare.published_gap is None
    assert report.weights is not None


def test_a_path_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no gwa_welfare_scores.csv there"):
        read_activities(tmp_path / "none.csv")
