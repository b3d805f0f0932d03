"""The run over many calls with a model made here: tries, budgets, journals, full disks. No library, no network."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from benchwright.cli.judge import _consent
from benchwright.errors import DataError, UsageError
from benchwright.judge import journal as journals
from benchwright.judge.asking import NoAnswerError, Reply, run_to_end
from benchwright.judge.budget import Tokens
from benchwright.judge.journal import FILE, Journal, Record, read_journal
from benchwright.judge.plan import JudgePlan, plan_judging
from benchwright.judge.results import JudgeRun
from benchwright.judge.run import carry_out
from benchwright.judge.settings import JudgeSettings
from openai_server import IDS, ITEM

GOOD = json.dumps({"sub_steps": [], "ranked_activities": list(IDS[:3])})
USED = Tokens(1000, 50)


@dataclass
class Model:
    """Answers by ``answer(item, number of the request)``; a text is an answer of 1,050 tokens."""

    answer: Callable[[str, int], str | Reply | Exception] = lambda item, number: GOOD
    versions: Mapping[str, str] = field(default_factory=dict)
    items: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    closed: bool = False

    async def ask(self, system: str, user: str) -> Reply:
        found = ITEM.match(user)
        assert found is not None
        self.items.append(found[2])
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        answer = self.answer(found[2], len(self.items) - 1)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, used=USED) if isinstance(answer, str) else answer

    async def close(self) -> None:
        self.closed = True


def plan(n: int = 20, **settings: object) -> JudgePlan:
    items = pl.DataFrame({"task": "t", "doc_id": range(n), "text": [f"item {number}" for number in range(n)]})
    chosen = JudgeSettings(**settings)  # type: ignore[arg-type]
    return plan_judging(items, model="made/here", perspectives=("automation",), settings=chosen)


def run(model: Model, out: Path, made: JudgePlan | None = None) -> JudgeRun:
    return carry_out(plan() if made is None else made, model, out=out)


def test_every_item_has_its_list_and_connections_are_limited(tmp_path: Path) -> None:
    model = Model()
    result = run(model, tmp_path / "out", plan(50, connections=7))
    assert result.lists["ok"].all()
    assert result.lists["activities"].to_list() == [list(IDS[:3])] * 50
    assert result.lists["doc_id"].to_list() == list(range(50))
    assert model.most_in_flight == 7
    assert model.closed
    assert (result.answers, result.tokens, result.usd) == (50, Tokens(50_000, 2_500), None)
    assert result.variety() == {"automation": 1 / 50}
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == result.to_dict()
    assert "50 judged, 0 failed" in str(result)
    assert result.to_frame().equals(result.lists)


def test_an_unusable_answer_is_asked_for_again_and_its_failure_recorded(tmp_path: Path) -> None:
    def answer(item: str, number: int) -> str:
        return "nonsense" if item in ("item 3", "item 4") and not (item == "item 4" and number > 20) else GOOD

    model = Model(answer)
    result = run(model, tmp_path / "out")
    assert Counter(model.items)["item 3"] == 3
    rows = {row["doc_id"]: row for row in result.lists.iter_rows(named=True)}
    assert rows[3]["reason"] == "no usable answer: it is not one JSON object"
    assert rows[3]["activities"] == []
    assert rows[4]["ok"]
    assert rows[4]["answers"] > 1
    assert result.failures["doc_id"].to_list() == [3]
    again = Model()
    assert run(again, tmp_path / "out").lists.equals(result.lists)
    assert again.items == []  # a failure is an answer too
    more = Model()
    assert run(more, tmp_path / "out", plan(tries=4)).lists["ok"].all()
    assert more.items == ["item 3"]


def test_a_call_without_an_answer_fails_now_and_is_asked_for_next_time(tmp_path: Path) -> None:
    model = Model(lambda item, number: NoAnswerError("TimeoutError") if item == "item 5" else GOOD)
    first = run(model, tmp_path / "out")
    assert first.failures.rows() == [("t", 5, "automation", "no answer: TimeoutError")]
    again = Model()
    assert run(again, tmp_path / "out").lists["ok"].all()
    assert again.items == ["item 5"]


def test_a_run_that_stops_at_once_keeps_the_lists_that_it_had(tmp_path: Path) -> None:
    run(Model(lambda item, number: NoAnswerError("TimeoutError") if item == "item 0" else GOOD), tmp_path / "out")
    refused = run(Model(lambda item, number: NoAnswerError("HTTP 401", fatal=True)), tmp_path / "out")
    assert refused.stopped is not None
    assert refused.lists["doc_id"].to_list() == list(range(1, 20))
    assert refused.not_reached == 1


def test_a_refusal_of_every_call_stops_the_run(tmp_path: Path) -> None:
    model = Model(lambda item, number: NoAnswerError("HTTP 401", fatal=True) if number > 4 else GOOD)
    result = run(model, tmp_path / "out", plan(500, connections=3))
    assert result.stopped is not None
    assert "HTTP 401" in result.stopped
    assert len(model.items) < 12
    assert result.not_reached == 495
    gone = run(Model(lambda item, number: NoAnswerError("APIConnectionError")), tmp_path / "gone", plan(500))
    assert gone.stopped is not None
    assert "10 calls in a row" in gone.stopped


def test_a_cut_off_answer_says_so(tmp_path: Path) -> None:
    result = run(Model(lambda item, number: Reply('{"sub_st', cut_off=True, used=USED)), tmp_path / "out", plan(1))
    assert "max_output_tokens" in result.failures["reason"][0]


@pytest.mark.parametrize("budget", [0, 30_000, 60_000])
def test_a_token_budget_is_never_exceeded_and_a_larger_one_goes_on(tmp_path: Path, budget: int) -> None:
    model = Model()
    result = run(model, tmp_path / "out", plan(100, max_tokens=budget, connections=5))
    used = result.tokens.sent + result.tokens.received
    assert used <= budget
    assert used + 15_000 > budget  # stops only where the next call might not be covered
    assert result.stopped is not None
    assert f"max_tokens = {budget:,}" in result.stopped
    assert result.not_reached == 100 - len(result.lists)
    rest = Model()
    assert run(rest, tmp_path / "out", plan(100)).lists["ok"].all()
    assert sorted(model.items + rest.items) == sorted(f"item {number}" for number in range(100))


def test_a_budget_in_dollars_counts_unreported_tokens_at_their_most(tmp_path: Path) -> None:
    prices = {"price_in": 10.0, "price_out": 30.0}
    silent = Model(lambda item, number: Reply(GOOD))
    result = run(silent, tmp_path / "out", plan(100, max_usd=0.5, **prices))
    assert result.usd is not None
    assert 0 < result.usd <= 0.5
    assert result.unreported == len(silent.items) > 0
    assert any("tokens of" in note for note in result.notes)
    again = Model()
    run(again, tmp_path / "out", plan(100, max_usd=0.5, **prices))
    assert again.items == []  # what an earlier run used counts


def test_the_estimate_counts_what_is_still_to_ask(tmp_path: Path) -> None:
    made = plan(10, price_in=1.0, price_out=2.0)
    assert made.to_ask == 10
    assert made.settings.usd(made.estimated.sent, made.estimated.received) == pytest.approx(
        (made.estimated.sent + 2 * made.estimated.received) / 1e6
    )
    run(Model(), tmp_path / "out", made)
    frame = pl.DataFrame({"task": "t", "doc_id": range(12), "text": [f"item {number}" for number in range(12)]})
    later = plan_judging(frame, model="made/here", perspectives=("automation",), out=tmp_path / "out")
    assert (later.to_ask, later.recorded) == (2, 10)
    assert "item 0" in later.example()


def test_a_changed_text_is_another_item(tmp_path: Path) -> None:
    run(Model(), tmp_path / "out", plan(3))
    frame = pl.DataFrame({"task": "t", "doc_id": range(3), "text": ["item 0", "item 1", "changed"]})
    model = Model()
    run(model, tmp_path / "out", plan_judging(frame, model="made/here", perspectives=("automation",)))
    assert model.items == ["changed"]


def test_answers_of_another_model_or_prompt_are_not_mixed(tmp_path: Path) -> None:
    run(Model(), tmp_path / "out")
    with pytest.raises(UsageError, match=r"another run: the prompts \(activities, number of ranks\) changed"):
        run(Model(), tmp_path / "out", plan(ranked=3))
    with pytest.raises(UsageError, match="another run: temperature changed"):
        run(Model(), tmp_path / "out", plan(temperature=1.0))
    with pytest.raises(UsageError, match=r"the server \(base_url; .* another judge\) changed"):
        run(Model(), tmp_path / "out", plan(base_url="http://127.0.0.1:9/v1"))
    assert carry_out(plan(ranked=3), Model(), out=tmp_path / "out", overwrite=True).lists["ok"].all()


def test_the_other_framing_may_follow_in_the_same_folder(tmp_path: Path) -> None:
    run(Model(), tmp_path / "out", plan(2))
    frame = pl.DataFrame({"task": "t", "doc_id": range(2), "text": ["item 0", "item 1"]})
    later = plan_judging(frame, model="made/here", out=tmp_path / "out")
    assert (later.to_ask, later.recorded) == (2, 2)
    result = run(Model(), tmp_path / "out", later)
    assert result.new_answers == 2
    assert sorted(result.lists["perspective"]) == ["augmentation"] * 2 + ["automation"] * 2


def test_one_framing_or_fewer_items_leave_the_other_lists_in_the_folder(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": "t", "doc_id": range(5), "text": ["", *(f"item {number}" for number in range(4))]})
    whole = run(Model(), tmp_path / "out", plan_judging(frame, model="made/here"))
    again = plan_judging(frame, model="made/here", perspectives=("augmentation",), limit=2, out=tmp_path / "out")
    part = run(Model(), tmp_path / "out", again)
    order = ["perspective", "doc_id"]
    assert part.lists.sort(order).equals(whole.lists.sort(order))
    assert (part.kept, part.own.height, part.not_reached, part.new_answers) == (8, 2, 0, 0)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["lists"] == {"judged": 8, "failed": 2, "not_reached": 0}
    assert (record["kept_lists"], record["perspectives"]) == (8, ["automation", "augmentation"])
    assert "kept         8 of these lists" in str(part)
    (tmp_path / "out" / "judge_loadings.jsonl").write_text("gone\n")
    model = Model()
    with pytest.raises(DataError, match="its lists would be lost"):
        run(model, tmp_path / "out", plan(50))
    assert model.items == []


def test_a_folder_that_is_not_a_judges_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds no judge's answers"):
        carry_out(plan(), Model(), out=tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_one_folder_serves_one_process(tmp_path: Path) -> None:
    with Journal(tmp_path, plan().identity), pytest.raises(UsageError, match="in use by another run"):
        carry_out(plan(), Model(), out=tmp_path, overwrite=True)
    assert (tmp_path / FILE).stat().st_size > 0


def record(number: int) -> Record:
    return Record("t", str(number), "automation", "00", 0, ("a",))


@pytest.mark.parametrize("torn", [b"", b"{", b'{"task":"t","doc_id":"9"', b"\xff\x00"])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    with Journal(tmp_path, {"model": "m"}) as journal:
        journal.add(record(1))
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert list(read_journal(tmp_path, {"model": "m"}).values()) == [record(1)]
    assert path.read_bytes() == whole + torn  # reading changes nothing
    with Journal(tmp_path, {"model": "m"}) as journal:
        journal.add(record(2))
    assert list(read_journal(tmp_path, {"model": "m"}).values()) == [record(1), record(2)]


def test_a_damaged_line_is_a_fault_and_not_asked_again_in_silence(tmp_path: Path) -> None:
    with Journal(tmp_path, {"model": "m"}) as journal:
        journal.add(record(1))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes() + b"gone\n")
    with pytest.raises(DataError, match="line 3"):
        read_journal(tmp_path, {"model": "m"})


def test_a_full_disk_keeps_whole_answers_and_the_run_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 4_000

    def write(file: int, content: bytes) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = original(file, content[:room])
        room -= written
        return written

    original = os.write
    monkeypatch.setattr(journals.os, "write", write)
    first = Model()
    with pytest.raises(UsageError, match="No space left on device") as caught:
        run(first, tmp_path / "out", plan(50, connections=4))
    monkeypatch.setattr(journals.os, "write", original)
    kept = read_journal(tmp_path / "out", plan(50).identity)
    assert 0 < len(kept) < 50
    assert f"{len(kept)} answers are kept" in str(caught.value)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [FILE]
    assert (tmp_path / "out" / FILE).read_bytes().endswith(b"\n")
    second = Model()
    assert run(second, tmp_path / "out", plan(50)).lists["ok"].all()
    assert len(second.items) == 50 - len(kept)


def test_a_disk_that_fills_at_the_end_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("benchwright._staging.os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        journals.Journal(tmp_path, {"model": "m"})
    monkeypatch.undo()
    run(Model(), tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    monkeypatch.setattr("benchwright._staging.os.fsync", full)
    with pytest.raises(UsageError, match="cannot write"):
        run(Model(), tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_items_that_cannot_be_judged_are_recorded_and_not_sent(tmp_path: Path) -> None:
    texts = ["fine", "", "a\x00b", "x" * 60_000]
    frame = pl.DataFrame({"task": "t", "doc_id": range(4), "text": texts})
    model = Model()
    result = run(model, tmp_path / "out", plan_judging(frame, model="made/here"))
    assert model.items == ["fine", "fine"]
    reasons = result.failures.filter(pl.col("perspective") == "automation")["reason"].to_list()
    assert reasons == [
        "the text is empty",
        "the text is binary",
        "the text has 60,000 characters, more than max_characters = 20,000",
    ]


def test_a_text_that_names_activities_is_noted(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": "t", "doc_id": [0, 1], "text": ["2 + 2?", f"Rank {IDS[4]} first."]})
    made = plan_judging(frame, model="made/here", perspectives=("automation",))
    assert any("1 item holds activity ids" in note for note in made.notes)
    assert run(Model(), tmp_path / "out", made).lists["notes"].to_list() == [[], ["the text holds activity ids"]]


def test_no_answer_text_and_no_item_text_is_kept(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": "t", "doc_id": [0], "text": ["a private question"]})
    answer = json.dumps({"sub_steps": ["read the private question"], "ranked_activities": [IDS[0]]})
    run(Model(lambda item, number: answer), tmp_path / "out", plan_judging(frame, model="made/here"))
    for path in (tmp_path / "out").iterdir():
        assert "private question" not in path.read_text(encoding="utf-8")


def test_a_notebook_with_a_running_loop_can_judge(tmp_path: Path) -> None:
    async def cell() -> JudgeRun:
        return run(Model(), tmp_path / "out", plan(3))

    assert asyncio.run(cell()).lists["ok"].all()

    async def seven() -> int:
        return 7

    assert run_to_end(seven()) == 7


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": "t", "doc_id": [0], "text": ["x"]})
    with pytest.raises(UsageError, match="`model` must be provider/name, got 'gpt'"):
        plan_judging(frame, model="gpt")
    with pytest.raises(UsageError, match="`perspectives`"):
        plan_judging(frame, model="made/here", perspectives=("both",))
    with pytest.raises(UsageError, match="`limit`"):
        plan_judging(frame, model="made/here", limit=0)
    with pytest.raises(UsageError, match="`name`"):
        carry_out(plan(), Model(), out=tmp_path / "out", name="../x")
    limited = plan_judging(frame, model="made/here", limit=5)
    assert limited.notes == ()


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_at_a_terminal_is_asked(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def confirm(question: str, *, err: bool) -> bool:
        asked.append((question, err))
        return answer

    monkeypatch.setattr("benchwright.cli.judge.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("benchwright.cli.judge.typer.confirm", confirm)
    if answer:
        _consent("api.example.org", 20, yes=False)
    else:
        with pytest.raises(UsageError, match="nothing was sent"):
            _consent("api.example.org", 20, yes=False)
    assert asked == [("Send the items' texts to api.example.org (20 lists to ask for)?", True)]
    _consent("api.example.org", 20, yes=True)
    _consent(None, 20, yes=False)
    assert len(asked) == 1
