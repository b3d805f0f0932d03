"""Long tables of the public cases and of public data."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit
from table_logs import FORMATS, models, read


def test_case_c09_text_ids(shared: Path) -> None:
    case = shared / "cases" / "C09"
    found: dict[str, dict[tuple[str, str], float]] = {}
    for name in ("reading.jsonl", "maths.jsonl", "m2_string_ids.csv"):
        sink = read(case / name)
        (model,) = models(sink)
        rows = sink.table("rows").select("task", "doc_id", "value").iter_rows()
        found.setdefault(model, {}).update({(task, item): value for task, item, value in rows})
    assert set(found) == {"m1", "NA"}
    assert len(found["m1"]) == 6
    assert sum(found["m1"].values()) / 6 == 0.5
    assert found["m1"].keys() == found["NA"].keys()


def test_case_c10_duplicates(shared: Path) -> None:
    sink = read(shared / "cases" / "C10" / "judgments.csv")
    rows = sink.table("rows")
    assert any("1 conflicting pair" in note and "1 exact copy" in note for note in sink.notes)
    assert rows.height == 5
    assert rows["repeat"].to_list() == [0] * 5
    assert rows["line"].to_list() == [2, 4, 5, 6, 3]  # in order of time
    latest = rows.group_by("doc_id", maintain_order=True).last()["value"].mean()
    first = rows.group_by("doc_id", maintain_order=True).first()["value"].mean()
    assert latest == pytest.approx(0.666667, abs=1e-6)
    assert first == 1.0
    assert rows.group_by("doc_id").agg(pl.col("value").mean())["value"].mean() == pytest.approx(0.833333, abs=1e-6)
    assert sink.runs[0].created == "2023-11-15T00:59:59+00:00"


@pytest.mark.parametrize(("case", "rows", "scores"), [("C20", 20, 0), ("C21", 0, 5)])
def test_cases_without_a_model(shared: Path, case: str, rows: int, scores: int) -> None:
    sink = read(shared / "cases" / case / "scores.csv", f"{case}/scores.csv")
    assert models(sink) == {f"{case}/scores"}
    assert (sink.table("rows").height, sink.table("scores").height) == (rows, scores)
    assert any("names the model" in note for note in sink.notes)


def test_seeds_counted_of_hans(shared: Path) -> None:
    path = shared / "data/matrices/hans-100seeds/mnli_development_set_number_of_correct_responses.txt"
    sink = read(path)
    rows = sink.table("rows")
    lines = path.read_text(encoding="utf-8").split("\n")[1:]
    counts = [int(line.rstrip("\r").rsplit("\t", 1)[1]) for line in lines if line]
    assert rows.height == len(counts) == rows["doc_id"].n_unique() == 9815
    assert rows["value"].mean() == pytest.approx(sum(counts) / len(counts) / 100)
    assert rows["trials"].unique().to_list() == [100]
    assert rows["item_hash"].null_count() == 0
    assert not sink.faults


NOISES = {
    "highk_temp0.7/assets/tables/input_table_math500_cot.csv": (48, 500, "temperature=0.7"),
    "lowk_temp0.7/assets/tables/input_table_gpqa_cot.csv": (51, 448, "temperature=0.7"),
    "lowk_temp1/assets/tables/input_table_gpqa_cot.csv": (51, 448, "temperature=1.0"),
    "lowk_temp1/assets/tables/input_table_gsm8k_cot.csv": (52, 1319, "temperature=1.0"),
    "main/assets/tables/input_table_arc_challenge.csv": (38, 1165, None),
    "main/assets/tables/input_table_gsm8k.csv": (37, 1319, None),
    "main/assets/tables/input_table_humaneval+.csv": (49, 164, None),
    "main/assets/tables/input_table_swebench-lite.csv": (84, 300, None),
}


@pytest.mark.parametrize("name", NOISES)
def test_repeated_samples(shared: Path, name: str) -> None:
    path = shared / "data" / "matrices" / "all-the-noises" / name
    sink = read(path)
    rows = sink.table("rows")
    count, items, setting = NOISES[name]
    assert (len(sink.runs), rows["doc_id"].n_unique(), rows.height) == (count, items, count * items)
    assert all((run.setting or "").startswith(setting or "") for run in sink.runs)
    stated = pl.read_csv(path, infer_schema_length=None).cast({"example_id": pl.String})
    names = pl.DataFrame({"run_id": range(count), "model": [run.model for run in sink.runs]})
    both = rows.join(names, on="run_id").join(stated, left_on=["model", "doc_id"], right_on=["model", "example_id"])
    assert both.height == rows.height
    assert (both["value"] - both["pass1"]).abs().max() < 1e-9
    assert (both["trials"] == both["count"]).all()
    assert not sink.faults
    summary = path.with_name(path.name.replace("input_table", "model_table"))
    if summary.is_file():
        scores = read(summary).table("scores").filter(metric="pass1").sort("value")
        means = rows.group_by("run_id").agg(pl.col("value").mean()).sort("value")
        assert scores["n"].null_count() == scores.height  # its count is of samples, not of items
        assert (scores["value"] - means["value"]).abs().max() < 2e-3


def test_replicates_are_no_items(shared: Path) -> None:
    sink = read(shared / "data/matrices/polypythia-induction-panel/panel.csv.gz")
    rows = sink.table("rows")
    assert len(models(sink)) == 4
    assert len(sink.runs) == 531
    assert rows["doc_id"].unique().to_list() == ["replicates"]
    assert rows.filter(metric="ar_acc").group_by("run_id").len()["len"].unique().to_list() == [100]
    assert rows.group_by("metric").agg(pl.col("higher_is_better").first()).sort("metric").rows() == [
        *(("ar_acc", True), ("ar_mean_rank", False)),
    ]
    assert any("replicates, not items" in note for note in sink.notes)


def test_replicates_repeated_for_each_head(shared: Path) -> None:
    folder = shared / "data/matrices/polypythia-induction-panel/data/processed/induction_results"
    sink = read(folder / "induction_scores-pythia-14m-step512-seed1.csv")
    assert sink.table("rows")["task"].unique().to_list() == ["induction_scores"]
    assert any("0 conflicting pairs, 4,600 exact copies" in note for note in sink.notes)


def test_items_by_checkpoint(shared: Path) -> None:
    hashes, steps = set(), {}
    for path in sorted((shared / "data/trajectories/olmo2-13b-items-by-checkpoint/fb_local").glob("*.csv")):
        sink = read(path)
        rows = sink.table("rows")
        assert (rows.height, rows["item_hash"].n_unique(), rows["task"].unique().to_list()) == (192, 192, ["fb"])
        assert rows["metric"].unique().to_list() == ["log_odds"]
        hashes.add(tuple(rows["item_hash"]))
        (run,) = sink.runs
        assert run.model == "allenai/OLMo-2-1124-13B"
        steps[run.step, run.setting] = run.dose
        assert not sink.faults
    assert len(hashes) == 1
    assert len(steps) == 10
    assert steps[1000, "stage=stage1"] == 9e9
    assert steps[31000, "stage=stage2 ingredient=ingredient4"] == 261e9


def test_trajectories(shared: Path) -> None:
    folder = shared / "data" / "trajectories" / "ttt-emergence"
    sink = read(folder / "trajectories_with_step0.csv")
    scores = sink.table("scores")
    assert len(models(sink)) == 55
    stated = pl.read_csv(folder / "trajectories_with_step0.csv")
    assert (scores.height, scores["stderr"].null_count()) == (stated.height, stated["stderr"].null_count())
    assert sorted(scores["value"]) == sorted(stated["value"])
    assert set(scores["filter"].unique()) >= {"flexible-extract", "strict-match"}
    steps = {run.step for run in sink.runs}
    assert 0 in steps
    assert None not in steps
    assert scores.filter(metric="brier_score")["higher_is_better"].unique().to_list() == [False]
    direct = read(folder / "direct_vs_ft.csv")
    assert (direct.table("scores").height, len(models(direct))) == (3435, 55)
    assert any("3 empty scores" in note for note in direct.notes)
    passed = read(folder / "models.csv")
    assert not passed.runs
    assert not passed.faults
    assert "describes models" in passed.notes[0]


def test_own_records_of_three_quantisations(shared: Path) -> None:
    folder = shared / "data" / "logs" / "lm-eval" / "flipeval-qwen15b"
    stated = {"fp16": 0.455, "awq_public": 0.435, "gptq_public": 0.4125}
    pilot = folder / "pilot_outputs_20260711T000427Z/results/kaggle_qwen25_1p5b_public_quantized"
    for method, mean in stated.items():
        sink = read(pilot / f"{method}.mmlu.jsonl")
        rows, choices = sink.table("rows"), sink.table("choices")
        assert (rows.height, rows["task"].n_unique(), choices.height) == (400, 4, 400)
        assert rows["value"].mean() == pytest.approx(mean)
        (run,) = sink.runs
        assert run.setting == f"method={method}"
        best = [max(range(4), key=row.__getitem__) for row in choices["logprob"].to_list()]
        right = [float(guess == gold) for guess, gold in zip(best, choices["gold"], strict=True)]
        assert sum(a == b for a, b in zip(right, rows["value"], strict=True)) >= 390
        assert read(pilot / f"{method}.gsm8k.jsonl").table("rows").height == 200
    chat = folder / "kaggle_qwen25_1p5b_fp16_chat_validation/kaggle_qwen25_1p5b_fp16_chat_validation"
    assert read(chat / "fp16.mmlu.jsonl").table("rows")["value"].mean() == pytest.approx(0.43)
    assert read(chat / "fp16.gsm8k.jsonl").table("rows")["value"].mean() == pytest.approx(0.615)
    for name in (pilot / "pair_summary.csv", pilot / "rank_instability.csv"):
        assert "compares pairs" in read(name).faults[0].reason


def test_lm_eval_samples_are_left_to_their_reader(shared: Path) -> None:
    for path in (shared / "data/logs/lm-eval/flipeval-qwen15b").rglob("samples_*.jsonl"):
        file = LogFile(path, path.name)
        assert not any(form.sniff(Head(file.name, file.head())) for form in FORMATS)


REAL = (
    "data/matrices/hans-100seeds/mnli_development_set_number_of_correct_responses.txt",
    "data/matrices/hans-100seeds/berts_of_a_feather_accuracies_by_run.csv",
    "data/matrices/all-the-noises/lowk_temp1/assets/tables/input_table_gpqa_cot.csv",
    "data/trajectories/ttt-emergence/direct_vs_ft.csv",
    "data/logs/lm-eval/flipeval-qwen15b/pilot_outputs_20260711T000427Z/results/kaggle_qwen25_1p5b_public_quantized/"
    "fp16.mmlu.jsonl",
    "cases/C10/judgments.csv",
)
JUNK = (
    b'"',
    b"\n",
    b",",
    b"\t",
    b"\x00",
    b"NaN",
    b"1e999",
    b"[",
    b"}",
    b"null",
    b"\xff",
    b"\\ud800",
    b"9" * 400,
    b"score",
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(REAL),
    edits=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 20), st.sampled_from(JUNK)), min_size=1, max_size=4),
)
def test_mutated_real_records_never_raise(
    shared: Path, tmp_path: Path, name: str, edits: list[tuple[int, int, bytes]]
) -> None:
    with (shared / name).open("rb") as file:
        content = b"".join(file.readline() for _ in range(4))
    for place, cut, junk in edits:
        content = content[:place] + junk + content[place + cut :]
    path = tmp_path / "mutated"
    path.write_bytes(content)
    log = LogFile(path, "mutated")
    for form in FORMATS:
        form.sniff(Head(log.name, log.head()))
        sink = MemorySink()
        form.read(Unit(form.name, (log,)), sink)
        rows = sink.table("rows")
        assert (rows["value"].is_null() == (rows["status"] != "scored")).all()
