"""Where the statistics of :mod:`benchwright.estimating.cells` are computed: polars, DuckDB or Spark.

An engine reads item rows, takes small tables to join them with, and collects results. polars is the default and
always there; DuckDB holds what does not fit into memory on one machine, Spark what does not fit on one machine.
They are optional: ``pip install 'benchwright[duckdb]'``, ``pip install 'benchwright[spark]'``.

A path without a scheme, or a ``file:`` URI, that is on this machine is read from here; anything else goes to the
engine as it stands: ``s3://`` to any of them (DuckDB: with its httpfs extension installed, which is never
downloaded on its own), ``hdfs://`` to Spark. On a cluster the files of a panel must lie where every node sees them.

An active Spark session is used as it is and left running. A new one takes what ``spark-defaults.conf`` and
``spark-submit`` say; where they name no cluster, it is local and listens on 127.0.0.1 only.
"""

from __future__ import annotations

import glob
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import unquote

import narwhals.stable.v2 as nw
import polars as pl
from narwhals.exceptions import NarwhalsError
from polars import selectors as cs

from benchwright.errors import DataError, UsageError
from benchwright.estimating.cells import Frame, match
from benchwright.logs.record import ROW_SCHEMA
from benchwright.panel.exported import checked_rows
from benchwright.panel.opening import AGAIN
from benchwright.panel.panel import IDENTITY, Panel

COLUMNS = (*ROW_SCHEMA, "run", "part", *IDENTITY)
# Of a Spark session that is started here: always, and where it is local; what the user has set is kept.
SPARK = {"spark.log.level": "ERROR", "spark.sql.session.timeZone": "UTC"}
SPARK_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
}


class Engine(ABC):
    """What computes; also a context manager that closes itself. See :func:`open_engine`."""

    name: ClassVar[str]
    _errors: tuple[type[Exception], ...]  # what reading raises where a file is missing or broken
    _source: str | Path | None = None  # what is read, for messages

    def panel_rows(self, panel: Panel) -> Frame:
        """Return the item rows of a panel that count, with the run's identity, as ``Panel.rows()`` does."""
        self._source = panel.path
        return self._panel_rows(panel)

    @abstractmethod
    def _panel_rows(self, panel: Panel) -> Frame: ...

    def parquet_rows(self, source: str | Path) -> Frame:
        """Return item rows that ``benchwright panel export --table rows`` wrote as Parquet.

        Parameters
        ----------
        source
            A file, a folder with such files at any depth, a glob pattern, or a URI of one of them.

        Raises
        ------
        UsageError
            Nothing is there, it cannot be read, or it lacks columns of an export, or one is of the wrong type.
        """
        self._source = source
        files = local_files(str(source))
        try:
            return checked_rows(lazy(self._read_uri(str(source)) if files is None else self._read_files(files)), source)
        except self._errors as error:
            raise UsageError(f"{self.name} cannot read {source}: {_first_line(error)}") from None

    @abstractmethod
    def table(self, frame: pl.DataFrame) -> Frame:
        """Bring a small table of text, numbers and truth values into the engine, to join with."""

    @abstractmethod
    def keep(self, frame: Frame) -> Frame:
        """Compute a frame once and hold it in the engine: for what several statistics read."""

    def collect(self, frame: Frame) -> pl.DataFrame:
        """Compute a frame; whole numbers come as Int64 and others as Float64, rows in no order."""
        return plain(self._collect(frame.to_native()))

    @abstractmethod
    def close(self) -> None:
        """Let go of what the engine holds; its frames are then of no use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Close; what the engine raised while it read a source names the source."""
        self.close()
        if type(error).__name__ == "InterruptException":  # how DuckDB says that the user stopped it
            raise KeyboardInterrupt from error
        is_system = isinstance(error, OSError) and error.filename is not None
        # any engine reads a panel's small tables by polars
        broken: tuple[type[Exception], ...] = (*self._errors, pl.exceptions.PolarsError)
        if self._source is not None and isinstance(error, broken) and not is_system:
            raise DataError(
                f"{self.name} cannot read {self._source}: {_first_line(error)}",
                hint=f"if a file is damaged, {AGAIN}",
            ) from error

    @abstractmethod
    def _read_files(self, files: list[Path]) -> Any:
        """Return a native frame of Parquet files on this machine."""

    @abstractmethod
    def _read_uri(self, source: str) -> Any:
        """Return a native frame of what a URI or pattern names."""

    @abstractmethod
    def _collect(self, native: Any) -> pl.DataFrame: ...


class _SqlEngine(Engine):
    """An engine that reads a panel's parts itself."""

    def _panel_rows(self, panel: Panel) -> Frame:
        """Return the item rows of a panel that count, with the run's identity.

        Raises
        ------
        DataError
            A run has an item twice, and the engine knows no order of rows to tell the latest.
        """
        cells = panel.cells().filter(pl.col("active") & (pl.col("kind") == "rows"))
        if (cells["n_repeated"] > 0).any():
            raise DataError(
                f"items appear twice in one run, and {self.name} keeps no order of rows to tell which is the latest",
                hint="use the polars engine, or read what `benchwright panel export --table rows` writes as Parquet",
            )
        kept = cells.select("part", "run", "task", *IDENTITY).unique()
        folders = [panel.path / "parts" / key for key in cells["part"].unique().sort()]
        files = [file for folder in folders for file in sorted(folder.glob("rows-*.parquet"))]
        if not files:
            return self.table(pl.DataFrame(schema=ROW_SCHEMA | dict(kept.drop("task").schema)).select(COLUMNS))
        return match(lazy(self._read_parts(files)), self.table(kept), ("part", "run", "task")).select(*COLUMNS)

    @abstractmethod
    def _read_parts(self, files: list[Path]) -> Any:
        """Return a native frame of a panel's files with the name of their folder as ``part``."""


class PolarsEngine(Engine):
    """polars in this process, in memory: sums run in the order of the rows, so the same rows give the same bits."""

    name = "polars"
    _errors = (OSError, NarwhalsError, pl.exceptions.PolarsError)

    def _panel_rows(self, panel: Panel) -> Frame:
        """Return ``Panel.rows()``; of an item that a run has twice, the latest row."""
        return lazy(panel.rows())

    def table(self, frame: pl.DataFrame) -> Frame:
        """Bring a small table into the engine."""
        return lazy(frame.lazy())

    def keep(self, frame: Frame) -> Frame:
        """Compute a frame once and hold it in memory."""
        return lazy(self._collect(frame.to_native()).lazy())

    def close(self) -> None:
        """Nothing is held."""

    def _read_files(self, files: list[Path]) -> pl.LazyFrame:
        return pl.scan_parquet(files, glob=False)

    def _read_uri(self, source: str) -> pl.LazyFrame:
        return pl.scan_parquet(_every_file(source))

    def _collect(self, native: pl.LazyFrame) -> pl.DataFrame:
        return native.collect(engine="in-memory")


class DuckDBEngine(_SqlEngine):
    """DuckDB in this process; what does not fit into memory goes to a temporary folder."""

    name = "duckdb"

    def __init__(self) -> None:
        duckdb = _library("duckdb", "duckdb")
        self._errors = (OSError, NarwhalsError, duckdb.Error)
        self._folder = tempfile.TemporaryDirectory(prefix="benchwright-duckdb-")
        settings = {
            "temp_directory": self._folder.name,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        self._connection = duckdb.connect(config=settings)
        self._n_tables = 0

    def table(self, frame: pl.DataFrame) -> Frame:
        """Bring a small table into the engine."""
        name = self._new_name()
        file = Path(self._folder.name) / f"{name}.parquet"
        plain(frame).write_parquet(file)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS FROM read_parquet(?)", [glob.escape(str(file))])
        file.unlink()
        return lazy(self._connection.table(name))

    def keep(self, frame: Frame) -> Frame:
        """Compute a frame once and hold it as a table."""
        name = self._new_name()
        frame.to_native().create(name)
        return lazy(self._connection.table(name))

    def close(self) -> None:
        """Close the connection and remove the temporary folder."""
        self._connection.close()
        self._folder.cleanup()

    def _new_name(self) -> str:
        self._n_tables += 1
        return f"t{self._n_tables}"

    def _read_files(self, files: list[Path]) -> Any:
        return self._connection.read_parquet([glob.escape(str(file)) for file in files])

    def _read_uri(self, source: str) -> Any:
        return self._connection.read_parquet(_every_file(source))

    def _read_parts(self, files: list[Path]) -> Any:
        rows = self._connection.read_parquet([glob.escape(str(file)) for file in files], filename=True)
        part = r"regexp_extract(filename, '([^/\\]+)[/\\][^/\\]+$', 1)"
        return rows.project(f"* EXCLUDE (filename), {part} AS part")

    def _collect(self, native: Any) -> pl.DataFrame:
        return pl.DataFrame(native)


class SparkEngine(_SqlEngine):
    """Spark: the session that is active, the cluster that the environment names, or a local session."""

    name = "spark"

    def __init__(self) -> None:
        sql = _library("pyspark.sql", "spark")
        from py4j.protocol import Py4JError
        from pyspark import SparkContext
        from pyspark.errors import PySparkException

        self._errors = (OSError, NarwhalsError, PySparkException, Py4JError)
        self._functions = import_module("pyspark.sql.functions")
        self._kept: list[Any] = []
        active = sql.SparkSession.getActiveSession()
        self._is_own = active is None and SparkContext._active_spark_context is None
        try:
            self._session = _spark_session(sql) if self._is_own else sql.SparkSession.builder.getOrCreate()
        except self._errors as error:
            raise UsageError(
                f"Spark does not start: {error}",
                hint="it needs Java, see https://spark.apache.org/docs/latest; JAVA_HOME names the one to use",
            ) from None

    def table(self, frame: pl.DataFrame) -> Frame:
        """Bring a small table into the engine: every node gets a copy."""
        frame = plain(frame)
        kinds = {pl.Int64: "bigint", pl.Float64: "double", pl.Boolean: "boolean"}
        schema = ", ".join(f"`{name}` {kinds.get(kind.base_type(), 'string')}" for name, kind in frame.schema.items())
        return lazy(self._functions.broadcast(self._session.createDataFrame(frame.rows(), schema)))

    def keep(self, frame: Frame) -> Frame:
        """Hold a frame in the nodes' memory, or on their disks, from when it is first read."""
        self._kept.append(frame.to_native().cache())
        return lazy(self._kept[-1])

    def close(self) -> None:
        """Stop the session if it was started here."""
        for native in self._kept:
            native.unpersist()
        if self._is_own:
            self._session.stop()

    def _read_files(self, files: list[Path]) -> Any:
        literal = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{file.absolute().as_posix()}") for file in files]
        return self._session.read.parquet(*literal)

    def _read_uri(self, source: str) -> Any:
        return self._session.read.option("recursiveFileLookup", "true").parquet(source)

    def _read_parts(self, files: list[Path]) -> Any:
        F = self._functions
        part = F.element_at(F.split(F.col("_metadata.file_path"), "/"), -2)
        return self._read_files(files).withColumn("part", part)

    def _collect(self, native: Any) -> pl.DataFrame:
        kinds = {"bigint": pl.Int64, "int": pl.Int64, "double": pl.Float64, "boolean": pl.Boolean, "string": pl.String}
        schema = {name: kinds.get(kind) for name, kind in native.dtypes}
        return pl.DataFrame([tuple(row) for row in native.collect()], schema=schema, orient="row")


ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (PolarsEngine, DuckDBEngine, SparkEngine)}


def open_engine(name: str = "polars") -> Engine:
    """Open an engine: one of ``ENGINES``.

    Raises
    ------
    UsageError
        There is no such engine, its library is not installed, or it does not start.

    Examples
    --------
    >>> with open_engine("polars") as engine:
    ...     engine.collect(engine.table(pl.DataFrame({"run_no": [0, 1]})).filter(nw.col("run_no") > 0)).rows()
    [(1,)]
    """
    if name not in ENGINES:
        raise UsageError(f"`engine` must be one of {', '.join(ENGINES)}, got {name!r}")
    return ENGINES[name]()


def lazy(native: Any) -> Frame:
    """Wrap a lazy frame of polars, DuckDB or Spark."""
    frame: Frame = nw.from_native(native)
    return frame


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with whole numbers as Int64, other numbers as Float64, and text as String."""
    text = cs.by_dtype(pl.Null, pl.Categorical, pl.Enum)
    return frame.with_columns(
        cs.integer().cast(pl.Int64), (cs.float() | cs.decimal()).cast(pl.Float64), text.cast(pl.String)
    )


def local_files(source: str) -> list[Path] | None:
    """Return the Parquet files that a path, folder, pattern or ``file:`` URI names on this machine.

    None where nothing of that name is here: it is for the engine to find.

    Raises
    ------
    UsageError
        A ``file:`` URI names nothing, or a folder holds no Parquet file.
    """
    is_uri = source.startswith("file:")
    name = unquote(re.sub("^file:(//(localhost)?)?", "", source)) if is_uri else source
    path = Path(name)
    if path.is_dir():
        found: Iterable[Path] = (file for file in path.rglob("*.parquet") if file.is_file())
    elif path.is_file():
        found = [path]
    else:
        found = map(Path, glob.glob(name, recursive=True))  # noqa: PTH207 (absolute patterns too)
    files = sorted(found)
    if not files and (is_uri or path.is_dir()):
        raise UsageError(f"no Parquet file at {source}")
    return files or None


def _every_file(source: str) -> str:
    """Return a pattern for the files below a folder; what names a file or is a pattern stays."""
    if "://" not in source:  # it would be here, see `local_files`
        raise UsageError(f"nothing matches {source}", hint="give a file, a folder or a quoted pattern that is there")
    if source.endswith(".parquet") or "*" in source:
        return source
    return source.rstrip("/") + "/**/*.parquet"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _library(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"the {extra} engine needs {module.split('.')[0]}: {error}", hint=f"pip install 'benchwright[{extra}]'"
        ) from None


def _spark_session(sql: Any) -> Any:
    """Start a session with what the user's environment sets, and our settings where it sets nothing."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # starts Java, which knows spark-defaults.conf and spark-submit
    conf = SparkConf().set("spark.ui.showConsoleProgress", "false")
    local = SPARK_LOCAL if conf.get("spark.master", "local[*]").startswith("local") else {}
    for key, value in (SPARK | local).items():
        conf.setIfMissing(key, value)
    return sql.SparkSession.builder.config(conf=conf).getOrCreate()
