"""What a person can put right, as an error that says how; and names near one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something a person can put right. The text says what happened and what to do next.

    Both command lines print it on standard error, without a traceback, and exit with `status`
    (2 for a wrong call or configuration, 1 for everything else).
    """

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def near_names(name: str, known: Iterable[str], most: int) -> list[str]:
    """The names nearest to `name`, in any case, nearest first."""
    by_lower: dict[str, str] = {}
    for other in known:
        by_lower.setdefault(other.lower(), other)
    near = difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=0.6)
    return [by_lower[n] for n in near]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'shop'?`, or "." where nothing is near."""
    near = near_names(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else "."
