"""Judges that count in place of the source's, several of them averaged, and how sure item welfare then is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchwright import audit
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.welfare import item_welfare
from benchwright.auditing.welfare_draws import WelfareDraws, welfare_draws
from benchwright.choices import WelfareChoices
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.logs.item_tables import ItemTables, read_item_tables
from benchwright.logs.judge_loadings import read_loadings
from benchwright.simulate import simulate_item_tables
from tables import ACTIVITIES, AXES, JUDGE, write_rows, write_tables

FEW = Config().replace({"resampling.replicates": 100, "published.draws": 39}, source="test")


def shares(folder: Path) -> None:
    """Give the activities counts of tasks that their values follow from."""
    rows = [["concept_id", "gwa", "n_tasks_wb", "p_auto", "p_aug", "dropped", "p_auto_15", "p_aug_15"]]
    for name, label, n, dropped, auto, aug in ACTIVITIES:
        own = ["", ""] if dropped == "True" else [round((one - 1) / 5, 4) for one in (auto, aug)]  # type: ignore[operator]
        rows.append([name, label, n, *own, dropped, auto, aug])  # type: ignore[list-item]
    write_rows(folder / "gwa_welfare_scores.csv", rows)


def other_judge(folder: Path, path: Path, step: int) -> Path:
    """Write loadings of another judge: each list begins elsewhere."""
    lines = [json.loads(line) for line in (folder / JUDGE).read_text().splitlines()]
    names = [row[0] for row in ACTIVITIES]
    for line in lines:
        line["ranked_gwa_ids"] = [names[(names.index(one) + step) % 5] for one in line["ranked_gwa_ids"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_tables(tmp_path / "tables")
    shares(made)
    return made


def read(folder: Path, *judges: Path) -> ItemTables:
    return read_item_tables(folder, axes=AXES, loadings=judges)


def test_one_judge_takes_the_place_of_the_sources(folder: Path, tmp_path: Path) -> None:
    path = other_judge(folder, tmp_path / "judge_loadings_b.jsonl", 1)
    tables = read(folder, path)
    assert tables.main == ("b",)
    assert sorted(tables.loadings) == ["b", "source"]
    found = audit_items(tables, FEW).welfare
    assert found is not None
    expected = item_welfare(tables.loadings["b"], tables.activities["share"])
    assert found.items.select(expected.columns).equals(expected)
    assert found.published_gap is None
    names = found.robustness["variant"].to_list()
    assert "judge source, k=5, recip" in names
    assert "judge b, k=5, recip" not in names


def test_a_judge_without_a_name_is_called_by_its_folder(folder: Path, tmp_path: Path) -> None:
    path = other_judge(folder, tmp_path / "mine" / JUDGE, 1)
    assert read(folder, path).main == ("mine",)
    assert read(folder, path.parent).main == ("mine",)
    other_judge(folder, tmp_path / "mine" / "judge_loadings_again.jsonl", 2)
    assert read(folder, path.parent).main == ("mine", "again")
    with pytest.raises(UsageError, match=r"several judges, judge_loadings.jsonl, judge_loadings_again.jsonl"):
        read_loadings(path.parent)


def test_welfare_is_the_mean_over_judges_that_gave_one(folder: Path, tmp_path: Path) -> None:
    paths = [other_judge(folder, tmp_path / f"judge_loadings_{name}.jsonl", step) for step, name in enumerate("abc")]
    lines = paths[1].read_text().splitlines(keepends=True)
    paths[1].write_text("".join(line for line in lines if json.loads(line)["doc_id"] != 0))
    tables = read(folder, *paths)
    found = audit_items(tables, FEW).welfare
    assert found is not None
    each = [item_welfare(tables.loadings[name], tables.activities["share"]) for name in "abc"]
    for key in (("alpha", 0), ("beta", 3)):
        row = found.items.filter((pl.col("task") == key[0]) & (pl.col("doc_id") == key[1])).row(0, named=True)
        mine = [one.filter((pl.col("task") == key[0]) & (pl.col("doc_id") == key[1])) for one in each]
        values = [one["w_auto"][0] for one in mine if one.height]
        assert len(values) == (2 if key[1] == 0 else 3)
        assert row["w_auto"] == pytest.approx(np.mean(values))
    assert any("mean over the judges a, b, c" in note for note in found.notes)
    assert {f"judge {name}, k=5, recip" for name in "abc"} <= set(found.robustness["variant"])


def drawn(tables: ItemTables, choices: WelfareChoices | None = None) -> tuple[WelfareDraws, pl.DataFrame]:
    loadings = pl.concat(tables.main_loadings)
    items = loadings.select("task", "doc_id").unique(maintain_order=True)
    found = welfare_draws(items, tables, WelfareChoices() if choices is None else choices)
    assert isinstance(found, WelfareDraws)
    return found, items


def test_the_error_is_the_spread_of_the_draws_and_of_the_formula(folder: Path, tmp_path: Path) -> None:
    paths = [other_judge(folder, tmp_path / f"judge_loadings_{name}.jsonl", step) for step, name in enumerate("abc")]
    tables = read(folder, *paths)
    found, items = drawn(tables)
    each = np.stack(
        [item_welfare(tables.loadings[name], tables.activities["share"])["w_auto"].to_numpy() for name in "abc"]
    )
    activities = tables.activities["share"].filter(~pl.col("dropped")).sort("activity")
    n, share = activities["n_tasks"].to_numpy(), activities["share_auto"].to_numpy()
    a, b = share * n + 0.5, (1 - share) * n + 0.5
    variance = 25 * a * b / ((n + 1) ** 2 * (n + 2))  # a value is 1 + 5 share
    names = activities["activity"].to_list()
    weights = np.array([1, 1 / 2, 1 / 3]) / (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5)
    loads = np.zeros((items.height, len(names)))
    for name in "abc":
        ranked = tables.loadings[name].filter(perspective="automation")["activities"].to_list()
        for row, one in enumerate(ranked):
            for weight, activity in zip(weights, one, strict=True):
                if activity in names:
                    loads[row, names.index(activity)] += weight / 3
    between = each.var(axis=0, ddof=1) / 3
    expected = np.sqrt(loads**2 @ variance + between)
    np.testing.assert_allclose(found.error("automation"), expected, rtol=1e-9)
    draws = found.draw({"automation": 1.0}, 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.std(axis=0), expected, rtol=0.05)
    assert np.abs(draws.mean(axis=0)).max() < 0.03


def test_items_that_share_activities_move_together(folder: Path) -> None:
    found, items = drawn(read(folder))
    draws = found.draw({"automation": 1.0}, 2000, np.random.default_rng(0))
    loads = found.loads["automation"].toarray()
    same = [i for i in range(items.height) if np.array_equal(loads[i], loads[0])]
    assert len(same) > 1
    assert np.ptp(draws[:, same], axis=1).max() < 1e-12


def test_judges_alone_are_drawn_where_activities_are_not(folder: Path, tmp_path: Path) -> None:
    write_tables(folder)  # without shares
    paths = [other_judge(folder, tmp_path / f"judge_loadings_{name}.jsonl", step) for step, name in enumerate("ab")]
    found, _ = drawn(read(folder, *paths))
    assert found.activities is None
    assert any("Values of activities are not drawn" in note for note in found.notes)
    draws = found.draw({"automation": 0.5, "augmentation": 0.5}, 500, np.random.default_rng(0))
    assert draws.std(axis=0).max() > 0.1
    items = read(folder).loadings["default"].select("task", "doc_id").unique()
    assert isinstance(welfare_draws(items, read(folder), WelfareChoices()), str)


def test_the_variance_between_judges_reaches_the_weights(folder: Path, tmp_path: Path) -> None:
    paths = [other_judge(folder, tmp_path / f"judge_loadings_{name}.jsonl", step) for step, name in enumerate("ab")]
    report = audit(folder, config=FEW, loadings=paths)
    assert report.weights is not None
    assert any("Draws of judges: 2 of the 2 that count" in note for note in report.weights.notes)
    assert report.source.main == ("a", "b")


def test_what_is_no_judge_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read(folder, tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match=r"the folder holds no judge_loadings\*\.jsonl"):
        read(folder, tmp_path)
    path = other_judge(folder, tmp_path / "judge_loadings_b.jsonl", 1)
    with pytest.raises(DataError, match="a judge called `b` was already read"):
        read(folder, path, path)
    with pytest.raises(UsageError, match="`loadings` goes with a folder, and the source is tables"):
        audit(simulate_item_tables(), loadings=[path])
