"""Agreement of judges: overlap and alpha against plain twins, a library and coverage; raters; the command."""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright import cli
from benchwright.auditing.raters import rater_table
from benchwright.cli.agreement import read_judges
from benchwright.errors import DataError, UsageError
from benchwright.judge import _agreement as kernel
from benchwright.judge.agreement import LEAST_ITEMS, judge_agreement
from benchwright.logs.item_tables import read_item_tables
from benchwright.logs.rater_loadings import read_raters
from tables import AXES

relaxed = settings(deadline=None, max_examples=60)
lists = st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True)


def coded(*rows: list[int]) -> np.ndarray:
    """Rows of codes, filled with -1."""
    return np.array([row + [-1] * (5 - len(row)) for row in rows])


def plain_overlap(first: list[int], second: list[int], p: float) -> float:
    """Equation 32 of Webber et al. (2010), term by term; the package rbo 0.1.3 gives the same."""
    short, long = sorted((first, second), key=len)
    s, k = len(short), len(long)

    def shared(d: int) -> int:
        return len(set(short[:d]) & set(long[:d]))

    total = sum(shared(d) / d * p**d for d in range(1, k + 1))
    total += sum(shared(s) * (d - s) / (s * d) * p**d for d in range(s + 1, k + 1))
    return (1 - p) / p * total + ((shared(k) - shared(s)) / k + shared(s) / s) * p**k


@relaxed
@given(first=lists, second=lists, p=st.sampled_from([0.5, 0.9, 0.99]))
def test_overlap_is_that_of_the_formula_and_lies_between_0_and_1(first: list[int], second: list[int], p: float) -> None:
    found = kernel.rank_biased_overlap(coded(first, second, first), coded(second, first, first), p)
    assert found[0] == pytest.approx(plain_overlap(first, second, p))
    assert found[0] == pytest.approx(found[1])
    assert found[2] == pytest.approx(1)
    assert -1e-12 <= found[0] <= 1 + 1e-12
    assert (found[0] < 1e-12) == (not set(first) & set(second))


def test_an_empty_list_has_no_overlap() -> None:
    assert np.isnan(kernel.rank_biased_overlap(coded([]), coded([1, 2]), 0.9)).all()


def random_judges(seed: int, judges: int = 3, items: int = 12) -> dict[str, pl.DataFrame]:
    """Judges who share some taste, and miss some items."""
    rng = np.random.default_rng(seed)
    names = list("abcdefg")
    taste = rng.normal(0, 1, (items, len(names)))
    found = {}
    for judge in range(judges):
        order = np.argsort(-(taste + rng.normal(0, 1, taste.shape)), axis=1)
        rows = [
            ("t", item, framing, [names[code] for code in order[item, : rng.integers(1, 6)]])
            for item in range(items)
            for framing in ("automation", "augmentation")
            if rng.random() < 0.85
        ]
        schema = ["task", "doc_id", "perspective", "activities"]
        found[f"j{judge}"] = pl.DataFrame(rows, schema=schema, orient="row")
    return found


def table_of(judges: dict[str, pl.DataFrame], framing: str, activities: str) -> np.ndarray:
    """Whether a judge lists an activity for an item: judges by (item, activity), NaN where not judged."""
    items = sorted({item for frame in judges.values() for item in frame["doc_id"]})
    rows = []
    for frame in judges.values():
        mine = frame.filter(pl.col("perspective") == framing)
        listed = dict(zip(mine["doc_id"], mine["activities"].to_list(), strict=True))
        rows.append([float(a in listed[i]) if i in listed else np.nan for i in items for a in activities])
    return np.array(rows)


def plain_alpha(table: np.ndarray) -> float:
    """Krippendorff's alpha from all pairs of values in a unit and in all units that have two."""
    units = [column[~np.isnan(column)] for column in table.T]
    units = [unit for unit in units if len(unit) > 1]
    values = np.concatenate(units)
    n = len(values)
    observed = sum(sum(x != y for x, y in combinations(unit, 2)) * 2 / (len(unit) - 1) for unit in units) / n
    expected = sum(int(x != y) for x, y in combinations(values, 2)) * 2 / (n * (n - 1))
    return 1 - observed / expected


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_alpha_is_that_of_all_pairs(seed: int) -> None:
    judges = random_judges(seed)
    found = judge_agreement(judges, activities="abcdefg", rng=np.random.default_rng(0), replicates=39)
    for row in found.table.iter_rows(named=True):
        chosen = judges if row["first"] == "all" else {name: judges[name] for name in (row["first"], row["second"])}
        table = table_of(chosen, row["perspective"], "abcdefg")
        assert row["alpha"] == pytest.approx(plain_alpha(table))
        assert row["alpha_lo"] is None or row["alpha_lo"] <= row["alpha_hi"]
        assert row["n_items"] >= LEAST_ITEMS or row["alpha_lo"] is None is row["rbo_hi"]


def test_a_few_items_have_no_interval() -> None:
    judges = random_judges(1, judges=2, items=LEAST_ITEMS - 1)
    found = judge_agreement(judges, activities="abcdefg", rng=np.random.default_rng(0))
    assert found.table.select(pl.col("^(rbo|alpha)_(lo|hi)$").null_count()).row(0) == (found.table.height,) * 4
    assert " to " not in str(found)


def test_a_folder_of_several_judges_gives_each_its_name(tmp_path: Path) -> None:
    line = json.dumps({"task": "t", "doc_id": 1, "perspective": "both", "ranked_gwa_ids": ["a"]})
    for name in ("judge_loadings.jsonl", "judge_loadings_second.jsonl"):
        (tmp_path / name).write_text(line + "\n")
    assert sorted(read_judges([tmp_path])) == sorted([tmp_path.name, "second"])


@pytest.mark.libraries
def test_alpha_is_that_of_the_library() -> None:
    import krippendorff

    judges = random_judges(4, judges=4, items=40)
    found = judge_agreement(judges, activities="abcdefg", rng=np.random.default_rng(0), replicates=39)
    for framing in ("automation", "augmentation"):
        row = found.table.filter(perspective=framing, first="all").row(0, named=True)
        expected = krippendorff.alpha(table_of(judges, framing, "abcdefg"), level_of_measurement="nominal")
        assert row["alpha"] == pytest.approx(expected)


def test_lists_that_ignore_the_item_overlap_as_much_on_other_items() -> None:
    rng = np.random.default_rng(2)
    same = pl.DataFrame(
        {
            "task": ["t"] * 30,
            "doc_id": range(30),
            "perspective": ["automation"] * 30,
            "activities": [["a", "b", "c"]] * 30,
        }
    )
    own = same.with_columns(activities=pl.Series([list(rng.permutation(list("abcdefg"))[:3]) for _ in range(30)]))
    found = judge_agreement({"same": same, "again": same, "own": own, "own again": own}, rng=rng).table
    rows = {(row["first"], row["second"]): row for row in found.iter_rows(named=True)}
    assert rows["same", "again"]["rbo"] == pytest.approx(rows["same", "again"]["rbo_other_items"])
    assert rows["own", "own again"]["rbo"] == pytest.approx(1)
    assert rows["own", "own again"]["rbo_other_items"] < 0.6
    assert rows["same", "again"]["alpha"] == pytest.approx(1)


@pytest.mark.slow
def test_intervals_of_overlap_and_alpha_hold_the_truth() -> None:
    """Coverage over fresh items. Measured over 3,000 samples of 28 and 60 items: 0.93 and 0.94 for overlap, 0.94 and
    0.95 for alpha.
    """
    rng = np.random.default_rng(3)

    def judges(items: int) -> dict[str, pl.DataFrame]:
        return random_judges(int(rng.integers(2**32)), 2, items)

    def row(items: int, replicates: int) -> dict[str, float]:
        found = judge_agreement(judges(items), activities="abcdefg", rng=rng, replicates=replicates)
        return found.table.row(0, named=True)

    truth, held, samples = row(3000, 39), np.zeros(2), 150
    for _ in range(samples):
        mine = row(40, 199)
        held += [mine[f"{name}_lo"] <= truth[name] <= mine[f"{name}_hi"] for name in ("rbo", "alpha")]
    assert (held / samples > 0.88).all()


def test_what_cannot_be_compared_is_refused() -> None:
    judges, rng = random_judges(1), np.random.default_rng(0)
    with pytest.raises(UsageError, match="`judges` must be at least two, got 1"):
        judge_agreement({"j0": judges["j0"]}, rng=rng)
    with pytest.raises(UsageError, match="`activities` must hold all ids that judges name, and lacks"):
        judge_agreement(judges, activities="ab", rng=rng)
    with pytest.raises(UsageError, match="`persistence` must lie between 0 and 1"):
        judge_agreement(judges, persistence=1.0, rng=rng)
    with pytest.raises(UsageError, match="j0 judges one twice"):
        judge_agreement(judges | {"j0": pl.concat([judges["j0"]] * 2)}, rng=rng)
    with pytest.raises(DataError, match="no item is judged by two judges"):
        judge_agreement({"a": judges["j0"], "b": judges["j1"].with_columns(task=pl.lit("u"))}, rng=rng)
    with pytest.raises(DataError, match="some have text, some integers"):
        judge_agreement({"a": judges["j0"], "b": judges["j1"].cast({"doc_id": pl.String})}, rng=rng)


def test_the_held_out_raters(shared: Path) -> None:
    folder = shared / "data" / "olmes-audit"
    raters, notes = read_raters(folder / "heldout_raters")
    assert list(raters) == ["A1", "A2", "claude3ex"]
    assert notes == ("1 list of more than 5 activities cut there.",)
    assert {frame.height for frame in raters.values()} == {56}
    activities = read_item_tables(folder, axes=AXES).activities["share"]
    table = rater_table(raters, activities)
    assert table["n_items"].to_list() == [28, 28, 28]
    assert table["automation_slots"].to_list() == [106, 98, 137]
    for perspective in ("automation", "augmentation"):
        shares = table.select(
            pl.sum_horizontal(f"{perspective}_{name}" for name in ("green", "automate", "augment", "red"))
        )
        assert shares.to_series().to_list() == pytest.approx([1, 1, 1])
    assert table["first_dominated"].to_list() == [1, 1, 1]
    found = judge_agreement(raters, activities=activities["activity"], rng=np.random.default_rng(0))
    assert found.table.height == 8
    assert found.items.height == 28 * 6
    pair = found.items.filter(perspective="automation", first="A1", second="A2")
    lists_of = {
        name: dict(raters[name].filter(perspective="automation").select("doc_id", "activities").iter_rows())
        for name in ("A1", "A2")
    }
    for row in pair.iter_rows(named=True):
        first, second = (lists_of[name][row["doc_id"]] for name in ("A1", "A2"))
        assert row["rbo"] == pytest.approx(plain_overlap(first, second, 0.9))


def test_a_raters_file_with_faults_names_them(tmp_path: Path) -> None:
    good = {"task_id": "x", "perspective": "automation", "ranked_gwa_ids": ["a"], "rater": "R"}
    bad = [good, good, good | {"rater": 3}, good | {"task_id": "y"}, good | {"ranked_gwa_ids": ["a", "a"]}]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bad) + "{\n")
    (tmp_path / "family_map.json").write_text('{"x": "math"}')
    with pytest.raises(DataError) as caught:
        read_raters(tmp_path)
    text = str(caught.value)
    for part in ("line 2, column `task_id`: `x` was already rated", "line 3, column `rater`", "`y` has no family"):
        assert part in text
    assert "line 5, column `ranked_gwa_ids`: an activity is ranked twice" in text
    assert "line 6: is not JSON" in text
    with pytest.raises(UsageError, match=r"no folder with \*\.jsonl files"):
        read_raters(tmp_path / "none")


def test_the_command(shared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    folder = shared / "data" / "olmes-audit"
    words = ["agreement", str(folder / "heldout_raters"), "--activities", str(folder)]
    for extra in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["benchwright", *words, *extra])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code in (0, None)
        printed = capfd.readouterr().out
        if extra:
            record = json.loads(printed)
            assert len(record["agreement"]) == 8
            assert [row["rater"] for row in record["judges"]] == ["A1", "A2", "claude3ex"]
        else:
            assert "automation, A1 and A2: rbo 0.69" in printed
            assert "A2 alone: 28 items, frontier 3" in printed
    monkeypatch.setattr(sys, "argv", ["benchwright", *words, "--first", "maths"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    said = " ".join(capfd.readouterr().err.split())
    assert "--first must be a family of the judged items, got maths" in said
    assert "families: general, math" in said
