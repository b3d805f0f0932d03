"""Wide tables: which side the models are, coding, missing cells, public cases, real data, mutated input."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import matrix
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit


def read(path: Path) -> MemorySink:
    (form,) = matrix.FORMATS
    file = LogFile(path, path.name)
    assert form.sniff(Head(file.name, file.head()))
    sink = MemorySink()
    form.read(Unit(form.name, (file,)), sink)
    return sink


def written(path: Path, content: str) -> MemorySink:
    path.write_text(content, encoding="utf-8")
    return read(path)


def values(sink: MemorySink) -> dict[str, list[float | None]]:
    rows = sink.table("rows")
    return {run.model: rows.filter(run_id=number)["value"].to_list() for number, run in enumerate(sink.runs)}


def test_case_c22_missing_cells_are_missing(shared: Path) -> None:
    sink = read(shared / "cases" / "C22" / "scores.csv")
    scores = sink.table("scores")
    full, partial = (scores.filter(run_id=number)["value"] for number in range(2))
    assert [run.model for run in sink.runs] == ["full", "partial"]
    assert full.mean() == pytest.approx(0.525)
    assert (len(full), len(partial)) == (4, 2)
    assert partial.mean() == pytest.approx(0.65)
    assert any("2 of 8 cells are empty" in note for note in sink.notes)


def test_case_c23_rows_are_models(shared: Path) -> None:
    sink = read(shared / "cases" / "C23" / "scores.csv")
    means = {run.model: sink.table("scores").filter(run_id=n)["value"].mean() for n, run in enumerate(sink.runs)}
    assert means == pytest.approx({"A": 0.57, "B": 0.76, "C": 0.68, "D": 0.683333}, abs=1e-6)


def test_case_c25_rows_are_items(shared: Path) -> None:
    found = values(read(shared / "cases" / "C25" / "scores.csv"))
    a, b = found["A"], found["B"]
    assert len(a) == len(b) == 60
    assert sum(map(float, a)) / 60 == pytest.approx(0.65)
    assert sum(map(float, b)) / 60 == pytest.approx(0.516667, abs=1e-6)
    assert sum(x == 1 and y == 0 for x, y in zip(a, b, strict=True)) == 9
    assert sum(x == 0 and y == 1 for x, y in zip(a, b, strict=True)) == 1


def test_both_orientations_agree(tmp_path: Path) -> None:
    table = {"m1": [1, 0, 1] * 10, "m2": [0, 0, 1] * 10}
    ids = [f"q{place}" for place in range(30)]
    by_item = "item,m1,m2\n" + "".join(f"{q},{a},{b}\n" for q, a, b in zip(ids, *table.values(), strict=True))
    by_model = f"model,{','.join(ids)}\n" + "".join(f"{m},{','.join(map(str, row))}\n" for m, row in table.items())
    bare = "\n".join(",".join(map(str, row)) for row in table.values())
    first, second = written(tmp_path / "x.csv", by_item), written(tmp_path / "y.csv", by_model)
    third, fourth = written(tmp_path / "z.csv", bare), written(tmp_path / "z.csv", _transposed(bare))
    assert values(first) == values(second) == {name: list(map(float, row)) for name, row in table.items()}
    assert list(values(third).values()) == list(values(first).values())
    assert values(third) == values(fourth)
    assert set(values(third)) == {"model 1", "model 2"}
    assert first.table("rows").filter(run_id=0)["doc_id"].to_list() == ids
    assert second.table("rows").filter(run_id=0)["doc_id"].to_list() == ids


def _transposed(text: str) -> str:
    return "\n".join(",".join(row) for row in zip(*(line.split(",") for line in text.split("\n")), strict=True))


def test_names_in_front_of_rows_without_a_header(tmp_path: Path) -> None:
    sink = written(tmp_path / "x.csv", "gpt,1,0,1\nllama,0,,1\n")
    assert values(sink) == {"gpt": [1, 0, 1], "llama": [0, None, 1]}
    assert sink.table("rows")["status"].to_list().count("unscored") == 1


@pytest.mark.parametrize(
    ("content", "coding", "metric", "first"),
    [
        ("item,A,B\na,1,0\nb,0,1\n", "0 and 1", "correct", 1.0),
        ("item (out of 10),A,B\na,7,0\nb,0,10\n", "out of 10", "correct", 0.7),
        ("item,A,B\na,7,0\nb,0,10\n", "without a total", "count", 7.0),
        ("item,A,B\na,0.25,0\nb,0,1\n", "scores from 0 to 1", "score", 0.25),
        ("item,A,B\na,-0.5,0\nb,0,3\n", "log-odds", "log_odds", -0.5),
    ],
)
def test_coding_is_said(tmp_path: Path, content: str, coding: str, metric: str, first: float) -> None:
    sink = written(tmp_path / "x.csv", content)
    assert any(coding in note for note in sink.notes)
    assert sink.table("rows")["metric"].unique().to_list() == [metric]
    assert sink.table("rows")["value"][0] == first


def test_what_is_no_score_is_said(tmp_path: Path) -> None:
    content = "model,params_b,t1,t1_stderr,average,rank\nA,7,0.5,0.01,0.5,1\nB,13,x,,0.6,2\nMean,10,0.5,,0.55,\n"
    sink = written(tmp_path / "x.csv", content)
    scores = sink.table("scores")
    assert scores.select("task", "value", "stderr", "is_group").rows() == [
        *(("t1", 0.5, 0.01, False), ("average", 0.5, None, True), ("average", 0.6, None, True)),
    ]
    assert any("params_b" in note and "rank" in note for note in sink.notes)
    assert any("summary rows" in note and "Mean" in note for note in sink.notes)
    assert [(fault.line, fault.column) for fault in sink.faults] == [(3, "t1")]


def test_names_that_end_like_errors_are_tasks(tmp_path: Path) -> None:
    assert written(tmp_path / "x.csv", "model,se_noun,nouns_se\nA,0.5,0.7\n").table("scores").height == 2


def test_items_of_several_tasks(tmp_path: Path) -> None:
    sink = written(tmp_path / "x.csv", "item,task,A\n1,r,1\n1,m,0\n")
    assert sink.table("rows").select("task", "doc_id", "value").rows() == [("r", "1", 1.0), ("m", "1", 0.0)]
    assert not sink.faults
    assert not sink.notes[1:]


def test_what_columns_say_of_a_run(tmp_path: Path) -> None:
    content = "model,revision,seed,step,date,n,t1\nA,main,1,step10,2024-01-01,50,0.5\nA,main,2,step10,,50,0.6\n"
    sink = written(tmp_path / "x.csv", content)
    assert [(run.revision, run.seed, run.step) for run in sink.runs] == [("main", 1, 10), ("main", 2, 10)]
    assert [run.created for run in sink.runs] == ["2024-01-01T00:00:00+00:00", None]
    assert sink.table("scores")["task"].to_list() == ["t1", "t1"]
    assert not sink.faults


def test_index_that_pandas_wrote(tmp_path: Path) -> None:
    sink = written(tmp_path / "x.csv", ",model,t1,t2\n0,A,0.5,0.25\n1,B,0.1,0.2\n")
    assert [run.model for run in sink.runs] == ["A", "B"]
    assert sink.table("scores")["task"].unique().sort().to_list() == ["t1", "t2"]


def test_runs_of_one_model(shared: Path) -> None:
    path = shared / "data/matrices/hans-100seeds/berts_of_a_feather_accuracies_by_run.csv"
    sink = read(path)
    scores = sink.table("scores")
    assert [run.seed for run in sink.runs] == list(range(100))
    assert len({run.model for run in sink.runs}) == 1
    assert (scores.height, scores["task"].n_unique()) == (3800, 38)
    assert scores.filter(is_group=True)["task"].unique().to_list() == ["Overall accuracy"]
    with path.open(encoding="utf-8-sig", newline="") as file:
        stated = next(row for row in csv.DictReader(file) if row["Run"] == "Mean")
    for task in ("MNLI dev acc.", "ln_passive", "Overall accuracy", "se_conjunction"):
        assert scores.filter(task=task)["value"].mean() == pytest.approx(float(stated[task]), abs=1e-6)
    assert not sink.faults


def test_matrix_without_names(shared: Path) -> None:
    path = shared / "data/matrices/psn-irt/data/combine.csv"
    sink = read(path)
    rows = sink.table("rows")
    assert [run.model for run in sink.runs] == [f"model {number}" for number in range(1, 13)]
    assert (rows["doc_id"].n_unique(), rows.height) == (41_871, 12 * 41_871)
    with path.open() as file:
        stated = [line.count("1.0") / 41_871 for line in file]
    found = [rows.filter(run_id=number)["value"].mean() for number in range(12)]
    assert found == pytest.approx(stated)
    assert any("no header" in note for note in sink.notes)
    assert not sink.faults


MATRICES = [
    b"item,A,B\nq1,1,0\nq2,0,1\nq3,1,\n",
    b"model,t1,t2\nA,0.5,0.25\nB,,0.1\n",
    b"1,0,1,1\n0,0,1,0\n1,1,1,1\n",
    b"Run,t1\nRun 0,1\nRun 1,0\nMean,0.5\n",
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    original=st.sampled_from(MATRICES),
    place=st.integers(0, 40),
    cut=st.integers(0, 8),
    junk=st.one_of(st.binary(max_size=6), st.sampled_from([b'"', b"\n", b",", b"nan", b"1e999", b"\x00", b";\t"])),
)
def test_mutated_matrices_never_raise(tmp_path: Path, original: bytes, place: int, cut: int, junk: bytes) -> None:
    path = tmp_path / "mutated"
    path.write_bytes(original[:place] + junk + original[place + cut :])
    (form,) = matrix.FORMATS
    file = LogFile(path, "mutated")
    form.sniff(Head(file.name, file.head()))
    sink = MemorySink()
    form.read(Unit(form.name, (file,)), sink)
    rows = sink.table("rows")
    assert rows.filter(rows["value"].is_null() == (rows["status"] == "scored")).height == 0
