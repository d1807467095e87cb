"""Texts ranked by the stems they share with a question: BM25 without an index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

K1 = 1.2
B = 0.75
"""BM25's usual constants: how soon repetition stops to count, and how much a long text is held back."""


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
