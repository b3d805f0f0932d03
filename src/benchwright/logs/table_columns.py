"""What the columns of a table mean, told from their names: the documented synonyms, and the layout they make.

Names are compared without case, with spaces and hyphens as ``_``. Of the synonyms of a role the first that a table
has counts. The first column of a wide table decides: ``model`` or ``system`` (rows are models, columns tasks),
``run`` or ``seed`` (rows are runs of one model), an item name (rows are items, columns models).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

from benchwright.logs.table_cells import MISSING, as_number

ROLES: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_name", "model_id", "model_path", "mpath", "system", "system_name", "submission"),
    "revision": ("revision", "model_revision", "model_sha"),
    "subject": ("subject", "subtask", "subset", "metadata.subject"),
    "task": ("task", "task_name", "dataset", "dataset_name", "benchmark", "benchmark_name", "benchmark_id"),
    "version": ("task_version", "version"),
    "item": (
        *("doc_id", "item_id", "item", "question_id", "qid", "instance_id", "example_id", "problem_id"),
        *("id", "idx", "index", "pairid", "task_id"),
    ),
    "hash": ("item_hash",),
    "cluster": ("cluster", "cluster_id", "passage_id", "passage", "context_id", "story_id", "document_id"),
    "metric": ("metric", "metric_name", "measure"),
    "filter": ("filter", "extractor", "answer_extractor"),
    "seed": ("seed", "random_seed", "train_seed", "training_seed"),
    "step": ("step", "checkpoint", "global_step", "training_step", "train_step"),
    "axis": ("axis", "training_axis"),
    "dose": ("dose", "effort"),
    "dose_unit": ("dose_unit", "doses_in"),
    "tokens": ("tokens_seen", "train_tokens", "training_tokens"),
    "time": ("tstamp", "timestamp", "datetime", "created_at", "created", "date", "time"),
    "run": ("run", "run_id", "run_name"),
    "repeat": ("repeat", "replicate", "trial", "epoch", "attempt", "sample", "sample_index", "sample_idx"),
    "stderr": ("stderr", "se", "std_err", "standard_error", "sem", "se(a)"),
    "trials": ("count", "n", "trials", "n_trials", "total", "n_total", "n_samples", "num_samples", "n_items", "k"),
    "successes": ("n_correct", "num_correct", "correct_count", "number_correct", "successes"),
    "direction": ("higher_is_better",),
    "status": ("status",),
    "error": ("error", "error_message", "exception"),
    "gold": ("gold", "target", "answer", "label"),
    "choices": ("scores", "choice_logprobs", "choice_loglikelihoods", "logprobs"),
}
# Settings of a run: what tells two runs of one model apart.
SETTINGS = (
    *("method", "condition", "temperature", "prompt_style", "metadata.prompt_style", "num_fewshot", "n_shot"),
    *("fewshot", "hyperparams", "quantization", "precision", "stage", "ingredient", "rl_thinking_length"),
)
# The text of an item, hashed; a passage only where nothing else names the item.
ITEM_TEXTS = ("question", "problem", "passage", "premise")  # may name an item where no id does
TEXTS = ("question", "prompt", "problem", "premise", "hypothesis", "choices", "options")
GENERIC = ("score", "value", "result", "judgement", "judgment", "raw", "raw_score")
METRICS = frozenset(
    (
        *GENERIC,
        *("acc", "accuracy", "acc_norm", "correct", "is_correct", "exact_match", "em", "f1", "mcc", "pass1", "pass@1"),
        *(
            "success",
            "resolved",
            "passed",
            "win_rate",
            "bleu",
            "rouge1",
            "rouge2",
            "rougel",
            "perplexity",
            "word_perplexity",
        ),
        *("byte_perplexity", "bits_per_byte", "brier_score", "log_odds", "logodds", "ar_acc", "ar_mean_rank"),
    )
)
PASS_RATES = ("pass1", "pass@1")  # beside these, a count is of samples for each item, not of items
RATES = (*PASS_RATES, "acc", "accuracy", "correct")  # what right answers divided by all are called
LOWER = re.compile(r"perplexity|\bppl\b|bits_per_byte|\bbpb\b|brier|(^|[ _])loss$|mean_rank|word_error_rate|\bwer\b")
HIGHER = re.compile(
    r"(^|[ _])(acc|accuracy|acc_norm|correct|is_correct|exact_match|em|f1|mcc|bleu|rouge[12l]|resolved|pass@?\d+"
    r"|win_rate)$"
)
STATED_TOTAL = re.compile(r"correct.*\bout[ _]of[ _](\d{1,9})\b|correct[ _]?/[ _]?(\d{1,9})\b", re.I)
PAIR = re.compile(r"^(baseline|compressed|reference|pilot|delta)_|flip_rate|winner|mcnemar|^model_[ab]$")
STATISTIC = re.compile(
    r"^(difficulty|discrimination|ability|theta|guessing[_ ]?(rate)?|feasibility|leh|fisher_information)$"
)
METADATA = re.compile(
    r"^(family|organi[sz]ation|licen[sc]e|size|params?|parameters|n_params|.*params?_[bm]|.*tokens(_[btm])?|url|"
    r"release(_date)?|.*flops|hidden_size|n_layers|n_heads|architecture|type|revision|date|submitted_by)$"
)
LABELS = ("", "prediction", "predictions", "pred", "gold_label", "predicted", "predicted_label", "label")
SUMMARY = frozenset(
    (
        *("mean", "average", "avg", "median", "minimum", "min", "maximum", "max", "standard deviation", "std"),
        *("std dev", "stdev", "sd", "total", "all models"),
    )
)
SPREAD = re.compile(r"se(_\w+)?\(.*\)|(se|sem|std|stderr|std_err|standard_error|variance)(_\d+)?|ci([_(].*)?")
SPREAD_OF = re.compile(r"(.+?)_(se|sem|std|stderr|std_err|standard_error|variance|ci|ci_low|ci_high|ci_lower|ci_upper)")
AGGREGATE = re.compile(r"^(overall.*|average|avg|mean|macro.*|micro.*|.*_average|.*_avg)$")
RANK = re.compile(r"^(rank|#|position|place)$")
# What a column of a wide table says of a run; the rest are results.
OF_RUN = ("revision", "run", "seed", "step", "axis", "dose", "dose_unit", "tokens", "time")
FIRST_RUN = ("run", "seed")
FIRST_ITEM = (*ROLES["item"], "items", "question", "example", "problem", "instance")
SAMPLE_LOG_KEYS = frozenset(("arguments", "resps", "filtered_resps", "doc", "model_output", "requests", "native_id"))

Layout = Literal["long", "models", "runs", "items", "bare", "pairs", "predictions", "statistics", "metadata", "unclear"]


def plain(name: str) -> str:
    """Return a column name as it is compared."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def is_label(name: str) -> bool:
    """Whether a name heads the first column of a wide table."""
    return label_word(name) in (*ROLES["model"], *FIRST_RUN, *FIRST_ITEM)


def label_word(name: str) -> str:
    """Return the plain name of a first column, without what stands in brackets: ``item (out of 10)``."""
    return re.sub(r"_?\(.*", "", plain(name))


def label_place(names: Sequence[str]) -> int:
    """Return the place of the column that names the rows: after a nameless one, an index that pandas wrote.

    >>> label_place(["", "model", "t1"]), label_place(["task", "item", "A"])
    (1, 0)
    """
    return 1 if len(names) > 1 and not names[0] and is_label(names[1]) else 0


def is_spread(name: str, words: Collection[str]) -> bool:
    """Whether a column holds the uncertainty of another: of one of the columns whose plain names are ``words``.

    >>> is_spread("arc_stderr", ["model", "arc", "arc_stderr"]), is_spread("noun_se", ["model", "noun_se"])
    (True, False)
    """
    word = plain(name)
    found = SPREAD_OF.fullmatch(word)
    return SPREAD.fullmatch(word) is not None or (found is not None and found[1] in words)


def recognise(names: Sequence[str]) -> dict[str, str]:
    """Return the column of each role that a table has.

    >>> recognise(["Model", "question id"])
    {'model': 'Model', 'item': 'question id'}
    """
    known = {plain(name): name for name in reversed(names)}
    found = {role: next((known[word] for word in words if word in known), None) for role, words in ROLES.items()}
    return {role: name for role, name in found.items() if name is not None}


def value_columns(names: Sequence[str], sample: Sequence[Sequence[Any]]) -> list[str]:
    """Return the columns that hold values: the generic one where a metric is named, else all known metrics.

    A known name whose first cells are all text (``correct`` as the right answer) is none where another has numbers.
    """
    found = [name for name in dict.fromkeys(names) if plain(name) in METRICS or STATED_TOTAL.search(name)]
    numeric = [name for name in found if is_numeric([cells[names.index(name)] for cells in sample])]
    found = numeric or found
    roles = recognise(names)
    if "metric" in roles:
        generic = [name for name in found if plain(name) in GENERIC]
        return (generic or found)[:1]
    return found


def is_numeric(cells: Sequence[Any]) -> bool:
    """Whether any of the cells is a number and no more than half of the others are text."""
    numbers = text = 0
    for cell in cells:
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING):
            continue
        try:
            as_number(cell)
        except ValueError:
            text += 1
        else:
            numbers += 1
    return numbers > text


def layout(names: Sequence[str], sample: Sequence[Sequence[Any]]) -> Layout | None:
    """Return how a table is laid out, None where it is no table of results at all."""
    if not names:
        numeric = bool(sample) and all(is_numeric(row[1:]) for row in sample)
        return "bare" if numeric else None
    words = [plain(name) for name in names]
    numeric_names = [name for place, name in enumerate(names) if is_numeric([row[place] for row in sample])]
    if {"model_a", "model_b"} <= set(words):
        return None  # preferences have a reader of their own
    if sum(PAIR.search(word) is not None for word in words) >= 2:
        return "pairs"
    roles = recognise(names)
    values = value_columns(names, sample)
    others = [name for name in numeric_names if name not in values and name not in roles.values()]
    place = label_place(names)
    others = [n for n in others if n != names[place] and not METADATA.match(plain(n)) and not is_spread(n, words)]
    others = [n for n in others if n]
    keyed = not {"task", "subject", "item", "repeat"}.isdisjoint(roles) or not set(ITEM_TEXTS).isdisjoint(words)
    if values and (keyed or ("model" in roles and not others)):
        return "long"
    if "successes" in roles and "trials" in roles and (keyed or "model" in roles):
        return "long"
    rest = [word for word in words[place + 1 :] if word]
    if rest and all(STATISTIC.match(word) for word in rest):
        return "statistics"
    if sum(STATISTIC.match(word) is not None for word in rest) >= 3:
        return "statistics"
    first = label_word(names[place])
    if first in ROLES["model"] or first in FIRST_RUN:
        if not others:
            return "metadata" if first in ROLES["model"] and rest and sample else None
        return "models" if first in ROLES["model"] else "runs"
    if first in FIRST_ITEM:
        keys = [place, *(names.index(roles[role]) for role in ("task", "subject") if role in roles)]
        ids = [[row[key] for key in keys] for row in sample]
        if len(set(map(str, ids))) < 0.9 * len(ids):
            return "unclear"  # they name something that rows share
        if any(word in LABELS[1:] for word in rest) and not others:
            return "predictions"
        return "items" if others else None
    return "unclear" if len(numeric_names) * 2 > len(names) else None


def higher_is_better(metric: str) -> bool | None:
    """Return the direction of a metric whose name tells it for certain, else None.

    >>> higher_is_better("acc"), higher_is_better("brier_score"), higher_is_better("log_odds")
    (True, False, None)
    """
    name = plain(metric)
    if LOWER.search(name):
        return False
    return True if HIGHER.search(name) else None
