"""What can go wrong in a run is one clear error, and the other runs go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchwright.cli import main
from benchwright.errors import DataError, UsageError
from benchwright.tuning.folder import Lock, write_json
from benchwright.tuning.jobs import _record, carry_out
from benchwright.tuning.plan import Job, jobs_of
from benchwright.tuning.protocol import read_protocol
from benchwright.tuning.run import run_tuning
from benchwright.tuning.settings import LaunchSettings
from tiny_models import PROTOCOL, write_family, write_model

pytestmark = [pytest.mark.tuning, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    folder = tmp_path_factory.mktemp("family")
    write_family(folder)
    write_model(folder / "bare", special=False)
    write_model(folder / "short", vocabulary=64)
    shutil.copytree(folder / "tiny", folder / "damaged")
    (folder / "damaged" / "config.json").write_text("{}", encoding="utf-8")
    return folder


def first(family: Path, **settings: Any) -> Job:
    job = jobs_of(read_protocol(family / "tune.toml"))[0]
    return replace(job, settings=replace(job.settings, **settings))


def failure(job: Job, folder: Path) -> dict[str, Any]:
    """Why a run fails."""
    from benchwright.tuning.worker import work

    write_json(folder / "run.json", _record(job))
    assert not work(str(folder))
    found: dict[str, Any] = json.loads((folder / "failed.json").read_text())
    return found


def at(family: Path, path: str) -> Job:
    job = first(family)
    return replace(job, model=replace(job.model, path=path))


def test_a_loss_that_is_no_number_names_its_step(family: Path, tmp_path: Path) -> None:
    found = failure(first(family, learning_rate=10.0, clip=None, weight_decay=10.0, amount=24.0), tmp_path)
    assert (found["kind"], "learning_rate" in found["hint"]) == ("loss", True)
    assert "the loss at step" in found["message"]


def test_a_device_that_is_not_there_is_named(family: Path, tmp_path: Path) -> None:
    found = failure(first(family, device="cuda:7"), tmp_path)
    assert found["kind"] == "device"
    assert "cuda:7 is not there" in found["message"]
    assert "no device" in failure(first(family, device="abacus"), tmp_path)["message"]


def test_a_model_that_cannot_be_opened_is_named(family: Path, tmp_path: Path) -> None:
    assert "no model folder" in failure(at(family, str(family / "nowhere")), tmp_path)["message"]
    found = failure(at(family, "nobody/no-such-model"), tmp_path)
    assert (found["kind"], "could not be had from the hub" in found["message"]) == ("model", True)
    assert "cache" in found["hint"]
    assert "holds no causal language model" in failure(at(family, str(family / "damaged")), tmp_path)["message"]


def test_a_tokenizer_without_padding_tunes_all_the_same(family: Path, tmp_path: Path) -> None:
    """Nothing is padded with a token of its own: what is padded is never looked at."""
    from benchwright.tuning.worker import work

    write_json(tmp_path / "run.json", _record(at(family, str(family / "bare"))))
    assert work(str(tmp_path))


def test_an_empty_prompt_needs_a_token_to_begin_with(family: Path) -> None:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    from benchwright.tuning.encoding import encode
    from benchwright.tuning.failures import RunError

    encoded, _ = encode(AutoTokenizer.from_pretrained(family / "tiny"), [("", "red"), ("say ", "red")], 64)
    assert encoded[0].ids.size == encoded[0].answer + 1
    assert encoded[1].answer >= 2  # the space that ended the prompt is the answer's
    with pytest.raises(RunError, match="empty prompt"):
        encode(PreTrainedTokenizerFast.from_pretrained(family / "bare"), [("", "red")], 64)


def test_a_tokenizer_of_another_model_is_one_clear_error(family: Path, tmp_path: Path) -> None:
    found = failure(at(family, str(family / "short")), tmp_path)
    assert found["kind"] == "model"
    assert "the model has 64" in found["message"]


def test_memory_that_does_not_do_says_what_to_lower(
    family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchwright.tuning import runner

    def none_left(self: Any) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")

    monkeypatch.setattr(runner.Tuner, "_one", none_left)
    found = failure(first(family), tmp_path)
    assert (found["kind"], found["message"]) == ("memory", "out of memory at step 1")
    assert "parts" in found["hint"]


def test_an_answer_longer_than_max_length_is_named(family: Path, tmp_path: Path) -> None:
    assert "raise [tuning] max_length" in str(failure(first(family, max_length=2), tmp_path)["hint"])


@pytest.mark.slow
def test_runs_that_fail_leave_the_others_alone(
    family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One model is missing: the other is tuned, the exit code is 1, and once the model is there the command goes on."""
    text = PROTOCOL.replace("seeds = [0, 1]", "seeds = [0]").replace('path = "tiny"', 'path = "./later"')
    spec = family / "partly.toml"
    spec.write_text(text + "\n[launch]\nthreads = 1\n", encoding="utf-8")
    argv = ["benchwright", "tune", str(spec), "-o", str(tmp_path / "out"), "--json", "--no-report"]

    def tuned() -> tuple[Any, dict[str, Any]]:
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as left:
            main()
        said = capfd.readouterr()
        assert said.out, said.err
        return left.value.code, json.loads(said.out)

    code, record = tuned()
    assert code == 1
    assert list(record["failed"]) == ["colours-tiny-seed0"]
    assert "no model folder" in record["failed"]["colours-tiny-seed0"]
    assert {row["model"] for row in record["scores"]} == {"small"}
    shutil.copytree(family / "tiny", family / "later")
    code, record = tuned()
    assert not code
    assert {row["model"] for row in record["scores"]} == {"tiny", "small"}


@pytest.mark.slow
def test_a_killed_process_is_a_run_that_failed(family: Path, tmp_path: Path) -> None:
    """What the system kills for its memory could not say so itself."""
    job = first(family, amount=4000.0, every=1000.0, levels=None)

    def kill() -> None:
        run = tmp_path / job.name
        while not (run / "progress.json").is_file():
            time.sleep(0.05)
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            if parent == os.getpid() and b"benchwright.tuning.worker" in words:
                os.kill(int(entry.name), signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    ends = carry_out([job], tmp_path, LaunchSettings(threads=1), progress=lambda _: None)
    assert ends[0].failure is not None
    assert "killed by SIGKILL: memory may have been short" in str(ends[0].failure)


def test_no_run_at_all_is_an_error_with_the_reasons(family: Path, tmp_path: Path) -> None:
    spec = family / "none.toml"
    text = PROTOCOL.replace('path = "tiny"', 'path = "./a"').replace('path = "small"', 'path = "./b"')
    spec.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"no run could be carried out:\n  colours-tiny-seed0") as caught:
        run_tuning(spec, tmp_path / "out")
    assert "no model folder" in str(caught.value)


def test_a_folder_of_another_experiment_or_in_use_is_refused(family: Path, tmp_path: Path) -> None:
    job = first(family)
    folder = tmp_path / "runs" / job.name
    folder.mkdir(parents=True)
    write_json(folder / "run.json", _record(replace(job, seed=9)))
    write_json(folder / "eval-000000000.json", {})
    with pytest.raises(UsageError, match="holds another run: seed changed"):
        carry_out([job], tmp_path / "runs", LaunchSettings(), progress=lambda _: None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(UsageError, match="holds no tuning experiment"):
        run_tuning(family / "tune.toml", tmp_path / "other")
    (tmp_path / "used").mkdir()
    write_json(tmp_path / "used" / "protocol.json", {})
    with Lock(tmp_path / "used"), pytest.raises(UsageError, match="in use by another run"):
        run_tuning(family / "tune.toml", tmp_path / "used")


def test_slurm_gets_a_job_a_run(family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for submitit carries jobs out here: what it is asked for, and how its failures are told."""
    import types

    asked: dict[str, Any] = {}

    class Job_:  # noqa: N801
        def __init__(self, function: Any, argument: str) -> None:
            self.error: Exception | None = None
            try:
                function(argument)
            except Exception as error:
                self.error = error

        def done(self) -> bool:
            return True

        def exception(self) -> Exception | None:
            return self.error

    class AutoExecutor:
        def __init__(self, folder: str, cluster: str) -> None:
            asked.update(folder=folder, cluster=cluster)

        def update_parameters(self, **parameters: Any) -> None:
            asked.update(parameters)

        def map_array(self, function: Any, arguments: list[str]) -> list[Job_]:
            return [Job_(function, argument) for argument in arguments]

    fake = types.ModuleType("submitit")
    fake.AutoExecutor = AutoExecutor  # type: ignore[attr-defined]
    fake.__spec__ = types.SimpleNamespace(name="submitit")  # type: ignore[assignment]
    launch = LaunchSettings(launcher="slurm", workers=3, partition="gpus", hours=2.0)
    job = first(family)
    bad = replace(job, name="bad", model=replace(job.model, path="./nowhere"))
    monkeypatch.setitem(sys.modules, "submitit", fake)
    good, failed = carry_out([job, bad], tmp_path / "runs", launch, progress=lambda _: None)
    assert good.done is not None
    assert failed.failure is not None
    assert failed.failure.kind == "model"
    assert asked["slurm_partition"] == "gpus"
    assert asked["timeout_min"] == 120
    assert asked["slurm_array_parallelism"] == 3
    assert "slurm_account" not in asked


def test_without_submitit_slurm_says_what_to_type(family: Path, tmp_path: Path) -> None:
    launch = LaunchSettings(launcher="slurm")
    with pytest.raises(UsageError, match="pip install submitit"):
        carry_out([first(family)], tmp_path / "runs", launch, progress=lambda _: None)
