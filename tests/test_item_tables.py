"""Readers of item tables: every fault is named by file, line and column; nothing else ever escapes."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.errors import BenchwrightError, DataError, UsageError
from benchwright.logs.item_tables import ItemTables
from tables import (
    AXES,
    JUDGE,
    drop_column,
    edit,
    faults,
    read,
    read_rows,
    set_cell,
    set_field,
    write_rows,
    write_tables,
)

FILES = ("gwa_welfare_scores.csv", JUDGE, "cost.csv", "noise.csv", "item_margins.parquet", "families.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path / "source")


def test_valid_folder_reads_without_notes(folder: Path) -> None:
    tables = read(folder)
    assert tables.axes == AXES
    assert tables.notes == ()
    assert {file.name for file in tables.files} == set(FILES)
    assert tables.cost is not None
    assert tables.cost["doc_id"].dtype == pl.Int64


@pytest.mark.parametrize(
    ("file", "line", "column", "value", "reason"),
    [
        ("cost.csv", 3, "anchor_phat", "much", "must be a finite number, got `much`"),
        ("cost.csv", 3, "anchor_phat", "", "got an empty cell"),
        ("cost.csv", 4, "anchor_phat", "NaN", "must be a finite number, got `NaN`"),
        ("cost.csv", 4, "beta_pt", "inf", "must be a finite number, got `inf`"),
        ("cost.csv", 4, "beta_sft", "-1e999", "must be a finite number"),
        ("cost.csv", 5, "beta_sft", "1e12", "must lie in -1e+09 .. 1e+09"),
        ("cost.csv", 5, "anchor_phat", "28", "must lie in 0 .. 1, got `28`"),
        ("cost.csv", 19, "task", "", "must be text, got an empty cell"),
        ("cost.csv", 19, "doc_id", "q7", "`q7` is text, but most ids here are integers"),
        ("cost.csv", 19, "doc_id", "9" * 30, "is beyond 64 bits"),
        ("cost.csv", 19, "doc_id", "1.0", "`1.0` is text"),
        ("noise.csv", 7, "noise_sigma2", "-0.001", "must lie in 0 .. 1, got `-0.001`"),
        ("noise.csv", 7, "noise_mean_phat", "1,5", "got `1,5`"),
        ("noise.csv", 7, "noise_sigma2", "0.1\x1b[2J", r"got `0.1\x1b[2J`"),
        ("gwa_welfare_scores.csv", 2, "dropped", "maybe", "must be true or false, got `maybe`"),
        ("gwa_welfare_scores.csv", 2, "n_tasks_wb", "2.5", "must be a whole number"),
        ("gwa_welfare_scores.csv", 2, "p_auto_15", "0", "must lie in 1 .. 5"),
        ("gwa_welfare_scores.csv", 4, "p_aug_15", "", "empty, but `dropped` is not true"),
    ],
)
def test_bad_cell_is_named(folder: Path, file: str, line: int, column: str, value: str, reason: str) -> None:
    set_cell(folder / file, line, column, value)
    (fault,) = faults(folder)
    assert (fault.file, fault.line, fault.column) == (file, line, column)
    assert reason in fault.reason


@pytest.mark.parametrize(
    ("file", "column"),
    [
        ("cost.csv", "anchor_phat"),
        ("cost.csv", "doc_id"),
        ("noise.csv", "noise_sigma2"),
        ("noise.csv", "task"),
        ("gwa_welfare_scores.csv", "dropped"),
        ("families.csv", "family"),
    ],
)
def test_missing_column_is_named(folder: Path, file: str, column: str) -> None:
    drop_column(folder / file, column)
    found = faults(folder)
    assert any((fault.file, fault.column) == (file, column) for fault in found)
    assert "missing; the file has" in found[0].reason


@pytest.mark.parametrize("file", ["cost.csv", "noise.csv", "gwa_welfare_scores.csv", JUDGE])
@pytest.mark.parametrize("how", ["gone", "folder", "dead link", "link"])
def test_file_that_is_none(folder: Path, file: str, how: str, tmp_path: Path) -> None:
    path = folder / file
    moved = path.replace(tmp_path / "elsewhere")
    if how == "folder":
        path.mkdir()
    elif how != "gone":
        path.symlink_to(moved if how == "link" else tmp_path / "nowhere")
    if how == "link":
        read(folder)
        return
    named = [fault for fault in faults(folder) if fault.file.startswith(file)]
    expected = {"gone": "no such file, and section `", "folder": "is no regular file", "dead link": "is a link to"}
    assert any(expected[how] in fault.reason for fault in named)


def test_optional_file_that_is_a_folder_is_not_passed_over(folder: Path) -> None:
    (folder / "families.csv").unlink()
    (folder / "families.csv").mkdir()
    assert [str(fault) for fault in faults(folder)] == ["families.csv: is no regular file"]


@pytest.mark.parametrize("file", [name for name in FILES if name.endswith("csv")])
@pytest.mark.parametrize(("content", "reason"), [(b"", "the file is empty"), (b"\n\n", "the file is empty")])
def test_empty_file(folder: Path, file: str, content: bytes, reason: str) -> None:
    (folder / file).write_bytes(content)
    assert (file, reason) in [(fault.file, fault.reason) for fault in faults(folder)]


@pytest.mark.parametrize("file", [name for name in FILES if name.endswith("csv")])
def test_header_without_rows(folder: Path, file: str) -> None:
    write_rows(folder / file, read_rows(folder / file)[:1])
    assert (file, "the table has no rows") in [(fault.file, fault.reason) for fault in faults(folder)]


def same(left: ItemTables, right: ItemTables) -> None:
    for name in ("cost", "noise", "families", "margins"):
        assert getattr(left, name).equals(getattr(right, name))
    assert left.activities["share"].equals(right.activities["share"])
    assert left.loadings["default"].equals(right.loadings["default"])


@pytest.mark.parametrize(
    "write",
    [
        lambda text: codecs.BOM_UTF8 + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.rstrip(b"\n"),
        lambda text: text + b"\n\n",
        lambda text: b"\n" + text.replace(b"\n", b"\n\n"),
    ],
    ids=["bom", "crlf", "no-last-newline", "blank-end", "blank-lines"],
)
def test_other_ways_to_write_the_same_text(folder: Path, write: Callable[[bytes], bytes]) -> None:
    plain = read(folder)
    for name in FILES[:-2]:
        (folder / name).write_bytes(write((folder / name).read_bytes()))
    same(plain, read(folder))


def test_spaces_quotes_extra_columns_and_exponents(folder: Path) -> None:
    plain = read(folder)
    rows = read_rows(folder / "cost.csv")
    write_rows(folder / "cost.csv", [[f" {cell}\t" for cell in row] + ["unused, with a comma"] for row in rows])
    set_cell(folder / "noise.csv", 2, "noise_sigma2", "4.0e-3")
    same(plain, read(folder))
    assert plain.activities["share"]["label"][1] == "Advising, with care"


@pytest.mark.parametrize(
    ("cells", "line", "reason"),
    [
        (lambda row: row[:-1], 5, "has 3 cells, the header has 4"),
        (lambda row: [*row, "1"], 5, "has 5 cells, the header has 4"),
        (lambda row: ["alone"], 5, "has 1 cells"),
    ],
)
def test_ragged_row(folder: Path, cells: Callable[[list[str]], list[str]], line: int, reason: str) -> None:
    rows = read_rows(folder / "noise.csv")
    rows[line - 1] = cells(rows[line - 1])
    write_rows(folder / "noise.csv", rows)
    (fault,) = faults(folder)
    assert (fault.file, fault.line) == ("noise.csv", line)
    assert reason in fault.reason


def test_lines_count_line_breaks_in_cells_and_blank_lines(folder: Path) -> None:
    set_cell(folder / "gwa_welfare_scores.csv", 2, "gwa", "two\nlines")
    edit(folder / "gwa_welfare_scores.csv", b"advising,", b"\nadvising,")
    plain = (folder / "gwa_welfare_scores.csv").read_bytes()
    for value in (b"x", b""):
        (folder / "gwa_welfare_scores.csv").write_bytes(plain.replace(b"4.0", value))
        (fault,) = faults(folder)
        assert (fault.line, fault.column) == (6, "p_auto_15")


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        (b"beta,2", b"b\xe9ta,2", 10, "byte 0xe9 is not UTF-8 text; save the file as UTF-8"),
        (b"beta,2", b'"beta,2', 10, "is no CSV from here on"),
        (b"beta,2", b'"beta"x,2', 10, "is no CSV from here on"),
    ],
)
def test_text_that_is_no_csv(folder: Path, old: bytes, new: bytes, line: int, reason: str) -> None:
    edit(folder / "noise.csv", old, new)
    (fault,) = faults(folder)
    assert (fault.file, fault.line) == ("noise.csv", line)
    assert reason in fault.reason


def test_column_that_appears_twice(folder: Path) -> None:
    edit(folder / "noise.csv", b"noise_mean_phat", b"noise_sigma2")
    assert ("noise_sigma2", "appears twice in the header") in [(one.column, one.reason) for one in faults(folder)]


@pytest.mark.parametrize("file", ["cost.csv", "noise.csv"])
def test_duplicate_item(folder: Path, file: str) -> None:
    rows = read_rows(folder / file)
    write_rows(folder / file, [*rows, rows[4]])
    (fault,) = faults(folder)
    assert str(fault) == f"{file}, line 20, column `task, doc_id`: (alpha, 3) appears 2 times, lines 5, 20; keep one"


def test_duplicate_item_in_parquet(folder: Path) -> None:
    path = folder / "item_margins.parquet"
    frame = pl.read_parquet(path)
    pl.concat([frame, frame.head(1)]).write_parquet(path)
    (fault,) = faults(folder)
    assert (fault.file, fault.line) == ("item_margins.parquet", 19)


@pytest.mark.parametrize("item_id", [lambda i: f"q{i}", lambda i: f"{i:04d}", lambda i: f"{'9' * 30}{i}"])
def test_text_ids_stay_text(tmp_path: Path, item_id: Callable[[int], object]) -> None:
    tables = read(write_tables(tmp_path / "source", item_id=item_id))
    for frame in (tables.cost, tables.noise, tables.margins, tables.loadings["default"]):
        assert frame is not None
        assert frame["doc_id"].dtype == pl.String
        assert frame["doc_id"][0] == item_id(0)


def test_text_ids_in_one_file_only(folder: Path, tmp_path: Path) -> None:
    other = write_tables(tmp_path / "other", item_id=lambda i: f"q{i}")
    (folder / "noise.csv").write_bytes((other / "noise.csv").read_bytes())
    (fault,) = faults(folder)
    assert (fault.file, fault.column) == ("noise.csv", "doc_id")
    assert "ids are text here but integers in cost.csv, item_margins.parquet, judge `default`" in fault.reason


@pytest.mark.parametrize("tasks", [("NA", "nan", "null"), ("None", "inf", "1")])
def test_task_named_like_a_missing_value(tmp_path: Path, tasks: tuple[str, ...]) -> None:
    tables = read(write_tables(tmp_path / "source", tasks=tasks))
    assert tables.cost is not None
    assert tables.cost["task"].unique().sort().to_list() == sorted(tasks)


def test_apostrophe_before_a_name_is_part_of_it(tmp_path: Path) -> None:
    tables = read(write_tables(tmp_path / "source", tasks=("'=alpha", "'-beta"), item_id=lambda i: f"'+q{i}"))
    assert tables.cost is not None
    for frame in (tables.cost, tables.margins, tables.loadings["default"]):
        assert frame is not None
        assert set(frame["task"]) == {"'=alpha", "'-beta"}
        assert frame["doc_id"][0] == "'+q0"


def test_each_file_is_read_once_and_listed_with_what_was_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    plain = Path.read_bytes

    def changing(path: Path) -> bytes:
        """Give what is there, and let another program change the file at once."""
        opened.append(path.name)
        content = plain(path)
        path.write_bytes(b"changed")
        return content

    expected = {(name, hashlib.sha256((folder / name).read_bytes()).hexdigest()) for name in FILES}
    monkeypatch.setattr(Path, "read_bytes", changing)
    tables = read(folder)
    assert sorted(opened) == sorted(FILES)
    assert {(file.name, file.sha256) for file in tables.files} == expected


@pytest.mark.parametrize("size", [0, 1, 4, 100, -1])
def test_truncated_parquet(folder: Path, size: int) -> None:
    path = folder / "item_margins.parquet"
    path.write_bytes(path.read_bytes()[:size])
    (fault,) = faults(folder)
    assert fault.file == "item_margins.parquet"
    assert "is no Parquet file that can be read" in fault.reason


@pytest.mark.parametrize("values", [[[1.0]] * 18, [{"a": 1}] * 18, [b"x"] * 18, [True] * 18])
def test_parquet_column_of_another_kind(folder: Path, values: list[Any]) -> None:
    path = folder / "item_margins.parquet"
    pl.read_parquet(path).with_columns(log_ratio_med=pl.Series(values)).write_parquet(path)
    (fault,) = faults(folder)
    assert (fault.file, fault.column) == ("item_margins.parquet", "log_ratio_med")
    assert "which is no number" in fault.reason


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_parquet_cell_that_is_no_number(folder: Path, value: float | None) -> None:
    path = folder / "item_margins.parquet"
    frame = pl.read_parquet(path)
    changed = pl.Series("log_ratio_med", [value, *frame["log_ratio_med"][1:]], dtype=pl.Float64)
    frame.with_columns(changed).write_parquet(path)
    (fault,) = faults(folder)
    assert (fault.line, fault.column) == (1, "log_ratio_med")


def test_all_activities_dropped(folder: Path) -> None:
    for line in range(2, 7):
        set_cell(folder / "gwa_welfare_scores.csv", line, "dropped", "TRUE")
    assert [fault.column for fault in faults(folder)] == ["dropped"]


def test_slope_without_a_price_gets_a_note(folder: Path) -> None:
    edit(folder / "cost.csv", b"beta_sft", b"beta_distil")
    tables = read(folder)
    assert tables.axes == ("PT", "RL")
    assert "column `beta_distil`" in tables.notes[0]
    assert "add a price to [prices]" in tables.notes[0]
    assert "`DISTIL = { usd = 1.0" in tables.notes[0]


def test_no_slope_has_a_price(folder: Path) -> None:
    (fault,) = faults(folder, axes=("COMPUTE",))
    assert "expected `beta_compute`; for `beta_pt`, add a price" in fault.reason


def test_all_faults_are_listed_together(folder: Path) -> None:
    set_cell(folder / "cost.csv", 3, "anchor_phat", "x")
    set_cell(folder / "noise.csv", 4, "noise_sigma2", "x")
    set_field(folder / JUDGE, 5, perspective="x")
    assert [(fault.file, fault.line) for fault in faults(folder)] == [(JUDGE, 5), ("cost.csv", 3), ("noise.csv", 4)]


def test_source_and_sections(folder: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read(folder / "none")
    with pytest.raises(UsageError, match=r"is a file, not a folder(.|\n)*make a panel first"):
        read(folder / "cost.csv")
    (folder / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds none of the item tables(.|\n)*make a panel first"):
        read(folder / "empty")
    with pytest.raises(UsageError, match="must name sections of welfare, improvability, noise, got cost"):
        read(folder, without=["cost"])
    with pytest.raises(DataError, match="nothing remains to audit"):
        read(folder, without=["welfare", "improvability", "noise"])


def test_folder_whose_name_is_a_pattern(tmp_path: Path) -> None:
    assert read(write_tables(tmp_path / "run[1]*")).name == "run[1]*"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = write_tables(tmp_path_factory.mktemp("fuzz") / "source")
    return folder, {name: (folder / name).read_bytes() for name in FILES}


MUTATION = st.tuples(
    st.sampled_from(["flip", "delete", "insert", "truncate"]), st.integers(0, 1 << 20), st.binary(max_size=4)
)


@pytest.mark.slow
@settings(max_examples=150, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(FILES), mutations=st.lists(MUTATION, min_size=1, max_size=3))
def test_any_bytes_give_tables_or_an_error_raised_on_purpose(
    originals: tuple[Path, dict[str, bytes]], file: str, mutations: list[tuple[str, int, bytes]]
) -> None:
    folder, contents = originals
    content = contents[file]
    for how, at, new in mutations:
        place = at % (len(content) + 1)
        if how == "truncate":
            content = content[:place]
        else:
            removed = {"flip": len(new), "delete": 1 + len(new), "insert": 0}[how]
            content = content[:place] + (b"" if how == "delete" else new) + content[place + removed :]
    (folder / file).write_bytes(content)
    try:
        with contextlib.suppress(BenchwrightError):
            read(folder)
    finally:
        (folder / file).write_bytes(contents[file])
