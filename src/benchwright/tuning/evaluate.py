"""Score items by the log-likelihoods that a model gives their choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from benchwright.logs.derive import choice_scores
from benchwright.tuning.encoding import collate, encode, key_of
from benchwright.tuning.failures import failure_of
from benchwright.tuning.items import Item
from benchwright.tuning.libraries import load
from benchwright.tuning.models import OpenModel

KEPT = ("acc", "acc_norm", "p_gold", "p_gold_char", "margin", "margin_char")
SCHEMA: dict[str, Any] = {
    "doc_id": pl.String,
    "cluster": pl.String,
    "gold": pl.Int64,
    "logprob": pl.List(pl.Float32),
    **dict.fromkeys(KEPT, pl.Float64),
}


class ItemScorer:
    """Items as tokens, ready to be scored again and again; ``cut`` prompts lost their beginning."""

    def __init__(self, opened: OpenModel, items: Sequence[Item], *, max_length: int, batch: int) -> None:
        self._opened, self._items, self._batch = opened, items, batch
        pairs = [pair for item in items for pair in item.pairs]
        self._encoded, self.cut = encode(opened.tokenizer, pairs, max_length, vocabulary=opened.vocabulary)
        alike: dict[bytes, list[int]] = {}  # choices of one token, say, of one prompt: one input
        for place, one in enumerate(self._encoded):
            alike.setdefault(key_of(one), []).append(place)
        self._inputs = sorted(alike.values(), key=lambda places: -self._encoded[places[0]].ids.size)

    def score(self) -> pl.DataFrame:
        """Return a row an item, see ``SCHEMA``."""
        torch = load("torch")
        self._opened.model.eval()
        total = np.zeros(len(self._encoded))
        with torch.inference_mode():
            for start in range(0, len(self._inputs), self._batch):
                places = [place for some in self._inputs[start : start + self._batch] for place in some]
                batch = collate([self._encoded[place] for place in places])
                owner = np.repeat(np.arange(len(places)), [self._encoded[place].answer for place in places])
                try:
                    logits, target = self._opened.predictions(batch)
                    found = -torch.nn.functional.cross_entropy(logits, target, reduction="none")
                    each = found.double().cpu().numpy()
                except Exception as error:
                    raise failure_of(error, "scoring items") from None
                total[places] = np.bincount(owner, each, len(places))
        self._opened.model.train()
        cuts = np.cumsum([len(item.pairs) for item in self._items])[:-1]
        return frame_of(
            [item.doc_id for item in self._items],
            [item.cluster for item in self._items],
            [item.gold for item in self._items],
            np.split(total, cuts),
            [[len(answer.lstrip()) for _, answer in item.pairs] for item in self._items],
        )


def frame_of(
    doc_id: Sequence[str],
    cluster: Sequence[str | None],
    gold: Sequence[int | None],
    logprob: Sequence[Any],
    chars: Sequence[Sequence[int]],
) -> pl.DataFrame:
    """Return scored items as rows; what is undefined is null."""
    counts = [len(each) for each in logprob]
    golds = [np.nan if place is None else place for place in gold]
    scores = choice_scores(np.concatenate(logprob), counts, golds, chars=np.concatenate(chars))
    columns = {
        "doc_id": doc_id,
        "cluster": cluster,
        "gold": gold,
        "logprob": [np.asarray(each).tolist() for each in logprob],
    }
    table = pl.DataFrame(columns | {name: scores[name] for name in KEPT}, schema=SCHEMA)
    return table.with_columns(pl.col(*KEPT).fill_nan(None))
