"""Family maps: which tasks belong together. A map is data; the authors' own are presets.

"Math" is defined in three ways in the authors' code, so a report names the map behind every figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.item_tables import FAMILIES
from benchwright.logs.tabular import read_table

REST = "rest"
UNLISTED = "unlisted"  # tasks that a family file does not name


@dataclass(frozen=True, slots=True)
class FamilyMap:
    """Task -> family: named tasks first, then prefixes, then ``rest`` (None: the task is its own family)."""

    name: str
    definition: str
    tasks: Mapping[str, str] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    rest: str | None = None

    def family(self, task: str) -> str:
        """Return the family of one task.

        >>> PRESETS["figure-3"].family("mathqa"), PRESETS["benchmark"].family("mmlu_anatomy")
        ('math', 'mmlu')
        """
        if task in self.tasks:
            return self.tasks[task]
        for prefix, family in self.prefixes.items():
            if task.startswith(prefix):
                return family
        return task if self.rest is None else self.rest

    def assign(self, tasks: pl.Series) -> pl.Series:
        """Return the family of each task, in the same order."""
        distinct = tasks.unique().to_list()
        return tasks.replace_strict(distinct, [self.family(task) for task in distinct], return_dtype=pl.String).rename(
            "family"
        )

    def pair(self, families: pl.Series) -> tuple[str, str, pl.Series] | None:
        """Return the two families to contrast and each item's side of it; None where there is only one.

        A map with two families is contrasted as it stands, the first named against the other. With more,
        the first named (in the map's order) stands against all others pooled as "rest".
        """
        named = list(dict.fromkeys([*self.tasks.values(), *self.prefixes.values(), *families.sort().to_list()]))
        present = [name for name in named if name in set(families)]
        if len(present) < 2:
            return None
        first = present[0]
        if len(present) == 2:
            return first, present[1], families
        rest = REST if first != REST else f"all but {REST}"
        sides = pl.Series("family", [first if name == first else rest for name in families], dtype=pl.String)
        return first, rest, sides


def _members(family: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), family)


_MATH = "mathqa agieval_sat_math agieval_aqua_rat mmlu_elementary_mathematics mmlu_high_school_mathematics "
_MATH += "mmlu_college_mathematics mmlu_abstract_algebra "

PRESETS: dict[str, FamilyMap] = {
    preset.name: preset
    for preset in (
        FamilyMap(
            "figure-3",
            "mathqa, both AGIEval tasks, MMLU mathematics (elementary, high school, college), high-school "
            "statistics, abstract algebra, college and high-school physics, econometrics, formal logic; "
            "all else is general (the figure-3 script of Haupt et al.)",
            _members(
                "math",
                _MATH + "mmlu_high_school_statistics mmlu_college_physics mmlu_high_school_physics "
                "mmlu_econometrics mmlu_formal_logic",
            ),
            rest="general",
        ),
        FamilyMap(
            "robustness",
            "mathqa, both AGIEval tasks, MMLU mathematics (elementary, high school, college), abstract "
            "algebra; all else is general (the robustness script of Haupt et al.)",
            _members("math", _MATH),
            rest="general",
        ),
        FamilyMap(
            "subgroup",
            "broad STEM, 23 tasks: column `subgroup` of the published noise table; all else is non-math",
            _members(
                "math",
                _MATH + "mmlu_anatomy mmlu_astronomy mmlu_college_biology mmlu_college_chemistry "
                "mmlu_college_computer_science mmlu_college_physics mmlu_computer_security "
                "mmlu_conceptual_physics mmlu_electrical_engineering mmlu_high_school_biology "
                "mmlu_high_school_chemistry mmlu_high_school_computer_science mmlu_high_school_physics "
                "mmlu_high_school_statistics mmlu_machine_learning mmlu_medical_genetics",
            ),
            rest="non-math",
        ),
        FamilyMap(
            "benchmark",
            "the benchmark of a task: mmlu_* is mmlu, agieval_* is agieval, any other task stands alone",
            prefixes={"mmlu_": "mmlu", "agieval_": "agieval"},
        ),
    )
}


def family_map(name: str, *, of_source: pl.DataFrame | None = None, default: str = "figure-3") -> FamilyMap:
    """Return the map that a configuration names.

    Parameters
    ----------
    name
        A preset's name, the path of a CSV file with columns task, family, or "auto": the source's own
        families where it has some, else ``default``.
    of_source
        The source's own table of task, family.
    """
    if name == "auto":
        if of_source is None:
            return PRESETS[default]
        return FamilyMap("families.csv", "families.csv of the source", dict(of_source.iter_rows()), rest=UNLISTED)
    if name in PRESETS:
        return PRESETS[name]
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"family map `{name}` is neither a preset nor a file",
            hint=f"presets: {', '.join(PRESETS)}; or a CSV file with the columns task,family",
        )
    faults: list[Fault] = []
    frame = read_table(path, FAMILIES, faults)
    if frame is None:
        raise DataError(f"family map {path.name} cannot be used", faults=faults)
    return FamilyMap(path.name, f"file {path.name}", dict(frame.iter_rows()), rest=UNLISTED)
