"""The page of an audit: its sections with their headings, and where its figures come from."""

from __future__ import annotations

from collections.abc import Iterator

from benchwright._words import count
from benchwright.config import Assumption
from benchwright.logs.item_tables import SECTIONS
from benchwright.report.contents import AuditReport
from benchwright.report.findings import findings
from benchwright.report.findings_welfare import baseline_text
from benchwright.report.page import Page, Section
from benchwright.report.page_game import game_assumptions, game_notes, game_section
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
OWN_VALUES = (
    "A judge named, for each item, the activities it resembles; each activity has a value from 1 to 5, given with the "
    "activities. An item's welfare is the value of its activities, the first counting most, once as automation and "
    "once as augmentation."
)
RANKED = ("models", "tasks")
SIMULATED = "Tasks, activities and figures are invented; nothing here was measured."
CHOICES = (
    "Every choice behind the figures, with its default and where its value came from. Change one in benchwright.toml "
    "and run again."
)
METHOD = (
    "Method: Haupt, Hartenstein, Reuel, Kochenderfer and Koyejo, “Welfare, Improvability, and Variance: A "
    "Principal-Agent Approach to Optimal Benchmark Item Aggregation” (arXiv 2605.30916); multitask principal-agent "
    "theory after Holmström and Milgrom (1991). The same figures stand in summary.json, the items in items.parquet, "
    "the tables in tables/."
)


def audit_page(report: AuditReport) -> Page:
    """Return what the page of an audit shows."""
    weighed = ": welfare, cost and noise of its items, and the weights that would make its score the best incentive"
    return Page(
        title=f"Benchmark audit: {report.source.name}",
        heading="What does this benchmark reward?",
        subtitle=f"An audit of {report.source.name}{weighed if report.weights is not None else ''}.",
        banners=tuple(_banners(report)),
        findings=findings(report),
        sections=tuple(_sections(report)),
        tables=tables(report),
        choices=CHOICES,
        assumptions=tuple(assumptions_of(report)),
        notes=(*report.notes, *(() if report.game is None else game_notes(report.game))),
        files=report.source.files,
        provenance=tuple(_provenance(report)),
        version=report.version,
    )


def assumptions_of(report: AuditReport) -> Iterator[Assumption]:
    """Yield every choice, and what the game takes as given where no choice says it."""
    chosen = report.config.assumptions()
    yield from chosen
    said = {row.key for row in chosen}
    yield from (row for row in (() if report.game is None else game_assumptions(report.game)) if row.key not in said)


def _banners(report: AuditReport) -> Iterator[tuple[str, str]]:
    """Yield what to know first: what was measured, that data are simulated, that activities come from no model."""
    if report.source.about is not None:
        yield report.source.about
    if report.source.simulated:
        apart = "" if report.game is None else " The ranking game alone is no part of it."
        yield "Simulated data.", f"{SIMULATED}{apart}"
    if report.evidence is not None and report.evidence.baseline:
        yield "Baseline, no judge.", baseline_text(report.evidence)


def _sections(report: AuditReport) -> Iterator[Section]:
    present = {*report.audit.sections, *(("weights",) if report.weights is not None else ())}
    present |= set() if report.estimates is None else {"models"}
    headings = _headings(report)
    if report.audit.welfare is not None and not report.audit.welfare.says_workers:
        headings = headings | {"welfare": (HEADINGS["welfare"][0], OWN_VALUES)}
    for name in ("weights", *SECTIONS, "quality", "models"):
        if name in present:
            yield Section(name, name.capitalize(), *headings[name])
    if report.game is not None:
        yield game_section(report.game)


def _provenance(report: AuditReport) -> Iterator[str]:
    if report.estimates is not None:
        measured = report.estimates.measured
        names = " Its manifest names the logs that it was made of." if measured.has_manifest else ""
        yield (
            f"Estimated from the panel ({report.source.name}) by the engine {measured.engine}: "
            f"{count(measured.runs.frame.height, 'run')}, {count(measured.items.height, measured.level)}.{names}"
        )
    elif report.source.simulated:
        yield "The items were drawn by benchwright.simulate, from no file."
    for judge in () if report.evidence is None or report.source.simulated else report.evidence.judges:
        yield str(judge)
    yield METHOD


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
