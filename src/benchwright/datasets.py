"""Public data by name: a registry with sizes, licences and checksums, and a loader that verifies every file.

A set is one :class:`Dataset` in ``DATASETS``: a folder of a GitHub repository at a fixed commit, so the files
can be checked against sizes and sha256 sums written here. Nothing of it is part of benchwright.

A set lies in ``<root>/<name>``, where the root is the ``cache`` argument, else the environment variable
``BENCHWRIGHT_DATA``, else the user's cache folder for benchwright.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import http.client
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from urllib.parse import quote

from benchwright._shown import Shown
from benchwright._staging import staging
from benchwright.errors import FetchError, UsageError

PUBLIC_BASE_URL = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data set.

    ``path`` is relative to the set's folder, ``size`` is in bytes. ``source`` is the path inside the
    repository where it is not ``path`` below the set's ``source_folder``.
    """

    path: str
    size: int
    sha256: str
    source: str | None = None

    def __post_init__(self) -> None:
        parts = PureWindowsPath(self.path)  # the strictest reading: knows drives, "/" and "\"
        if parts.anchor or ".." in parts.parts or not parts.parts:
            raise UsageError(f"`path` must stay inside the data set's folder, got {self.path!r}")


@dataclass(frozen=True, slots=True)
class Dataset(Shown):
    """A public data set: files of ``source_folder`` in a GitHub ``repository`` (owner/name) at ``commit``."""

    name: str
    description: str
    repository: str
    commit: str
    source_folder: str
    licence: str
    citation: str
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        """Bytes over all files."""
        return sum(file.size for file in self.files)

    def url(self, file: DataFile, *, base_url: str = PUBLIC_BASE_URL) -> str:
        """Where ``file`` is downloaded from: ``<base_url>/<repository>/<commit>/<path>``, percent-encoded."""
        source = f"{self.source_folder}/{file.path}" if file.source is None else file.source
        return f"{base_url.rstrip('/')}/{quote(f'{self.repository}/{self.commit}/{source}')}"

    @property
    def page(self) -> str:
        """The repository's page at the commit."""
        return f"https://github.com/{self.repository}/tree/{self.commit}"


def _table(text: str) -> tuple[DataFile, ...]:
    """Read lines of ``sha256 size path [source]``."""
    rows = [line.split() for line in text.split("\n") if line]
    return tuple(DataFile(path, int(size), sha256, *source) for sha256, size, path, *source in rows)


_OLMES_AUDIT = Dataset(
    name="olmes-audit",
    description=(
        "Published tables of an item audit of OLMES: noise of 20,206 items, cost of 14,908, welfare of 317, "
        "activities named by a judge, margins, topics, and 28 items rated by two people and a model"
    ),
    repository="stair-lab/principal-agent-benchmarks",
    commit="bd7374894ab485d58be9f7702a0bede795777de5",
    source_folder="data",
    licence="MIT",
    citation=(
        "Haupt, Hartenstein, Reuel, Kochenderfer, Koyejo (2026). Welfare, Improvability, and Variance: "
        "A Principal-Agent Approach to Optimal Benchmark Item Aggregation. arXiv:2605.30916"
    ),
    files=_table("""
8b8f22f04b7cea75a415e0ae834d5fcfb46568661540bcca237449329c1336ac 1076 LICENSE LICENSE
12937cd1d17d8a657e32e46019b156e8eff4184f6d927bd2df9d09039c0fde65 2545768 cost.csv
5d497cc23cc2f29c943196a200d78d0359018bcb76e46e077669123a2046f74f 3765 gwa_welfare_scores.csv
7214be295b708898a6b32e4094daf80e5f5d51ee11bb054f84352f7993ff5448 2841 gwa_welfare_scores_mean.csv
e5d8006a759d831a2b0b3a3b7b41061573f49e53a28c6f1bb80c5d13da861d6d 6011 heldout_raters/A1_augmentation.jsonl
50e05c11e3c61fcb4f4fa579c7841747f0bda8beab386cceb12e53c5b40edb86 5608 heldout_raters/A1_automation.jsonl
8d74072ebbd7da3c9c34680120fc9c804732058a89f7340a1c1a0558487d562d 6262 heldout_raters/A2_augmentation.jsonl
0b77a4d1de1e66f55254a1bb03001cde0e58e6fc12ad1ca92abec73532ff6137 5487 heldout_raters/A2_automation.jsonl
b8a61821a9afb549cbcc0d41ac50f0d6d5d6abdefe9487c049bd76646f5c86f5 6575 heldout_raters/claude3ex_augmentation.jsonl
6fffe8118bbfff3faed54f2466e0c54ae3f1116044a680761a56bbf87c1f79a3 6718 heldout_raters/claude3ex_automation.jsonl
25a0a9ab42af334b9e35ac180449dcc741cebde92a8d43caba58e89f368c437b 842 heldout_raters/family_map.json
a8a29bf0918a2bff0f70030b991f60abd631e1985d2cd75c0a78fbe52cfb1434 561 heldout_raters/heldout_28_items.json
7e0f079d337c2dde394e291d0a698f04dddedc578805e1ea547bc3b6c9ed7458 1633611 item_margins.parquet
f3999382aa934cdcbc4f73df9c3ccaae9ca3f7c6b6b9cd7ec80a42d8167e08d0 6503 item_topics.csv
cbfc4c70bbff6734b6c01a88de06dc07768d3627cb5214ed0f950a7f63288fcc 1139660 judge_loadings.jsonl
b155bb3698b5924e1bf5b00d27861d3798c1689aaf19ad470c4f0923480e27ca 2066581 noise.csv
debad4b75c094deabe8abe584741c6bae9b04da60534dac4b38b8fe67ed33ad0 15611 welfare.csv
"""),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in (_OLMES_AUDIT,)}


def list_datasets() -> tuple[Dataset, ...]:
    """Return every data set that :func:`load_dataset` knows.

    Examples
    --------
    >>> [(dataset.name, dataset.licence) for dataset in list_datasets()]
    [('olmes-audit', 'MIT')]
    """
    return tuple(DATASETS.values())


def load_dataset(
    name: str,
    *,
    progress: bool = False,
    cache: str | os.PathLike[str] | None = None,
    base_url: str = PUBLIC_BASE_URL,
    timeout: float = TIMEOUT_SECONDS,
) -> Path:
    """Return the folder that holds the verified files of a public data set, downloading what is missing.

    Every call compares each file with its sha256. A complete folder is used as it is: nothing is written and
    no network is touched. Downloads are verified beside the folder and moved in when all of them are right.

    Parameters
    ----------
    name
        One of the names in :func:`list_datasets`.
    progress
        Show a progress bar on stderr while downloading.
    cache
        Folder to look and store in, as ``<cache>/<name>``. Default: ``BENCHWRIGHT_DATA`` if that variable is
        set, else the user's cache folder for benchwright.
    base_url
        A mirror, laid out as the public one: ``<base_url>/<repository>/<commit>/<path>``.
    timeout
        Seconds to wait for the connection, and for each next piece of a file.

    Returns
    -------
    pathlib.Path
        The folder; each file lies at its ``path`` in it.

    Raises
    ------
    UsageError
        The name is not known, or ``timeout`` is not positive.
    FetchError
        A file could not be downloaded, read or written, or it is not the published one. The folder is then as
        it was: a file found there is never overwritten.
    """
    dataset = _find(name)
    if not timeout > 0:
        raise UsageError(f"`timeout` must be a positive number of seconds, got {timeout}")
    folder = _root(cache) / dataset.name
    missing = _missing(dataset, folder)
    if missing:
        _bring(dataset, missing, folder, base_url=base_url, timeout=timeout, progress=progress)
    return folder


def _find(name: str) -> Dataset:
    if name in DATASETS:
        return DATASETS[name]
    known = ", ".join(f"`{known}`" for known in DATASETS)
    close = difflib.get_close_matches(name.lower(), DATASETS, n=1)
    hint = f"did you mean `{close[0]}`?" if close else "`benchwright.datasets.list_datasets()` describes them"
    raise UsageError(f"`name` must be a known data set ({known}), got {name!r}", hint=hint)


def _root(cache: str | os.PathLike[str] | None) -> Path:
    if cache is not None:
        return Path(cache).expanduser()
    override = os.environ.get("BENCHWRIGHT_DATA")
    if override:
        return Path(override).expanduser()
    import pooch

    return Path(pooch.os_cache("benchwright"))


def _missing(dataset: Dataset, folder: Path) -> list[DataFile]:
    """Return the files that are not in ``folder``; those that are there but differ are an error."""
    missing, wrong = [], []
    for file in dataset.files:
        try:
            difference = _difference(folder / file.path, file)
        except FileNotFoundError:
            missing.append(file)
            continue
        except OSError as error:
            difference = f"cannot be read: {error.strerror}"
        if difference is not None:
            wrong.append(f"{folder / file.path}: {difference}")
    if wrong:
        raise FetchError(
            "\n".join([f"data set `{dataset.name}` does not hold the published files", *wrong]),
            hint="remove it, and it is downloaded again; or set BENCHWRIGHT_DATA to another folder",
        )
    return missing


def _difference(path: Path, file: DataFile) -> str | None:
    """Say how the file at ``path`` differs from the published one, or None."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        size = stream.tell()
    if found == file.sha256:
        return None
    return f"wrong checksum: expected sha256 {file.sha256} ({file.size} bytes), found {found} ({size} bytes)"


def _bring(
    dataset: Dataset, files: list[DataFile], folder: Path, *, base_url: str, timeout: float, progress: bool
) -> None:
    """Download and verify ``files`` beside ``folder``, then move them in."""
    target = folder.resolve()  # a link may lead to another disk, and files only move whole within one
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging(target) as staged, _bar(dataset, files, show=progress) as show:
            done = 0
            for file in files:
                path = staged / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                bar = _FileBar(file.size, before=done, show=show)
                _download(dataset, file, path, base_url=base_url, timeout=timeout, bar=bar)
                done += file.size
            _move_in(files, staged, target)
    except OSError as error:
        raise FetchError(
            f"data set `{dataset.name}`: {len(files)} of {len(dataset.files)} files are missing in {folder}, "
            f"first `{files[0].path}`, and cannot be written: {error}",
            hint="set BENCHWRIGHT_DATA to a folder that can be written, or to one that holds the files of "
            f"{dataset.page} in `{dataset.name}`",
        ) from error


def _move_in(files: list[DataFile], staged: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        staged.replace(target)  # fails where the folder already holds something
        return
    for file in files:
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        (staged / file.path).replace(path)


def _download(dataset: Dataset, file: DataFile, path: Path, *, base_url: str, timeout: float, bar: _FileBar) -> None:
    import pooch
    import requests

    responses: list[requests.Response] = []

    def keep(response: requests.Response, **_: object) -> None:
        responses.append(response)

    fetch = pooch.HTTPDownloader(bar, _CHUNK_BYTES, timeout=timeout, hooks={"response": keep})
    url = dataset.url(file, base_url=base_url)
    cause: Exception | None = None
    try:
        fetch(url, str(path), None)
        why = _difference(path, file)
    except requests.HTTPError as error:
        why, cause = f"HTTP status {responses[-1].status_code} {responses[-1].reason}", error
    except (requests.RequestException, ValueError) as error:  # ValueError: a Content-Length that is no number
        why, cause = _why(error, timeout), error
    finally:
        for response in responses:  # pooch leaves them open when it fails
            response.close()
    if why is not None:
        raise FetchError(
            f"data set `{dataset.name}`: `{file.path}` could not be downloaded from {url}: {why}",
            hint=f"check the network and try again; or put the files of {dataset.page} into a folder "
            f"`{dataset.name}` and set BENCHWRIGHT_DATA to the folder above it",
        ) from cause


def _why(error: BaseException, timeout: float) -> str:
    """Say what went wrong on the network, in the words of the innermost cause."""
    while (inner := error.__context__ if error.__cause__ is None else error.__cause__) is not None:
        error = inner
    match error:
        case TimeoutError():
            return f"no answer for {timeout:g} s"
        case ConnectionRefusedError():
            return "connection refused"
        case socket.gaierror():
            return f"name not resolved: {error.strerror}"
        case http.client.IncompleteRead():
            return f"short read: {error}"
        case _:
            return f"{type(error).__name__}: {error}"


class _FileBar:
    """What pooch asks of a progress bar, for one file's share of the whole set."""

    def __init__(self, size: int, *, before: int, show: Callable[[int], None]) -> None:
        self.total = 0  # for pooch: the length on the wire, which may be that of compressed data
        self._size = size
        self._before = before
        self._show = show
        self._done = 0

    def update(self, size: int) -> None:
        self._done = min(self._done + size, self._size)
        self._show(self._before + self._done)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        self._show(self._before + self._size)


@contextlib.contextmanager
def _bar(dataset: Dataset, files: list[DataFile], *, show: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that shows how many bytes are done."""
    if not show:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(dataset.name, total=sum(file.size for file in files))
        yield lambda done: bar.update(task, completed=done)
