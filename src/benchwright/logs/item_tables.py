"""Published item tables: what an item audit left behind, one folder of small files.

===========================  ============  ==========================================================
file                         section       holds
===========================  ============  ==========================================================
gwa_welfare_scores.csv       welfare       value of each activity on [1,5], both framings
gwa_welfare_scores_mean.csv  welfare       the same from mean ratings (optional)
judge_loadings.jsonl         welfare       per item and framing: activities ranked by a judge
judge_loadings_NAME.jsonl    welfare       another judge's (optional, any number)
welfare.csv                  welfare       w_auto, w_aug per item; alone, or checked against the above
cost.csv                     improvability anchor score and slope per effort axis, ranks
noise.csv                    noise         variance over seeds, mean score, ranks
item_margins.parquet         noise         log-likelihood ratio gold / runner-up (optional)
families.csv                 all           task,family of this source (optional)
item_topics.csv              report        a phrase per item (optional)
===========================  ============  ==========================================================

Items are keyed by (task, doc_id). This is the layout of the tables of Haupt et al. (arXiv 2605.30916);
``docs/item-tables.md`` has every column.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.tabular import Column, Table, id_values, read_table

SECTIONS = ("welfare", "improvability", "noise")
PERSPECTIVES = ("automation", "augmentation")
ITEM = ("task", "doc_id")
_KEY = (Column("task", "text"), Column("doc_id", "id"))
_RANKS = tuple(Column(name, "number", required=False, empty=True) for name in ("rank_headline", "rank_lo", "rank_hi"))

ACTIVITIES = Table(
    (
        Column("concept_id", "text"),
        Column("gwa", "text", required=False, empty=True),
        Column("n_tasks_wb", "integer", required=False, empty=True),
        Column("dropped", "flag"),
        Column("p_auto_15", "number", empty=True),
        Column("p_aug_15", "number", empty=True),
    ),
    key=("concept_id",),
)
WELFARE = Table((*_KEY, Column("w_auto", "number", empty=True), Column("w_aug", "number", empty=True)), ITEM)
NOISE = Table(
    (
        *_KEY,
        Column("noise_sigma2", "number"),
        Column("noise_mean_phat", "number"),
        Column("noise_sigma_hat", "number", required=False),
        *_RANKS,
    ),
    ITEM,
)
MARGINS = Table((*_KEY, Column("log_ratio_med", "number")), ITEM)
FAMILIES = Table((Column("task", "text"), Column("family", "text")), ("task",))
TOPICS = Table((*_KEY, Column("topic", "text", empty=True)), ITEM)


def cost_table(axes: Iterable[str]) -> Table:
    """Return the layout of cost.csv for the given effort axes; a published cost column is optional."""
    slopes = tuple(Column(f"beta_{axis.lower()}", "number", required=False, empty=True) for axis in axes)
    dollars = tuple(Column(f"cost_{axis.lower()}_usd", "number", required=False, empty=True) for axis in axes)
    return Table((*_KEY, Column("anchor_phat", "number"), *slopes, *dollars, *_RANKS), ITEM)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read: its name inside the source, size in bytes, and sha256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ItemTables:
    """The tables of one source, typed and checked.

    Attributes
    ----------
    name
        How a report calls the source.
    simulated
        True where the figures come from a simulation and not from measurement.
    activities
        Per rule ("share", "mean"): activity, label, n_tasks, dropped, auto, aug (values on [1,5]).
    loadings
        Per judge: task, doc_id, perspective, activities (ranked list of activity ids).
    welfare, cost, noise, margins, topics, families
        The tables of the module's docstring; None where the source has none.
    axes
        Effort axes that ``cost`` has slopes for, upper case.
    files, notes
        What was read, and what a reader of the report should know about it.
    """

    name: str
    simulated: bool = False
    activities: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    loadings: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    welfare: pl.DataFrame | None = None
    cost: pl.DataFrame | None = None
    noise: pl.DataFrame | None = None
    margins: pl.DataFrame | None = None
    topics: pl.DataFrame | None = None
    families: pl.DataFrame | None = None
    axes: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()


def read_item_tables(
    folder: str | Path, *, axes: Sequence[str], without: Sequence[str] = (), judges: Sequence[str | Path] = ()
) -> ItemTables:
    """Read a folder of published item tables.

    Parameters
    ----------
    folder
        Folder laid out as in the module's docstring.
    axes
        Effort axes to look for in cost.csv (column ``beta_<axis>``, lower case).
    without
        Sections to leave out, of "welfare", "improvability", "noise".
    judges
        Further judge files, beside those of the folder.

    Raises
    ------
    UsageError
        The folder does not exist or a section is unknown.
    DataError
        A needed file is missing, or a file has faults; all faults are listed.
    """
    root = Path(folder)
    if not root.is_dir():
        what = "is a file, not a folder" if root.exists() else "does not exist"
        raise UsageError(
            f"SOURCE {root} {what}",
            hint="give a folder of item tables (docs/item-tables.md), or nothing for the built-in example",
        )
    unknown = set(without) - set(SECTIONS)
    if unknown:
        raise UsageError(f"`without` must name sections of {', '.join(SECTIONS)}, got {', '.join(sorted(unknown))}")
    return _Reader(root).read(tuple(axes), frozenset(without), tuple(Path(judge) for judge in judges))


class _Reader:
    """Reads one folder, collecting faults of all files before it gives up."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: list[Fault] = []
        self.files: list[SourceFile] = []
        self.notes: list[str] = []

    def read(self, axes: tuple[str, ...], without: frozenset[str], judges: tuple[Path, ...]) -> ItemTables:
        needed = {"improvability": "cost.csv", "noise": "noise.csv"}
        for section, name in needed.items():
            if section not in without and not (self.root / name).is_file():
                self.missing(name, section)
        activities: dict[str, pl.DataFrame] = {}
        loadings: dict[str, pl.DataFrame] = {}
        welfare = None
        if "welfare" not in without:
            activities, loadings, welfare = self.read_welfare(judges)
        cost = None if "improvability" in without else self.table("cost.csv", cost_table(axes))
        found = () if cost is None else tuple(axis for axis in axes if f"beta_{axis.lower()}" in cost.columns)
        if cost is not None and not found:
            reason = "no slope column; expected " + ", ".join(f"beta_{axis.lower()}" for axis in axes)
            self.faults.append(Fault("cost.csv", reason))
        tables = ItemTables(
            name=self.root.resolve().name,
            activities=activities,
            loadings=loadings,
            welfare=welfare,
            cost=cost,
            noise=None if "noise" in without else self.table("noise.csv", NOISE),
            margins=None if "noise" in without else self.table("item_margins.parquet", MARGINS),
            topics=self.table("item_topics.csv", TOPICS),
            families=self.table("families.csv", FAMILIES),
            axes=found,
        )
        self.same_ids(tables)
        if self.faults:
            raise DataError(
                f"{self.root}: {len(self.faults)} fault(s) in the item tables",
                faults=self.faults,
                hint="mend the files, or leave a section out with `--without welfare|improvability|noise`",
            )
        if tables.cost is None and tables.noise is None and not tables.loadings and tables.welfare is None:
            raise DataError(f"{self.root}: every section is left out, nothing remains to audit")
        return replace(tables, files=tuple(self.files), notes=tuple(self.notes))

    def missing(self, name: str, section: str) -> None:
        self.faults.append(Fault(name, f"no such file, and section `{section}` needs it"))

    def table(self, name: str, layout: Table) -> pl.DataFrame | None:
        path = self.root / name
        if not path.is_file():
            return None
        self.record(path)
        return read_table(path, layout, self.faults)

    def record(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError:
            return  # the reader that follows reports it
        self.files.append(SourceFile(path.name, len(content), hashlib.sha256(content).hexdigest()))

    def read_welfare(
        self, judges: tuple[Path, ...]
    ) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame], pl.DataFrame | None]:
        welfare = self.table("welfare.csv", WELFARE)
        activities = {}
        for rule, name in (("share", "gwa_welfare_scores.csv"), ("mean", "gwa_welfare_scores_mean.csv")):
            frame = self.table(name, ACTIVITIES)
            if frame is not None:
                activities[rule] = self.kept(frame, name)
        own = sorted(self.root.glob("judge_loadings*.jsonl"))
        for judge in judges:
            if not judge.is_file():
                self.faults.append(Fault(str(judge), "no such file, named as a judge's loadings"))
        paths = [*own, *(judge for judge in judges if judge.is_file())]
        if (self.root / "judge_loadings.jsonl").is_file() and not (self.root / "gwa_welfare_scores.csv").is_file():
            self.missing("gwa_welfare_scores.csv", "welfare")
        if not (self.root / "judge_loadings.jsonl").is_file() and not (self.root / "welfare.csv").is_file():
            self.missing("judge_loadings.jsonl (or welfare.csv)", "welfare")
        if activities.get("share") is None:
            return activities, {}, welfare
        known = frozenset(activities["share"]["activity"])
        loadings = {}
        for path in paths:
            self.record(path)
            name = path.stem.removeprefix("judge_loadings").lstrip("_") or "default"
            if name in loadings:
                self.faults.append(Fault(path.name, f"a judge called `{name}` was already read; rename the file"))
            loadings[name] = self.judge(path, known)
        return activities, loadings, welfare

    def kept(self, frame: pl.DataFrame, file: str) -> pl.DataFrame:
        """Check the activities that count and return them under our own column names."""
        rows = frame.with_row_index("line", offset=2)
        for value in ("p_auto_15", "p_aug_15"):
            for line in rows.filter(~pl.col("dropped") & pl.col(value).is_null())["line"]:
                self.faults.append(Fault(file, "empty, but the activity is not dropped", line=line, column=value))
        if frame["dropped"].all():
            self.faults.append(
                Fault(file, "every activity is dropped, so no item has a welfare value", column="dropped")
            )
        label = pl.col("gwa").fill_null(pl.col("concept_id")) if "gwa" in frame.columns else pl.col("concept_id")
        n_tasks = pl.col("n_tasks_wb") if "n_tasks_wb" in frame.columns else pl.lit(None, dtype=pl.Int64)
        return frame.select(
            activity="concept_id",
            label=label,
            n_tasks=n_tasks,
            dropped="dropped",
            auto="p_auto_15",
            aug="p_aug_15",
        )

    def judge(self, path: Path, known: frozenset[str]) -> pl.DataFrame:
        """Read one judge's ranked activities, one JSON object a line."""
        rows: list[tuple[str, str, str, list[str]]] = []
        lines: list[int] = []
        failed = 0
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                    if record.get("ok") is False:
                        failed += 1
                        continue
                    rows.append(_loading(record, known))
                    lines.append(number)
                except (ValueError, TypeError, AttributeError, RecursionError) as error:
                    column = error.column if isinstance(error, _LoadingError) else None
                    self.faults.append(Fault(path.name, str(error), line=number, column=column))
        if failed:
            self.notes.append(f"{path.name}: {failed} rows are marked as failed by the judge and are not used.")
        schema: dict[str, Any] = {
            "task": pl.String,
            "doc_id": pl.String,
            "perspective": pl.String,
            "activities": pl.List(pl.String),
        }
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        if frame.height == 0:
            self.faults.append(Fault(path.name, "holds no usable row"))
            return frame
        seen: dict[tuple[str, ...], int] = {}
        for key, line_number in zip(frame.select("task", "doc_id", "perspective").iter_rows(), lines, strict=True):
            if key in seen:
                self.faults.append(
                    Fault(
                        path.name,
                        f"({', '.join(key)}) was already judged on line {seen[key]}",
                        line=line_number,
                        column="doc_id",
                    )
                )
            seen.setdefault(key, line_number)
        return frame.with_columns(id_values(frame["doc_id"], path.name, lines, self.faults))

    def same_ids(self, tables: ItemTables) -> None:
        """Integer ids in one file and text ids in another cannot be joined: say so."""
        frames = {"cost.csv": tables.cost, "noise.csv": tables.noise, "welfare.csv": tables.welfare}
        frames |= {"item_margins.parquet": tables.margins, "item_topics.csv": tables.topics}
        frames |= {f"judge `{name}`": frame for name, frame in tables.loadings.items()}
        kinds = {name: frame["doc_id"].dtype for name, frame in frames.items() if frame is not None}
        if len(set(kinds.values())) > 1:
            listed = ", ".join(f"{'integer' if kind == pl.Int64 else 'text'} in {name}" for name, kind in kinds.items())
            self.faults.append(Fault("doc_id", f"ids do not match between files: {listed}"))


class _LoadingError(ValueError):
    """A judge's row that cannot be used, and the field at fault."""

    def __init__(self, column: str, reason: str) -> None:
        self.column = column
        super().__init__(reason)


def _loading(record: Mapping[str, Any], known: frozenset[str]) -> tuple[str, str, str, list[str]]:
    task = record.get("task", record.get("lm_eval_task"))
    if not isinstance(task, str) or not task:
        raise _LoadingError("lm_eval_task", f"must be the task's name, got {task!r}")
    doc_id = record.get("doc_id")
    if not isinstance(doc_id, (str, int)) or isinstance(doc_id, bool):
        raise _LoadingError("doc_id", f"must be a whole number or text, got {doc_id!r}")
    perspective = record.get("perspective")
    if perspective not in PERSPECTIVES:
        raise _LoadingError("perspective", f"must be one of {', '.join(PERSPECTIVES)}, got {perspective!r}")
    ranked = record.get("ranked_gwa_ids")
    if not isinstance(ranked, list) or not all(isinstance(name, str) for name in ranked):
        raise _LoadingError("ranked_gwa_ids", f"must be a list of activity ids, got {ranked!r}")
    for name in ranked:
        if name not in known:
            raise _LoadingError("ranked_gwa_ids", f"`{name}` is no activity of gwa_welfare_scores.csv")
    if len(set(ranked)) < len(ranked):
        raise _LoadingError("ranked_gwa_ids", "an activity is ranked twice")
    return task, str(doc_id), perspective, ranked
