"""Open a panel: its rows as a lazy frame, with the policies applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from benchwright._csv import inert
from benchwright._json import json_safe
from benchwright._shown import ROWS, Headline, Shown, ShownPart, frame_table
from benchwright.errors import DataError, UsageError
from benchwright.logs.record import KINDS
from benchwright.panel.derived import checked, derived_rows, possible
from benchwright.panel.names import counted
from benchwright.panel.opening import read_manifest

Repeated = Literal["latest", "first", "mean", "error"]
IDENTITY = ("model", "revision", "seed", "step", "axis", "dose", "dose_unit", "setting", "run_name")
TABLES = ("rows", "derived", "choices", "scores", "items")
PRINTED = 200  # rows of a table
ITEM_KEY = ("part", "run", "task", "doc_id", "filter", "metric", "repeat")


@dataclass(frozen=True, slots=True)
class Panel(Shown):
    """A panel on disk. ``manifest`` is its manifest.json; frames are lazy and read what they need."""

    path: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> Panel:
        """Open the panel that ``read_logs`` or ``benchwright ingest`` made.

        Raises
        ------
        UsageError
            The folder holds no finished panel, or one of another version.
        DataError
            The panel is damaged.
        """
        return cls(Path(path), read_manifest(Path(path)))

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Panel {self.path.name}: {counted(self.manifest['counts'])}")
        yield frame_table(self._coverage(), rows=ROWS)
        left_out = self._left_out()
        if left_out.height:
            yield Headline("Left out")
            yield frame_table(left_out, rows=ROWS)
        yield from self.manifest["notes"]

    def runs(self) -> pl.DataFrame:
        """Return one row per run."""
        return pl.read_parquet(self.path / "runs.parquet", glob=False)

    def cells(self) -> pl.DataFrame:
        """Return one row per run and task: coverage, ``active`` and ``why``."""
        return pl.read_parquet(self.path / "cells.parquet", glob=False)

    def faults(self) -> pl.DataFrame:
        """Return everything that could not be used."""
        return pl.read_parquet(self.path / "faults.parquet", glob=False)

    def rows(self, *, repeated: Repeated = "latest", all_cells: bool = False) -> pl.LazyFrame:
        """Return item rows with the run's identity.

        Parameters
        ----------
        repeated
            What to do where one run has an item and metric twice: the last or first row, their mean, or an error.
        all_cells
            Also rows of cells that the duplicate policy leaves out.
        """
        table = self._scan("rows", all_cells=all_cells)
        return self._once(table, repeated)

    def row_parts(self, *, repeated: Repeated = "latest") -> list[pl.LazyFrame]:
        """Return the same rows as one frame a part: faster where only sums over them are wanted."""
        cells = self.cells().filter(pl.col("kind") == "rows")
        doubled = cells.filter(pl.col("active") & (pl.col("n_repeated") > 0))
        twice = set(doubled["part"])
        of = cells.partition_by("part", as_dict=True)
        tables = []
        for unit in self.manifest["units"]:
            mine = of.get((unit["part"],))
            if mine is None or not unit["rows"] or not mine["active"].any():
                continue
            key = ["run"] if mine["active"].all() else ["run", "task"]
            keep = mine.filter("active").select("part", *key, *IDENTITY).unique(maintain_order=True)
            table = pl.scan_parquet(self._of_part("rows", unit["part"]), glob=False)
            table = table.join(keep.lazy(), on=key, how="inner", nulls_equal=True, maintain_order="left")
            tables.append(self._once(table, repeated) if unit["part"] in twice else table)
        return tables

    def derived(self, names: Sequence[str] | None = None, *, repeated: Repeated = "latest") -> pl.LazyFrame:
        """Return item rows of the scores that follow from the choices, computed as they are read.

        Parameters
        ----------
        names
            Metrics such as ``choice:p_gold_char`` (see :mod:`benchwright.panel.derived`); all by default.
        repeated
            As for :meth:`rows`.

        Raises
        ------
        UsageError
            There is no such metric.
        DataError
            Metrics are named and the panel has no choice log-likelihoods.
        """
        metrics = checked(names)
        files = self._files("choices")
        if names is not None and not files:
            raise DataError(
                f"the panel has no choice log-likelihoods, so {', '.join(metrics)} cannot follow from it",
                hint="use a metric that the logs hold, see `benchwright panel describe`",
            )
        known = pl.col("version").n_unique() == 1  # the choices do not say of which of several versions they are
        versions = self.cells().filter("active", pl.col("kind") == "rows").group_by("part", "run", "task")
        kept = self._kept("choices", all_cells=False).join(
            versions.agg(version=pl.when(known).then(pl.col("version").first())),
            on=["part", "run", "task"],
            how="left",
            maintain_order="left",
        )
        return self._once(derived_rows(files, kept, metrics), repeated)

    def derivable(self) -> tuple[str, ...]:
        """Return the derived metrics that the panel's choices can give."""
        return possible(self._files("choices"))

    def choices(self) -> pl.LazyFrame:
        """Return choice log-likelihoods with the run's identity."""
        return self._scan("choices", all_cells=False)

    def scores(self) -> pl.LazyFrame:
        """Return the task scores that result files state, with the run's identity."""
        return self._scan("scores", all_cells=False)

    def items(self) -> pl.LazyFrame:
        """Return the items' texts, one row per task, doc_id and item_hash; none unless the logs were read with
        ``keep_text``.
        """
        texts = self._parts("items").select(*KINDS["items"][0])
        return texts.unique(("task", "doc_id", "item_hash"), keep="first", maintain_order=True)

    def describe(self) -> dict[str, Any]:
        """Return counts, coverage and what the policy leaves out, as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "counts": self.manifest["counts"],
                "duplicates": self.manifest["duplicates"],
                "coverage": self._coverage().to_dicts(),
                "left_out": self._left_out().to_dicts(),
                "derived": self.derivable(),
                "notes": self.manifest["notes"],
            }
        )
        return record

    def coverage(self) -> str:
        """Return the coverage per model and task as a table: items scored, of all items of the task, failed."""
        return "\n".join(frame_table(self._coverage(), rows=PRINTED).lines())

    def left_out(self) -> str:
        """Return the cells that the policy leaves out, and why, as a table."""
        table = self._left_out()
        return "\n".join(frame_table(table, rows=PRINTED).lines()) if table.height else "no run is left out"

    def export(self, table: str, path: str | Path) -> None:
        """Write one of ``TABLES`` as one Parquet or CSV file, whole or not at all."""
        frame: pl.LazyFrame = getattr(self, table)()
        target = Path(path)
        if target.suffix not in (".parquet", ".csv"):
            raise UsageError(f"{target}: the file must end in .parquet or .csv")
        if target.suffix == ".csv":
            lists = [name for name, kind in frame.collect_schema().items() if isinstance(kind, pl.List)]
            if lists:
                raise UsageError(f"CSV cannot hold the lists {', '.join(lists)}", hint="export to a .parquet file")
            frame = frame.with_columns(inert(frame.collect_schema()))
        fresh = target.with_name(f".{target.name}.new")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            frame.sink_parquet(fresh) if target.suffix == ".parquet" else frame.sink_csv(fresh)
            fresh.replace(target)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None

    def _once(self, table: pl.LazyFrame, repeated: Repeated) -> pl.LazyFrame:
        """Apply the policy for items that one run has twice."""
        doubled = self.cells().filter(pl.col("active") & (pl.col("kind") == "rows") & (pl.col("n_repeated") > 0))
        if doubled.height == 0:
            return table
        if repeated == "error":
            named = ", ".join(f"{row['model']} {row['task']}" for row in doubled.head(5).iter_rows(named=True))
            raise DataError(f"items appear twice in one run: {named}", hint="choose repeated latest, first or mean")
        if repeated == "mean":
            other = [name for name in table.collect_schema().names() if name not in (*ITEM_KEY, "value")]
            return table.group_by(ITEM_KEY, maintain_order=True).agg(
                pl.col("value").mean(), *(pl.col(name).last() for name in other)
            )
        return table.unique(ITEM_KEY, keep="last" if repeated == "latest" else "first", maintain_order=True)

    def _coverage(self) -> pl.DataFrame:
        cells = self.cells().filter("active")
        total = cells.group_by("kind", "task").agg(of=pl.col("n_items").max())
        entry = pl.format("{}@{}", "model", pl.col("revision").fill_null("")).str.strip_suffix("@").alias("entry")
        columns = ["kind", entry, "setting", "step", "task", "version", "n_items", "n_scored", "n_error", "of"]
        joined = cells.join(total, on=["kind", "task"])
        return joined.select(columns).sort("kind", "entry", "setting", "step", "task", "version", nulls_last=False)

    def _left_out(self) -> pl.DataFrame:
        cells = self.cells().filter(~pl.col("active"))
        return cells.select("kind", "model", "revision", "task", "n_items", "created", "file", "why")

    def _scan(self, kind: str, *, all_cells: bool) -> pl.LazyFrame:
        return self._parts(kind).join(
            self._kept(kind, all_cells=all_cells).lazy(),
            on=["part", "run", "task"],
            how="inner",
            nulls_equal=True,
            maintain_order="left",
        )

    def _kept(self, kind: str, *, all_cells: bool) -> pl.DataFrame:
        """Return the run and task of the cells that count, with the run's identity."""
        cells = self.cells().filter(pl.col("kind") == ("scores" if kind == "scores" else "rows"))
        cells = cells if all_cells else cells.filter("active")
        return cells.select("part", "run", "task", *IDENTITY).unique(maintain_order=True)

    def _parts(self, kind: str) -> pl.LazyFrame:
        frames = [
            pl.scan_parquet(self._of_part(kind, unit["part"]), glob=False).with_columns(part=pl.lit(unit["part"]))
            for unit in self.manifest["units"]
            if unit.get(kind)
        ]
        return pl.concat(frames or [pl.LazyFrame(schema=KINDS[kind][0] | {"run": pl.Int32, "part": pl.String})])

    def _of_part(self, kind: str, part: str) -> list[Path]:
        """Return the files of a kind of one part; a folder's name is no pattern."""
        return sorted((self.path / "parts" / part).glob(f"{kind}-*.parquet"))

    def _files(self, kind: str) -> list[tuple[str, Path]]:
        """Return part and file of a kind, in a fixed order."""
        return [
            (unit["part"], file)
            for unit in self.manifest["units"]
            if unit.get(kind)
            for file in self._of_part(kind, unit["part"])
        ]
