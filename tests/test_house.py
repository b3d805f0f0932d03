"""The house: data flows one way, files stay short, the import stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import benchwright

PACKAGE = Path(benchwright.__file__).parent
# A step imports only what stands to its left. Modules in one group may import each other.
ORDER = (
    {"errors", "_check", "_choice", "_staging", "_words", "_shown", "_csv", "_json", "choices", "config"},
    {"logs"},
    {"panel"},
    {"estimating"},
    {"simulate", "datasets", "built_in"},
    {"judge"},
    {"auditing"},
    {"mechanism"},
    {"curves"},
    {"ranking_game"},
    {"game_answers"},
    {"tuning"},
    {"board"},
    {"report"},
    {"audit_inputs", "pipeline"},
    {"app"},
    {"cli"},
)
PLACE = {step: place for place, group in enumerate(ORDER) for step in group}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
MAX_LINES = 400


def step_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Every imported name in full, e.g. ``benchwright.errors.UsageError``."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_steps(path: Path) -> set[str]:
    parts = [name.split(".") for name in imported(path)]
    return {part[1] for part in parts if part[0] == "benchwright" and len(part) > 1} - {"__version__"}


def is_for_kernels(name: str) -> bool:
    """Kernels know numpy, scipy, the standard library, the validators and other kernels."""
    top, *rest = name.split(".")
    if top != "benchwright":
        return top in {"numpy", "scipy"} or top in sys.stdlib_module_names
    return rest[:1] == ["_check"] or (len(rest) > 1 and rest[1].startswith("_"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_step_imports_only_what_stands_to_its_left(path: Path) -> None:
    own = step_of(path)
    assert own in PLACE, f"give {own} its place in ORDER"
    for step in imported_steps(path) - {own}:
        assert PLACE[step] <= PLACE[own], f"{own} imports {step}, which stands to its right"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_kernels_know_only_numbers() -> None:
    kernels = [path for path in FILES if path.name.startswith("_") and path.parent != PACKAGE]
    kernels = [path for path in kernels if not path.name.startswith("__")]
    assert kernels
    for path in kernels:
        assert [name for name in imported(path) if not is_for_kernels(name)] == [], path
    assert not is_for_kernels("benchwright.mechanism.aggregation.ItemAggregation")
    assert not is_for_kernels("polars")


@pytest.mark.parametrize("module", ["benchwright", "benchwright.errors", "benchwright.datasets"])
def test_import_is_light(module: str) -> None:
    heavy = "numpy scipy polars altair vl_convert jinja2 pooch requests typer rich matplotlib torch"
    code = f"import sys, {module}; print([m for m in {heavy.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_no_numbers() -> None:
    code = "import sys, benchwright.cli; print([m for m in ('numpy', 'polars', 'altair') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_resolve() -> None:
    assert set(benchwright.__all__) == set(benchwright._HOME)
    for name in benchwright.__all__:
        assert getattr(benchwright, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        benchwright.nonsense  # noqa: B018


def test_the_function_audit_is_not_hidden_by_a_module() -> None:
    code = "import benchwright.auditing.item_audit, benchwright as bw; bw.write_report; print(callable(bw.audit))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
    clashing = {path.stem for path in FILES if path.parent == PACKAGE} | {path.name for path in PACKAGE.iterdir()}
    assert not clashing & set(benchwright.__all__)
