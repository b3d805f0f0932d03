"""What ``benchwright game`` reads: every kind of input, options that it has no use for, and what is nothing to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.curve_game import CurveGame
from benchwright.game_answers.files import read_game
from benchwright.game_answers.inputs import answer_file
from benchwright.game_answers.rewards import rewards_of_text
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from tables import Ran, run

GAMES = Path(__file__).resolve().parents[1] / "examples" / "games"
Run = Callable[..., Ran]
KEYS = {"pure_equilibrium", "unique", "profiles", "certificate", "max_regret", "just_overtake", "threshold"}
CURVE_KEYS = {"curves", "laws", "capability", "assumptions", "safe_gap", "required_effort", "margins", "designer"}
CURVE_KEYS |= {"threshold_interval", "assumed", "left_out", "seed"}
EFFORTS = [0, 10, 100, 1000, 10_000]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def write_curves(file: Path, models: dict[str, float], *, slope: float = 0.5, items: int = 5000) -> Path:
    """Scores without noise on power-law curves from 0.1 to 0.9, by the models' alpha."""
    rows = []
    for name, alpha in models.items():
        score = 0.1 + 0.8 / (1 + np.exp(-(alpha + slope * np.log1p(EFFORTS))))
        rows += [
            (name, "t", "acc", e, round(float(s) * items) / items, items) for e, s in zip(EFFORTS, score, strict=True)
        ]
    names = ("model", "task", "metric", "step", "score", "n_items")
    pl.DataFrame(rows, schema=names, orient="row").write_csv(file)
    return file


def solution(answer: object) -> GameSolution:
    assert isinstance(answer, GameAnswer)
    assert isinstance(answer.solution, GameSolution)
    return answer.solution


def test_curves_from_a_game_file_and_from_a_bare_table(cli: Run) -> None:
    ran = cli("game", GAMES / "curves.toml", "--json", "--replicates", "20")
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    assert set(answer) >= KEYS | CURVE_KEYS
    assert answer["pure_equilibrium"] == "none"
    assert answer["capability"]["order"][0] == "atlas-large"
    assert answer["threshold"]["status"] == "found"
    bare = json.loads(
        cli("game", GAMES / "curves.csv", "--lower", "shared", "--upper", "shared", "--replicates", "20", "--json").out
    )
    assert bare["threshold"]["delta"] == answer["threshold"]["delta"]
    assert bare["just_overtake"] == answer["just_overtake"]
    assert any("`rewards`" in told for told in bare["assumed"])
    assert not any("`rewards`" in told for told in answer["assumed"])
    assert cli("game", GAMES / "curves.toml", "--replicates", "5").out.startswith("Worth gaming: yes, ")


def test_options_stand_above_the_file(tmp_path: Path) -> None:
    wanted = {"replicates": 0, "models": ["atlas-*", "birch-13b"]}
    plain = solution(answer_file(GAMES / "curves.toml", **wanted))  # type: ignore[arg-type]
    dear = solution(answer_file(GAMES / "curves.toml", kappa=1e4, **wanted))  # type: ignore[arg-type]
    tuned = solution(answer_file(GAMES / "curves.toml", delta=5000.0, **wanted))  # type: ignore[arg-type]
    assert (plain.pure_equilibrium, dear.pure_equilibrium, tuned.pure_equilibrium) == ("none", "exists", "exists")
    assert dear.just_overtake[0].cost == pytest.approx(1e4 * plain.just_overtake[0].cost)
    beyond = answer_file(GAMES / "curves.toml", delta=50_000.0, **wanted)  # type: ignore[arg-type]
    assert "nothing was measured above 10000 steps: levels up to 50000 are extrapolated" in str(beyond)
    listed = solution(answer_file(GAMES / "curves.toml", rewards="5,5,5", **wanted))  # type: ignore[arg-type]
    assert listed.pure_equilibrium == "exists"
    with pytest.raises(UsageError, match="`rewards` must hold 3 rewards, one a rank, got 2"):
        answer_file(GAMES / "curves.toml", rewards="5,0", **wanted)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="must not increase with the rank"):
        answer_file(GAMES / "curves.toml", rewards="0,3,5", **wanted)  # type: ignore[arg-type]


def test_the_order_of_capability_can_be_given(tmp_path: Path) -> None:
    file = write_curves(tmp_path / "c.csv", {"a": -1.0, "b": -1.5})
    assert solution(answer_file(file, replicates=0)).game.name(0) == "a"
    answer = answer_file(file, replicates=0, capability=("b", "a"))
    assert isinstance(answer, GameAnswer)
    assert answer.capability is not None
    assert [answer.capability.names[i] for i in answer.capability.order] == ["b", "a"]


def test_capability_is_read_off_where_all_were_measured(tmp_path: Path) -> None:
    file = write_curves(tmp_path / "c.csv", {"a": -1.0, "b": -1.5, "c": -2.0})
    table = pl.read_csv(file)
    table.filter((pl.col("model") != "c") | (pl.col("step") < 10)).write_csv(file)  # too few to fit
    answer = answer_file(file, replicates=0)
    assert isinstance(answer, GameAnswer)
    assert answer.capability is not None
    assert (answer.capability.names, answer.capability.effort) == (("a", "b"), 10_000.0)
    table.filter((pl.col("model") != "c") | (pl.col("step") < 10_000)).write_csv(file)
    answer = answer_file(file, replicates=0)
    assert isinstance(answer, GameAnswer)
    assert answer.capability is not None
    assert answer.capability.effort == 1000.0


def test_costs_of_single_models(tmp_path: Path) -> None:
    write_curves(tmp_path / "c.csv", {"a": -1.0, "b": -1.5})
    text = '[curves]\nfile = "c.csv"\nreplicates = 0\n[cost]\nform = "linear"\nkappa = 2\n'
    own = '[[developers]]\nname = "b"\ncost = { form = "power", exponent = 2 }\n'
    (tmp_path / "g.toml").write_text(text + own, encoding="utf-8")
    read = read_game(tmp_path / "g.toml")
    assert isinstance(read, CurveGame)
    assert read.costs_of(("a", "b")).kappa.tolist() == [2.0, 1.0]
    assert read.costs_of(("a", "b")).exponent.tolist() == [1.0, 2.0]
    overtake = solution(answer_file(tmp_path / "g.toml")).just_overtake[0]
    assert overtake.cost == pytest.approx(overtake.required_effort**2)
    (tmp_path / "g.toml").write_text(text + own.replace('"b"', '"c"'), encoding="utf-8")
    with pytest.raises(UsageError, match="a cost is given for c, which is no model of the game"):
        answer_file(tmp_path / "g.toml")


def test_fitted_curves_give_the_closed_form(tmp_path: Path) -> None:
    """Curves without noise, L and U shared: ereq = (exp((alpha_j - alpha_i) / beta) - 1) (1 + Delta)."""
    file = write_curves(tmp_path / "c.csv", {"a": -1.0, "b": -1.5}, items=10**9)
    for delta in (0.0, 100.0):
        found = solution(answer_file(file, replicates=0, delta=delta)).just_overtake[0].required_effort
        assert found == pytest.approx((np.exp(1.0) - 1) * (1 + delta), rel=1e-3)


def test_tables_before_and_after(tmp_path: Path, shared: Path) -> None:
    found = answer_file(shared / "cases" / "C39" / "before_after.csv", seed=3)
    assert isinstance(found, ProtocolComparison)
    assert found.tau == pytest.approx((1 / 3, 1.0))
    assert (found.models, found.tasks) == (("m0", "m1", "m2", "m3"), ("bench1", "bench2"))
    wide = pl.read_csv(shared / "cases" / "C39" / "before_after.csv")
    rows = [
        (row["model"], task, row[f"{task}_before"], row[f"{task}_after"])
        for row in wide.iter_rows(named=True)
        for task in ("bench1", "bench2")
    ]
    for suffix in ("parquet", "csv", "ndjson"):
        file = tmp_path / f"long.{suffix}"
        getattr(pl.DataFrame(rows, schema=("model", "task", "direct", "tuned"), orient="row"), f"write_{suffix}")(file)
        again = answer_file(file, seed=3)
        assert isinstance(again, ProtocolComparison)
        assert again.to_dict() == found.to_dict()


def test_the_sign_of_tasks_where_lower_is_better_is_turned(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    head = "model,acc_direct,acc_tuned,perplexity_direct,perplexity_tuned,em_direct,em_tuned\n"
    file.write_text(head + "a,1,1,2,2,1,\nb,0,0,9,9,0,0\nc,0.5,0.5,5,4,0.5,0.5\n")
    found = answer_file(file)
    assert isinstance(found, ProtocolComparison)
    assert found.tau_all_tasks == (1.0, 1.0)
    assert found.dropped_tasks == ("em",)


def test_submissions(cli: Run, shared: Path) -> None:
    ran = cli("game", shared / "cases" / "C37" / "submissions.csv", "--json")
    answer = json.loads(ran.out)
    assert (ran.code, answer["developers"], answer["explained_by"]) == (0, ["dev1", "dev2"], [2, None])


def test_submissions_by_item(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (name, f"v{v}", k, int(rng.random() < 0.6), v == 0)
        for name, variants in (("many", 5), ("one", 1))
        for v in range(variants)
        for k in range(80)
    ]
    file = tmp_path / "items.parquet"
    pl.DataFrame(rows, schema=("developer", "variant", "doc_id", "score", "public"), orient="row").write_parquet(file)
    found = answer_file(file, seed=1)
    assert isinstance(found, VariantReport)
    assert dict(zip(found.developers, found.variants.tolist(), strict=True)) == {"many": 5, "one": 1}
    assert found.lift[found.developers.index("one")] == 0.0
    again = answer_file(file, seed=1)
    assert isinstance(again, VariantReport)
    assert found.to_dict() == again.to_dict()


def test_score_tables(tmp_path: Path) -> None:
    scores = {"t": {"o/a": 0.1, "o/b": 0.2}, "u": {"o/a": 0.3, "o/b": 0.1}}
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"direct_eval": scores, "train_before_test": scores}))
    assert isinstance(answer_file(file), ProtocolComparison)
    with pytest.raises(UsageError, match="score tables: no use for --delta, --task"):
        answer_file(file, delta=1.0, task="t")


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", ["is empty"]),
        ("model,b1,b2\na,1,2\n", ["is nothing that `benchwright game` reads", "submissions: developer", "nearest is"]),
        ("developer,variant,score,public\na,v,0.5,1\n", ["nearest is submissions by item, without `doc_id`"]),
        ("developer,n_items,score,public\na,10,x,1\n", ["line 2, column `score`: `x` is no number"]),
        ("developer,n_items,score,public\na,10,,1\n", ["line 2, column `score`: is empty"]),
        ("developer,n_items,score,public\na,10,0.5,0\n", ["a has no public submission"]),
        ("model,t_before,t_after\na,1,x\n", ["line 2, column `t_after`: `x` is no number"]),
        ("model,t_before,t_after\na,1,2\na,1,2\n", ["a is there already, in line 2"]),
        ("model,t_before,t_after\na,1,2\n", ["1 model(s) and 1 task(s)"]),
        ("model,t_before,t_after\n", ["has columns and no rows"]),
        ("model,task,step,score\na,t,0,0.1\na,t,10,0.2\n", ["no noise is known for a at effort 0"]),
        ("model,task,step,score,n\na,t,0,0.1,9\n" + "a,t,10,0.2,9\n" * 9, ["no model can have a curve"]),
        ("model,task,step,score\na,t,0,1.5\na,t,10,0.2\n", ["leaves [0, 1]: 1.5"]),
        ("model,task,step,score\na,t,5,0.5\nb,t,5,0.2\n", ["is there at one effort only"]),
    ],
)
def test_tables_that_are_no_input(cli: Run, tmp_path: Path, text: str, texts: list[str]) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text, encoding="utf-8")
    ran = cli("game", file)
    assert ran.out == ""
    assert ran.code in (1, 2)
    for part in texts:
        assert part in ran.err


def test_mixed_play_over_tuning(cli: Run) -> None:
    arguments = ("--replicates", "0", "--race", "--models", "atlas-*")
    ran = cli("game", GAMES / "curves.toml", *arguments, "--json")
    answer = json.loads(ran.out)
    assert (ran.code, answer["arms_race"]["method"]) == (0, "closed form")
    assert [row["delta"] for row in answer["race_over_tuning"]["levels"]] == [0, 10, 100, 1000]
    assert "Arms race of 2 developers over tuning" in cli("game", GAMES / "curves.toml", *arguments).out
    stated = json.loads(cli("game", GAMES / "g5.toml", "--race", "--deltas", "0,0.5,1.5", "--json").out)
    assert [row["verdict"] for row in stated["race_over_tuning"]["levels"]] == ["none", "none", "exists"]
    assert json.loads(cli("game", GAMES / "g5.toml", "--race", "--json").out)["race_over_tuning"] is None


def test_a_report_is_written_where_one_is_wanted(cli: Run, tmp_path: Path) -> None:
    ran = cli("game", GAMES / "curves.toml", "--replicates", "20", "-o", "out", "--no-figures", "--json")
    assert (ran.code, ran.err.strip()) == (0, "wrote out: open out/report.html")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["game"] == json.loads(ran.out)
    assert "already holds a report" in cli("game", GAMES / "g5.toml", "-o", "out").err
    assert cli("game", GAMES / "g5.toml", "-o", "out", "--overwrite", "--no-figures").code == 0


def test_missing_file_and_unknown_options(cli: Run, tmp_path: Path) -> None:
    assert "none.csv is no file or folder" in cli("game", "none.csv").err
    assert cli("game", GAMES / "g5.toml", "--task", "t").err.startswith(
        "error: a game without [curves]: no use for --task"
    )
    assert "--deltas must be numbers" in cli("game", GAMES / "curves.csv", "--deltas", "1;2").err
    with pytest.raises(UsageError, match="no option is called speed"):
        answer_file(GAMES / "curves.csv", speed=1)  # type: ignore[call-arg]


def test_models_that_only_fall_leave_no_ranking(tmp_path: Path) -> None:
    file = tmp_path / "falling.csv"
    rows = [f"{name},t,acc,{step},{0.9 - 0.1 * k},1000" for name in "ab" for k, step in enumerate(EFFORTS)]
    file.write_text("model,task,metric,step,score,n_items\n" + "\n".join(rows))
    with pytest.raises(DataError, match="no model can have a curve") as bad:
        answer_file(file)
    assert "its score falls with effort" in str(bad.value)


def test_one_model_left_is_no_ranking(tmp_path: Path) -> None:
    file = write_curves(tmp_path / "c.csv", {"a": -1.0})
    with file.open("a") as opened:
        opened.writelines(f"b,t,acc,{step},{0.9 - 0.1 * k},1000\n" for k, step in enumerate(EFFORTS))
    with pytest.raises(DataError, match="at least two models with a curve, a is left") as bad:
        answer_file(file)
    assert "b left out: its score falls" in str(bad.value)


def test_hostile_names_do_not_act_on_the_terminal(cli: Run, tmp_path: Path) -> None:
    write_curves(tmp_path / "c.csv", {"a\x1b[31m": -1.0, "b\nERROR": -1.5})
    for arguments in (("--replicates", "10"), ("--replicates", "0", "--rewards", "1,2,3"), ("--models", "x\x1b")):
        ran = cli("game", "c.csv", *arguments)
        assert "\x1b" not in ran.out + ran.err
        assert "\nERROR" not in ran.out + ran.err
    assert json.loads(cli("game", "c.csv", "--replicates", "0", "--json").out)["published_order"][0] == "a\x1b[31m"


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ('file = "curves.csv"', "", ["[curves]: `file` is missing"]),
        ('file = "curves.csv"', 'file = "none.csv"', ["none.csv does not exist"]),
        ('file = "curves.csv"', 'file = "curves.csv"\nfilter = "strict"', ["no filter is named `strict`"]),
        ('lower = "shared"', 'lower = "common"', ["[curves]: `lower` must be per-model, shared or a number"]),
        ('lower = "shared"', 'lowr = "shared"', ["`lowr` is not a key of [curves]", "did you mean `lower`?"]),
        ("replicates = 100", "replicates = -1", ["`replicates` must be a whole number >= 0, got -1"]),
        ("replicates = 100", 'capability = "size"', ["`capability` must be tuned, limit or names, got 'size'"]),
        ("replicates = 100", 'capability = ["atlas-large"]', ["`capability` must list all developers, best first"]),
        ("replicates = 100", "models = []", ["[curves]: `models` must be a list of names"]),
        ("deltas = [0, 10, 100, 1000]", "deltas = [-1]", ["`deltas` must be a finite number >= 0"]),
        ("price = 0.02", "price = -1", ["`price` must be a finite number >= 0"]),
        ("price = 0.02", "prize = 1", ["`prize` is not a key of [designer]"]),
        ("kappa = 1.0", "kappa = -1.0", ["[cost]: `kappa` must be > 0, got -1"]),
        ('"per-rank", gap = 1000', '"per-rank"', ["`rewards`: `gap` is missing"]),
        ('"per-rank", gap = 1000', '"per-rank", gap = -5', ["must not increase with the rank"]),
        ('"per-rank", gap = 1000', '"geometric", top = 5, ratio = 2', ["`ratio` must lie in [0, 1], got 2"]),
        ('"per-rank", gap = 1000', '"stairs"', ["`rewards`: `form` must be one of per-rank, linear, geometric"]),
        ("[cost]", 'ties = "shared"\n[cost]', ["`ties` is not a key of a game with [curves]"]),
    ],
)
def test_curve_files_that_make_no_game(cli: Run, tmp_path: Path, old: str, new: str, texts: list[str]) -> None:
    text = (GAMES / "curves.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "curves.csv").write_bytes((GAMES / "curves.csv").read_bytes())
    (tmp_path / "broken.toml").write_text(text.replace(old, new), encoding="utf-8")
    ran = cli("game", tmp_path / "broken.toml")
    assert ran.out == ""
    assert ran.code in (1, 2)
    for part in texts:
        assert part in ran.err


@pytest.mark.parametrize(
    ("text", "rewards"),
    [
        ("per-rank:10", [20, 10, 0]),
        ("linear:10", [10, 5, 0]),
        ("linear:10:4", [10, 7, 4]),
        ("geometric:8:0.5", [8, 4, 2]),
        ("3, 1, 0", [3, 1, 0]),
    ],
)
def test_rewards_of_an_option(text: str, rewards: list[float]) -> None:
    assert rewards_of_text(text).of(3).tolist() == rewards
    assert str(rewards_of_text(text))


@pytest.mark.parametrize("text", ["linear", "linear:x", "geometric:1", "per-rank:1:2", "flat:3", "1;2"])
def test_rewards_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=f"--rewards {text}: "):
        rewards_of_text(text)


def test_levels_to_show_follow_the_measured_efforts() -> None:
    game = CurveGame(Path("x"))
    scores = EffortScores(("a",), np.zeros(4, dtype=int), np.array([0.0, 30.0, 500.0, 25_000.0]), np.full(4, 0.5))
    assert game.levels(scores.effort).tolist() == [0, 100, 1000, 10_000]
    assert game.with_options(deltas=(5.0,)).levels(scores.effort).tolist() == [5.0]


@pytest.mark.parametrize(("name", "pure"), [("C34", []), ("C35", [[3, 3]])])
def test_a_contest_of_two_is_a_finite_game(shared: Path, name: str, pure: list[list[int]]) -> None:
    found = answer_file(shared / "cases" / name / "ranking_game.json").solution  # type: ignore[union-attr]
    assert [list(one.levels) for one in found.pure] == pure  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"players": 3}, "`players` must be 2, got 3"),
        ({"tie_share": 0.2}, "`tie_share` must be half the prize"),
        ({"payoff_row": [[1, 0], [1, 0]]}, "`payoff_row` is not what"),
        ({"prize": "1"}, "`prize` must be a number"),
        ({"size": 1}, "`size` is not a key of a contest"),
    ],
)
def test_a_contest_that_is_another_game_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    file = tmp_path / "contest.json"
    file.write_text(json.dumps({"effort_levels": [0, 1], "prize": 1, "cost_per_level": 0.25} | change))
    with pytest.raises(UsageError, match=told):
        answer_file(file)
