"""Samples of lm-evaluation-harness v0.4: every record kept, nothing averaged, means equal to the results files'."""

from __future__ import annotations

import json
import math
import runpy
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from backports import zstd
from typer.testing import CliRunner

from benchwright.cli import app
from benchwright.logs import lm_eval_samples
from benchwright.logs.derive import choice_scores
from benchwright.logs.log_file import LogFile
from benchwright.logs.record import MemorySink, ReadOptions, Run, Unit
from test_lm_eval_results import LM_EVAL, read_folder, write

FLIPEVAL = Path("data/logs/lm-eval/flipeval-qwen15b/kaggle_mmlu_reference_run/results")


def read_files(*paths: Path, options: ReadOptions | None = None) -> MemorySink:
    sink = MemorySink(options=options if options is not None else ReadOptions())
    LM_EVAL.read(Unit(LM_EVAL.name, tuple(LogFile(path, path.name) for path in paths)), sink)
    return sink


def sample(doc_id: Any = 0, **entries: Any) -> dict[str, Any]:
    record = {
        "doc_id": doc_id,
        "doc": {"q": f"item {doc_id}"},
        "target": "a",
        "arguments": {"gen_args_0": {"arg_0": "prompt"}},
        "resps": [["x"]],
        "filtered_resps": ["x"],
        "filter": "none",
        "metrics": ["acc"],
        "acc": 1.0,
    }
    return record | entries


def write_lines(path: Path, records: list[Any], end: str = "\n") -> Path:
    return write(path, "".join((r if isinstance(r, str) else json.dumps(r)) + end for r in records))


def means(sink: MemorySink) -> dict[tuple[Any, ...], float]:
    keys = ("run_id", "task", "metric", "filter")
    table = sink.table("rows").group_by(keys).agg(pl.col("value").mean())
    return {tuple(row[:4]): row[4] for row in table.rows()}


def derived(sink: MemorySink) -> pl.DataFrame:
    choices = sink.table("choices")
    flat = choices.select(pl.col("logprob", "chars", "bytes").list.explode(empty_as_null=True, keep_nulls=True))
    scores = choice_scores(
        flat["logprob"].to_numpy(),
        choices["logprob"].list.len().to_numpy(),
        choices["gold"].cast(pl.Float64).to_numpy(),
        chars=flat["chars"].cast(pl.Float64).to_numpy(),
        bytes_=flat["bytes"].cast(pl.Float64).to_numpy(),
    )
    return choices.select("run_id", "task", "doc_id").with_columns(**{k: pl.Series(v) for k, v in scores.items()})


def test_real_samples_agree_with_their_results_files(shared: Path) -> None:
    sink = read_folder(shared / FLIPEVAL)
    assert sink.faults == []
    real = [i for i, run in enumerate(sink.runs) if run.model == "Qwen/Qwen2.5-1.5B-Instruct"]
    assert len(sink.runs) == 3  # 0-shot, 5-shot, and the rewritten copy of the first
    assert sorted(sink.runs[i].setting or "" for i in real) == ["0-shot, chat template", "5-shot, chat template"]
    assert all(sink.runs[i].revision == "989aa7980e4cf806f80c7fef2b1adb7bc71aa306" and sink.runs[i].limit for i in real)
    found = means(sink)
    scores = sink.table("scores")
    assert scores.height == 8
    for run, task, metric, filter_, value, n in scores.select(
        "run_id", "task", "metric", "filter", "value", "n"
    ).rows():
        assert found[run, task, metric, filter_] == pytest.approx(value, abs=1e-12)
        assert sink.table("rows").filter(run_id=run, task=task).height == n == 100
    rows = sink.table("rows")
    assert rows.select("task", "doc_id").n_unique() == 400
    assert rows.height == 1200
    zero_shot, copy = (rows.filter(run_id=i).sort("task", "doc_id") for i in (0, 1))
    assert zero_shot.select("doc_id", "item_hash", "value").equals(copy.select("doc_id", "item_hash", "value"))


def test_scores_derived_from_real_choices_equal_the_logged_ones(shared: Path) -> None:
    sink = read_folder(shared / FLIPEVAL)
    choices = sink.table("choices")
    assert choices.height == 1200
    assert choices["gold"].null_count() == 0
    logged = sink.table("rows").select("run_id", "task", "doc_id", pl.col("value").alias("logged"))
    both = derived(sink).join(logged, on=["run_id", "task", "doc_id"], validate="1:1")
    assert both.height == 1200
    assert (both["acc"] == both["logged"]).all()


def test_case_c01_one_item_logged_once_per_filter(shared: Path) -> None:
    folder = shared / "cases" / "C01"
    results = next(folder.glob("results*"))
    expected = {
        (0, "toyarith", "exact_match", "strict-match"): 1 / 3,
        (0, "toyarith", "exact_match", "flexible-extract"): 2 / 3,
    }
    for name in ("samples_toyarith_2025-01-02T03-04-05.000001.jsonl", "old_format_no_filter_key.jsonl"):
        sink = read_files(results, folder / name)
        assert sink.faults == []
        assert sink.table("rows")["doc_id"].n_unique() == 3
        assert means(sink) == pytest.approx(expected, abs=1e-12)
        assert sink.table("scores")["filter"].to_list() == ["strict-match", "flexible-extract"]


def test_records_without_a_filter_are_refused_where_blocks_cannot_be_rebuilt(shared: Path, tmp_path: Path) -> None:
    folder = shared / "cases" / "C01"
    old = folder / "old_format_no_filter_key.jsonl"
    alone = read_files(old)
    assert alone.table("rows").is_empty()
    assert len(alone.faults) == 1
    assert "doc_id 0, 1, 2" in alone.faults[0].reason
    text = next(folder.glob("results*")).read_text(encoding="utf-8")
    other = write(tmp_path / "results.json", text.replace("0.3333333333333333", "0.9"))
    assert "not 0.9 of strict-match" in read_files(other, old).faults[0].reason
    lines = old.read_text(encoding="utf-8").splitlines()
    short = write(tmp_path / "short.jsonl", "\n".join(lines[:5]))
    assert len(read_files(next(folder.glob("results*")), short).faults) == 1
    once = write(tmp_path / "once.jsonl", "\n".join(lines[:3]))
    assert read_files(once).table("rows")["filter"].to_list() == [None] * 3


def test_case_c02_the_metric_decides(shared: Path) -> None:
    sink = read_folder(shared / "cases" / "C02")
    assert [run.model for run in sink.runs] == ["demo-org/A", "demo-org/B"]
    assert means(sink) == {
        (0, "toymc", "acc", None): 0.25,
        (0, "toymc", "acc_norm", None): 0.75,
        (1, "toymc", "acc", None): 0.5,
        (1, "toymc", "acc_norm", None): 0.5,
    }


def test_case_c03_perplexity_follows_from_the_rows(shared: Path) -> None:
    sink = read_folder(shared / "cases" / "C03")
    rows = sink.table("rows")
    ll = rows.filter(task="toylambada", metric="loglikelihood")
    assert ll["value"].to_list() == [-1.0, -2.0, -3.0]
    assert ll["higher_is_better"].all()
    assert math.exp(-ll["value"].mean()) == pytest.approx(7.389056, abs=1e-6)  # type: ignore[operator,arg-type]
    wiki = rows.filter(task="toywiki")
    total = dict(wiki.group_by("metric").agg(pl.col("value").sum()).rows())
    assert math.exp(-total["loglikelihood"] / total["words"]) == pytest.approx(4.481689, abs=1e-6)
    assert "perplexity" not in set(rows["metric"])
    stated = sink.table("scores").filter(metric="perplexity")
    assert stated.select("value", "higher_is_better").rows() == [(7.38905609893065, False)]


def test_three_metrics_that_store_one_loglikelihood_make_one_row(tmp_path: Path) -> None:
    pairs = {"word_perplexity": [-10.0, 5], "byte_perplexity": [-10.0, 30], "bits_per_byte": [-10.0, 30]}
    path = write_lines(tmp_path / "samples_wiki_2025-01-01T00-00-00.jsonl", [sample(metrics=list(pairs), **pairs)])
    rows = read_files(path).table("rows")
    assert rows.select("metric", "value").rows() == [("loglikelihood", -10.0), ("words", 5.0), ("bytes", 30.0)]


def make_big(tmp_path: Path, shared: Path, n: int, capsys: pytest.CaptureFixture[str]) -> Path:
    argv, sys.argv = sys.argv, ["make.py", str(n)]
    try:
        runpy.run_path(str(shared / "cases" / "C16" / "make.py"))
    finally:
        sys.argv = argv
    return write(tmp_path / "big.jsonl", capsys.readouterr().out)


@dataclass
class CountingSink(MemorySink):
    """A sink that forgets what it is given and remembers how much came at once."""

    blocks: list[int] = field(default_factory=list)

    def rows(self, run: Run, columns: Mapping[str, Any]) -> None:
        self.blocks.append(len(columns["doc_id"]))


def test_case_c16_large_logs(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_big(tmp_path, shared, 2000, capsys)
    sink = read_files(path)
    assert sink.table("rows")["value"].mean() == pytest.approx(0.3, abs=1e-12)
    monkeypatch.setattr(lm_eval_samples, "BLOCK_ROWS", 300)
    counting = CountingSink()
    LM_EVAL.read(Unit(LM_EVAL.name, (LogFile(path, path.name),)), counting)
    assert sum(counting.blocks) == 2000
    assert max(counting.blocks) <= 301
    cut = write(tmp_path / "cut.jsonl", path.read_text(encoding="utf-8")[:-3000])
    sink = read_files(cut)
    assert [(fault.file, fault.line) for fault in sink.faults] == [("cut.jsonl", 2000)]
    assert sink.table("rows").height == 1999
    packed = tmp_path / "big.jsonl.zst"
    packed.write_bytes(zstd.compress(path.read_bytes()))
    assert read_files(packed).table("rows")["value"].equals(read_files(path).table("rows")["value"])


CHOICES = [" alpha", " be", " gämmä ray", " d"]
LIKELIHOODS = [[-4.0, -3.0, -5.0, -9.0], [-1.0, -1.0, -8.0, -2.0], [-12.0, -6.0, -7.0, -4.0], [-3.0, -4.0, -6.5, -5.0]]


def choice_record(place: int, shape: str, target: str) -> dict[str, Any]:
    """A record as the harness writes it, its metrics from a plain loop over the formulas."""
    lls = LIKELIHOODS[place]
    gold = place
    texts = [choice.removeprefix(" ") for choice in CHOICES]
    norm = [ll / len(text) for ll, text in zip(lls, texts, strict=True)]
    sizes = [ll / len(text.encode()) for ll, text in zip(lls, texts, strict=True)]
    pairs: Any = [["prompt", choice] for choice in CHOICES]
    if shape == "mapping":
        pairs = {f"gen_args_{i}": {"arg_0": p, "arg_1": c} for i, (p, c) in enumerate(pairs)}
    answers: list[Any] = [[str(ll), "False"] for ll in lls] if shape == "mapping" else [[ll, False] for ll in lls]
    return sample(
        place,
        target={"place": str(gold), "text": texts[gold], "delimited": CHOICES[gold]}[target],
        arguments=pairs,
        resps=[[answer] for answer in answers],
        filtered_resps=answers,
        metrics=["acc", "acc_norm", "acc_bytes"],
        acc=float(np.argmax(lls) == gold),
        acc_norm=float(np.argmax(norm) == gold),
        acc_bytes=float(np.argmax(sizes) == gold),
    )


@pytest.mark.parametrize("shape", ["mapping", "list"])
@pytest.mark.parametrize("target", ["place", "text", "delimited"])
def test_lengths_are_those_the_harness_divides_by(tmp_path: Path, shape: str, target: str) -> None:
    records = [choice_record(place, shape, target) for place in range(4)]
    sink = read_files(write_lines(tmp_path / "samples_mc_2025-01-01T00-00-00.jsonl", records))
    assert sink.faults == []
    choices = sink.table("choices")
    assert choices["gold"].to_list() == [0, 1, 2, 3]
    assert choices["chars"].to_list() == [[5, 2, 9, 1]] * 4
    assert choices["bytes"].to_list() == [[5, 2, 11, 1]] * 4
    wide = sink.table("rows").pivot("metric", index="doc_id", values="value")
    found = derived(sink)
    for name in ("acc", "acc_norm", "acc_bytes"):
        assert found[name].to_list() == wide[name].to_list(), name


def test_gold_is_settled_by_acc_where_target_can_be_read_twice(tmp_path: Path) -> None:
    def record(place: int, target: str, acc: float, texts: list[str]) -> dict[str, Any]:
        pairs = {f"gen_args_{i}": {"arg_0": "p", "arg_1": f" {text}"} for i, text in enumerate(texts)}
        lls = [["-9", "F"], ["-1", "T"], ["-8", "F"]][: len(texts)]
        return sample(place, target=target, arguments=pairs, filtered_resps=lls, acc=acc)

    numbers = [record(0, "1", 0.0, ["3", "2", "1"]), record(1, "2", 1.0, ["0", "2", "1"])]  # target is a text here
    sink = read_files(write_lines(tmp_path / "samples_sum_2025-01-01T00-00-00.jsonl", numbers))
    assert sink.table("choices")["gold"].to_list() == [2, 1]
    alike = [record(0, "the end", 1.0, ["z", "z"]), record(1, "the end", 0.0, ["z", "z"])]  # as Winogrande
    sink = read_files(write_lines(tmp_path / "samples_wino_2025-01-01T00-00-00.jsonl", alike))
    assert sink.table("choices").select("gold", "chars").rows() == [(1, None), (0, None)]
    wrong = [record(0, "0", 1.0, ["a", "b", "c"])]
    sink = read_files(write_lines(tmp_path / "samples_wrong_2025-01-01T00-00-00.jsonl", wrong))
    assert sink.table("choices")["gold"].to_list() == [None]
    assert "does not follow from `target`" in sink.faults[0].reason


def test_unconditional_and_many_choices(tmp_path: Path) -> None:
    texts = [f" c{i}" for i in range(12)]
    shuffled = sorted(range(24), key=str)
    pairs = {f"gen_args_{i}": {"arg_0": "p" if i < 12 else "", "arg_1": texts[i % 12]} for i in shuffled}
    answers = [[-float(i + 1), False] for i in range(24)]
    record = sample(0, target="3", arguments=pairs, filtered_resps=answers, acc=0.0)
    sink = read_files(write_lines(tmp_path / "samples_mi_2025-01-01T00-00-00.jsonl", [record, record]))
    assert sink.faults == []
    assert sink.table("choices")["logprob"].to_list() == [[-float(i + 1) for i in range(12)]] * 2
    assert sink.table("choices")["chars"].to_list() == [[2] * 10 + [3] * 2] * 2


def test_every_value_gets_its_status(tmp_path: Path) -> None:
    values = ["0.25", True, "True", None, "NaN", float("nan"), "", "yes", [0, 1], {"a": 1}, [True, False], 10**400]
    records = [sample(i, acc=value) for i, value in enumerate(values)]
    del records[3]["acc"]
    path = write_lines(tmp_path / "samples_toy_2025-01-01T00-00-00.jsonl", records, end="\r\n")
    sink = read_files(path)
    rows = sink.table("rows").select("value", "status", "trials").rows()
    assert rows == [
        *[(0.25, "scored", 1), (1.0, "scored", 1), (1.0, "scored", 1)],
        *[(None, "unscored", 1)] * 4,
        *[(None, "unreadable", 1)] * 3,
        (0.5, "scored", 2),
        (None, "unreadable", 1),
    ]
    (fault,) = sink.faults
    assert (fault.line, fault.column) == (8, "acc")
    assert "4 record(s)" in fault.reason


def test_broken_records_are_faults_and_the_rest_is_read(tmp_path: Path) -> None:
    half_pair = json.dumps(sample(2)).replace('"x"', '"\\ud800"')
    line_separator = json.dumps(sample("a\u2028b"), ensure_ascii=False)
    deep = '{"doc_id": 1, "filter": "none", "doc": ' + "[" * 50_000 + "]" * 50_000 + ', "metrics": ["acc"], "acc": 1}'
    first = "\ufeff" + json.dumps(sample(0))
    records = [
        first,
        "{not json",
        "[1]",
        sample(None),
        sample(True),
        sample(filter=None),
        half_pair,
        line_separator,
        "",
    ]
    records += [deep, json.dumps(sample(9))[:-4], sample(3.0, metrics=["acc", "em"], em=0), sample(4, metrics="x")]
    bare = sample(5, metrics=[])
    del bare["acc"]
    records += [bare, bare]
    path = write_lines(tmp_path / "samples_toy_2025-01-01T00-00-00.jsonl", records)
    sink = read_files(path)
    assert [fault.line for fault in sink.faults] == [2, 3, 4, 5, 6, 10, 11, 14]
    assert "2 record(s) from here on have no metric" in sink.faults[-1].reason
    rows = sink.table("rows").select("doc_id", "metric", "value").rows()
    assert rows == [
        *[("0", "acc", 1.0), ("2", "acc", 1.0), ("a\u2028b", "acc", 1.0), ("3", "acc", 1.0), ("3", "em", 0.0)],
        ("4", "acc", 1.0),
    ]
    path = write_lines(tmp_path / "long.jsonl", [sample(0), sample(1, pad="x" * 5000), sample(2)])
    sink = read_files(path, options=ReadOptions(max_line=2000))
    assert [fault.line for fault in sink.faults] == [2]
    assert sink.table("rows")["doc_id"].to_list() == ["0", "2"]


def test_the_item_hash_follows_the_text_and_not_its_spelling(tmp_path: Path) -> None:
    docs = ({"q": "é", "c": [1]}, {"c": [1], "q": "é"}, {"q": "e", "c": [1]})
    first, second, third = (json.dumps(sample(i, doc=doc), ensure_ascii=i == 0) for i, doc in enumerate(docs))
    hashes = read_files(write_lines(tmp_path / "h.jsonl", [first, second, third])).table("rows")["item_hash"].to_list()
    assert hashes[0] == hashes[1] != hashes[2]


def test_task_and_run_come_from_what_the_files_say(tmp_path: Path) -> None:
    folder = tmp_path / "org__m"
    stamp = "2025-01-02T03-04-05.000001"
    scores = {"acc,none": 1.0}
    document = {"results": {"a/b": scores, "toy": scores, "hard_toy": scores}, "versions": {"toy": 2}}
    write(
        folder / f"results_{stamp}.json", document | {"config": {"model_args": "pretrained=org/m"}, "model_name": "x"}
    )
    write_lines(folder / f"samples_toy_{stamp}.jsonl", [sample(0)])
    write_lines(folder / f"samples_a_b_{stamp}.jsonl", [sample(0)])
    write_lines(folder / f"samples_alias_{stamp}.jsonl", [sample(0, task_name="toy_2024-06")])
    write_lines(folder / "samples_toy_2025-02-02T00-00-00.jsonl", [sample(0)])
    sink = read_folder(tmp_path)
    rows = sink.table("rows").select("task", "version", "run_id").rows()
    assert rows == [("a/b", None, 0), ("toy_2024-06", None, 0), ("toy", "2", 0), ("toy", None, 1)]
    assert {run.model for run in sink.runs} == {"org/m"}
    old = tmp_path / "old"
    write(old / "results.json", document)
    write_lines(old / "pretrained__org__m_hard_toy.jsonl", [sample(0)])
    sink = read_folder(old)
    assert sink.table("rows")["task"].to_list() == ["hard_toy"]
    assert len(sink.runs) == 1


def test_a_list_of_samples_is_read_as_v040_wrote_it(tmp_path: Path) -> None:
    path = write(tmp_path / "org__m_toy.jsonl", json.dumps([sample(0), sample(1, acc=0.0)], indent=2))
    write(tmp_path / "results.json", {"results": {"toy": {"acc,none": 0.5}}, "versions": {"toy": 1}})
    sink = read_folder(tmp_path)
    assert (len(sink.runs), means(sink)) == (1, {(0, "toy", "acc", None): 0.5})
    write(path, path.read_text(encoding="utf-8")[:-100])
    assert "is no JSON" in read_folder(tmp_path).faults[0].reason


def test_samples_alone_are_called_after_the_folder_that_was_given(tmp_path: Path) -> None:
    write_lines(tmp_path / "mine" / "samples_t_2025-01-01T00-00-01.000000.jsonl", [sample()])
    done = CliRunner().invoke(app, ["ingest", str(tmp_path / "mine"), "-o", str(tmp_path / "panel")])
    assert done.exit_code == 0, done.output
    assert "1 unit, 1 run, 1 model, 1 task, 1 row, 0 choices" in done.output
    assert "the folder of the logs: samples have no results file; their model is called mine" in done.stderr
