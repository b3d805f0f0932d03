"""What MkDocs does beside its plugins: the figures of the pages, drawn by the package's own charts while it builds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import benchwright as bw
from benchwright.report.figures import Figure, game_figures

ROOT = Path(__file__).resolve().parents[1]
GAME = ("score-curves", "effort-over-tuning", "overtaking-costs")


def charts_of_the_game() -> dict[str, Figure]:
    """Return the figures of the example game that pages show, by name."""
    made = game_figures(bw.answer_file(ROOT / "examples" / "games" / "curves.toml"))
    return {figure.name: figure for figure in made if figure.name in GAME}


CHARTS: dict[str, Callable[[], dict[str, Figure]]] = {"game": charts_of_the_game}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each chart as ``img/charts/NAME.svg``."""
    for group, made in CHARTS.items():
        for name, figure in made().items():
            files.append(File.generated(config, f"img/charts/{group}-{name}.svg", content=figure.svg()))
    return files


def on_post_page(output: str, **_: object) -> str:
    """Give the dialogue of the theme's search a name."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
