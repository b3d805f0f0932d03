"""Choices: every wrong one is refused with the key, the rule and what to write; every right one says its source."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchwright.choices import (
    DEFAULT_PRICES,
    EligibilityChoices,
    FamilyChoices,
    LabChoices,
    Price,
    ResamplingChoices,
    WelfareChoices,
)
from benchwright.config import CONFIG_NAME, Config, default_toml, load_config
from benchwright.errors import ConfigError


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "choices.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def test_printed_defaults_set_nothing_until_they_are_uncommented(tmp_path: Path) -> None:
    assert load(tmp_path, default_toml()) == Config()
    lines = default_toml().splitlines()
    taken = [line[1:] if re.match(r"#\w+ = ", line) and "by default unset" not in line else line for line in lines]
    config = load(tmp_path, "\n".join(line for line in taken if not line.startswith("reviewers")))
    assert dataclasses.replace(config, sources={}) == Config()
    rows = {row.key: row for row in config.assumptions()}
    assert all(row.unit and row.why for row in rows.values())
    assert rows["welfare.neutral"].source == "choices.toml"
    assert rows["lab.curvature"].source == "default"
    assert [key for key, row in rows.items() if row.source == "default" and row.value is not None] == []


def test_the_file_of_the_working_directory_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config() == Config()
    Path(CONFIG_NAME).write_text("\ufeff[welfare]\nneutral = 2\n", encoding="utf-8")
    config = load_config()
    assert config.welfare.neutral == 2.0
    assert isinstance(config.welfare.neutral, float)
    assert config.sources == {"welfare.neutral": CONFIG_NAME}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[welfar]\n", "unknown section: `welfar`\nHint: did you mean `welfare`?"),
        ("[welfare]\nnetural = 1\n", "unknown key in [welfare]: `netural`\nHint: did you mean `neutral`?"),
        ("[welfare]\nzzz = 1\n", "Hint: known: automation_share, neutral"),
        ("welfare = 3\n", "`welfare` must be a table, write [welfare]"),
        ("[welfare]\nneutral = \n", "not a TOML file: Invalid value (at line 2, column 11)"),
        ("[welfare]\nneutral = 'three'\n", "welfare.neutral must be a number, got 'three'"),
        ("[welfare]\nneutral = true\n", "welfare.neutral must be a number, got True"),
        ("[welfare]\nneutral = 11\n", "welfare.neutral must lie in -10 .. 10, got 11"),
        ("[welfare]\nneutral = nan\n", "welfare.neutral must lie in -10 .. 10, got nan"),
        ("[welfare]\ntop_k = 2.0\n", "welfare.top_k must be a whole number, got 2.0"),
        ("[welfare]\nthresholds = []\n", "must be a list with at least one entry"),
        ("[welfare]\nthresholds = [3, 'x']\n", "welfare.thresholds must be a number, got 'x'"),
        ("[welfare]\nrank_weights = 'linear'\n", "must be one of reciprocal, uniform, got 'linear'"),
        ("[families]\nwelfare = 3\n", "families.welfare must be text, got 3"),
        ("[lab]\nrisk_aversion = -1\n", "lab.risk_aversion must lie in 0 .. 1e+60, got -1"),
        ("[lab]\nrisk_values = [1, -1]\n", "lab.risk_values must lie in 0 .. 1e+60, got -1"),
        (
            "[eligibility]\nanchor_low = 0.96\n",
            "eligibility.anchor_low must be at most eligibility.anchor_high, got 0.96 and 0.95",
        ),
        ("[eligibility]\nnoise_high = 0.05\n", "eligibility.noise_low must be at most eligibility.noise_high"),
        ("[lab]\nbudget = 0\n", "lab.budget must lie in"),
        ("[lab]\nbudget = inf\n", "lab.budget must lie in"),
        (f"[lab]\nbudget = 1{'0' * 400}\n", "lab.budget must lie in"),
        ("[resampling]\nseed = -1\n", "resampling.seed must lie in"),
        ("[resampling]\nlevel = 1.0\n", "resampling.level must lie in 0.5 .. 0.9999"),
        ('[prices]\nPT = { usd = 0, per = "x" }\n', "prices.PT.usd must lie in"),
        ('[prices]\nPT = { usd = -82, per = "x" }\n', "prices.PT.usd must lie in"),
        ("[prices]\nNEW = 82\n", "prices.NEW must be { usd = NUMBER, per = TEXT }\nHint: e.g."),
        ("[prices]\nPT = { usd = 1 }\n", "prices.PT must be { usd = NUMBER, per = TEXT }"),
        ('[prices]\nPT = { usd = "1", per = "x" }\n', "prices.PT.usd must be a number"),
        ("[prices]\nPT = { usd = 1, per = 2 }\n", "prices.PT.per must be text"),
        ('[prices]\npt = { usd = 1, per = "x" }\n', "unknown key in [prices]: `pt`\nHint: did you mean `PT`?"),
        ('[prices]\nA = { usd = 1, per = "x" }\na = { usd = 1, per = "x" }\n', "did you mean `A`?"),
        ('[prices]\n"<b>" = { usd = 1, per = "x" }\n', "the axis name '<b>' must be letters, digits and _"),
        ('[prices]\n"" = { usd = 1, per = "x" }\n', "the axis name '' must be"),
    ],
)
def test_wrong_choice(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith((f"{tmp_path / 'choices.toml'}: ", "choices.toml: "))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WelfareChoices(top_k=0), "welfare.top_k must lie in 1 .. 10, got 0"),
        (lambda: WelfareChoices(thresholds=()), "welfare.thresholds must be a list with at least one entry"),
        (lambda: FamilyChoices(noise=None), "families.noise must be text, got None"),  # type: ignore[arg-type]
        (lambda: EligibilityChoices(noise_low=0.5, noise_high=0.4), "eligibility.noise_low must be at most"),
        (lambda: LabChoices(calibration="best"), "lab.calibration must be one of auto, uniform, first-best"),
        (lambda: ResamplingChoices(replicates=1), "resampling.replicates must lie in"),
        (lambda: Price(-1.0, "x"), "usd must lie in"),
        (lambda: Config(prices={"<b>": Price(1.0, "x")}), "the axis name '<b>' must be"),
        (lambda: dataclasses.replace(LabChoices(), budget=float("nan")), "lab.budget must lie in"),
    ],
)
def test_wrong_choice_in_python(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.message.removeprefix("prices: ").startswith(message)


def test_values_made_in_python_are_those_of_a_file() -> None:
    chosen = WelfareChoices(neutral=2, thresholds=[3], top_k=np.int64(4))  # type: ignore[arg-type]
    assert chosen == WelfareChoices(neutral=2.0, thresholds=(3.0,), top_k=4)
    assert [type(value) for value in (chosen.neutral, chosen.thresholds, chosen.top_k)] == [float, tuple, int]
    assert LabChoices(curvature=None).curvature is None


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot be read: No such file.*\nHint: `benchwright config > benchwright.toml`"
    ):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigError, match="not a TOML file"):
        load_config(tmp_path / "latin.toml")


def test_a_new_axis_and_a_changed_price(tmp_path: Path) -> None:
    config = load(
        tmp_path, '[prices]\nDISTIL = { usd = 3, per = "10^3 examples" }\nPT = { usd = 90, per = "10^9 tokens" }\n'
    )
    assert list(config.prices) == [*DEFAULT_PRICES, "DISTIL"]
    rows = {row.key: row for row in config.assumptions()}
    assert (rows["prices.DISTIL"].value, rows["prices.DISTIL"].default) == (3.0, None)
    assert (rows["prices.PT"].value, rows["prices.PT"].default, rows["prices.PT"].source) == (
        90.0,
        82.0,
        "choices.toml",
    )
    assert rows["prices.RL"].source == "default"


def test_replace_leaves_the_original_and_remembers_who_set_what() -> None:
    first = Config()
    second = first.replace({"lab.budget": 5, "welfare.top_k": 3}, source="--set").replace(
        {"lab.budget": 6}, source="a notebook"
    )
    assert (first.lab.budget, second.lab.budget, second.welfare.top_k) == (100_000.0, 6.0, 3)
    assert second.sources == {"lab.budget": "a notebook", "welfare.top_k": "--set"}
    with pytest.raises(ConfigError, match=r"--set: unknown section: `lba`\nHint: did you mean `lab`"):
        first.replace({"lba.budget": 5}, source="--set")


def test_choices_go_over_those_of_another() -> None:
    base = Config().replace({"lab.budget": 5.0, "welfare.neutral": 2.0, "prices.PT": 7.0}, source="low")
    base = base.replace({"welfare_sources.low": {"file": "a.csv"}}, source="low")
    mine = Config().replace({"welfare.neutral": 3.0, "prices.SFT": 9.0}, source="--set")
    both = mine.over(base)
    assert (both.lab.budget, both.welfare.neutral) == (5.0, 3.0)  # a default counts where somebody set it
    assert {axis: price.usd for axis, price in both.prices.items()} == {"PT": 7.0, "SFT": 9.0, "RL": 0.5}
    assert list(both.welfare_sources) == ["low"]
    assert both.sources == {**base.sources, **mine.sources}
    in_python = dataclasses.replace(Config(), lab=LabChoices(budget=8.0)).over(base)
    assert (in_python.lab.budget, in_python.welfare.neutral) == (8.0, 2.0)


def test_a_bare_price_keeps_the_slope_unit_of_its_axis() -> None:
    config = Config().replace({"prices.RL": 1.0}, source="--set")
    assert config.prices["RL"] == dataclasses.replace(DEFAULT_PRICES["RL"], usd=1.0)
    assert (config.prices["RL"].unit, config.prices["RL"].units) == ("prompt", 1e3)
    assert config.sources["prices.RL"] == "--set"
