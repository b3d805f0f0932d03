"""Findings that only a panel gives: how sure ranks are, seeds needed, slopes beyond doubt, quality, what is not told.

Each is a section, a title and a text; :mod:`benchwright.report.findings` says what holds for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, sqrt
from typing import Literal

import numpy as np
import polars as pl

from benchwright._words import count, percent
from benchwright.auditing.results import NoiseAudit
from benchwright.estimating.estimates import PanelEstimates
from benchwright.estimating.ranking import Ranking, last_runs
from benchwright.estimating.slopes import SlopeEstimate
from benchwright.report.contents import AuditReport
from benchwright.report.tables_panel import plain_names, slope_verdicts

Section = Literal["welfare", "improvability", "noise", "weights", "quality", "models", "panel", "game"]
Row = tuple[Section, str, str]
NAMED = 5  # models that a sentence names
LONGEST_NAME = 60
ERRORS = {"ols": "ordinary standard errors", "hc3": "robust standard errors", "seed": "errors clustered by seed"}


def of_models(report: AuditReport) -> Iterator[Row]:
    """Yield how sure the ranking is and how many seeds would make it so."""
    estimates = report.estimates
    if estimates is None:
        return
    if estimates.models is not None:
        yield _models(estimates.models, report.config.resampling.level)
    if report.audit.noise is not None:
        yield _seeds(estimates)


def of_items(report: AuditReport) -> Iterator[Row]:
    """Yield what slopes, quality and the lack of either say of the items."""
    estimates = report.estimates
    if estimates is None:
        return
    if estimates.slopes is not None and report.audit.improvability is not None:
        yield _slopes(estimates.slopes, report.config.resampling.level, noun(estimates))
    if report.audit.quality is not None:
        yield _quality(estimates, report.config.estimates.false_discovery)
    reasons = [*estimates.reasons.values()]
    if report.no_weights is not None and not (report.inputs is not None and report.inputs.without):
        reasons.append(f"no weights: {report.no_weights}")
    if reasons:
        text = " ".join(f"{reason[0].upper()}{reason[1:].rstrip('.')}." for reason in reasons)
        yield "panel", "What this panel cannot tell", text


def noun(estimates: PanelEstimates) -> str:
    """Return what an item of the audit is: an item, or a task that stands for itself."""
    return "item" if estimates.measured.level == "item" else "task"


def identical_runs(estimates: PanelEstimates) -> bool:
    """Return whether nothing that was repeated ever differed."""
    noise = estimates.noise
    return noise is not None and not (noise.items["sigma2"].fill_null(0) > 0).any()


def of_noise(noise: NoiseAudit, estimates: PanelEstimates) -> Iterator[Row]:
    """Yield what stands in for the comparison with a coin flip where no item has a Z within the limits."""
    known = noise.items.drop_nulls("sigma")
    if identical_runs(estimates):
        same, what = "runs of one checkpoint", "training again: greedy decoding of one model, or copies, look like this"
        if estimates.noise is not None and estimates.noise.source == "trials":
            same, what = "trials of one run", "other runs: greedy decoding repeats itself"
        text = f"All {same} agree on every one of {count(known.height, noun(estimates))}, which says nothing of {what}."
        yield "noise", "Repeats are identical, so noise is not seen", text
    elif known.height:
        over = "the samples of one run" if estimates.noise and estimates.noise.source == "trials" else "seeds"
        median = float(np.median(known["sigma"].to_numpy()))
        text = (
            f"The median {noun(estimates)} of {known.height:,} has a standard deviation of {median:.3g} over {over}. "
            "Not one with scores in [0, 1] lies within the eligibility limits, so none is compared with a coin flip."
        )
        yield "noise", "How far a score moves between repeats", text


def _models(ranking: Ranking, level: float) -> Row:
    frame = ranking.frame
    n, pairs = frame.height, frame.height - 1
    unsure = f"The uncertainty is that of {ranking.uncertainty}.{''.join(f' {note}' for note in ranking.notes)}"
    certain = frame["standard_error"].null_count()
    if certain == n:
        text = (
            f"The error is 0 for {'each of ' if pairs else ''}{count(n, 'model')}: what would tell how sure a score is"
        )
        return "models", "Nothing tells how sure scores are", f"{text} never differs. {unsure}"
    if pairs == 0:
        row = frame.row(0, named=True)
        low, high = (f"{row[name]:.3g}" for name in ("score_lo", "score_hi"))
        text = f"{names_of([row['name']])} scores {row['score']:.3g} ({percent(level, 0)} interval {low} to {high})."
        return "models", "There is one model, so nothing is ranked", f"{text} {unsure}"
    lo, hi = frame["rank_lo"].to_numpy(), frame["rank_hi"].to_numpy()
    apart = int((hi[:-1] < lo[1:]).sum())
    title = f"By their sets of ranks, {apart or 'none'} of {pairs} pairs of neighbouring models are told apart"
    if pairs == 1:
        title = f"The two models are {'' if apart else 'not '}told apart"
    everywhere = int(np.triu(hi[:, None] < lo[None, :], 1).sum())
    firsts = frame.filter(pl.col("rank_lo") == 1)["name"].to_list()
    text = (
        f"Each of {n} models has a set of ranks that it may hold; all sets hold at once at {percent(level, 0)}. They "
        f"do not overlap for {apart} of {count(pairs, 'pair')} of neighbours"
    )
    text += f" and {everywhere:,} of all {n * pairs // 2:,} pairs." if pairs > 1 else "."
    text += f" First {'is' if len(firsts) == 1 else 'may be'} {names_of(firsts)}. {unsure}"
    if certain:
        text += f" No interval for {count(certain, 'model')} without any spread, which does not make a score certain."
    return "models", title, text


def names_of(names: Sequence[str]) -> str:
    shown = plain_names(names[:NAMED], LONGEST_NAME)
    if len(names) > NAMED:
        return f"{', '.join(shown)} or {len(names) - NAMED} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _seeds(estimates: PanelEstimates) -> Row:
    aggregate, m = estimates.aggregate, estimates.measured.items.height
    row = aggregate.reliability.filter((pl.col("n_seeds") == 1) & (pl.col("n_items") == m))
    here = row["standard_error"][0] if row.height else None
    why = None
    if estimates.noise is not None and estimates.noise.source == "trials":
        why = "the noise seen is that of sampling answers, not of training"
    elif identical_runs(estimates):
        why = "runs that are repeated are identical, so nothing tells how far another training would move"
    elif isnan(aggregate.mean_variance):
        why = f"too few {noun(estimates)}s were scored in all runs that are repeated"
    elif here is None or isnan(aggregate.seeds_needed):
        why = f"what {noun(estimates)}s move together over seeds is estimated to cancel what each moves alone"
    if why is not None or here is None:
        text = f"The seeds that a difference of {aggregate.score_step:g} needs are not estimable: {why}."
        return "noise", "How many seeds would show a difference is not known", text
    n = f"{aggregate.seeds_needed:,.0f}"
    seeds = "seed a model is" if aggregate.seeds_needed == 1 else "seeds a model are"
    title = f"About {n} {seeds} needed to show a difference of {aggregate.score_step:g}"
    times = "once" if aggregate.seeds_needed == 1 else f"{n} times"
    text = (
        f"The mean of one training over {count(m, noun(estimates))} at one checkpoint has a standard error of "
        f"{here:.2g}{_basis(estimates)}. "
        f"Two models trained {times} each are told apart at a difference of {aggregate.score_step:g} with "
        "probability 0.8 (level 0.05)."
    )
    c = aggregate.mean_covariance
    if c > 0:
        text += (
            f" More {noun(estimates)}s like these bring the error of one training down to {sqrt(c):.2g} and no "
            "further: the rest is what a seed moves together."
        )
    return "noise", title, text


def _basis(estimates: PanelEstimates) -> str:
    """Return what the noise of the benchmark rests on."""
    table = estimates.aggregate.components
    if table.height == 0:
        return ""
    row = table.row(0, named=True)
    return f", pooled over {count(row['n_seeds'], 'seed')} of {_counted(estimates, row['n_models'])}"


def _counted(estimates: PanelEstimates, n: int, noun: str = "model") -> str:
    """Return how many models ``n`` are, where one that is trained on several axes counts once on each."""
    models = estimates.measured.runs.frame.select("model", "revision").n_unique()
    if n <= models:
        return count(n, noun)
    return f"{count(n, noun)} ({models} before they were trained on one axis or another)"


def _slopes(slopes: SlopeEstimate, level: float, what: str) -> Row:
    parts, unsure = [], []
    for row in slope_verdicts(slopes).iter_rows(named=True):
        n, told = row["n"], row["n"] - row["none"]
        if told == 0:
            unsure.append(row["axis"])
            continue
        parts.append(
            f"on {row['axis']} ({count(row['runs'], 'run')}, {count(row['doses'], 'dose')}, {ERRORS[row['errors']]}) "
            f"{percent(row['above'] / n)} of {count(n, what)} rise and {percent(row['below'] / n)} fall"
        )
    title = f"Which {what}s training moves beyond doubt"
    if not parts:
        return "improvability", title, f"No slope has an interval: too few runs on {', '.join(unsure)}, or no spread."
    text = (
        f"With the dose, {'; '.join(parts)}: their {percent(level, 0)} interval lies on one side of 0. Intervals hold "
        f"one by one, so of {what}s that a dose does not move {percent(1 - level, 0)} would be counted too."
    )
    if unsure:
        text += f" No slope on {', '.join(unsure)} has an interval: too few runs, or no spread."
    return "improvability", title, text


def _quality(estimates: PanelEstimates, alpha: float) -> Row:
    quality, what = estimates.quality, noun(estimates)
    counts = quality.counts
    n, against = counts["items"], counts["rest: runs against the rest"]
    better = "trainings" if len(last_runs(estimates.measured)) == 1 else "models"
    judges = _counted(estimates, int(quality.n_models.max()), better.removesuffix("s"))
    dead = {word: counts[f"dead: {word}"] for word in ("all right", "all wrong", "constant")}
    n_dead = sum(dead.values())
    if n == 1:
        return "quality", f"One {what} alone has no rest", f"A single {what} cannot be compared with others."
    if counts["rest: cannot tell"] == n and n_dead == 0:
        text = f"With {judges} at most, it cannot be told of any {what} whether it runs against the rest."
        return "quality", f"Too few models to judge single {what}s", text + _redundant(estimates, what)
    verb = "s" if against == 1 else ""
    text = (
        f"Judged by up to {judges}, {against:,} of {count(n, what)} run{verb} against the rest: {better} that do better"
    )
    text += f" elsewhere do worse there (false discoveries held at {percent(alpha)})."
    title = f"{count(against, what)} run{verb} against the rest"
    if against == 0:
        title = f"No {what} is seen to run against the rest"
        text = (
            f"Judged by up to {judges}, no {what} of {n:,} is seen on which {better} do worse that do better elsewhere."
        )
    if n_dead:
        named = ", ".join(f"{size:,} {word}" for word, size in dead.items() if size)
        text += f" {n_dead:,} {'is' if n_dead == 1 else 'are'} dead, the same for all ({named})."
        title = title if against else f"{count(n_dead, what)} tell{'s' if n_dead == 1 else ''} no {better} apart"
    untold = counts["rest: cannot tell"] - n_dead
    text += f" Of {untold:,} it cannot be told." if untold > 0 else ""
    return "quality", title, text + _redundant(estimates, what)


def _redundant(estimates: PanelEstimates, what: str) -> str:
    counts, pairs = estimates.quality.counts, estimates.quality.pairs.height
    if counts["pairs: redundant"]:
        return f" {count(counts['pairs: redundant'], what)} have a redundant partner ({count(pairs, 'pair')})."
    if counts["pairs: cannot tell"] == counts["items"]:
        return " Whether any two are redundant cannot be told either."
    return " No redundant pair stands out from chance."
