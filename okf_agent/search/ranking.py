"""Texts ranked by the words they share with a question: names taken apart, words cut to stems, BM25."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

K1 = 1.2
B = 0.75
"""BM25's usual constants: how soon repetition stops to count, and how much a long text is held back."""

_PIECE = re.compile(r"[^\W\d_]+|\d{3,}")
"""Words, and numbers such as years; "2 decimals" says nothing of a subject."""
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins inside a camelCase name."""
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an and any are as at be by did do does each every for from had has have how i in into is it its me my of on
        or our out per than that the their them there these they this to us was we were what when where which who
        whose why will with you your
        all between decimals find first give highest largest last least list lowest many most much number round
        rounded show smallest sort sorted
        """,
    )
)
"""Words that say nothing of a subject: those of grammar, and those with which results are asked for."""


def key_stems(text: str) -> list[str]:
    """The stems of a text's words, without the commonest ones.

    >>> key_stems("unit_cost_cents of returnedItems in our deliveries")
    ['unit', 'cost', 'cent', 'return', 'item', 'delivery']
    """
    pieces = (piece.lower() for piece in _PIECE.findall(CAMEL.sub(" ", text)))
    return [_stem(piece) for piece in pieces if piece not in STOP_WORDS]


@functools.lru_cache(1 << 16)  # the same words come with every question
def _stem(word: str) -> str:
    """An English word without the endings of plural and verb forms; others mostly as they are.

    >>> [_stem(w) for w in ("categories", "shipped", "classes", "status", "pricing", "used")]
    ['category', 'ship', 'class', 'status', 'pric', 'us']
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            word = word[: -len(ending)]
            return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def bm25(question: Iterable[str], texts: Mapping[str, list[str]]) -> dict[str, float]:
    """The score of each text that shares a stem with the question, by the text's key; higher is nearer."""
    counts = {key: Counter(stems) for key, stems in texts.items()}
    mean = sum(map(len, texts.values())) / max(1, len(texts)) or 1
    holders = Counter(stem for count in counts.values() for stem in count)
    scores: dict[str, float] = {}
    for asked in dict.fromkeys(question):
        rarity = math.log(1 + (len(texts) - holders[asked] + 0.5) / (holders[asked] + 0.5))
        for key, count in counts.items():
            if times := count[asked]:
                length = 1 - B + B * len(texts[key]) / mean
                scores[key] = scores.get(key, 0.0) + rarity * times * (K1 + 1) / (times + K1 * length)
    return scores
