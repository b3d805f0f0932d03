"""The protocol of a tuning experiment, its plan and its items: no model is loaded, no library of the extra needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchwright.cli import main
from benchwright.errors import DataError, UsageError
from benchwright.game_answers.curve_game import CurveGame
from benchwright.game_answers.files import read_game
from benchwright.tuning._order import Order, steps_at
from benchwright.tuning._seeds import mean_over_seeds
from benchwright.tuning.games import game_text
from benchwright.tuning.items import hold_out, read_items, read_splits
from benchwright.tuning.plan import Job, jobs_of, plan_tuning, points_of
from benchwright.tuning.protocol import Benchmark, Protocol, read_protocol
from benchwright.tuning.settings import TuningSettings
from tiny_models import PROTOCOL, write_items

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples" / "tuning").glob("*.toml"))


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """A folder with items and a protocol; its models are only named."""
    write_items(tmp_path)
    (tmp_path / "tune.toml").write_text(PROTOCOL, encoding="utf-8")
    return tmp_path


def protocol(family: Path, *changes: tuple[str, str]) -> Protocol:
    text = PROTOCOL
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (family / "tune.toml").write_text(text, encoding="utf-8")
    return read_protocol(family / "tune.toml")


def test_a_protocol_is_read_with_its_defaults(family: Path) -> None:
    read = protocol(family)
    assert [model.name for model in read.models] == ["tiny", "small"]
    assert read.tuning.learning_rate == 0.003
    assert read.tuning.schedule == "constant"
    assert read.seeds == (0, 1)
    assert read.adversary is None
    assert json.loads(json.dumps(read.to_dict()))["tuning"]["batch"] == 8


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("batch = 8", "batches = 8"), "did you mean `batch`"),
        (("batch = 8", "batch = 0"), r"\[tuning\] batch must lie in 1"),
        (("batch = 8", "parts = 9"), r"parts must be at most \[tuning\] batch"),
        (('method = "full"', 'method = "qlora"'), "must be one of lora, full"),
        (("amount = 24", ""), "`amount` or `epochs`"),
        (("amount = 24", "amount = 24\nepochs = 2"), "`amount` or `epochs`"),
        (("levels = [0, 8, 24]", "levels = [0, 800]"), "lies beyond `amount`"),
        (("every = 8", "every = 8\nat = [1]"), "not both"),
        (('train = "train.jsonl"', ""), "no train split"),
        (('test = "test.jsonl"', ""), r"needs `test` \(a file\) or `task`"),
        (('name = "small"', 'name = "tiny"'), "tiny is there twice"),
        (("seeds = [0, 1]", "seeds = [0, 0]"), "0 is there twice"),
        (("seeds = [0, 1]", "seeds = [-1]"), "whole number"),
        (("[game]", "[game]\nfile = 'x'"), r"`file` is not a key of \[game\]"),
        (("[game]", "[launch]\nworkers = 0\n[game]"), r"\[launch\] workers"),
        (("[game]", "[adversary]\nmaximum = 0\n[game]"), r"\[adversary\] maximum"),
        (("every = 8", 'every = 8\nselect = "best"'), "no validation items"),
        (("every = 8\nlevels = [0, 8, 24]", 'schedule = "annealed"'), "annealed needs `levels`"),
    ],
)
def test_what_makes_no_experiment_is_named(family: Path, change: tuple[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        protocol(family, change)


def test_an_annealed_run_has_no_levels_for_adversaries_to_start_from(family: Path) -> None:
    with pytest.raises(UsageError, match="annealed run has none"):
        protocol(family, ("every = 8", 'every = 8\nschedule = "annealed"'), ("[game]", "[adversary]\n[game]"))


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_protocol(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("seeds = [", encoding="utf-8")
    with pytest.raises(UsageError, match="not a TOML file"):
        read_protocol(tmp_path / "bad.toml")


def test_runs_are_models_times_seeds_times_benchmarks(family: Path) -> None:
    jobs = jobs_of(protocol(family))
    assert [job.name for job in jobs] == [f"colours-{m}-seed{s}" for m in ("tiny", "small") for s in (0, 1)]
    assert Job.from_dict(json.loads(json.dumps(jobs[0].to_dict()))) == jobs[0]


def test_a_model_a_seed_has_the_seed_in_its_path(family: Path) -> None:
    jobs = jobs_of(protocol(family, ('path = "small"', 'path = "./small-{seed}"')))
    assert [Path(job.model.path).name for job in jobs if job.model.name == "small"] == ["small-0", "small-1"]


def test_annealed_has_a_run_a_level(family: Path) -> None:
    jobs = jobs_of(protocol(family, ("every = 8", 'schedule = "annealed"'), ("seeds = [0, 1]", "seeds = [5]")))
    assert [(job.end, points_of(job, 48, lambda _: 1)[0]) for job in jobs[:2]] == [(8.0, [0, 8]), (24.0, [24])]


def test_points_follow_from_the_protocol() -> None:
    def points(examples: int = 10, tokens: int = 7, kept: tuple[float, ...] = (), **settings: object) -> list[int]:
        made = TuningSettings(batch=4, **settings)  # type: ignore[arg-type]
        job = Job("x", None, 0, Benchmark(task="t"), made, "", kept=kept)  # type: ignore[arg-type]
        return points_of(job, examples, lambda _: tokens)[0]

    assert points(amount=20) == list(range(0, 21, 2))
    assert points(amount=20, every=8) == [0, 8, 16, 20]
    assert points(amount=20, at=(5.0, 6.0)) == [0, 5, 6, 20]
    assert points(amount=20, every=8, kept=(3.0,)) == [0, 3, 8, 16, 20]
    assert points(amount=20, effort="examples", every=8) == [0, 2, 4, 5]
    assert points(amount=20, effort="tokens", every=8) == [0, 2, 3]
    assert points(epochs=3) == [0, 3, 5, 8]
    assert points(epochs=1, effort="tokens") == [0, 3]


def test_every_pass_takes_every_example_once_and_follows_from_the_seed() -> None:
    order = Order(10, 4, seed=3)
    taken = np.concatenate([order.of(step) for step in range(10)])
    for start in range(0, 40, 10):
        assert sorted(taken[start : start + 10]) == list(range(10))
    again = Order(10, 4, seed=3)
    assert (again.of(7) == order.of(7)).all()
    assert (Order(10, 4, seed=3, stream=1).of(0) != order.of(0)).any()
    assert steps_at([0, 1, 5, 9], "tokens", 4, lambda step: step + 1) == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        ("[1]", "not an object"),
        ('{"question": "q", "choices": ["a"], "answer": 0}', "two or more texts"),
        ('{"question": "q", "choices": ["a", "a"], "answer": 0}', "must be different"),
        ('{"question": "q", "choices": ["a", "b"], "answer": 2}', "one of the choices or its place"),
        ('{"question": "q", "choices": ["a", "b"], "answer": "c"}', "one of the choices or its place"),
        ('{"question": "q", "choices": ["a", "b"], "answer": true}', "one of the choices or its place"),
        ('{"choices": ["a", "b"], "answer": 0}', "`question` of the template"),
        ('{"question": "", "choices": ["a", "b"], "answer": 0}', "prompt is empty"),
    ],
)
def test_lines_that_are_no_items_are_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "test.jsonl"
    good = '{"question": "q", "choices": ["a", "b"], "answer": "b"}'
    path.write_text(f"{good}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=reason) as caught:
        read_items(path, Benchmark(train="x", test="y"))
    assert "line 2" in str(caught.value)


def test_items_with_one_id_twice_and_no_items_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text('{"prompt": "q", "choices": ["a", "b"], "answer": 1, "doc_id": 7}\n' * 2, encoding="utf-8")
    with pytest.raises(DataError, match="item 7 is there twice"):
        read_items(path, Benchmark(train="x", test="y"))
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no items"):
        read_items(path, Benchmark(train="x", test="y"))


def test_validation_items_are_whole_clusters_that_are_not_learned(family: Path) -> None:
    benchmark = Benchmark(train="train.jsonl", test="test.jsonl", validation_share=0.25)
    splits = read_splits(benchmark, family, select=True)
    held = {item.cluster for item in splits.validation}
    assert len(held) == 6
    assert len(splits.train) == 36
    items = read_items(family / "train.jsonl", benchmark)
    kept, again = hold_out(items, 0.25)
    assert again == splits.validation
    assert not {item.cluster for item in kept} & held


def test_test_items_that_are_learned_are_said(family: Path) -> None:
    (family / "test.jsonl").write_bytes((family / "train.jsonl").read_bytes())
    assert "48 test items of 48 are in the train split too" in str(plan_tuning(read_protocol(family / "tune.toml")))


def test_the_plan_says_runs_steps_and_tokens(family: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sys_argv = ["benchwright", "tune", str(family / "tune.toml"), "--dry-run"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", sys_argv)
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert "4 runs: 2 models, 2 seeds, 1 benchmark" in said
    assert "in all 96 steps, about" in said
    assert not (family / "out").exists()


def test_without_the_libraries_one_line_says_what_to_type(family: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchwright.tuning.libraries.find_spec", lambda name: None)
    from benchwright.tuning.run import run_tuning

    with pytest.raises(UsageError, match=r"pip install 'benchwright\[tune\]'"):
        run_tuning(family / "tune.toml", family / "out")


def test_the_game_file_is_read_back_with_what_the_protocol_says(family: Path) -> None:
    read = protocol(
        family,
        (
            "[game]",
            '[game]\nrewards = { form = "linear", top = 9, bottom = 1.5 }\nlower = 0.25\ncost = { form = "linear",'
            " kappa = 2.0 }",
        ),
    )
    path = family / "game.toml"
    (family / "scores.csv").touch()
    path.write_text(game_text(read, 'a "task"'), encoding="utf-8")
    game = read_game(path)
    assert isinstance(game, CurveGame)
    assert game.task == 'a "task"'
    assert game.lower == 0.25
    assert game.deltas == (0.0, 8.0, 24.0)
    assert game.replicates == 20
    assert game.rewards.of(2).tolist() == [9.0, 1.5]
    assert game.cost.kappa[0] == 2.0


def test_the_error_of_a_mean_over_seeds_covers_the_truth() -> None:
    """Items differ, seeds differ, and items of a cluster move together: 95 % intervals hold the truth often enough."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 5)
    held, naive = 0, 0
    for _ in range(400):
        level = 0.5 + 0.15 * rng.standard_normal(60)[cluster] + 0.02 * rng.standard_normal((5, 1))
        scores = (rng.random((5, 300)) < np.clip(level, 0, 1)).astype(float)
        mean, error = mean_over_seeds(scores, cluster)
        held += abs(mean - 0.5) < 1.96 * error
        naive += abs(mean - 0.5) < 1.96 * np.sqrt(0.25 / 1500)
    assert held > 0.9 * 400
    assert naive < 0.85 * 400


def test_a_mean_of_nothing_but_right_answers_still_has_an_error() -> None:
    mean, error = mean_over_seeds(np.ones((3, 50)), np.arange(50))
    assert mean == 1.0
    assert 0 < error < 0.02


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_presets_are_protocols(path: Path, tmp_path: Path) -> None:
    write_items(tmp_path)
    preset = tmp_path / path.name
    preset.write_bytes(path.read_bytes())
    told = str(plan_tuning(read_protocol(preset)))
    assert "runs:" in told
    assert "then at most 96 adversaries, from" in told or preset.stem != "qwen-lora"


def test_there_are_presets() -> None:
    assert len(EXAMPLES) >= 2
