"""Which runs are replicates, which stand on a grid, and what a table of runs may say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright.choices import DEFAULT_PRICES, EstimateChoices, Price
from benchwright.errors import DataError, UsageError
from benchwright.estimating.measure import Measurements, measure
from benchwright.estimating.ranking import last_runs
from benchwright.estimating.runs import read_run_facts
from benchwright.panel.ingest import read_logs

ITEMS = 4


def panel_of(folder: Path, runs: list[dict[str, Any]], **options: Any) -> Path:
    """Ingest one CSV of runs, each with the same items and a score that follows from its place."""
    names = sorted({name for run in runs for name in run})
    lines = [",".join([*names, "task", "item", "score"])]
    for place, run in enumerate(runs):
        told = [str(run.get(name, "")) for name in names]
        lines += [",".join([*told, "sums", str(item), str((7 * place + item) % 10 / 10)]) for item in range(ITEMS)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read_logs(folder / "log.csv", folder / "panel", workers=1, **options)
    return folder / "panel"


def measured(
    panel: Path, facts: str | None = None, prices: dict[str, Price] | None = None, **choices: Any
) -> Measurements:
    table = None
    if facts is not None:
        path = panel.parent / "runs.csv"
        path.write_text(facts, encoding="utf-8")
        table = read_run_facts(path)
    known = DEFAULT_PRICES if prices is None else prices
    return measure(panel, choices=EstimateChoices(**choices), prices=known, facts=table)


def test_runs_that_differ_by_seed_are_replicates_of_one_checkpoint(tmp_path: Path) -> None:
    runs = [{"model": "a", "seed": seed, "step": step} for seed in (1, 2, 3) for step in (10, 20)]
    found = measured(panel_of(tmp_path, runs))
    assert found.runs.frame.group_by("checkpoint").len()["len"].to_list() == [3, 3]
    assert found.runs.frame["lineage"].n_unique() == 1
    assert found.noise["df"].to_list() == [4] * ITEMS


def test_seeds_in_the_names_of_models_are_seeds(tmp_path: Path) -> None:
    runs = [{"model": f"lab/tiny-seed{seed}"} for seed in (1, 2)] + [{"model": "lab/other-seed9"}]
    found = measured(panel_of(tmp_path, runs))
    assert dict(found.runs.frame.select("model", "name").iter_rows()) == {
        "lab/tiny-seed1": "lab/tiny",
        "lab/tiny-seed2": "lab/tiny",
        "lab/other-seed9": "lab/other-seed9",
    }
    assert found.runs.frame["seed"].to_list() == [None, 1, 2]
    assert any("Seeds were taken from the names" in note for note in found.notes)


def test_named_runs_without_seeds_are_replicates_with_a_warning(tmp_path: Path) -> None:
    found = measured(panel_of(tmp_path, [{"model": "a", "run": "x"}, {"model": "a", "run": "y"}]))
    assert found.noise["df"].to_list() == [1] * ITEMS
    assert any("unknown seeds" in note for note in found.notes)


def test_tasks_kept_in_runs_of_their_own_are_one_run(tmp_path: Path) -> None:
    for task in ("sums", "words"):
        lines = ["model,task,item,score", *(f"a,{task},{item},{item % 2}" for item in range(3))]
        (tmp_path / f"{task}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read_logs([tmp_path / "sums.csv", tmp_path / "words.csv"], tmp_path / "panel", workers=1)
    found = measured(tmp_path / "panel")
    assert found.value.shape == (6, 1)
    assert found.notes == ()


def test_a_table_of_runs_names_models_seeds_axes_and_the_anchor(tmp_path: Path) -> None:
    panel = panel_of(tmp_path, [{"model": name} for name in ("base", "sft-1k", "sft-2k", "rl")])
    facts = (
        "model,name,axis,dose,unit,anchor\n"
        "base,tiny,SFT,0,examples,true\nbase,tiny,RL,0,prompts,true\n"
        "sft-1k,tiny,SFT,1000,Example,\nsft-2k,tiny,SFT,2000,example,\nrl,tiny,RL,5000,prompt,\n"
    )
    found = measured(panel, facts)
    assert found.runs.frame["name"].unique().to_list() == ["tiny"]
    assert found.runs.frame.filter("is_anchor")["model"].to_list() == ["base"]
    grid = found.grid.join(found.runs.frame.select("run_no", "model"), on="run_no").select("axis", "model", "x")
    assert set(grid.iter_rows()) == {
        ("SFT", "base", 0.0), ("SFT", "sft-1k", 1.0), ("SFT", "sft-2k", 2.0), ("RL", "base", 0.0), ("RL", "rl", 5.0),
    }  # fmt: skip
    sft = [found.value[0, found.runs.frame["model"].to_list().index(name)] for name in ("base", "sft-1k", "sft-2k")]
    slope = found.slopes.filter(pl.col("axis") == "SFT", pl.col("doc_id") == 0)["slope"][0]
    assert slope == pytest.approx((sft[2] - sft[0]) / 2)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("model,seed\nnobody,1\n", "line 2: matches no run of the panel (model nobody)"),
        ("model,seed\na,one\n", "line 2, column `seed`: must be a whole number, got `one`"),
        ("seed,axis\n1,SFT\n", "no column says which runs are meant"),
        ("model,seed\na,1\na,2\n", "line 3, column `seed`: line 2 gives the same run 1, this one 2"),
        ("model,dose\na,5\n", "a dose needs its axis"),
        ("model,axis,dose\na,SFT,\n", "axis and dose must stand together"),
        (
            "model,axis,dose,unit\na,SFT,1,examples\nb,SFT,2,tokens\n",
            "doses in different units on one axis: SFT: example, token",
        ),
        ("model,axis,dose\na,SFT,1\na,SFT,2\n", "gives one run two doses on axis SFT"),
        ("model,axis,dose\na,S F T,1\n", "axes must be letters, digits and _"),
        ("model,axis,dose\na,sft,1\nb,SFT,1\n", "differ in more than case"),
    ],
)
def test_a_table_of_runs_that_does_not_fit(tmp_path: Path, facts: str, message: str) -> None:
    panel = panel_of(tmp_path, [{"model": "a"}, {"model": "b"}])
    with pytest.raises(DataError) as caught:
        measured(panel, facts)
    assert message in str(caught.value)


def test_models_are_ranked_on_one_axis(tmp_path: Path) -> None:
    runs = [{"model": name, "axis": axis, "dose": dose} for name in ("a", "b") for axis, dose in (("PT", 5), ("RL", 3))]
    panel = panel_of(tmp_path, runs)
    assert list(last_runs(measured(panel))) == ["a [PT]", "a [RL]", "b [PT]", "b [RL]"]
    ranked = measured(panel, ranked_axis="RL")
    assert list(last_runs(ranked)) == ["a", "b"]
    assert list(last_runs(ranked, every=True)) == ["a [PT]", "a [RL]", "b [PT]", "b [RL]"]
    with pytest.raises(
        UsageError, match=r"no run is on the axis SFT\nHint: set estimates.ranked_axis to one of PT, RL"
    ):
        measured(panel, ranked_axis="SFT")


def test_doses_must_be_in_the_unit_of_their_price(tmp_path: Path) -> None:
    runs = [{"model": "a", "axis": "PT", "dose": dose, "dose_unit": "steps"} for dose in (1, 2)]
    panel = panel_of(tmp_path, runs)
    with pytest.raises(DataError, match="axis PT: doses are in steps, its price is for 1e\\+09 tokens"):
        measured(panel)
    found = measured(panel, prices={"PT": Price(2.0, "10 steps", "step", 10.0)})
    assert sorted(found.grid["x"]) == [0.1, 0.2]


def test_only_the_models_that_are_named_count(tmp_path: Path) -> None:
    panel = panel_of(tmp_path, [{"model": name} for name in ("lab/a", "lab/b", "else/c")])
    assert measured(panel, models=("lab/*",)).runs.frame["name"].to_list() == ["lab/a", "lab/b"]
    assert measured(panel, models=("!lab/b",)).runs.frame["name"].to_list() == ["else/c", "lab/a"]
    assert measured(panel, models=("lab/*", "!*b")).runs.frame["name"].to_list() == ["lab/a"]
    for named in (("nobody",), ("lab/*", "nobody"), ("!nobody",)):
        with pytest.raises(UsageError, match=r"no model is named `nobody`\nHint: there are: else/c, lab/a, lab/b"):
            measured(panel, models=named)
    with pytest.raises(UsageError, match="no run is of the anchor nobody"):
        measured(panel, anchor="nobody")


def test_smaller_is_better_turns_the_sign(tmp_path: Path) -> None:
    lines = ["model,task,item,perplexity", "a,sums,0,3.0", "a,sums,1,5.0"]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read_logs(tmp_path / "log.csv", tmp_path / "panel", workers=1)
    found = measured(tmp_path / "panel")
    assert found.value.ravel().tolist() == [-3.0, -5.0]
    assert any("Smaller is better for perplexity" in note for note in found.notes)


def test_ids_that_are_all_whole_numbers_are_numbers(tmp_path: Path) -> None:
    assert measured(panel_of(tmp_path, [{"model": "a"}])).items["doc_id"].dtype == pl.Int64
    lines = ["model,task,item,score", "a,sums,007,1", "a,sums,8,0"]
    (tmp_path / "padded.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read_logs(tmp_path / "padded.csv", tmp_path / "text", workers=1)
    assert measured(tmp_path / "text").items["doc_id"].to_list() == ["007", "8"]


def test_steps_can_be_the_doses_of_an_axis(tmp_path: Path) -> None:
    panel = panel_of(tmp_path, [{"model": "a", "step": step} for step in (0, 1000, 4000)])
    assert measured(panel).grid.height == 0
    found = measured(panel, step_axis="PT", step_dose=2e6)
    assert sorted(found.grid["x"]) == [0.0, 2.0, 8.0]
    assert any("taken as tokens" in note for note in found.notes)


def test_an_item_that_a_run_gives_twice_is_told(tmp_path: Path) -> None:
    lines = ["model,task,item,score", "a,sums,0,1.0", "a,sums,1,0.0", "a,sums,1,1.0"]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read_logs(tmp_path / "log.csv", tmp_path / "panel", workers=1)
    found = measured(tmp_path / "panel")
    assert found.value.ravel().tolist() == [1.0, 1.0]
    assert "1 row of a run that it had given before; the latest of an item counts." in found.notes


def test_an_axis_added_by_a_table_leaves_the_doses_of_the_logs(tmp_path: Path) -> None:
    """Runs at other doses of their own axis are no replicates, whatever else a table says of them."""
    runs = [{"model": m, "seed": s, "axis": "PT", "dose": d} for m in "ab" for s in (1, 2) for d in (1e9, 2e9)]
    panel = panel_of(tmp_path, runs)
    bare, added = measured(panel), measured(panel, "model,axis,dose\na,SFT,1000\nb,SFT,2000\n")
    assert added.runs.frame.group_by("checkpoint").len()["len"].to_list() == [2] * 4
    assert added.noise.equals(bare.noise)
    assert sorted(added.grid["axis"].unique()) == ["PT", "SFT"]
    crossed = [{"model": "a", "run": f"r{s}{d}", "axis": "PT", "dose": 1e9} for s in (1, 2) for d in (5, 6)]
    facts = "".join(f"r{s}{d},{s},SFT,{d}\n" for s in (1, 2) for d in (5, 6))
    found = measured(panel_of(tmp_path / "crossed", crossed), f"run,seed,axis,dose\n{facts}")
    assert found.runs.frame.group_by("checkpoint").len()["len"].to_list() == [2, 2]


def test_runs_that_state_one_seed_are_trials_of_one_training(tmp_path: Path) -> None:
    runs = [{"model": "a", "seed": seed, "run": f"r{place}"} for place, seed in enumerate((1, 1, 2))]
    found = measured(panel_of(tmp_path, runs))
    assert found.runs.frame["seed"].to_list() == [1, 2]
    assert found.trials[:, 0].tolist() == [2] * ITEMS
    assert any("state the same seed" in note for note in found.notes)
    assert not any("same seed" in note for note in measured(panel_of(tmp_path / "x", runs[1:])).notes)


def test_models_scored_by_another_metric_are_named(tmp_path: Path) -> None:
    metrics = {"a": "acc", "b": "acc", "c": "exact_match"}
    lines = [f"{model},sums,{item},{metric},0.{item}" for model, metric in metrics.items() for item in range(1, 5)]
    (tmp_path / "log.csv").write_text("\n".join(["model,task,item,metric,score", *lines]) + "\n", encoding="utf-8")
    read_logs(tmp_path / "log.csv", tmp_path / "panel", workers=1)
    found = measured(tmp_path / "panel")
    assert set(found.runs.frame["model"]) == {"a", "b"}
    (note,) = [note for note in found.notes if "another metric" in note]
    assert note.startswith("1 model (c) left out of tasks")
    assert "exact_match" in note


def test_a_task_has_one_scale_and_rows_without_a_score_are_counted(tmp_path: Path) -> None:
    scores = {"percent": (0.7, 50, 80), "share": (0.1, 1, "")}
    lines = [f"a,{task},{item},{score}" for task, known in scores.items() for item, score in enumerate(known)]
    (tmp_path / "log.csv").write_text("\n".join(["model,task,item,score", *lines]) + "\n", encoding="utf-8")
    read_logs(tmp_path / "log.csv", tmp_path / "panel", workers=1)
    found = measured(tmp_path / "panel")
    assert found.items["task"].filter(pl.Series(found.bounded)).unique().to_list() == ["share"]
    (note,) = [note for note in found.notes if "leave [0, 1]" in note]
    assert note.startswith("Scores leave [0, 1] in 2 items, so no Z")
    assert "1 task: percent" in note
    assert any(note.startswith("1 row without a score") for note in found.notes)
