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

from benchwright.logs.item_tables import SECTIONS
from benchwright.report.contents import AuditReport
from benchwright.report.figures import Figure
from benchwright.report.findings import findings
from benchwright.report.tables import tables

HEADINGS = {
    "welfare": (
        "Welfare: which items reward work that matters?",
        "A judge named, for each item, the kinds of work it resembles; workers said which work they want automated "
        "and with which they want help. An item's welfare is the value of its activities, the first counting most, "
        "once as automation and once as augmentation. The scale from 1 to 5 is relative: 1 is the least wanted of the "
        "activities, 5 the most wanted, 3 lies midway between those two.",
    ),
    "improvability": (
        "Improvability: which items are cheap to inflate?",
        "From families of training runs comes how much an item's score rises with more pre-training tokens (PT), "
        "supervised examples (SFT) or reinforcement-learning prompts (RL). Dividing the price of an axis by that "
        "slope gives dollars per full unit of score; an item's cost is that of its cheapest axis among those that "
        "raise its score. Slopes can be negative: more of that axis lowers the item's score.",
    ),
    "noise": (
        "Noise: which items mostly record luck?",
        "The same training with another random seed gives another score. Sigma is the standard deviation over "
        "seeds; Z divides it by what a coin with the same mean score would show, so that easy, hard and even items "
        "compare.",
    ),
    "weights": (
        "Weights: what would the score have to count?",
        "A published score is an incentive: developers put effort where it raises the score most per dollar. The "
        "best weights make that effort worth most to society, after its cost and after the risk that noise puts on "
        "developers; what a scheme keeps is measured at the strength that suits it best. Everything here holds under "
        "the assumptions listed below; change them in benchwright.toml.",
    ),
}
RANKED = ("models", "tasks")


def chart_library() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def render_page(report: AuditReport, figures: Sequence[Figure], library: str) -> str:
    """Return the whole page.

    Parameters
    ----------
    report
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
    page = environment.from_string((templates / "report.html.j2").read_text(encoding="utf-8"))
    all_tables = tables(report)
    present = {*report.audit.sections, *(("weights",) if report.weights is not None else ())}
    present |= set() if report.estimates is None else {"models"}
    headings = _headings(report)
    sections = [
        {
            "name": name,
            "heading": headings[name][0],
            "intro": headings[name][1],
            "figures": [figure for figure in figures if figure.section == name],
            "tables": [table for table in all_tables if table.section == name],
        }
        for name in ("weights", *SECTIONS, "quality", "models")
        if name in present
    ]
    return page.render(
        report=report,
        findings=findings(report),
        sections=sections,
        assumptions=report.config.assumptions(),
        shown=_shown,
        styles=styles,
        library=library,
        script=script,
        policy=_policy(library, script),
    )


def _headings(report: AuditReport) -> dict[str, tuple[str, str]]:
    """Return the headings; a panel names its own axes and says what its noise is of."""
    estimates = report.estimates
    if estimates is None:
        return HEADINGS
    own = {
        "quality": (
            "Quality: which items tell models apart?",
            "An item that is right or wrong for every model tells nothing. One on which models do worse that do better "
            "elsewhere lowers what the score says. Two that agree beyond the models' level say the same twice. A "
            "verdict is given only where there are models enough for it.",
        ),
        "models": (
            "Models and seeds: how sure is the ranking?",
            "Models by mean score, with the ranks that each may have once all comparisons are made at once. "
            + " ".join(f"{text[0].upper()}{text[1:]}." for name, text in estimates.reasons.items() if name in RANKED),
        ),
    }
    if estimates.slopes is not None:
        axes = ", ".join(estimates.slopes.axes)
        heading, intro = HEADINGS["improvability"]
        start = f"A line through an item's scores over the dose of an axis ({axes}) gives its slope and its error. "
        own["improvability"] = (heading, start + intro[intro.index("Dividing") :])
    if estimates.noise is not None and estimates.noise.source == "trials":
        heading, intro = HEADINGS["noise"]
        start = (
            "The same model asked again gives another answer. Sigma is the standard deviation over the answers sampled "
            "in one run, with nothing trained again; "
        )
        own["noise"] = (heading, start + intro[intro.index("Z divides") :])
    return HEADINGS | own


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
