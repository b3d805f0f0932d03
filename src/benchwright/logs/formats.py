"""The registry of log formats, most specific first. To add one, write its file and add it here."""

from __future__ import annotations

from benchwright.logs import (
    helm,
    inspect_ai,
    lighteval,
    lm_eval,
    lm_eval_v03,
    long_table,
    matrix,
    mteb,
    olmes,
    preferences,
    resolved,
    score_tables,
)
from benchwright.logs.format import Format
from benchwright.logs.log_file import Head

FORMATS: tuple[Format, ...] = (
    inspect_ai.FORMAT,
    *lm_eval.FORMATS,
    lm_eval_v03.FORMAT,
    helm.FORMAT,
    olmes.FORMAT,
    mteb.FORMAT,
    lighteval.FORMAT,
    resolved.FORMAT,
    preferences.FORMAT,
    *score_tables.FORMATS,
    *matrix.FORMATS,
    long_table.FORMAT,
)
BY_NAME = {one.name: one for one in FORMATS}


def recognise(head: Head) -> Format | None:
    """Return the first format that claims a file, None where none does."""
    return next((one for one in FORMATS if one.sniff(head)), None)
