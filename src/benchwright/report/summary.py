"""``summary.json``: every figure of the report under stable names, the same bytes for the same inputs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import polars as pl

from benchwright import __version__
from benchwright._json import json_safe
from benchwright.auditing.contrast import Contrast
from benchwright.auditing.results import FamilyContrast, ImprovabilityAudit, NoiseAudit, WelfareAudit
from benchwright.game_answers.inputs import GameResult
from benchwright.logs.item_tables import PERSPECTIVES
from benchwright.logs.source_file import SourceFile
from benchwright.report.contents import AuditReport
from benchwright.report.findings import findings, game_findings
from benchwright.report.page_game import game_assumptions, game_notes
from benchwright.report.summary_panel import panel_summary
from benchwright.report.summary_weights import weight_summary


def summary(report: AuditReport) -> dict[str, Any]:
    """Return the report's figures as one JSON-safe record; undefined values are null, never 0.

    Under ``audit`` the names are those of the published figures; families are named as the family map names
    them. ``weights`` is null where the source cannot support weights; ``no_weights`` then says why.
    """
    source = report.source
    record: dict[str, Any] = {
        "benchwright": report.version,
        "source": {
            "name": source.name,
            "simulated": source.simulated,
            "files": [asdict(file) for file in source.files],
        },
        "findings": [asdict(finding) for finding in findings(report)],
        "audit": _audit(report),
        "weights": None if report.weights is None else weight_summary(report.weights),
        "no_weights": report.no_weights,
        "leaderboard": {"written": report.no_leaderboard is None, "why": report.no_leaderboard},
        "rescored": {"why": report.no_board} if report.board is None else report.board.to_dict(),
        "game": None if report.game is None else report.game.to_dict(),
        "panel": None if report.estimates is None else panel_summary(report.estimates),
        "notes": report.notes,
        "assumptions": [asdict(assumption) for assumption in report.config.assumptions()],
    }
    safe: dict[str, Any] = json_safe(record)
    return safe


def summary_text(report: AuditReport) -> str:
    """Return the summary as JSON text."""
    return json.dumps(summary(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def game_summary_text(game: GameResult, files: tuple[SourceFile, ...] = ()) -> str:
    """Return the summary of a ranking game alone, as JSON text; its figures stand under ``game``."""
    record = {
        "benchwright": __version__,
        "source": {"files": [asdict(file) for file in files]},
        "findings": [asdict(finding) for finding in game_findings(game)],
        "game": game.to_dict(),
        "notes": game_notes(game),
        "assumptions": [asdict(assumption) for assumption in game_assumptions(game)],
    }
    return json.dumps(json_safe(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _audit(report: AuditReport) -> dict[str, Any]:
    audit = report.audit
    record: dict[str, Any] = {}
    if audit.welfare is not None:
        record |= _welfare(audit.welfare)
    if audit.noise is not None:
        record |= _noise(audit.noise)
    if audit.improvability is not None:
        record |= _improvability(audit.improvability)
    if report.weights is not None:
        record["joined_items_with_all_three_axes"] = report.weights.items.height
    if report.evidence is not None and audit.welfare is not None:
        record["welfare_rests_on"] = report.evidence.to_dict() | {"standard_errors": _errors(audit.welfare)}
    return record


def _welfare(welfare: WelfareAudit) -> dict[str, Any]:
    known = welfare.items.drop_nulls(["w_auto", "w_aug"])
    record: dict[str, Any] = {"largest_gap_to_published_welfare": welfare.published_gap}
    if welfare.activities.height:
        marks = [name for name in welfare.activities.columns if name.startswith("quadrant_at_")]
        record["gwa_loading_fraction"] = {
            row["activity"]: {name: row[name] for name in PERSPECTIVES}
            | {mark: "low" if row[mark] == "red" else row[mark] for mark in marks}
            for row in welfare.activities.iter_rows(named=True)
        }
        slots: dict[str, Any] = {}
        items: dict[str, Any] = {}
        for row in welfare.quadrants.iter_rows(named=True):
            threshold = f"threshold {row['threshold']}"
            share = None if row["share"] is None else 100 * row["share"]
            if row["unit"] == "items":
                items.setdefault(threshold, {})[row["quadrant"]] = share
            else:
                framing = row["unit"].removesuffix(" slots")
                slots.setdefault(threshold, {}).setdefault(framing, {})[row["quadrant"]] = share
        record |= {"slot_mass_percent": slots, "item_mass_percent": items}
    contrast = {} if welfare.contrast is None else _contrast(welfare.contrast)
    record["pareto"] = contrast | {"n_items": known.height, "frontier_size": int(known["on_frontier"].sum())}
    if welfare.robustness.height:
        record["robustness"] = {
            row.pop("variant"): {key: value for key, value in row.items() if not key.startswith("dominated_")}
            | {
                f"pct_{welfare.robustness_first}_dominated_{which}": None if share is None else 100 * share
                for which in ("default", "variant")
                for share in (row[f"dominated_{which}"],)
                if welfare.robustness_first is not None
            }
            for row in welfare.robustness.iter_rows(named=True)
        }
    return record


def _errors(welfare: WelfareAudit) -> dict[str, Any]:
    """Return the median standard error of item welfare by framing, null where none is known."""
    columns = {name: f"w_{name}_se" for name in ("auto", "aug")}
    known = welfare.items.columns
    return {f"median_{name}": welfare.items[of].median() if of in known else None for name, of in columns.items()}


def _contrast(contrast: FamilyContrast) -> dict[str, Any]:
    first, second, frontier = contrast.first, contrast.second, contrast.frontier
    return {
        f"n_{first}": contrast.w_auto.first.n_items,
        f"n_{second}": contrast.w_auto.second.n_items,
        f"{first}_definition": contrast.definition,
        f"frontier_{first}": frontier.first_on_frontier,
        f"frontier_{second}": frontier.second_on_frontier,
        f"{first}_dominated_by_{second}_percent": 100 * frontier.first_dominated,
        f"{second}_dominated_by_{first}_percent": 100 * frontier.second_dominated,
        f"median_{second}_dominators_per_{first}_item": frontier.median_second_dominators,
        "w_auto": _one_contrast(contrast.w_auto),
        "w_aug": _one_contrast(contrast.w_aug),
        "clusters": {first: contrast.w_auto.first.n_tasks, second: contrast.w_auto.second.n_tasks},
        "replicates": contrast.w_auto.replicates,
    }


def _one_contrast(contrast: Contrast) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for family in (contrast.first, contrast.second):
        record |= {f"{family.name}_mean": family.mean, f"{family.name}_median": family.median}
    level = f"{100 * contrast.level:g}".replace(".", "_")
    return record | {
        "difference": contrast.difference,
        "difference_standard_error": contrast.standard_error,
        f"cluster_bootstrap_{level}": contrast.interval,
        "cluster_permutation_p_two_sided": contrast.permutation_p,
        "cluster_permutation_p_one_sided": contrast.permutation_p_one_sided,
        "first_order_dominance": asdict(contrast.dominance) | {"holds_in_sample": contrast.dominance.holds_in_sample},
        "ks_D": contrast.ks_statistic,
        "ks_p": contrast.ks_p,
        "mann_whitney_p_two_sided": contrast.mann_whitney_p,
        "mann_whitney_p_one_sided": contrast.mann_whitney_p_one_sided,
    }


def _noise(noise: NoiseAudit) -> dict[str, Any]:
    names = {"median_z": "median_Z", "median_ratio": "median_log_ratio", "r_ratio_z": "r_ratio_Z"}
    eligible = noise.items.filter("noise_eligible")
    return {
        "noise_by_family": list(noise.by_family.rename(names).iter_rows(named=True)),
        "noise_quantiles_sigma": _quantiles(noise.quantiles),
        "noise": {
            "n": eligible.height,
            "tasks": eligible["task"].n_unique(),
            "families": noise.families,
            "reference_Z": noise.reference_z,
            "share_below_reference_Z": noise.share_below_reference,
        },
    }


def _improvability(improvability: ImprovabilityAudit) -> dict[str, Any]:
    table = improvability.by_axis
    return {
        "cost_quantiles_usd_per_unit": _quantiles(improvability.quantiles),
        "cost": {
            "n": int(improvability.items["cost_eligible"].sum()),
            "share": dict(table.select("axis", "share_cheapest").iter_rows()),
            "median_usd_per_unit": dict(table.select("axis", "median_usd_per_unit").iter_rows()),
            "cost_times_slope": dict(table.select("axis", "implied_price_usd").iter_rows()),
            "price_usd_per_slope_unit": dict(table.select("axis", "price_usd").iter_rows()),
        },
    }


def _quantiles(table: pl.DataFrame) -> dict[str, Any]:
    return {
        str(row["quantile"]): {
            "position": row["position"],
            "value": row["value"],
            "task": row["task"],
            "doc_id": row["doc_id"],
            "rank_headline": row["position"],
            "rank_interval": None if row["rank_lo"] is None else [row["rank_lo"], row["rank_hi"]],
        }
        for row in table.filter(pl.col("offset") == 0).iter_rows(named=True)
    }
