"""The command ``serve`` and its server: ports, addresses, a source that is none, what it says, how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from benchwright.app import serving
from benchwright.errors import UsageError
from tables import run, write_tables


def test_a_port_in_use_is_an_error_where_it_was_named_and_passed_over_where_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} of 127.0.0.1 is in use\nHint: name another with --port"):
            serving.free_port("127.0.0.1", port)
    assert serving.free_port("127.0.0.1", None) >= serving.PORT


def test_an_address_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"203\.0\.113\.7 cannot be listened on"):
        serving.free_port("203.0.113.7", 8501)
    assert [serving.is_loopback(one) for one in ("::1", "127.8.8.8", "0.0.0.0", "example.org")] == [  # noqa: S104
        True,
        True,
        False,
        False,
    ]


def test_without_streamlit_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    ran = run(monkeypatch, capsys, "serve")
    assert ran.code == 2
    assert ran.err == "error: the desk needs Streamlit\nHint: pip install 'benchwright[app]'\n"


def test_pages_started_by_hand_say_how_to_start_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_OPEN", [])
    with pytest.raises(UsageError, match="no desk is open"):
        serving.current_desk()


def test_nothing_is_told_to_the_world() -> None:
    told = serving.options("127.0.0.1", 8501)
    assert told["browser.gatherUsageStats"] is False
    assert told["server.headless"] is True
    assert told["browser.serverAddress"] == told["server.address"] == "127.0.0.1"
    assert told["client.showErrorDetails"] == "none"


@pytest.mark.app
def test_a_source_that_is_none_ends_before_anything_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(monkeypatch, capsys, "serve", tmp_path / "nothing")
    assert ran.code == 2
    assert "does not exist" in ran.err
    (tmp_path / "empty").mkdir()
    ran = run(monkeypatch, capsys, "serve", tmp_path / "empty")
    assert ran.code != 0
    assert "Hint:" in ran.err


@pytest.mark.app
@pytest.mark.slow
def test_the_server_answers_on_the_loopback_address_and_ends_at_once(tmp_path: Path) -> None:
    source = write_tables(tmp_path / "tables")
    few = ("--set", "resampling.replicates=100")
    port = serving.free_port("127.0.0.1", None)
    command = [sys.executable, "-m", "benchwright.cli", "serve", str(source), "--port", str(port), *few]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            assert line == f"the desk is open at http://127.0.0.1:{port}  (Ctrl-C ends it)\n"
            for _ in range(600):
                try:
                    with urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=10) as answer:
                        assert answer.status == 200
                    break
                except OSError:
                    assert server.poll() is None
                    time.sleep(0.1)
            else:
                raise AssertionError("no answer")
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0
            assert "Traceback" not in server.stderr.read()
        finally:
            server.kill()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables"]
