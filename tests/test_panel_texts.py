"""Item texts: nowhere in a panel unless the user asks for them, and then once per item."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import test_helm
import test_inspect_logs
import test_lm_eval
import test_olmes
import test_other_logs
from benchwright.cli import app
from benchwright.logs import item_texts
from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.record import ITEM_SCHEMA, MemorySink, ReadOptions, Run, text_hash
from benchwright.panel import store
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel

MARKER = "Zebra-Quokka-4711"


def inspect_log(folder: Path) -> None:
    """Two epochs of two samples, one with messages and choices."""
    parts = [{"role": "user", "content": [{"type": "text", "text": f"{MARKER} is asked"}]}]
    samples = [
        test_inspect_logs.sample(name, "C", input=content, choices=[f"{MARKER} one", "two"], epoch=epoch)
        for name, content in (("a", parts), ("b", f"{MARKER} \ud800 in text"))
        for epoch in (1, 2)
    ]
    test_inspect_logs.write(folder / "log.eval", test_inspect_logs.members(samples=samples))


def olmes_folder(folder: Path) -> None:
    doc = {"query": f"{MARKER}?", "choices": ["red", "blue", "pink", "grey"]}
    requests = [test_olmes.request(i + raised, c, doc=doc) for raised in (0, 10**6) for i in range(2) for c in range(4)]
    files: dict[str, Any] = {
        "task-000-arc_challenge-metrics.json": test_olmes.metrics(),
        "task-000-arc_challenge-predictions.jsonl": [test_olmes.prediction(i, 1, 0) for i in range(2)],
        "task-000-arc_challenge-requests.jsonl": requests,
    }
    test_olmes.write(folder / "out", files)


def helm_folder(folder: Path) -> None:
    entries = [test_helm.entry(name, test_helm.stat("exact_match", 1)) for name in ("id1", "id2")]
    run = test_helm.write(folder / "run", entries)
    instances = [
        {
            "id": name,
            "input": {"text": f"{MARKER} {name}"},
            "references": [{"output": {"text": "yes"}, "tags": ["correct"]}],
            "split": "test",
        }
        for name in ("id1", "id2")
    ]
    (run / "instances.json").write_text(json.dumps(instances), encoding="utf-8")


def lm_eval_samples(folder: Path) -> None:
    """Two filters of two items, one text with half a surrogate pair."""
    docs = [{"question": f"{MARKER} 1?", "choices": ["yes", "no"]}, {"question": f"{MARKER} \ud800?"}]
    records = [
        test_lm_eval.sample(i, doc=doc, filter=name) for name in ("strict", "loose") for i, doc in enumerate(docs)
    ]
    test_lm_eval.write_lines(folder / "org__m" / "samples_toy_2025-01-02T03-04-05.jsonl", records)


def lm_eval_v03(folder: Path) -> None:
    records = [
        {
            "doc_id": i,
            "prompt_0": f"{MARKER} {i}? yes",
            "prompt_1": f"{MARKER} {i}? no",
            "logit_0": -1.0,
            "logit_1": -2.0,
            "truth": "yes",
            "acc": "True",
        }
        for i in range(2)
    ]
    (folder / "m").mkdir()
    (folder / "m" / "toy_write_out_info.json").write_text(json.dumps(records), encoding="utf-8")


def lighteval_details(folder: Path) -> None:
    docs = [{"id": name, "query": f"{MARKER} {name}", "choices": ["yes", "no"]} for name in ("a", "b")]
    details = pl.DataFrame({"doc": docs, "metric": [{"acc": 1.0}] * 2})
    test_other_logs.write(
        folder, {"details_lab__m/t/details_harness|toy|0_2024-05-01T10-20-30.123456.parquet": details}
    )


LOGS: tuple[Callable[[Path], None], ...] = (
    inspect_log,
    olmes_folder,
    helm_folder,
    lm_eval_samples,
    lm_eval_v03,
    lighteval_details,
)


def everything(panel: Path) -> str:
    """All that a panel's files hold: bytes as they are, Parquet also decoded."""
    texts = []
    for path in sorted(panel.rglob("*")):
        if path.is_file():
            texts.append(path.read_bytes().decode("utf-8", "replace"))
            if path.suffix == ".parquet":
                texts.append(json.dumps(pl.read_parquet(path).to_dicts(), default=str, ensure_ascii=False))
    return "\n".join(texts)


@pytest.mark.parametrize("make", LOGS, ids=lambda make: make.__name__)
def test_texts_are_in_the_panel_only_where_asked_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    make(tmp_path / "logs")
    without = Panel.open(read_logs(tmp_path / "logs", tmp_path / "without").panel)
    assert MARKER not in everything(without.path)
    assert without.items().collect().height == 0
    assert "texts" not in without.manifest["counts"]

    panel = Panel.open(read_logs(tmp_path / "logs", tmp_path / "with", keep_text=True).panel)
    items = panel.items().collect()
    assert items.schema == pl.Schema(ITEM_SCHEMA)
    rows = panel.rows().select("task", "doc_id", "item_hash").unique().collect()
    assert items.height == rows.height == 2
    assert items.join(rows, on=["task", "doc_id", "item_hash"]).height == 2
    assert items["text"].str.contains(MARKER).all()
    assert not any(
        MARKER in everything_but_items
        for everything_but_items in (str(panel.rows().collect().to_dicts()), json.dumps(panel.manifest))
    )
    same = [name for name in rows.columns if name != "part"]
    assert rows.sort(same).equals(without.rows().select(same).unique().collect().sort(same))


def test_an_inspect_text_is_what_its_hash_was_made_of(tmp_path: Path) -> None:
    inspect_log(tmp_path)
    read_logs(tmp_path / "log.eval", tmp_path / "panel", keep_text=True)
    (row,) = Panel.open(tmp_path / "panel").items().filter(pl.col("doc_id") == "a").collect().to_dicts()
    assert row["text"] == f"{MARKER} is asked\n{MARKER} one\ntwo"
    assert row["item_hash"] == text_hash(*row["text"].split("\n"))


def test_an_lm_eval_text_is_what_its_hash_was_made_of(tmp_path: Path) -> None:
    lm_eval_samples(tmp_path / "logs")
    read_logs(tmp_path / "logs", tmp_path / "panel", keep_text=True)
    rows = Panel.open(tmp_path / "panel").items().collect().to_dicts()
    assert [text_hash(row["text"]) for row in rows] == [row["item_hash"] for row in rows]
    assert json.loads(rows[0]["text"]) == {"question": f"{MARKER} 1?", "choices": ["yes", "no"]}


def test_the_command_line_keeps_and_exports_texts(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    olmes_folder(tmp_path / "logs")
    run, panel, out = CliRunner().invoke, str(tmp_path / "panel"), str(tmp_path / "items.parquet")
    done = run(app, ["ingest", str(tmp_path / "logs"), "-o", panel, "--keep-text", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["counts"]["texts"] == 2
    assert run(app, ["panel", "export", panel, "-o", out, "--table", "items"]).exit_code == 0
    assert pl.read_parquet(out)["text"].to_list() == [f"{MARKER}?\nred\nblue\npink\ngrey"] * 2
    again = run(app, ["ingest", str(tmp_path / "logs"), "-o", panel, "--json"])
    assert again.exit_code == 0, again.output
    assert MARKER not in everything(Path(panel))  # read again without texts: they are gone


def test_texts_go_out_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_texts, "BLOCK_CHARACTERS", 50)
    monkeypatch.setattr(store, "FLUSH_TEXT_BYTES", 100)
    run = Run("m", "r")
    sink = MemorySink(ReadOptions(keep_text=True))
    part = store.PartSink(tmp_path, ReadOptions(keep_text=True))
    for target in (sink, part):
        texts = ItemTexts(run, "t", target)
        for number in range(20):
            for _ in range(2):
                texts.add(str(number), None, ["x" * 20, "\ud800"])
        texts.add("empty", None, [])
        texts.put()
    assert sink.table("items")["doc_id"].to_list() == [str(number) for number in range(20)]
    assert set(sink.table("items")["text"]) == {"x" * 20 + "\n?"}
    assert len(list(tmp_path.glob("items-*.parquet"))) > 1
    quiet = MemorySink()
    quiet.items(run, {"task": "t", "doc_id": ["1"], "text": ["x"]})
    assert quiet.table("items").height == 0
    assert quiet.runs == []
