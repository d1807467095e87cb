"""Figures in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "row"), count(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(names: Iterable[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def dollars(amount: Any) -> str:
    """
    >>> dollars(0.00125), dollars(1234.5), dollars(None)
    ('$0.0013', '$1,234.50', 'cost unknown')
    """
    if not isinstance(amount, int | float):
        return "cost unknown"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
