"""What a person can put right, as an error that says how; and names near one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 0.6
"""The least part of the letters of two names that both have in one order, for one to be suggested for the other."""
LONGEST_NAME = 1_000
"""Characters of a name for which a near one is looked for: the time grows with the product of both lengths."""


class UserError(Exception):
    """Something a person can put right. The text says what happened and what to do next.

    Both command lines print it on standard error, without a traceback, and exit with `status`
    (2 for a wrong call or configuration, 1 for everything else).
    """

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def near_names(name: str, known: Iterable[str], most: int, least: float = NEAR) -> list[str]:
    """Return the names nearest to `name` by the letters they share in order, in any case, nearest first."""
    from rapidfuzz import process  # brings its compiled part: only for who has mistyped
    from rapidfuzz.distance import Indel

    by_lower: dict[str, str] = {}
    for other in known:
        by_lower.setdefault(other.lower(), other)
    wanted = name.lower()
    if len(wanted) > LONGEST_NAME:
        return []
    near = process.extract(wanted, [*by_lower], scorer=Indel.normalized_similarity, score_cutoff=least, limit=most)
    return [by_lower[other] for other, _, _ in near]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'shop'?`, or "." where nothing is near."""
    near = near_names(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else "."
