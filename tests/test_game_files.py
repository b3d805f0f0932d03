"""Game files and the command: golden cases from files, keys of the JSON, exit codes, errors that name the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.game_answers.answer import PARTS, answer_game
from benchwright.game_answers.files import GameFile, read_game
from benchwright.ranking_game.game import RankingGame
from tables import Ran, run

GAMES = Path(__file__).resolve().parents[1] / "examples" / "games"
Run = Callable[..., Ran]
KEYS = {"pure_equilibrium", "unique", "profiles", "certificate", "max_regret", "just_overtake", "threshold"}
ROW = {
    "rank",
    "developer",
    "over",
    "required_effort",
    "cost",
    "reward_gap",
    "pays",
    "zero_effort_cost",
    "zero_effort_pays",
}
THRESHOLD = {"status", "delta", "stable_intervals", "binding_pair", "margin_bound"}
G5 = (GAMES / "g5.toml").read_text(encoding="utf-8") if GAMES.is_dir() else ""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.mark.parametrize(
    ("name", "verdict", "unique", "profiles", "status", "delta"),
    [
        ("g1", "none", None, [], "none_proved", None),
        ("g1b", "exists", True, [[0.0, 0.0]], "stable_everywhere", 0.0),
        ("g2", "exists", False, [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.75]], "stable_everywhere", 0.0),
        ("g3", "exists", False, [[1.0, 1.0], [1.0, 0.0]], "stable_everywhere", 0.0),
        ("g4", "none", None, [], "none_proved", None),
        ("g5", "none", None, [], "found", 1.0),
    ],
)
def test_golden_games(
    cli: Run, name: str, verdict: str, unique: Any, profiles: Any, status: str, delta: float | None
) -> None:
    ran = cli("game", GAMES / f"{name}.toml", "--json")
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    assert set(answer) >= KEYS
    assert (answer["pure_equilibrium"], answer["unique"], answer["profiles"]) == (verdict, unique, profiles)
    assert [set(row) for row in answer["just_overtake"]] == [ROW]
    assert set(answer["threshold"]) >= THRESHOLD
    assert answer["threshold"]["status"] == status
    assert answer["threshold"]["delta"] == (delta if delta is None else pytest.approx(delta))
    assert answer["published_order"] == ["a", "b"]
    assert cli("game", GAMES / f"{name}.toml").out.startswith("Worth gaming: ")


def test_certificates_of_the_golden_games(cli: Run) -> None:
    g1 = json.loads(cli("game", GAMES / "g1.toml", "--json").out)
    jump = g1["certificate"]["jump"]
    assert (jump["developer"], jump["over"], jump["required_effort"], jump["reward_gap"]) == ("b", "a", 0.5, 1.0)
    assert jump["effort"] > 0.5
    g3 = json.loads(cli("game", GAMES / "g3.toml", "--json").out)["just_overtake"][0]
    assert (g3["cost"], g3["pays"], g3["zero_effort_cost"], g3["zero_effort_pays"]) == (0.25, False, 0.0, True)
    g4 = json.loads(cli("game", GAMES / "g4.toml", "--json", "--delta", "1e4").out)
    assert (g4["threshold"]["margin_bound"], g4["just_overtake"][0]["required_effort"]) == (-1.0, 1.0)


def test_a_finite_game_from_a_file(cli: Run) -> None:
    ran = cli("game", GAMES / "three-levels.toml", "--json")
    answer = json.loads(ran.out)
    assert ran.code == 0
    assert set(answer) >= KEYS
    assert (answer["pure_equilibrium"], answer["threshold"], answer["just_overtake"]) == ("none", None, [])
    assert answer["mixed"][0]["exact"] == [["2/5", "1/5", "2/5"]] * 2
    assert cli("game", GAMES / "three-levels.toml", "--delta", "1").code == 2


def test_undecided_exits_1(cli: Run) -> None:
    ran = cli("game", GAMES / "g5.toml", "--json", "--delta", "1")
    assert (ran.code, json.loads(ran.out)["pure_equilibrium"]) == (1, "undecided")


def test_options_replace_what_the_file_says(cli: Run) -> None:
    answer = json.loads(cli("game", GAMES / "g5.toml", "--json", "--delta", "2", "--delta-max", "10").out)
    assert (answer["pure_equilibrium"], answer["threshold"]["delta_max"]) == ("exists", 10.0)


def test_parameters_may_be_shared_or_each_developers_own(tmp_path: Path) -> None:
    file = tmp_path / "game.toml"
    file.write_text(
        """
rewards = [3, 1, 0]
tune_before_test = 10
[score]
form = "generalised-power-law"
beta = 0.5
U = 0.9
[cost]
form = "linear"
kappa = 2
[[developers]]
name = "small"
alpha = -1
capability = 1
[[developers]]
name = "large"
alpha = 1
U = 0.95
capability = 3
cost = { form = "power", exponent = 2, free_effort = 1 }
[[developers]]
alpha = 0
capability = 2
[threshold]
delta_max = 50
[[profiles]]
efforts = [0, 1, 2]
""",
        encoding="utf-8",
    )
    read = read_game(file)
    assert isinstance(read, GameFile)
    assert isinstance(read.game, RankingGame)
    assert read.game.names == ("small", "large", "developer 3")
    assert read.game.order.tolist() == [1, 2, 0]
    assert read.game.costs.cost(np.arange(3), np.full(3, 3.0)).tolist() == [6.0, 4.0, 6.0]
    assert read.game.costs.free.tolist() == [0.0, 1.0, 0.0]
    assert (read.profiles, read.delta_max, read.game.tune_before_test) == (((0.0, 1.0, 2.0),), 50.0, 10.0)
    answer = answer_game(read)  # free effort differs
    assert "free effort differs" in str(answer) or answer.decided


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ("rewards = [2.0, 0.0]", "", ["`rewards` is missing"]),
        ("rewards = [2.0, 0.0]", "rewards = [0.0, 2.0]", ["must not increase with the rank"]),
        ("rewards = [2.0, 0.0]", "rewards = [2.0, nan]", ["`rewards` must be finite"]),
        ("rewards = [2.0, 0.0]", "rewards = 2", ["`rewards` must be a list of numbers, got 2"]),
        ("rewards", "reward", ["`reward` is not a key", "did you mean `rewards`?"]),
        ('"generalised-power-law"', '"generalized-power-law"', ["[score]: `form` must be one of", "did you mean"]),
        ('form = "generalised-power-law"', "", ["[score]: `form` must be one of", "none is given"]),
        ("alpha = 0.0", "", ["developer 2: `alpha` is missing, L + (U - L)"]),
        ("alpha = 0.0", 'alpha = "x"', ["developer 2: `alpha` must be a number, got 'x'"]),
        ("alpha = 0.0", "theta = 0.0", ["`theta` is not a key of developer 2"]),
        ("alpha = 0.0", "alpha = 0.0\ncapability = 1", ["`capability` must be given for all developers, or for none"]),
        ('name = "b"', 'name = "a"', ["`names` must hold 2 different names"]),
        ('name = "b"', "name = 3", ["developer 2: `name` must be text, got 3"]),
        ("kappa = 1.0", "kappa = -1.0", ["[cost]: `kappa` must be > 0, got -1"]),
        ("kappa = 1.0", "kapa = 1.0", ["`kapa` is not a key of [cost]", "did you mean `kappa`?"]),
        ('form = "linear"', 'form = "cubic"', ["[cost]: `form` must be one of linear, power, got 'cubic'"]),
        ("alpha = 0.0", "alpha = 0.0\ncost = 3", ["developer 2: cost must be a table"]),
        ("beta = 1.0", "beta = 0", ["`beta` must be > 0, got 0"]),
        ("U = 1.0", "U = 1.5", ["0 <= L < U <= 1"]),
        ("U = 1.0", "U = true", ["`U` must be a number, got true"]),
        ("[score]", "tune_before_test = -1\n[score]", ["`tune_before_test` must be a finite number >= 0"]),
        ("[score]", 'ties = "coin"\n[score]', ["`ties` must be one of capability, shared"]),
        ("[score]", "score", ["not a TOML file"]),
        ("[cost]", "[[profiles]]\nefforts = [0]\n[cost]", ["profile 1: a profile must hold 2 efforts"]),
        ("[cost]", "[threshold]\nmax = 3\n[cost]", ["`max` is not a key of [threshold]"]),
        ("[cost]", "[finite]\nefforts = [0]\n[cost]", ["`score` is not a key"]),
    ],
)
def test_files_that_make_no_game(cli: Run, tmp_path: Path, old: str, new: str, texts: list[str]) -> None:
    assert old in G5
    file = tmp_path / "broken.toml"
    file.write_text(new.join(G5.rsplit(old, 1)), encoding="utf-8")
    ran = cli("game", file)
    assert (ran.code, ran.out) == (2, "")
    for text in ("error: broken.toml: " if "TOML" not in texts[0] else "broken.toml: ", *texts):
        assert text in ran.err


def test_rewards_by_form(tmp_path: Path) -> None:
    file = tmp_path / "game.toml"
    for form, rewards in (("per-rank", [3.0, 0.0]), ("linear", [3.0, 0.0]), ("geometric", [3.0, 1.5])):
        given = {"per-rank": "gap = 3", "linear": "top = 3", "geometric": "top = 3, ratio = 0.5"}[form]
        text = G5.replace("rewards = [2.0, 0.0]", f'rewards = {{ form = "{form}", {given} }}')
        file.write_text(text, encoding="utf-8")
        read = read_game(file)
        assert isinstance(read, GameFile)
        assert isinstance(read.game, RankingGame)
        assert read.game.rewards.tolist() == rewards


def test_every_part_has_its_key(cli: Run) -> None:
    """What was not asked for, or a stated game has not, is null."""
    answer = json.loads(cli("game", GAMES / "g5.toml", "--json").out)
    assert set(answer) >= set(PARTS)
    assert answer["safe_gap"]["gap"] == pytest.approx(1.0)
    assert [key for key in PARTS if answer[key] is not None] == ["threshold", "safe_gap"]
    race = json.loads(cli("game", GAMES / "g5.toml", "--race", "--json").out)
    assert race["arms_race"] is not None
    assert race["best_replies"] is not None


def test_a_file_may_ask_for_the_race(cli: Run, tmp_path: Path) -> None:
    file, text = tmp_path / "game.toml", (GAMES / "g5.toml").read_text(encoding="utf-8")
    file.write_text(f"race = true\n{text}", encoding="utf-8")
    asked = json.loads(cli("game", file, "--deltas", "0,1.5", "--json").out)
    assert asked == json.loads(cli("game", GAMES / "g5.toml", "--race", "--deltas", "0,1.5", "--json").out)
    assert asked["race_over_tuning"] is not None
    file.write_text(f"race = 1\n{text}", encoding="utf-8")
    with pytest.raises(UsageError, match="`race` must be true or false, got 1"):
        read_game(file)
    scores = tmp_path / "scores.csv"
    lines = [f"{name},t,{step},{0.2 + rate * step / (step + 9):.4f}" for name, rate in (("a", 0.6), ("b", 0.5))
             for step in (0, 5, 10, 20, 40, 80)]  # fmt: skip
    scores.write_text("\n".join(["model,task,step,score", *lines]), encoding="utf-8")
    file.write_text('race = true\n[curves]\nfile = "scores.csv"\nitems = 500\nreplicates = 0\n', encoding="utf-8")
    assert json.loads(cli("game", file, "--json").out)["arms_race"] is not None


def test_one_developer_is_no_ranking(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('rewards = [1]\n[score]\nform = "exponential"\n[[developers]]\ntheta = 1\n')
    with pytest.raises(UsageError, match=r"one\.toml: a ranking needs at least two developers, got 1"):
        read_game(file)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_game(tmp_path / "none.toml")
    file.write_text('rewards = [1]\n[score]\nform = "exponential"\n')
    with pytest.raises(UsageError, match=r"\[\[developers\]\] is missing"):
        read_game(file)
    file.write_text("rewards = [1, 0]\n[finite]\nefforts = [0, 1]\n")
    with pytest.raises(UsageError, match=r"one\.toml: \[finite\]: `costs` is missing"):
        read_game(file)
