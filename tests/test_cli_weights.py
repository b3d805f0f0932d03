"""``benchwright weights`` from item tables to a board: constraints asked for, files written, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tables import Ran, run, write_rows, write_tables

Run = Callable[..., Ran]

QUICK = ("--set", "resampling.replicates=100", "--set", "published.draws=60")
WORTH = ("--set", "welfare.neutral=1")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path / "source")
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def test_constraints_reach_the_weights_and_the_assumptions(cli: Run) -> None:
    asked = ("--max-share", "0.2", "--equal-within", "task", *WORTH)
    ran = cli("weights", "source", "-o", "w", *asked, *QUICK)
    assert ran.code == 0
    assert "What a board can publish" in ran.out
    assert "rescore SCORES --weights w" in ran.err
    files = {"weights.csv", "scheme.json", "task_scheme.json", "sensitivity.csv", "summary.json", "inputs.json"}
    assert {path.name for path in Path("w").iterdir()} == files | {"tables"}
    assert pl.read_csv("w/sensitivity.csv").height == pl.read_csv("w/weights.csv").height
    weights = pl.read_csv("w/weights.csv")
    assert weights.group_by("task").agg(pl.col("published_share").n_unique())["published_share"].to_list() == [1, 1, 1]
    assert weights["published_share"].sum() == pytest.approx(1)
    assert weights["published_share"].is_between(0, 0.2 + 1e-12).all()
    summary = json.loads(Path("w/summary.json").read_text(encoding="utf-8"))
    values = {row["key"]: (row["value"], row["source"]) for row in summary["assumptions"]}
    assert values["published.max_share"] == (0.2, "--max-share")
    assert values["published.equal_within"] == ("task", "--equal-within")
    assert set(summary["weights"]["published"]["prices"]) == {"non_negative", "max_share", "equal_within"}


def test_json_is_the_summary_and_a_second_run_needs_leave(cli: Run) -> None:
    first = cli("weights", "source", "--json", *QUICK)
    assert first.out == Path("weights/summary.json").read_text(encoding="utf-8")
    refused = cli("weights", "source", *QUICK)
    assert refused.code == 2
    assert "add --overwrite" in refused.err
    again = cli("weights", "source", "--json", "--overwrite", *QUICK)
    assert (again.code, again.out) == (0, first.out)


def test_few_items_and_negative_weights_on_request(cli: Run) -> None:
    assert cli("weights", "source", "-o", "few", "--at-most", "3", *WORTH, *QUICK).code == 0
    assert (pl.read_csv("few/weights.csv")["published_weight"] != 0).sum() == 3
    assert cli("weights", "source", "-o", "free", "--allow-negative", *WORTH, *QUICK).code == 0
    free = pl.read_csv("free/weights.csv")
    assert free["published_weight"].to_list() == pytest.approx(free["weight"].to_list())


def test_weights_go_on_to_a_board(cli: Run) -> None:
    assert cli("weights", "source", "-o", "w", *WORTH, *QUICK).code == 0
    items = pl.read_csv("w/weights.csv")
    rows = [["model", "task", "doc_id", "score"]]
    for model, share in (("strong", 0.8), ("weak", 0.3)):
        rows += [
            [model, task, doc_id, int((7 * place) % 10 < 10 * share)]
            for place, (task, doc_id) in enumerate(items.select("task", "doc_id").iter_rows())
        ]
    write_rows(Path("scores.csv"), rows)
    ran = cli("rescore", "scores.csv", "--weights", "w", "-o", "board")
    assert ran.code == 0
    board = pl.read_csv("board/leaderboard.csv")
    share = items["published_share"].to_numpy()
    strong = [int((7 * place) % 10 < 8) for place in range(items.height)]
    assert board.filter(pl.col("model") == "strong")["score"].item() == pytest.approx(share @ strong)


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (("--max-share", "0.001"), 2, ("`max_share`", "clash", "raise the caps")),
        (("--equal-within", "model"), 2, ("published.equal_within", "there are none, task")),
        (("--fixed-shares", "none.csv"), 1, ("none.csv",)),
        (("--at-most", "0"), 2, ("published.at_most",)),
        (("--welfare", "nowhere"), 2, ("no such folder",)),
    ],
)
def test_wrong_use_writes_nothing(cli: Run, arguments: tuple[str, ...], code: int, texts: tuple[str, ...]) -> None:
    ran = cli("weights", "source", "-o", "w", *arguments, *QUICK)
    assert ran.code == code
    assert ran.err.startswith("error: ")
    for text in texts:
        assert text in ran.err
    assert not Path("w").exists()


def test_a_source_without_weights_says_why(cli: Run) -> None:
    (Path("source") / "noise.csv").unlink()
    (Path("source") / "item_margins.parquet").unlink(missing_ok=True)
    ran = cli("weights", "source", "-o", "w", *QUICK)
    assert ran.code == 1
    assert "noise.csv" in ran.err
    assert not Path("w").exists()


def test_where_no_publishable_weights_help_no_scheme_is_promised(cli: Run) -> None:
    ran = cli("weights", "source", "-o", "w", "--set", "welfare.neutral=9", *QUICK)
    assert ran.code == 0
    assert "No weights that a board can publish help" in ran.out
    assert ran.err == "wrote w: no scheme.json, for no positive score helps\n"
    assert not Path("w/scheme.json").exists()
