"""The command line: exit codes, what goes to stdout and what to stderr, and errors that say what to do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchwright.errors import DataError, NoWeightsError
from tables import FAST, TASKS, Ran, drop_column, edit, read_rows, run, set_cell, set_field, write_rows, write_tables

Run = Callable[..., Ran]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tables(tmp_path / "source")


def program(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "benchwright.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=cwd, env=os.environ | environment, timeout=60, check=False)


def refused(ran: Ran, code: int, *texts: str) -> None:
    assert ran.code == code
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err
    for text in texts:
        assert text in ran.err


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_audit_as_a_program(source: Path, tmp_path: Path) -> None:
    ran = program("audit", source, "-o", "out", "--json", *FAST, cwd=tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == (tmp_path / "out" / "summary.json").read_bytes()
    assert json.loads(ran.stdout)["source"]["name"] == "source"


def test_error_as_a_program(source: Path, tmp_path: Path) -> None:
    set_cell(source / "cost.csv", 3, "anchor_phat", "x")
    ran = program("audit", source, "-o", "out", "--json", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert b"cost.csv, line 3, column `anchor_phat`: must be a finite number, got `x`\nHint: " in ran.stderr
    assert left(tmp_path) == {"source"}
    assert program("audit", "--set", "lab.risk_aversion=-1", cwd=tmp_path).returncode == 2
    assert program("audit", "--no-such-option", cwd=tmp_path).returncode == 2


def test_help_names_every_command_and_version_prints(cli: Run) -> None:
    from benchwright import __version__
    from benchwright.cli import app

    ran = cli("--help")
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert {"audit", "config", "fetch"} <= set(names)
    assert all(f"  {name} " in ran.out for name in names)
    assert cli("--version").out == f"benchwright {__version__}\n"


def test_findings_on_stdout_and_the_rest_on_stderr(cli: Run, source: Path) -> None:
    ran = cli("audit", source, *FAST)
    assert ran.code == 0
    assert ran.out.startswith("- ")
    assert ran.err == "wrote out\n"


def test_config_prints_what_config_reads(cli: Run, source: Path) -> None:
    Path("mine.toml").write_text(cli("config").out, encoding="utf-8")
    with_file = cli("audit", source, "--config", "mine.toml", "-o", "with", "--json", *FAST)
    assert with_file.code == 0
    assert with_file.out == cli("audit", source, "-o", "without", "--json", *FAST).out


def test_printed_json_has_every_choice_and_every_file_of_a_data_set(cli: Run) -> None:
    from benchwright.config import Config
    from benchwright.datasets import DATASETS

    rows = json.loads(cli("config", "--json").out)
    assert [row["key"] for row in rows] == [row.key for row in Config().assumptions()]
    assert all(row["unit"] and row["why"] and row["value"] == row["default"] for row in rows)
    (listed,) = json.loads(cli("fetch", "--json").out)
    known = DATASETS["olmes-audit"]
    assert (listed["name"], listed["repository"], listed["commit"]) == (known.name, known.repository, known.commit)
    files = [(file["path"], file["size"], file["sha256"]) for file in listed["files"]]
    assert files == [(file.path, file.size, file.sha256) for file in known.files]


def test_names_in_findings_do_not_act_on_the_terminal(cli: Run, tmp_path: Path) -> None:
    tasks = ("alpha\x1b[2J", "beta\x1b]0;x\x07", "gamma\u202e")
    source = write_tables(tmp_path / "source", tasks=tasks, families=False)
    write_rows(source / "families.csv", [["task", "family"], *([task, task] for task in tasks)])
    ran = cli("audit", source, *FAST)
    assert r"\x1b[2J" in ran.out
    assert not {"\x1b", "\x07", "\u202e"} & {*ran.out, *ran.err}


def test_files_and_sections_of_the_command_line_are_recorded(cli: Run, source: Path) -> None:
    weights = user_weights(source, lambda rows: None)
    judge = (source / "judge_loadings.jsonl").replace("judge_loadings_human.jsonl")
    (source / "judge_loadings.jsonl").write_bytes(judge.read_bytes())
    write_rows(Path("mine-too.csv"), [["task", "family"], *([task, task] for task in TASKS)])
    given = [Path(weights), judge, Path("mine-too.csv")]
    ran = cli("audit", source, "--weights", weights, "--judge", judge, "--families", "mine-too.csv", "--json", *FAST)
    files = json.loads(ran.out)["source"]["files"]
    names = [file["name"] for file in files]
    assert len(names) == len(set(names))
    for path in given:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert {"name": path.name, "size": path.stat().st_size, "sha256": digest} in files
    ran = cli("audit", source, "-o", "b", "--without", "noise", "--without", "welfare", "--json", *FAST)
    assert "Left out on request: welfare, noise." in json.loads(ran.out)["notes"]


def test_weights_of_a_report_are_read_back(cli: Run, tmp_path: Path) -> None:
    source = write_tables(tmp_path / "source", tasks=("=alpha", "'gamma"), item_id=lambda i: f"-q{i}")
    assert cli("audit", source, *FAST).code == 0
    assert "'=alpha,'-q0," in Path("out/weights.csv").read_text()
    ran = cli("audit", source, "-o", "b", "--weights", "out/weights.csv", "--json", *FAST)
    assert "user" in json.loads(ran.out)["weights"]["schemes"]


def test_only_a_source_without_weights_is_reported_without_them(
    cli: Run, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weigh(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("benchwright.pipeline.weigh_items", weigh)
    failure = NoWeightsError("no item has all three.")
    assert json.loads(cli("audit", source, "--json", *FAST).out)["no_weights"] == "no item has all three"
    failure = DataError("something else")
    refused(cli("audit", source, "-o", "b", *FAST), 1, "error: something else")


def test_own_weights_that_no_section_supports_are_an_error(cli: Run, source: Path) -> None:
    weights = user_weights(source, lambda rows: None)
    refused(cli("audit", source, "--without", "noise", "--weights", weights, *FAST), 1, "missing: noise")


def test_working_directory_choices_and_overrides(cli: Run, source: Path) -> None:
    Path("benchwright.toml").write_text("[welfare]\nneutral = 2.5\ntop_k = 4\n", encoding="utf-8")
    ran = cli("audit", source, "--json", "--set", "welfare.top_k=3", "--families", "benchmark", *FAST)
    rows = {row["key"]: (row["value"], row["source"]) for row in json.loads(ran.out)["assumptions"]}
    assert rows["welfare.neutral"] == (2.5, "benchwright.toml")
    assert rows["welfare.top_k"] == (3, "--set")
    assert rows["families.welfare"] == ("benchmark", "--families")
    Path("benchwright.toml").write_text("[welfare]\nnetural = 2.5\n", encoding="utf-8")
    refused(
        cli("audit", source, "-o", "b"),
        2,
        "benchwright.toml: unknown key in [welfare]: `netural`",
        "did you mean `neutral`?",
    )


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["--set", "welfare.netural=2"], ["--set: unknown key in [welfare]: `netural`", "did you mean `neutral`?"]),
        (["--set", "welfare.neutral=x"], ["--set: welfare.neutral must be a number, got 'x'"]),
        (["--set", "welfare.neutral="], ["welfare.neutral must be a number, got ''"]),
        (["--set", "lab.risk_aversion=-1"], ["lab.risk_aversion must lie in 0 ..", "got -1"]),
        (
            ["--set", "eligibility.anchor_low=0.99"],
            ["--set: eligibility.anchor_low must be at most"],
        ),
        (["--set", "prices.PT={usd=0, per='x'}"], ["prices.PT.usd must lie in"]),
        (["--set", "neutral"], ["not SECTION.KEY=VALUE", "e.g. --set welfare.neutral=2.5"]),
        (["--config", "none.toml"], ["none.toml: cannot be read: No such file"]),
        (["--without", "cost"], ["must name sections of welfare, improvability, noise, got cost"]),
        (["--families", "none.csv"], ["family map `none.csv` is neither a preset nor a file", "presets: figure-3"]),
        (["--weights", "none.csv"], ["weights file none.csv does not exist"]),
        (["--weights", "source"], ["weights file source is no regular file"]),
        (["-o", "source"], ["is not empty and holds no report"]),
        (["-o", "source/cost.csv"], ["is not a folder"]),
        (["-o", "source/cost.csv/out"], ["source/cost.csv is not a folder"]),
        (["-o", "."], ["is the working directory or holds it"]),
        (["-o", "x" * 300], ["File name too long"]),
    ],
)
def test_wrong_use(cli: Run, source: Path, tmp_path: Path, arguments: list[str], texts: list[str]) -> None:
    refused(cli("audit", source, *arguments), 2, *texts)
    assert left(tmp_path) == {"source"}


def test_logs_are_made_a_panel_first(cli: Run, source: Path) -> None:
    refused(cli("audit", source / "cost.csv"), 2, "is a file, not a folder of item", "make a panel first")
    Path("logs").mkdir()
    Path("logs", "samples_task.jsonl").write_text("{}\n")
    refused(cli("audit", "logs"), 2, "SOURCE logs holds none of the item tables", "make a panel first")


@pytest.mark.parametrize("name", ["none", "source/cost.csv", "x" * 300, "a\x1b[2Jb"])
def test_source_that_is_none(cli: Run, source: Path, name: str) -> None:
    ran = cli("audit", name)
    refused(ran, 2, "error: ")
    assert "\x1b" not in ran.err


@pytest.mark.parametrize("section", ["welfare", "improvability", "noise"])
@pytest.mark.parametrize("calibration", ["auto", "uniform"])
def test_section_left_out(cli: Run, source: Path, section: str, calibration: str) -> None:
    ran = cli("audit", source, "--json", "--without", section, "--set", f"lab.calibration={calibration}", *FAST)
    summary = json.loads(ran.out)
    assert summary["weights"] is None
    assert summary["no_weights"] == f"weights need welfare, improvability and noise; missing: {section}"
    assert "weights.csv" not in left(Path("out"))


@pytest.mark.parametrize(
    ("spoil", "texts"),
    [
        (
            lambda source: (source / "cost.csv").unlink(),
            ["cost.csv: no such file, and section `improvability` needs"],
        ),
        (
            lambda source: drop_column(source / "noise.csv", "noise_sigma2"),
            ["noise.csv, column `noise_sigma2`: missing;"],
        ),
        (lambda source: set_cell(source / "noise.csv", 2, "noise_sigma2", "-1"), ["line 2, column `noise_sigma2`"]),
        (lambda source: set_field(source / "judge_loadings.jsonl", 1, ranked_gwa_ids=["no"]), ["line 1", "`no` is no"]),
    ],
)
def test_data_that_cannot_support_an_answer(
    cli: Run, source: Path, tmp_path: Path, spoil: Callable[[Path], None], texts: list[str]
) -> None:
    spoil(source)
    refused(cli("audit", source, "--json"), 1, "1 fault(s) in the item tables", "Hint: mend the files", *texts)
    assert left(tmp_path) == {"source"}


def user_weights(source: Path, change: Callable[[list[list[object]]], object]) -> str:
    rows: list[list[object]] = [[task, item, 1.0] for task, item, *_ in read_rows(source / "cost.csv")[1:]]
    change(rows)
    write_rows(Path("mine.csv"), [["task", "doc_id", "weight"], *rows])
    return "mine.csv"


def test_user_weights_are_judged(cli: Run, source: Path) -> None:
    ran = cli("audit", source, "--json", "--weights", user_weights(source, lambda rows: None), *FAST)
    efficiency = {name: scheme["efficiency"] for name, scheme in json.loads(ran.out)["weights"]["schemes"].items()}
    assert efficiency["user"] == pytest.approx(efficiency["uniform"])


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        (lambda rows: rows.pop(3), ["lack 1 of the 18 items", "no weight for (alpha, 3)", "write 0 for an item"]),
        (lambda rows: rows.append(rows[3]), ["mine.csv, line 20, column `task, doc_id`: (alpha, 3) appears 2 times"]),
        (lambda rows: [row.__setitem__(2, 0) for row in rows], ["all weights are 0"]),
        (
            lambda rows: [*(row.__setitem__(2, 0) for row in rows), rows.append(["zeta", 1, 5])],
            ["all weights are 0 on the items"],
        ),
        (lambda rows: rows[0].__setitem__(2, "nan"), ["mine.csv, line 2, column `weight`", "got `nan`"]),
        (lambda rows: rows[0].__setitem__(2, "much"), ["mine.csv, line 2, column `weight`", "got `much`"]),
        (lambda rows: [row.__setitem__(1, f"q{row[1]}") for row in rows], ["do not share item ids"]),
    ],
)
def test_user_weights_that_are_none(
    cli: Run, source: Path, change: Callable[[list[list[object]]], object], texts: list[str]
) -> None:
    refused(cli("audit", source, "--weights", user_weights(source, change), *FAST), 1, *texts)
    assert not Path("out").exists()


@pytest.mark.parametrize("families", [{"zeta": "z"}, dict.fromkeys(TASKS, "one")])
def test_one_family_is_no_contrast(cli: Run, source: Path, families: dict[str, str]) -> None:
    write_rows(source / "families.csv", [["task", "family"], *map(list, families.items())])
    summary = json.loads(cli("audit", source, "--json", *FAST).out)
    assert any("all items are of one family, so nothing is contrasted" in note for note in summary["notes"])
    assert set(summary["audit"]["pareto"]) == {"n_items", "frontier_size"}


def test_family_of_one_task_has_no_interval(cli: Run, source: Path) -> None:
    summary = json.loads(cli("audit", source, "--json", *FAST).out)
    assert summary["audit"]["pareto"]["w_auto"]["cluster_bootstrap_95"] == [None, None]
    assert summary["audit"]["pareto"]["w_auto"]["difference"] is not None
    assert any("there is no interval, since one task" in note for note in summary["notes"])


def test_price_without_a_slope_and_slope_without_a_price(cli: Run, source: Path) -> None:
    edit(source / "cost.csv", b"beta_sft", b"beta_distil")
    price = ("--set", "prices.COMPUTE={usd=1.5, per='hour'}")
    notes = json.loads(cli("audit", source, "--json", *price, *FAST).out)["notes"]
    assert "--set: prices.COMPUTE is set, but cost.csv has no column beta_compute, so it is not used." in notes
    assert any("column `beta_distil`" in note and "add a price" in note for note in notes)
    distil = ("--set", "prices.DISTIL={usd=1.5, per='10^3 examples'}", "--overwrite")
    summary = json.loads(cli("audit", source, "--json", *distil, *FAST).out)
    assert "DISTIL" in summary["audit"]["cost"]["share"]
    assert not any("beta_distil" in note for note in summary["notes"])


def test_fetch_lists_and_refuses(cli: Run) -> None:
    assert {entry["name"] for entry in json.loads(cli("fetch", "--json").out)} >= {"olmes-audit"}
    refused(cli("fetch", "olmes-audti"), 2, "olmes-audit")


def test_interrupted(cli: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(report: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchwright.report.build.summary_text", interrupt)
    ran = cli("audit", source, *FAST)
    assert ran.code == 130
    assert left(tmp_path) == {"source"}
