"""What else a word of a question may be called: abbreviations, synonyms, words of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from okf_agent.search import text

Asked: TypeAlias = list[list[tuple[str, float]]]
"""For each word of a question its names: stems with a weight of at most 1, its own stem first."""


def expanded(asked: Sequence[str]) -> Asked:
    """The words with their other names."""
    return [[(text.stem(word), 1.0)] for word in asked]
