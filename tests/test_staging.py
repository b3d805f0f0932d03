"""Folders that appear whole or not at all: what a killed, a failed and a live run leave."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchwright._staging import move_in, recover, staging

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks of folders")


def fill(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "file").write_text(text)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def killed(target: Path, *, between_the_moves: bool) -> None:
    """Let another process be killed while it writes to ``target``."""
    program = (
        "import os, pathlib, signal, sys; from benchwright._staging import staging\n"
        "target = pathlib.Path(sys.argv[1])\n"
        "with staging(target) as new:\n"
        "    (new / 'file').write_text('half')\n"
        "    if sys.argv[2]: target.replace(new.parent / 'old')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", program, target, "yes" * between_the_moves], check=False)
    assert ran.returncode == -signal.SIGKILL


def test_what_is_moved_in_is_there_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "out[1]"
    for text in ("first", "second"):
        with staging(target) as new:
            fill(new, text)
            move_in(new, target)
        assert (target / "file").read_text() == text
        assert names(tmp_path) == {"out[1]"}
    with staging(target):
        pass
    assert names(tmp_path) == {"out[1]"}
    (tmp_path / "usual").mkdir()
    assert target.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_killed_before_the_moves(tmp_path: Path) -> None:
    fill(tmp_path / "out", "first")
    killed(tmp_path / "out", between_the_moves=False)
    assert len(names(tmp_path)) == 2
    recover(tmp_path / "out")
    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / "file").read_text() == "first"


def test_killed_between_the_moves(tmp_path: Path) -> None:
    fill(tmp_path / "out", "first")
    killed(tmp_path / "out", between_the_moves=True)
    assert not (tmp_path / "out").exists()
    with staging(tmp_path / "out"):
        assert (tmp_path / "out" / "file").read_text() == "first"
    assert names(tmp_path) == {"out"}


def test_two_at_once_in_one_process(tmp_path: Path) -> None:
    with staging(tmp_path / "out") as one:
        fill(one, "one")
        with staging(tmp_path / "out") as two:
            fill(two, "two")
            move_in(two, tmp_path / "out")
        assert (one / "file").read_text() == "one"
        move_in(one, tmp_path / "out")
    assert (tmp_path / "out" / "file").read_text() == "one"
    assert names(tmp_path) == {"out"}


def test_interrupt_while_the_old_one_is_put_back_leaves_it_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    fill(target, "first")
    move = Path.replace

    def interrupt(self: Path, to: Path) -> Path:
        if to == target:
            raise KeyboardInterrupt
        return move(self, to)

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt), staging(target) as new:
        move_in(new, target)
    assert not target.exists()
    monkeypatch.undo()
    recover(target)
    assert (target / "file").read_text() == "first"
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize(
    "name", [".out1.partial-abcd1234", ".out.partial-mine", ".out.partial-ABCD1234", "out.partial"]
)
def test_what_another_program_made_stays(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name, "mine")
    (tmp_path / ".out.partial-link1234").symlink_to(tmp_path / name)
    (tmp_path / ".out.partial-file1234").touch()
    recover(tmp_path / "out")
    assert names(tmp_path) == {name, ".out.partial-link1234", ".out.partial-file1234"}
