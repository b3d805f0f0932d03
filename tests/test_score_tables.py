"""Published score tables and trajectories in JSON, and tables that are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import score_tables
from benchwright.logs.format import Format
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit


def claimed(path: Path) -> Format | None:
    head = Head(path.name, LogFile(path, path.name).head())
    return next((form for form in score_tables.FORMATS if form.sniff(head)), None)


def read(path: Path) -> MemorySink:
    form = claimed(path)
    assert form is not None
    sink = MemorySink()
    form.read(Unit(form.name, (LogFile(path, path.name),)), sink)
    return sink


def test_lm_harmony(shared: Path) -> None:
    path = shared / "data" / "lm-harmony" / "all_results.json"
    sink = read(path)
    scores = sink.table("scores")
    content = json.loads(path.read_text())
    assert len({run.model for run in sink.runs}) == 61
    assert len(sink.runs) == 122
    assert {run.axis for run in sink.runs} == {"TbT"}
    assert {(run.setting, run.dose) for run in sink.runs} == {("direct_eval", 0.0), ("train_before_test", None)}
    assert scores.height == 2 * (27 * 61 - 24)
    for condition in ("direct_eval", "train_before_test"):
        numbers = [number for number, run in enumerate(sink.runs) if run.run == condition]
        for task, cells in content[condition].items():
            found = scores.filter(scores["run_id"].is_in(numbers), task=task)
            assert found["value"].mean() == pytest.approx(sum(cells.values()) / len(cells))
            stated = [value for value in content[f"{condition}_stderr"][task].values() if value != "N/A"]
            assert found["stderr"].drop_nulls().len() == len(stated)
        assert any(condition in note and "24 of 1,647 cells are missing" in note for note in sink.notes)
    assert scores.filter(task="cola")["metric"].unique().to_list() == ["mcc"]
    assert scores.filter(task="cola")["value"].min() < 0
    corpora = scores.filter(metric="bits_per_byte")
    assert corpora["task"].n_unique() == 3
    assert corpora["higher_is_better"].unique().to_list() == [False]
    assert corpora["stderr"].null_count() == corpora.height
    assert not sink.faults


def test_models_outside_tasks_inside(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"direct": {"org/a": {"t": 0.5, "u": "N/A", "v": "bad"}, "org/b": {"t": 0.25}}}))
    sink = read(path)
    assert sink.table("scores").select("task", "value").rows() == [("t", 0.5), ("t", 0.25)]
    assert [run.model for run in sink.runs] == ["org/a", "org/b"]
    assert len(sink.faults) == 1


@pytest.mark.parametrize(
    "content",
    [
        {"base": {"a": {"t": 0.5}, "b": {"t": 0.25}}},
        {"base": {"org/a": {"org/t": 0.5}}},
    ],
)
def test_it_asks_where_models_cannot_be_told(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    sink = read(path)
    assert "cannot tell models from tasks" in sink.faults[0].reason
    assert not sink.runs


def test_fine_tuning_trajectories(shared: Path) -> None:
    folder = shared / "data" / "trajectories" / "peft-metamathqa" / "results"
    names = set()
    for path in sorted(folder.glob("*.json")):
        sink = read(path)
        scores = sink.table("scores")
        stated = json.loads(path.read_text())["train_info"]["metrics"]
        assert scores.height == 21
        assert not sink.faults
        valid = scores.filter(metric="valid accuracy")["value"].to_list()
        assert valid == [record["valid accuracy"] for record in stated[:20]]
        assert scores.filter(metric="test accuracy")["value"].to_list() == [stated[20]["test accuracy"]]
        assert [run.step for run in sink.runs] == list(range(250, 5001, 250))
        assert sink.runs[0].dose == stated[0]["train samples"]
        names |= {run.model for run in sink.runs}
    assert len(names) == 63


def test_settings_file_beside_trajectories_is_not_claimed(shared: Path) -> None:
    assert claimed(shared / "data/trajectories/peft-metamathqa/default_training_params.json") is None


def test_refused_and_passed_over(shared: Path) -> None:
    matrices = shared / "data" / "matrices"
    sink = read(matrices / "hans-100seeds" / "bert_preds.txt")
    assert "holds predictions and no scores" in sink.faults[0].reason
    for name in ("psn-irt/dataset_analysis.csv", "psn-irt/results/student_abilities.csv"):
        sink = read(matrices / name)
        assert not sink.faults
        assert "fitted parameters" in sink.notes[0]
    folder = shared / "data" / "logs" / "lm-eval" / "flipeval-qwen15b"
    sink = read(folder / "kaggle_mmlu_reference_run" / "results" / "mmlu_reference_diff_0shot.csv")
    assert "compares pairs" in sink.faults[0].reason


def test_results_of_other_formats_are_left_alone(shared: Path) -> None:
    for path in (shared / "data" / "logs").rglob("*.json"):
        assert claimed(path) is None, path


def test_broken(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"direct": {"org/a": {"t": 0.5')
    sink = read(path)
    assert "is no JSON" in sink.faults[0].reason
    record = {"run_info": {"experiment_name": "e", "train_config": {}}, "train_info": {"metrics": [{"step": 1}, 3]}}
    path.write_text(json.dumps(record))
    assert len(read(path).faults) == 2


TABLE = b'{"direct_eval": {"t": {"org/a": 0.5, "org/b": "N/A"}}, "direct_eval_stderr": {"t": {"org/a": 0.1}}}'
RESULT = (
    b'{"run_info": {"experiment_name": "e", "created_at": "2026", "train_config": {"seed": 0, "model_id": "org/m"}}, '
    b'"train_info": {"status": "success", "metrics": [{"step": 1, "valid accuracy": 0.5, "train samples": 4}]}}'
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    original=st.sampled_from([TABLE, RESULT]),
    place=st.integers(0, 200),
    cut=st.integers(0, 20),
    junk=st.sampled_from(
        [b"", b"null", b"[]", b"{}", b'"x"', b"1e999", b"-1", b"NaN", b"\xff", b'"\\ud800"', b"9" * 400, b"[" * 2000]
    ),
)
def test_mutated_files_never_raise(tmp_path: Path, original: bytes, place: int, cut: int, junk: bytes) -> None:
    path = tmp_path / "mutated"
    path.write_bytes(original[:place] + junk + original[place + cut :])
    file = LogFile(path, "mutated")
    for form in score_tables.FORMATS:
        form.sniff(Head(file.name, file.head()))
        form.read(Unit(form.name, (file,)), MemorySink())


@pytest.mark.parametrize("cell", [None, [], {}, "x", -1, 1.5, True, "\ud800", 10**400, [[[]]]])
def test_wrong_types_never_raise(tmp_path: Path, cell: object) -> None:
    path = tmp_path / "x.json"
    original = json.loads(RESULT)
    for outer in ("run_info", "train_info"):
        for inner in original[outer]:
            content = json.loads(RESULT)
            content[outer][inner] = cell
            path.write_text(json.dumps(content))
            for form in score_tables.FORMATS[:2]:
                form.read(Unit(form.name, (LogFile(path, "x.json"),)), MemorySink())
    for key in ("step", "valid accuracy", "train samples"):
        content = json.loads(RESULT)
        content["train_info"]["metrics"][0][key] = cell
        path.write_text(json.dumps(content))
        score_tables.FORMATS[1].read(Unit("fine-tuning trajectory", (LogFile(path, "x.json"),)), MemorySink())
