"""Public data: every way a download can fail, against a real server on the loopback address."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchwright import datasets
from benchwright.datasets import DATASETS, DataFile, Dataset, list_datasets, load_dataset
from benchwright.errors import FetchError, UsageError

CONTENT = {
    "items.csv": b"task,doc_id\r\ninvented,0\r\n",
    "deep/er/a b&c#1%.jsonl": b'{"doc_id": 0}\n' * 20_000,
    "LICENSE": b"Invented licence\n",
}
TINY = Dataset(
    name="tiny",
    description="Invented",
    repository="owner/repo",
    commit="0" * 40,
    source_folder="some data",
    licence="MIT",
    citation="none",
    files=tuple(
        DataFile(path, len(body), hashlib.sha256(body).hexdigest(), source="LICENSE" if path == "LICENSE" else None)
        for path, body in CONTENT.items()
    ),
)
LICENCE = TINY.files[2]
URL_PATHS = {file.path: TINY.url(file, base_url="") for file in TINY.files}


class Server(ThreadingHTTPServer):
    """Serves CONTENT as GitHub would; ``fault`` says how its last file goes wrong."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str] = []
        self.fault: str | int | None = None
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        bodies = {URL_PATHS[path]: body for path, body in CONTENT.items()}
        body = bodies.get(self.path)
        fault = self.server.fault if self.path == URL_PATHS["LICENSE"] else None
        if body is None or isinstance(fault, int):
            self.send_error(404 if body is None else int(fault or 500))
            return
        self.send_response(200)
        self.send_header("Content-Length", "many" if fault == "no number" else str(len(body)))
        self.end_headers()
        if fault == "hangs":
            self.server.release.wait(10)
        elif fault == "cut":
            self.wfile.write(body[:5])
        elif fault == "differs":
            self.wfile.write(body.upper())
        else:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setitem(DATASETS, "tiny", TINY)
    monkeypatch.delenv("BENCHWRIGHT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.release.set()
        running.shutdown()
        thread.join()


def write(folder: Path, content: dict[str, bytes]) -> None:
    for path, body in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Every path below ``folder``, hidden ones too, with its size and time of change."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_downloads_once_and_verifies(server: Server, tmp_path: Path) -> None:
    root = tmp_path / "not" / "yet"
    folder = load_dataset("tiny", cache=root, base_url=server.url + "/")
    assert folder == root / "tiny"
    assert contents(root) == {f"tiny/{path}": body for path, body in CONTENT.items()}
    assert sorted(server.requests) == sorted(URL_PATHS.values())
    before = listing(root)
    assert load_dataset("tiny", cache=str(root), base_url=server.url) == folder
    assert len(server.requests) == len(CONTENT)
    assert listing(root) == before


def test_folder_gets_the_usual_permissions(server: Server, tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    folder = load_dataset("tiny", cache=tmp_path, base_url=server.url)
    assert folder.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_brings_only_what_is_missing(server: Server, tmp_path: Path) -> None:
    write(tmp_path / "tiny", {"items.csv": CONTENT["items.csv"], "own notes.txt": b"kept"})
    before = listing(tmp_path)["tiny/items.csv"]
    load_dataset("tiny", cache=tmp_path, base_url=server.url)
    assert contents(tmp_path / "tiny") == {**CONTENT, "own notes.txt": b"kept"}
    assert listing(tmp_path)["tiny/items.csv"] == before
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (
            "differs",
            rf"wrong checksum: expected sha256 {LICENCE.sha256} \(17 bytes\), found [0-9a-f]{{64}} \(17",
        ),
        (404, "HTTP status 404 Not Found"),
        (500, "HTTP status 500 Internal Server Error"),
        ("cut", "short read: .*5 bytes read, 12 more expected"),
        ("hangs", "no answer for 0.2 s"),
        ("no number", "ValueError: .*many"),
    ],
)
@pytest.mark.parametrize("present", [{}, {"items.csv": CONTENT["items.csv"]}], ids=["empty", "begun"])
def test_a_failed_download_leaves_nothing(
    server: Server, tmp_path: Path, fault: str | int, why: str, present: dict[str, bytes]
) -> None:
    write(tmp_path / "tiny", present)
    before = listing(tmp_path)
    server.fault = fault
    with pytest.raises(FetchError) as caught:
        load_dataset("tiny", cache=tmp_path, base_url=server.url, timeout=0.2)
    message = str(caught.value)
    assert re.search(why, message)
    assert f"`LICENSE` could not be downloaded from {server.url}{URL_PATHS['LICENSE']}: " in message
    assert "Hint: check the network" in message
    assert "BENCHWRIGHT_DATA" in message
    assert f"https://github.com/owner/repo/tree/{'0' * 40}" in message
    assert listing(tmp_path) == before
    server.fault = None
    assert contents(load_dataset("tiny", cache=tmp_path, base_url=server.url)) == CONTENT


def test_connection_refused(server: Server, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(FetchError, match=rf"`items.csv` could not .* from {closed}/.*: connection refused"):
            load_dataset("tiny", cache=tmp_path, base_url=closed)
    assert listing(tmp_path) == {}


def test_name_not_resolved(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(FetchError, match="name not resolved: Name or service not known"):
        load_dataset("tiny", cache=tmp_path, base_url="http://mirror.invalid")
    assert listing(tmp_path) == {}


def test_base_url_that_is_none(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="MissingSchema: Invalid URL"):
        load_dataset("tiny", cache=tmp_path, base_url="mirror")
    assert listing(tmp_path) == {}


def test_interrupt_leaves_nothing(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "_move_in", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("tiny", cache=tmp_path, base_url=server.url)
    assert listing(tmp_path) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process with a signal")
def test_killed_download_is_cleaned_by_the_next(server: Server, tmp_path: Path) -> None:
    program = (
        "import sys; from benchwright import datasets; from test_datasets import TINY;"
        "datasets.DATASETS['tiny'] = TINY;"
        "datasets.load_dataset('tiny', cache=sys.argv[1], base_url=sys.argv[2])"
    )
    server.fault = "hangs"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path), server.url], env=environment) as process:
        deadline = time.monotonic() + 20
        while URL_PATHS["LICENSE"] not in server.requests and time.monotonic() < deadline:
            time.sleep(0.01)
        (partial,) = tmp_path.iterdir()
        assert partial.name.startswith(".tiny.partial-")

        server.fault = None
        load_dataset("tiny", cache=tmp_path, base_url=server.url)
        assert partial.is_dir(), "a download that still runs must not be disturbed"

        process.send_signal(signal.SIGKILL)
    (tmp_path / "tiny" / "items.csv").unlink()
    load_dataset("tiny", cache=tmp_path, base_url=server.url)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]
    assert contents(tmp_path / "tiny") == CONTENT


def test_complete_read_only_folder_is_used_as_it_is(server: Server, tmp_path: Path) -> None:
    write(tmp_path / "tiny", CONTENT)
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    before = listing(tmp_path)
    for path in folders:
        path.chmod(0o555)
    try:
        assert load_dataset("tiny", cache=tmp_path, base_url=server.url) == tmp_path / "tiny"
        assert listing(tmp_path) == before
    finally:
        for path in folders:
            path.chmod(0o755)
    assert server.requests == []


def test_files_that_differ_are_named_and_kept(server: Server, tmp_path: Path) -> None:
    write(tmp_path / "tiny", {"items.csv": b"mine", "LICENSE": b""})
    before = listing(tmp_path)
    with pytest.raises(FetchError) as caught:
        load_dataset("tiny", cache=tmp_path, base_url=server.url)
    message = str(caught.value)
    for file, body in ((TINY.files[0], b"mine"), (LICENCE, b"")):
        found = hashlib.sha256(body).hexdigest()
        assert str(tmp_path / "tiny" / file.path) in message
        assert f"expected sha256 {file.sha256} ({file.size} bytes), found {found} ({len(body)} bytes)" in message
    assert "Hint: remove it" in message
    assert "BENCHWRIGHT_DATA" in message
    assert listing(tmp_path) == before
    assert server.requests == []


def test_a_folder_in_place_of_a_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "tiny" / "items.csv").mkdir(parents=True)
    with pytest.raises(FetchError, match=r"items.csv: cannot be read: "):
        load_dataset("tiny", cache=tmp_path, base_url=server.url)


def test_folder_that_cannot_be_written(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    write(tmp_path / "tiny", {"items.csv": CONTENT["items.csv"]})
    before = listing(tmp_path)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(FetchError, match=r"2 of 3 files are missing in .*tiny, first `deep/.*Permission denied"):
        load_dataset("tiny", cache=tmp_path, base_url=server.url)
    assert listing(tmp_path) == before
    assert server.requests == []


def test_where_it_looks(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "user" / project)
    assert load_dataset("tiny", base_url=server.url) == tmp_path / "user" / "benchwright" / "tiny"
    monkeypatch.setenv("BENCHWRIGHT_DATA", str(tmp_path / "variable"))
    assert load_dataset("tiny", base_url=server.url) == tmp_path / "variable" / "tiny"
    assert load_dataset("tiny", cache=tmp_path / "given", base_url=server.url) == tmp_path / "given" / "tiny"
    for root in ("user/benchwright", "variable", "given"):
        assert contents(tmp_path / root / "tiny") == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_linked_folder(server: Server, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "tiny").symlink_to(tmp_path / "real")
    folder = load_dataset("tiny", cache=tmp_path / "root", base_url=server.url)
    assert folder == tmp_path / "root" / "tiny"
    assert folder.is_symlink()
    assert contents(tmp_path / "real") == CONTENT


def test_progress_goes_to_stderr(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_dataset("tiny", cache=tmp_path / "loud", base_url=server.url, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "tiny" in err
    assert "280.0/280.0" in err
    load_dataset("tiny", cache=tmp_path / "quiet", base_url=server.url)
    assert capsys.readouterr() == ("", "")


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\(`olmes-audit`\), got 'OLMES_audit'\nHint: did you mean `olmes-audit`"):
        load_dataset("OLMES_audit", cache=tmp_path)
    for name in ("../olmes-audit", "", "xyz", "/"):
        with pytest.raises(UsageError, match="`name` must be a known data set"):
            load_dataset(name, cache=tmp_path)
    with pytest.raises(UsageError, match="`timeout` must be a positive number of seconds, got 0"):
        load_dataset("olmes-audit", cache=tmp_path, timeout=0)
    assert listing(tmp_path) == {}


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "\\x", "C:x", "a\\..\\x", "", "."])
def test_paths_stay_inside_the_folder(path: str) -> None:
    with pytest.raises(UsageError, match="`path` must stay inside"):
        DataFile(path, 1, "0" * 64)


def test_urls() -> None:
    deep = TINY.files[1]
    base = f"https://raw.githubusercontent.com/owner/repo/{'0' * 40}"
    assert TINY.url(deep) == f"{base}/some%20data/deep/er/a%20b%26c%231%25.jsonl"
    assert TINY.url(LICENCE) == f"{base}/LICENSE"
    assert TINY.size == sum(map(len, CONTENT.values()))


def test_registry_rows_are_complete() -> None:
    assert list_datasets() == tuple(DATASETS.values())
    for name, dataset in DATASETS.items():
        assert name == dataset.name
        assert re.fullmatch(r"[a-z0-9-]+", name)
        assert re.fullmatch(r"[0-9a-f]{40}", dataset.commit)
        assert all((dataset.description, dataset.licence, dataset.citation, dataset.files))
        assert len({file.path for file in dataset.files}) == len(dataset.files)
        assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) and file.size > 0 for file in dataset.files)


def test_registry_agrees_with_the_public_files(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shared / "data"
    before = listing(root / "olmes-audit")
    monkeypatch.setenv("BENCHWRIGHT_DATA", str(root))
    monkeypatch.setattr(datasets, "_bring", None)
    folder = load_dataset("olmes-audit", base_url="http://127.0.0.1:9")
    assert folder == root / "olmes-audit"
    assert listing(folder) == before
    registered = {file.path: file.size for file in DATASETS["olmes-audit"].files}
    assert registered == {path: len(body) for path, body in contents(folder).items()}
    assert not list(root.glob(".*"))
