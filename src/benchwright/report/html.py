"""The report page: one HTML file that works offline and asks nothing of the network.

The content security policy allows only the scripts whose hashes it names, so text from data cannot run even
if an escape were missing. Charts are Vega-Lite specifications in inert JSON blocks, drawn by the bundled
library with its expression interpreter (no ``eval``).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

import jinja2

from benchwright.report.figures import Figure
from benchwright.report.page import Page


def chart_library() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def render_page(page: Page, figures: Sequence[Figure], library: str) -> str:
    """Return the whole page.

    Parameters
    ----------
    page
        What to show.
    figures
        Its figures, in reading order.
    library
        JavaScript from :func:`chart_library`.
    """
    templates = resources.files("benchwright.report") / "templates"
    styles = (templates / "report.css").read_text(encoding="utf-8")
    script = (templates / "report.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string((templates / "report.html.j2").read_text(encoding="utf-8")).render(
        page=page,
        figures=figures,
        shown=_shown,
        styles=styles,
        library=library,
        script=script,
        policy=_policy(library, script),
    )


def _shown(value: object) -> str:
    """Return a choice as a reader writes it."""
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return ", ".join(_shown(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _policy(*scripts: str) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
