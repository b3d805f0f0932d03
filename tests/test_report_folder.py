"""The report folder: whole or not at all, the same bytes twice, and data that stays data."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from benchwright import pipeline
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.report import build
from benchwright.report.build import write_report
from benchwright.report.contents import AuditReport
from hostile_tables import HOSTILE, write_hostile
from tables import write_tables

FEW = Config().replace({"resampling.replicates": 100}, source="a test")


def audited(source: Path) -> AuditReport:
    return pipeline.audit(source, config=FEW)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    return audited(write_tables(tmp_path_factory.mktemp("plain") / "source"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with its page on tables whose every name attacks something."""
    root = tmp_path_factory.mktemp("hostile")
    return write_report(audited(write_hostile(root / "source")), root / "out", figures=False)


def write(report: AuditReport, out: Path, *, overwrite: bool = False) -> Path:
    return write_report(report, out, page=False, figures=False, overwrite=overwrite)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_same_inputs_same_bytes(report: AuditReport, tmp_path: Path) -> None:
    # Another process, another hash seed, another folder: nothing of them may show.
    code = (
        "import sys; from benchwright import pipeline; from benchwright.config import Config;"
        "from benchwright.report.build import write_report;"
        "c = Config().replace({'resampling.replicates': 100}, source='a test');"
        "write_report(pipeline.audit(sys.argv[1], config=c), sys.argv[2])"
    )
    write_tables(tmp_path / "source")
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code, tmp_path / "source", tmp_path / "one"], check=True, env=environment)
    write_report(report, tmp_path / "two")
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert {"summary.json", "report.html", "items.parquet", "weights.csv", "tables/schemes.csv"} <= set(one)
    assert {Path(name).suffix for name in one if name.startswith("figures")} == {".svg", ".png"}
    assert sorted(one) == sorted(two)
    # inputs.json says where the source lies as seen from the report
    assert [name for name in one if one[name] != two[name]] == ["inputs.json"]


def test_every_column_of_items_is_described(report: AuditReport, tmp_path: Path) -> None:
    path = write(report, tmp_path / "out") / "items.parquet"
    described = json.loads(pl.read_parquet_metadata(path)["benchwright.columns"])
    items = pl.read_parquet(path)
    assert list(described) == items.columns
    assert all(set(column) == {"unit", "description"} and column["description"] for column in described.values())
    assert items.select("task", "doc_id").is_unique().all()


def test_text_ids_stay_text(tmp_path: Path) -> None:
    source = write_tables(tmp_path / "source", item_id=lambda i: f"{i:03d}", tasks=("NA", "nan", "null"))
    out = write(audited(source), tmp_path / "out")
    items = pl.read_parquet(out / "items.parquet")
    assert items["doc_id"].to_list()[:2] == ["000", "001"]
    assert sorted(set(items["task"])) == ["NA", "nan", "null"]
    quantiles = json.loads((out / "summary.json").read_text())["audit"]["noise_quantiles_sigma"]
    assert all(isinstance(row["doc_id"], str) for row in quantiles.values())


def test_target_must_be_new_or_empty_or_a_report(report: AuditReport, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(report, tmp_path / "empty")
    with pytest.raises(UsageError, match=r"already holds a report\nHint: add --overwrite"):
        write(report, tmp_path / "empty")
    (tmp_path / "link").symlink_to(tmp_path / "empty", target_is_directory=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    (tmp_path / "file").touch()
    for name, reason in (
        ("link", "is not a folder"),
        ("full", "holds no report"),
        ("file", "is not a folder"),
        ("file/out", "is not a folder"),
    ):
        with pytest.raises(UsageError, match=reason):
            write(report, tmp_path / name, overwrite=True)
    assert (tmp_path / "full" / "thesis.txt").exists()
    assert write(report, tmp_path / "new" / "deep" / "out").is_dir()


def test_folder_that_cannot_be_written(report: AuditReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="cannot be written"):
        write(report, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_overwrite_replaces_the_whole_folder(report: AuditReport, tmp_path: Path) -> None:
    out = write(report, tmp_path / "out")
    (out / "figures").mkdir()
    (out / "figures" / "old.svg").touch()
    write(report, out, overwrite=True)
    assert not (out / "figures").exists()
    assert list(tmp_path.iterdir()) == [out]


def fail(*_: object, **__: object) -> str:
    raise OSError(28, "No space left on device")


def interrupt(*_: object, **__: object) -> str:
    raise KeyboardInterrupt


def bug(*_: object, **__: object) -> str:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("how", "error"), [(fail, UsageError), (bug, ZeroDivisionError), (interrupt, KeyboardInterrupt)]
)
@pytest.mark.parametrize("writer", ["summary_text", "csv_text"])
@pytest.mark.parametrize("had_one", [True, False])
def test_failure_leaves_what_was_there(
    report: AuditReport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    writer: str,
    how: Callable[..., str],
    error: type[BaseException],
    had_one: bool,
) -> None:
    out = tmp_path / "out"
    before = contents(write(report, out)) if had_one else {}
    monkeypatch.setattr(build, writer, how)
    with pytest.raises(error):
        write(report, out, overwrite=True)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == (["out"] if had_one else [])


@pytest.mark.parametrize(("how", "error"), [(fail, UsageError), (interrupt, KeyboardInterrupt)])
def test_failure_of_the_last_move_restores_the_old_report(
    report: AuditReport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[..., str],
    error: type[BaseException],
) -> None:
    out = write(report, tmp_path / "out")
    before = contents(out)
    move = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "new":
            assert not out.exists()
            how()
        return move(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(error):
        write(report, out, overwrite=True)
    assert contents(out) == before
    assert list(tmp_path.iterdir()) == [out]


def test_report_that_appeared_meanwhile_is_kept(
    report: AuditReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(_: AuditReport) -> str:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "summary.json").write_text("another run's")
        return "ours"

    monkeypatch.setattr(build, "summary_text", meanwhile)
    with pytest.raises(UsageError, match="already holds a report"):
        write(report, tmp_path / "out")
    assert contents(tmp_path / "out") == {"summary.json": b"another run's"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_report_that_a_killed_run_moved_aside_counts_as_there(report: AuditReport, tmp_path: Path) -> None:
    out = write(report, tmp_path / "out")
    before = contents(out)
    (tmp_path / ".out.partial-abcd_123").mkdir()
    out.rename(tmp_path / ".out.partial-abcd_123" / "old")
    with pytest.raises(UsageError, match="already holds a report"):
        write(report, out)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


class Page(HTMLParser):
    """Collects the elements of a page, the policy, and the text of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.policy = ""
        self.kind: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attributes)
        self.handlers += [name for name in named if name.startswith("on")]
        if tag == "script":
            self.kind = named.get("type")
            self.scripts.append((self.kind, ""))
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts:
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.lasttag = ""


def test_page_runs_only_its_own_scripts(hostile: Path) -> None:
    page = Page()
    page.feed((hostile / "report.html").read_text(encoding="utf-8"))
    running = [text for kind, text in page.scripts if kind != "application/json"]
    assert len(running) == 2
    for text in running:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in page.policy.split("style-src")[0]
    assert page.handlers == []
    assert not {"img", "iframe", "object", "embed", "form"} & set(page.tags)
    for kind, text in page.scripts:
        if kind == "application/json":
            assert json.loads(text)
            assert "<" not in text


def test_page_shows_the_names_it_defuses(hostile: Path) -> None:
    text = (hostile / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text


def test_no_file_is_named_after_data(hostile: Path) -> None:
    names = [path.name for path in hostile.rglob("*")]
    assert all(re.fullmatch(r"[a-z-]+(\.[a-z]+)?", name) for name in names)


def test_no_csv_cell_is_a_formula(hostile: Path) -> None:
    cells = []
    for path in hostile.rglob("*.csv"):
        for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")):
            cells += row
    assert "'=cmd|'/c calc'!A1" in cells
    numbers = re.compile(r"-?[\d.]+(e[-+]?\d+)?")
    assert [cell for cell in cells if re.match(r"\s*[=+\-@]", cell) and not numbers.fullmatch(cell)] == []


def test_latex_is_escaped(hostile: Path) -> None:
    specials = re.compile(r"(?<!\\)[$#_^~]")
    for path in (hostile / "tables").glob("*.tex"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not specials.search(line), (path.name, line)
    text = (hostile / "tables" / "noise-families.tex").read_text(encoding="utf-8")
    assert r"=cmd|'/c calc'!A1" in text


def test_summary_of_hostile_names_is_json_with_the_names_as_they_are(hostile: Path) -> None:
    summary = json.loads((hostile / "summary.json").read_text(encoding="utf-8"))
    assert {row["family"] for row in summary["audit"]["noise_by_family"]} == set(HOSTILE[:6])
