"""Published item tables: what an item audit left behind, one folder of small files.

===========================  ============  ==========================================================
file                         section       holds
===========================  ============  ==========================================================
gwa_welfare_scores.csv       welfare       value of each activity on [1,5], both framings
gwa_welfare_scores_mean.csv  welfare       the same from mean ratings (optional)
judge_loadings.jsonl         welfare       per item and framing: activities ranked by a judge
judge_loadings_NAME.jsonl    welfare       another judge's (optional, any number)
welfare.csv                  welfare       w_auto, w_aug per item; alone, or checked against the above; or value
cost.csv                     improvability anchor score and slope per effort axis, ranks
noise.csv                    noise         variance over seeds, mean score, ranks
item_margins.parquet         noise         log-likelihood ratio gold / runner-up (optional)
families.csv                 all           task,family of this source (optional)
activity_draws.parquet       welfare       values of activities drawn again (optional)
item_topics.csv              report        a phrase per item (optional)
===========================  ============  ==========================================================

Items are keyed by (task, doc_id). This is the layout of the tables of Haupt et al. (arXiv 2605.30916);
``docs/reference/item-tables.md`` has every column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from benchwright._shown import Shown
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.judge_loadings import PATTERN, loadings_files, parse_loadings
from benchwright.logs.judge_loadings import PERSPECTIVES as PERSPECTIVES
from benchwright.logs.source_file import SourceFile, read_source, utf8
from benchwright.logs.tabular import Column, Table, header, parse_table, shown
from benchwright.logs.welfare_tables import ACTIVITIES as ACTIVITIES
from benchwright.logs.welfare_tables import DRAWS, DRAWS_FILE, MAKE_VALUES, VALUES, activity_files, parse_activities

SECTIONS = ("welfare", "improvability", "noise")
TABLE_FILES = ("cost.csv", "noise.csv", "welfare.csv", "gwa_welfare_scores.csv", "judge_loadings*.jsonl")
ITEM = ("task", "doc_id")
DEFAULT_JUDGE, OWN_JUDGE = "default", "source"  # the folder's judge, and what it is called once another one counts
PUBLISHED_LEVEL = 0.95  # rank intervals of published tables are 2.5 to 97.5 % (Haupt et al.)
MAX_SLOPE = 1e9  # score per slope unit; a larger one is a slip, and its square would overflow in the weights
_KEY = (Column("task", "text"), Column("doc_id", "id"))
_RANKS = tuple(Column(name, "number", required=False, empty=True) for name in ("rank_headline", "rank_lo", "rank_hi"))

WELFARE = Table((*_KEY, Column("w_auto", "number", empty=True), Column("w_aug", "number", empty=True)), ITEM)
ONE_VALUE = Table((*_KEY, Column("value", "number", empty=True)), ITEM)
NOISE = Table(
    (
        *_KEY,
        Column("noise_sigma2", "number", low=0, high=1),
        Column("noise_mean_phat", "number", low=0, high=1),
        Column("noise_sigma_hat", "number", required=False, low=0, high=1),
        *_RANKS,
    ),
    ITEM,
)
MARGINS = Table((*_KEY, Column("log_ratio_med", "number")), ITEM)
FAMILIES = Table((Column("task", "text"), Column("family", "text")), ("task",))
TOPICS = Table((*_KEY, Column("topic", "text", empty=True)), ITEM)


def cost_table(axes: Iterable[str]) -> Table:
    """Return the layout of cost.csv for the given effort axes; a published cost column is optional."""
    slopes = tuple(
        Column(f"beta_{axis.lower()}", "number", required=False, empty=True, low=-MAX_SLOPE, high=MAX_SLOPE)
        for axis in axes
    )
    dollars = tuple(Column(f"cost_{axis.lower()}_usd", "number", required=False, empty=True, low=0) for axis in axes)
    return Table((*_KEY, Column("anchor_phat", "number", low=0, high=1), *slopes, *dollars, *_RANKS), ITEM)


@dataclass(frozen=True, slots=True)
class ItemTables(Shown):
    """The tables of one source, typed and checked.

    Attributes
    ----------
    name
        How a report calls the source.
    simulated
        True where the figures come from a simulation and not from measurement.
    about
        Title and text of what a report says first of the source, None where there is nothing to say.
    activities
        Per rule ("share", "mean"): activity, label, n_tasks, share_auto, share_aug (of its tasks, null where the file
        has none), dropped, auto, aug (values on [1,5]).
    loadings
        Per judge: task, doc_id, perspective, activities (ranked list of activity ids).
    main
        The judges whose mean is the welfare of items; the others are only compared with it.
    activity_draws
        Per rule: replicate, activity, auto, aug (on the line to [1,5] of ``activities``).
    welfare, cost, noise, margins, topics, families
        The tables of the module's docstring; None where the source has none.
    axes
        Effort axes that ``cost`` has slopes for, upper case.
    rank_level
        Level of the intervals of ranks in ``cost`` and ``noise``.
    files, notes
        What was read, and what a reader of the report should know about it.
    """

    name: str
    simulated: bool = False
    about: tuple[str, str] | None = None
    activities: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    loadings: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    main: tuple[str, ...] = (DEFAULT_JUDGE,)
    activity_draws: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    welfare: pl.DataFrame | None = None
    cost: pl.DataFrame | None = None
    noise: pl.DataFrame | None = None
    margins: pl.DataFrame | None = None
    topics: pl.DataFrame | None = None
    families: pl.DataFrame | None = None
    axes: tuple[str, ...] = ()
    rank_level: float = PUBLISHED_LEVEL
    files: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def main_loadings(self) -> tuple[pl.DataFrame, ...]:
        """Loadings of the judges whose mean is the welfare of items; none where the source has none of theirs."""
        return tuple(self.loadings[name] for name in self.main if name in self.loadings)


def read_item_tables(
    folder: str | Path,
    *,
    axes: Sequence[str],
    without: Sequence[str] = (),
    judges: Sequence[str | Path] = (),
    loadings: Sequence[str | Path] = (),
    activities: str | Path | None = None,
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
    loadings
        Judge files, or folders of them, that count in place of the folder's own, which is then only compared; the mean
        of several.
    activities
        Folder with tables of activity values and their draws, or a table of one's own (``welfare_tables``), in place of
        those of the folder.

    Raises
    ------
    UsageError
        The folder does not exist or holds no item tables, or a section is unknown.
    DataError
        A needed file is missing, or a file has faults; all faults are listed.
    """
    root = Path(folder)
    why = "does not exist"
    if root.is_dir():
        why = (
            ""
            if any(path for pattern in TABLE_FILES for path in root.glob(pattern))
            else "holds none of the item tables"
        )
    elif root.exists():
        why = "is a file, not a folder of item tables"
    if why:
        raise UsageError(
            f"SOURCE {root} {why}",
            hint="give a folder of item tables (docs/reference/item-tables.md), or nothing for the built-in example; "
            "of evaluation logs make a panel first: benchwright ingest LOGS -o panel/",
        )
    unknown = set(without) - set(SECTIONS)
    if unknown:
        raise UsageError(f"`without` must name sections of {', '.join(SECTIONS)}, got {', '.join(sorted(unknown))}")
    values = None if activities is None else activity_files(activities)
    main = tuple(file for path in loadings for file in loadings_files(path))
    return _Reader(root, values, main).read(tuple(axes), frozenset(without), tuple(Path(judge) for judge in judges))


@dataclass(slots=True)
class _Welfare:
    """What a reader finds for the section ``welfare``."""

    activities: dict[str, pl.DataFrame] = field(default_factory=dict)
    draws: dict[str, pl.DataFrame] = field(default_factory=dict)
    loadings: dict[str, pl.DataFrame] = field(default_factory=dict)
    main: tuple[str, ...] = (DEFAULT_JUDGE,)
    welfare: pl.DataFrame | None = None


def judge_name(path: Path, *, source: Path | None = None) -> str:
    """Return how a judge is called: judge_loadings_NAME.jsonl is NAME, one without a name by its folder.

    In the folder of ``source`` that one is ``default``.
    """
    if name := utf8(path.stem).removeprefix("judge_loadings").lstrip("_"):
        return name
    own = source is not None and path.parent.resolve() == source.resolve()
    return DEFAULT_JUDGE if own else utf8(path.resolve().parent.name)


class _Reader:
    """Reads one folder, collecting faults of all files before it gives up."""

    def __init__(self, root: Path, values: dict[str, Path] | None, main: tuple[Path, ...]) -> None:
        self.root, self.main = root, main
        self.swapped = values is not None  # values of activities are not those of the folder
        self.values = {rule: root / name for rule, name in VALUES.items()} if values is None else values
        self.faults: list[Fault] = []
        self.files: list[SourceFile] = []
        self.notes: list[str] = []

    def read(self, axes: tuple[str, ...], without: frozenset[str], judges: tuple[Path, ...]) -> ItemTables:
        needed = {"improvability": "cost.csv", "noise": "noise.csv"}
        for section, name in needed.items():
            if section not in without and not (self.root / name).exists():
                self.missing(name, f"section `{section}`")
        part = _Welfare() if "welfare" in without else self.read_welfare(judges)
        cost, found = (None, ()) if "improvability" in without else self.read_cost(axes)
        tables = ItemTables(
            name=utf8(self.root.resolve().name),
            activities=part.activities,
            loadings=part.loadings,
            main=part.main,
            activity_draws=part.draws,
            welfare=part.welfare,
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

    def missing(self, name: str, needs: str, remedy: str = "") -> None:
        self.faults.append(Fault(name, f"no such file, and {needs} needs it{remedy}"))

    def is_file(self, path: Path) -> bool:
        """Return whether there is such a file; a folder or a dead link of that name is a fault."""
        if not path.is_file() and (path.exists() or path.is_symlink()):
            what = "is no regular file" if path.exists() else "is a link to a file that does not exist"
            self.faults.append(Fault(path.name, what))
        return path.is_file()

    def read_cost(self, axes: tuple[str, ...]) -> tuple[pl.DataFrame | None, tuple[str, ...]]:
        """Return cost.csv and the axes that it has slopes for, and say what has a slope but no price."""
        content = self.content(self.root / "cost.csv")
        cost = None if content is None else parse_table("cost.csv", content, cost_table(axes), self.faults)
        if content is None or cost is None:
            return None, ()
        found = tuple(axis for axis in axes if f"beta_{axis.lower()}" in cost.columns)
        known = {f"beta_{axis.lower()}" for axis in axes}
        unpriced = [name for name in header(content) if name.startswith("beta_") and name not in known]
        add = 'to [prices] in benchwright.toml, e.g. `{} = {{ usd = 1.0, per = "10^3 examples" }}`'
        for name in unpriced if found else ():
            axis = shown(name.removeprefix("beta_").upper())
            self.notes.append(
                f"cost.csv: column `{shown(name)}` looks like the slope of an axis without a price and is not used; "
                f"if it is one, add a price {add.format(axis)}."
            )
        if not found:
            reason = "no slope column; expected " + " or ".join(f"`beta_{axis.lower()}`" for axis in axes)
            if unpriced:
                axis = shown(unpriced[0].removeprefix("beta_").upper())
                reason += f"; for `{shown(unpriced[0])}`, add a price {add.format(axis)}"
            self.faults.append(Fault("cost.csv", reason))
        return cost, found

    def table(self, name: str, layout: Table, folder: Path | None = None) -> pl.DataFrame | None:
        content = self.content((self.root if folder is None else folder) / name)
        return None if content is None else parse_table(name, content, layout, self.faults)

    def content(self, path: Path) -> bytes | None:
        """Read a file and list it among those of the source; None where there is none."""
        source = read_source(path, self.faults) if self.is_file(path) else None
        if source is None:
            return None
        self.files.append(source[1])
        return source[0]

    def read_welfare(self, judges: tuple[Path, ...]) -> _Welfare:
        """Return values of activities with their draws, loadings of each judge, and the source's own welfare."""
        part = _Welfare()
        stated = self.content(self.root / "welfare.csv")
        if stated is not None:
            first_line = stated.partition(b"\n")[0]
            layout = ONE_VALUE if b"value" in first_line and b"w_auto" not in first_line else WELFARE
            part.welfare = parse_table("welfare.csv", stated, layout, self.faults)
        for rule, path in self.values.items():
            content = self.content(path)
            values = None if content is None else parse_activities(path.name, content, self.faults)
            if values is not None:
                part.activities[rule] = values
        named = [(path, judge_name(path, source=self.root)) for path in sorted(self.root.glob(PATTERN))]
        if self.main:
            named = [(path, OWN_JUDGE if name == DEFAULT_JUDGE else name) for path, name in named]
            own = [(path, judge_name(path)) for path in self.main]
            named, part.main = own + named, tuple(name for _, name in own)
        for judge in judges:
            if judge.is_file():
                named.append((judge, judge_name(judge, source=self.root)))
            else:
                self.faults.append(Fault(str(judge), "no such file, named as a judge's loadings"))
        judged = bool(self.main) or (self.root / "judge_loadings.jsonl").exists()
        if (judged or judges) and not self.values["share"].exists():
            needs = "section `welfare`" if judged else "a judge's loadings file"
            self.missing(VALUES["share"], needs, "; name values by --activities: " + MAKE_VALUES)
        if not judged and not (self.root / "welfare.csv").exists():
            self.missing("judge_loadings.jsonl (or welfare.csv)", "section `welfare`")
        if part.activities.get("share") is None:
            return part
        known = frozenset(part.activities["share"]["activity"])
        for path, name in named:
            content = self.content(path)
            if content is None:
                continue
            if name in part.loadings:
                self.faults.append(Fault(path.name, f"a judge called `{name}` was already read; rename the file"))
            replaced = bool(self.main) and self.swapped and path.parent == self.root
            faults: list[Fault] = [] if replaced else self.faults
            frame = parse_loadings(path.name, content, known, faults, self.notes)
            if replaced and faults:  # another set of activities, as a rule
                self.notes.append(f"{path.name} of the source is not compared: {faults[0]}.")
            else:
                part.loadings[name] = frame
        of_folder = self.values["share"].name == VALUES["share"]  # a table of one's own has no draws
        draws = self.table(DRAWS_FILE, DRAWS, self.values["share"].parent) if of_folder else None
        if draws is not None:
            part.draws = {rule: draws.filter(pl.col("rule") == rule).drop("rule") for rule in draws["rule"].unique()}
        return part

    def same_ids(self, tables: ItemTables) -> None:
        """Integer ids in one file and text ids in another cannot be joined: say so."""
        frames = {"cost.csv": tables.cost, "noise.csv": tables.noise, "welfare.csv": tables.welfare}
        frames |= {"item_margins.parquet": tables.margins, "item_topics.csv": tables.topics}
        frames |= {f"judge `{shown(name)}`": frame for name, frame in tables.loadings.items()}
        filled = {name: frame for name, frame in frames.items() if frame is not None and frame.height}
        integer = [name for name, frame in filled.items() if frame["doc_id"].dtype == pl.Int64]
        text = [name for name in filled if name not in integer]
        if integer and text:
            reason = f"ids are text here but integers in {', '.join(integer)}; name the items alike in all files"
            self.faults += [Fault(name, reason, column="doc_id") for name in text]
