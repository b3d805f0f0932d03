"""The figures of a report: a registry of charts, their captions, and their files.

To add a figure, write its chart in ``charts_*.py`` and add a row to :func:`figures`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from textwrap import wrap
from typing import Any

import altair as alt

from benchwright._words import first_of, percent
from benchwright.auditing.results import NoiseAudit
from benchwright.board.results import Leaderboard
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.estimating.estimates import PanelEstimates
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult
from benchwright.mechanism.point_weights import PointWeights
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.report import charts_audit as audit_charts
from benchwright.report import charts_panel as panel_charts
from benchwright.report.contents import AuditReport
from benchwright.report.figures_game import figures_of_game
from benchwright.report.figures_weights import board_figures, weight_figures
from benchwright.report.figures_welfare import evidence_figures
from benchwright.report.style import WIDTH, Chart

PNG_SCALE = 2.0
LINE = 110  # characters of a caption in a line over a chart
NOT_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "\ufffd")
WIDE = ("welfare-scatter", "welfare-changes", "cost-quantiles", "noise-quantiles", "score-curves")


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart: file name, section of the report, title, what it shows, and its Vega-Lite specification."""

    name: str
    section: str
    title: str
    caption: str
    spec: dict[str, Any]

    @property
    def wide(self) -> bool:
        """Whether the page gives the figure a row of its own."""
        return self.name in WIDE

    def for_page(self) -> str:
        """Return the specification as JSON that fills its container and is safe inside a script element."""
        spec = copy.deepcopy(self.spec)
        spec["width"] = "container"
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
        spec["config"]["background"] = "transparent"
        spec["description"] = f"{self.title}. {self.caption}"
        text = json.dumps(spec, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def chart(self) -> Chart:
        """Return the figure as an Altair chart under its title and caption; it carries its rows."""
        title = {"text": self.title, "subtitle": wrap(self.caption, LINE), "anchor": "start", "offset": 12}
        spec = copy.deepcopy(self.spec) | {"title": title, "description": self.caption}
        rows = spec.pop("datasets", alt.Undefined)  # set at the end: altair would look at every row
        chart: Chart = alt.Chart.from_dict(spec)
        chart.datasets = rows
        return chart

    def svg(self) -> str:
        """Return the chart as a static SVG."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.spec))


def svg_to_png(svg: str) -> bytes:
    """Return a rendered SVG as PNG."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))


def figures(report: AuditReport) -> tuple[Figure, ...]:
    """Return the figures that this report has the data for, in reading order."""
    return _figures_of(_charts(report))


def game_figures(game: GameResult) -> tuple[Figure, ...]:
    """Return the figures of a ranking game, in reading order."""
    return _figures_of(figures_of_game(game))


def charts(result: AuditReport | GameResult) -> dict[str, Chart]:
    """Return the figures of a report or of a ranking game as Altair charts, by name, for a notebook.

    Parameters
    ----------
    result
        What :func:`benchwright.audit` or :func:`benchwright.answer_file` returned.

    Returns
    -------
    dict
        Charts in reading order, of the same rows as the figures of report.html; empty where the result has none.

    Raises
    ------
    UsageError
        ``result`` has no figures.
    """
    if isinstance(result, AuditReport):
        return {figure.name: figure.chart() for figure in figures(result)}
    if isinstance(result, GameAnswer | ProtocolComparison | VariantReport):
        return {figure.name: figure.chart() for figure in game_figures(result)}
    raise UsageError(
        f"`result` has no figures: {type(result).__name__}", hint="give what `audit` or `answer_file` returned"
    )


def figures_at_once(weights: PointWeights | None, board: Leaderboard | None, config: Config) -> tuple[Figure, ...]:
    """Return the figures of weights and of the board under them, without the rest of a report."""
    rows = () if weights is None else weight_figures(weights, config)
    return _figures_of(chain(rows, () if board is None else board_figures(board)))


def _specification(chart: Chart) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema", None)  # names a public address; nothing needs it
    spec["width"] = WIDTH
    drawable: dict[str, Any] = _drawable(spec)
    return drawable


def _drawable(value: Any) -> Any:
    """Return a specification whose text XML can hold: other characters end the process that draws the SVG."""
    if isinstance(value, str):
        return value.translate(NOT_XML)
    if isinstance(value, dict):
        return {key: _drawable(entry) for key, entry in value.items()}
    return [_drawable(entry) for entry in value] if isinstance(value, list) else value


_Row = tuple[str, str, str, str, Chart | None]


def _figures_of(rows: Iterator[_Row]) -> tuple[Figure, ...]:
    return tuple(
        Figure(name, section, title, caption, _specification(chart))
        for name, section, title, caption, chart in rows
        if chart is not None
    )


def _charts(report: AuditReport) -> Iterator[_Row]:
    yield from _welfare(report)
    yield from evidence_figures(report)
    improvability, noise = report.audit.improvability, report.audit.noise
    if improvability is not None:
        yield (
            "cost-quantiles",
            "improvability",
            "What a full unit of score costs, cheapest item first",
            "Each dot is an item at the price of its cheapest axis; diamonds mark the 1, 10, 50, 90 and "
            "99 % items, bars the interval of their rank. Click a name in the legend to single it out.",
            audit_charts.cost_curve(improvability) if _has_curve(report) else None,
        )
    if noise is not None and report.estimates is not None:
        yield from _panel_noise(noise, report.estimates)
    elif noise is not None:
        yield (
            "noise-quantiles",
            "noise",
            "How far a score moves with the training seed, quietest item first",
            "Standard deviation over seeds at the same checkpoint; diamonds and bars as above.",
            audit_charts.noise_curve(noise),
        )
        yield (
            "noise-families",
            "noise",
            "Seed noise by family, next to a coin flip",
            "Median Z per family: seed noise divided by the noise of a coin with the same mean score. The "
            "dashed line is the paper's reference 1/sqrt(K); items may lie below "
            "it. Bars are intervals of the median over the family's items.",
            audit_charts.family_noise(noise),
        )
        yield (
            "noise-margins",
            "noise",
            "Margins and noise by family",
            "On items that models get right: log-likelihood per character of the right answer over that of the best "
            "wrong one; at the dashed line they tie.",
            audit_charts.family_margins(noise),
        )
    if report.estimates is not None:
        yield from _panel(report, report.estimates)
    if report.weights is not None:
        yield from weight_figures(report.weights, report.config)
    if report.board is not None:
        yield from board_figures(report.board)
    if report.game is not None:
        yield from figures_of_game(report.game)


def _has_curve(report: AuditReport) -> bool:
    """Return whether items are ranked by cost; those of a panel may have no price."""
    improvability = report.audit.improvability
    return report.estimates is None or (improvability is not None and improvability.items["cost_rank"].count() > 1)


def _panel_noise(noise: NoiseAudit, estimates: PanelEstimates) -> Iterator[_Row]:
    """Yield what published tables show too, in the words of seeds or of trials, and what noise is made of."""
    of_trials = estimates.noise is not None and estimates.noise.source == "trials"
    over, mover = ("sampled answers", "luck of an answer") if of_trials else ("seeds", "training seed")
    yield (
        "noise-quantiles",
        "noise",
        f"How far a score moves with the {mover}, quietest first",
        f"Standard deviation over {over} at the same checkpoint. Each dot is one that lies within the eligibility "
        "limits; diamonds mark the 1, 10, 50, 90 and 99 % places, bars the interval of their rank.",
        panel_charts.noise_curve(noise, over),
    )
    families = noise.by_family.drop_nulls("median_z")
    shown = replace(noise, by_family=panel_charts.named_families(families))
    caption = f"Median Z per family: the noise over {over} divided by that of a coin with the same mean score. "
    if of_trials:
        shown = replace(shown, reference_z=1.0)
        caption += "The dashed line is the coin. "
    else:
        caption += "The dashed line is the paper's reference 1/sqrt(K) of K checkpoints; items may lie below it. "
    caption += "Bars are intervals of the median over the family's items."
    if families.height > panel_charts.MAX_FAMILIES:
        caption += f" The noisiest {panel_charts.MAX_FAMILIES} of {families.height:,} families."
    yield (
        "noise-families",
        "noise",
        "Noise by family, next to a coin flip",
        caption,
        audit_charts.family_noise(shown) if families.height > 1 else None,
    )
    yield (
        "noise-margins",
        "noise",
        "Margins and noise by family",
        "On items that models get right: log-likelihood per character of the right answer over that of the best "
        "wrong one; at the dashed line they tie.",
        audit_charts.family_margins(shown) if families.height > 1 else None,
    )
    aggregate, unit = estimates.aggregate, estimates.measured.level
    if aggregate.reliability.height:
        yield (
            "seeds-needed",
            "noise",
            "How many seeds would settle a difference",
            f"Standard error of a model's mean score. Below the dashed line two models that differ by "
            f"{aggregate.score_step:g} are told apart with probability 0.8 (level 0.05). A line per number of {unit}s: "
            "more of them average out what each moves alone, and do nothing against what a seed moves together, so "
            "that the lines crowd; more seeds help against both.",
            panel_charts.seeds_needed(aggregate, estimates.measured.items.height, unit),
        )
    yield (
        "variance-components",
        "noise",
        "What moves the score of one run",
        "Shares of the variance: what a seed keeps at all checkpoints, what it moves at single ones, the sampling of "
        f"answers, and the drawing of other {unit}s like these. In brackets the standard deviation of one run's score "
        f"on these {unit}s. A part estimated below 0 has no bar; with one checkpoint all that moves is under seed."
        + first_of(panel_charts.MAX_SCOPES, panel_charts.mixed_scopes(aggregate).height, "task"),
        panel_charts.variance_components(aggregate),
    )


def _panel(report: AuditReport, estimates: PanelEstimates) -> Iterator[_Row]:
    level = percent(report.config.resampling.level, 0)
    if estimates.slopes is not None and report.audit.improvability is not None:
        yield (
            "slope-certainty",
            "improvability",
            "Which slopes are beyond doubt",
            f"Whether the {level} interval of an item's slope lies above 0 (the score rises with the dose), below it, "
            "or on both sides; in brackets the items with a slope. Intervals hold one by one: where a dose moves "
            f"nothing, {percent(1 - report.config.resampling.level)} of items would still come out on one side.",
            panel_charts.slope_certainty(estimates.slopes),
        )
    if report.audit.quality is not None:
        yield (
            "item-rest",
            "quality",
            "Do items agree with the rest?",
            "Correlation over models of an item's score with the mean of the other items. Below 0, better models do "
            "worse on the item, which may be chance: verdicts hold false discoveries at "
            f"{percent(report.config.estimates.false_discovery)}.",
            panel_charts.item_rest(report.audit.quality),
        )
    models = estimates.models
    if models is not None and models.frame.height > 1:
        many = first_of(panel_charts.MAX_MODELS, models.frame.height, "model")
        notes = "".join(f" {note}" for note in models.notes)
        yield (
            "model-scores",
            "models",
            "Models by mean score",
            f"Bars are {level} intervals, each for itself. The uncertainty is that of {models.uncertainty}.{notes}"
            + many,
            panel_charts.model_scores(models),
        )
        yield (
            "model-ranks",
            "models",
            "The ranks that models may have",
            f"Diamonds are the ranks seen, bars the ranks that the data allow; all bars together hold at {level}. Two "
            f"models whose bars overlap may stand the other way round.{many}",
            panel_charts.model_ranks(models),
        )
    snr = estimates.aggregate.snr.drop_nulls("snr")
    yield (
        "signal-to-noise",
        "models",
        "Signal to noise",
        "Signal is the spread of the models' last scores, (max - min) / mean; noise the standard deviation of one "
        f"model's score over {' or '.join(snr['noise_over'].unique().sort())}, relative to its mean, averaged over "
        "models (Heineman et al. 2025)."
        + (
            f" Of {snr.height:,} tasks the {panel_charts.MAX_BARS // 2} highest and lowest."
            if snr.height > panel_charts.MAX_BARS
            else ""
        ),
        panel_charts.signal_to_noise(estimates.aggregate),
    )


def _welfare(report: AuditReport) -> Iterator[_Row]:
    welfare = report.audit.welfare
    if welfare is None:
        return
    if welfare.activities.height:
        threshold = report.config.welfare.quadrant_threshold
        intervals = None if report.evidence is None else report.evidence.intervals
        bars = ""
        colours = (
            "Green: workers want it automated and want help; blue: automation only; orange: help only; red: neither."
            if welfare.says_workers
            else "Green: valued high under both framings; blue: automation only; orange: help only; red: neither."
        )
        if intervals is not None and report.evidence is not None:
            level = percent(report.evidence.level, 0)
            bars = (
                f" Bars: {level} intervals over workers and tasks, of activities that at least "
                f"{percent(audit_charts.COMMON)} of items load on, cut at the frame."
            )
        for framing, verb in (("automation", "could take over"), ("augmentation", "could help with")):
            yield (
                f"activity-map-{framing}",
                "welfare",
                f"What the items stand for, asked as: work that a model {verb}",
                "Each bubble is a kind of work; its area is the share of items whose top activities include it. "
                f"{colours} Move the threshold to see how much hangs on it.{bars}",
                audit_charts.activity_map(welfare, framing, threshold, intervals),
            )
    yield (
        "welfare-scatter",
        "welfare",
        "Welfare of every item, both ways of asking",
        "Up and right is better. The line is the Pareto frontier: no other item matches or beats those on both "
        "counts and beats them on one. Of more than 2,000 items an even selection is drawn, and the whole frontier."
        + (" Bars: one standard error either way, of items on the frontier." if "w_auto_se" in welfare.items else ""),
        audit_charts.welfare_scatter(welfare),
    )
    if welfare.contrast is not None:
        for column, title in (("w_auto", "welfare if automated"), ("w_aug", "welfare if it helps")):
            yield (
                f"welfare-ecdf-{column.removeprefix('w_')}",
                "welfare",
                f"Distribution of {title}",
                "Where one curve lies to the right, its family has more welfare at that level; where curves cross, "
                "neither leads throughout.",
                audit_charts.welfare_ecdf(welfare, welfare.contrast, column, f"{title} ({column})"),
            )
