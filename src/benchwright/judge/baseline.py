"""The offline baseline: no model, only words that an item shares with the activities' definitions.

Each definition, without English function words, is a vector of character n-grams (3 to 5 letters inside words, so that
"calculates" meets "calculation"), weighted by logarithm of count and inverse document frequency among the
definitions, as scikit-learn computes them. An item's activities are those with the largest cosine, in that order.
Nothing is fitted to any judge's answers, and an item's list does not depend on the other items. It cannot tell the
framings apart: both get the same list.

It serves to run everything end to end on a machine without a model, and as what a judge has to beat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from benchwright.errors import UsageError
from benchwright.judge.definitions import Activity

MODEL = "baseline/tfidf"
NOTE = (
    "baseline/tfidf is a baseline, not a judge: it compares words with definitions, and gives both framings one list."
)
SPLIT = 2_000  # items at a time
_WORD = re.compile(r"[^\W_]+")


def rank_by_words(texts: Sequence[str], activities: Sequence[Activity], *, ranked: int) -> list[tuple[str, ...]]:
    """Return per text the ids of the most similar activities, best first; () where no letters are shared.

    Raises
    ------
    UsageError
        scikit-learn is not installed.
    """
    try:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    except ImportError:
        raise UsageError(
            f"--model {MODEL} needs scikit-learn, which is not installed", hint="pip install 'benchwright[baseline]'"
        ) from None

    def content(text: str) -> str:
        return " ".join(word for word in _WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS)

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True, preprocessor=content)
    definitions = vectorizer.fit_transform([f"{activity.name}. {activity.definition}" for activity in activities])
    lists: list[tuple[str, ...]] = []
    for start in range(0, len(texts), SPLIT):
        cosines = (vectorizer.transform(texts[start : start + SPLIT]) @ definitions.T).toarray()
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :ranked]
        for places, row in zip(order, cosines, strict=True):
            lists.append(tuple(activities[place].id for place in places if row[place] > 0))
    return lists


def versions() -> dict[str, str]:
    """Return the version of the library that compares texts."""
    return {"scikit_learn": version("scikit-learn")}
