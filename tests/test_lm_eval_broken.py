"""Samples of lm-evaluation-harness that are odd or changed: faults where needed, and no crash."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import lm_eval, lm_eval_samples
from test_lm_eval import FLIPEVAL, means, read_files, sample, write_lines
from test_lm_eval_results import LM_EVAL, read_folder, write


def test_half_a_surrogate_pair_stops_nothing(tmp_path: Path) -> None:
    document = {"results": {"t\ud800": {"acc,none": 0.5}}, "versions": {}, "model_name": "org/\udfff"}
    document["samples"] = {"t\ud800": [sample("\ud800")]}
    write(tmp_path / "results.json", document)
    write_lines(
        tmp_path / "samples_s_2025-01-01T00-00-00.jsonl",
        [sample("\ud800", doc={"q": "\ud800"}), sample(1, doc="\ud800")],
    )
    sink = read_folder(tmp_path)
    assert sink.faults == []
    assert {run.model for run in sink.runs} == {"org/?"}
    assert sink.table("rows").select("task", "doc_id").rows() == [("t?", "?"), ("s", "?"), ("s", "1")]
    assert sink.table("rows")["item_hash"].null_count() == 0


def test_samples_inside_a_results_document_are_read(tmp_path: Path) -> None:
    document = {"results": {"toy": {"acc,none": 0.5}}, "versions": {"toy": 1}, "model_name": "org/m"}
    document["samples"] = {"toy": [sample(0), sample(1, acc=0.0), 7], "odd": {}}
    path = write(tmp_path / "results.json", json.dumps(document, indent=1))
    sink = read_files(path)
    assert means(sink) == {(0, "toy", "acc", None): 0.5}
    assert [(fault.line, fault.column) for fault in sink.faults] == [(3, None), (None, "samples")]


def real_lines(shared: Path) -> list[bytes]:
    paths = [
        next((shared / FLIPEVAL).glob("lm_eval_mmlu_0shot/*/samples_mmlu_abstract*")),
        next((shared / "data/logs/lm-eval/malicious-finetune/results").glob("*/samples*")),
        next((shared / "cases/C03").glob("samples_toywiki*")),
    ]
    return [line for path in paths for line in path.read_bytes().splitlines()[:2]]


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.sampled_from(["-1", "1e999", "nan"])
)
odd_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
)
KEYS = (*lm_eval_samples.CORE, "acc", "word_perplexity", "task_name", "doc_hash", "pass@1", "perplexity")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_changed_records_never_raise(shared: Path, tmp_path: Path, data: st.DataObject) -> None:
    lines = []
    for line in data.draw(st.lists(st.sampled_from(real_lines(shared)), min_size=1, max_size=4)):
        if data.draw(st.booleans()):  # bytes
            changed = bytearray(line)
            for place in data.draw(st.lists(st.integers(0, len(line) - 1), max_size=4)):
                changed[place] = data.draw(st.integers(0, 255))
            lines.append(
                bytes(changed[: data.draw(st.integers(1, len(line)))] if data.draw(st.booleans()) else changed)
            )
        else:  # values
            record = json.loads(line)
            for key in data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)):
                if data.draw(st.booleans()):
                    record.pop(key, None)
                else:
                    record[key] = data.draw(odd_values)
            lines.append(json.dumps(record).encode())
    path = tmp_path / "samples_toy_2025-01-01T00-00-00.jsonl"
    path.write_bytes(b"\n".join(lines))
    assert lm_eval.sniff is LM_EVAL.sniff
    sink = read_files(path)
    rows = sink.table("rows")
    assert rows["value"].is_finite().all()
    assert ((rows["status"] == "scored") == rows["value"].is_not_null()).all()
    assert rows.height or sink.faults
