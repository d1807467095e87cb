"""Cells of CSV files that a spreadsheet would run as formulas: the guard of everything that one may open."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = frozenset("=+-@\u2212")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


def guarded(cell: str) -> str:
    """Return the cell with a ' before it where a spreadsheet would run it; numbers stay numbers.

    >>> guarded("=1+1"), guarded("\\ufeff=1"), guarded("＝1"), guarded("-5"), guarded("a=1")
    ("'=1+1", "'\\ufeff=1", "'＝1", '-5', 'a=1')
    """
    return f"'{cell}" if is_formula(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Return what `guarded` was given; a ' that opens a quotation stays.

    >>> unguarded("'=1+1"), unguarded("'-' means none"), unguarded("'tis")
    ('=1+1', "'-' means none", "'tis")
    """
    return cell[1:] if cell.startswith("'") and "'" not in cell[1:] and is_formula(cell[1:]) else cell


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet may take the cell for a formula.

    Blanks and characters that nobody sees are passed over, and a sign counts in each of its widths.
    """
    if cell[:1] in ("\t", "\r", "\n"):
        return True
    shown = next((c for c in cell if unicodedata.category(c)[0] not in "CZM"), "")
    return unicodedata.normalize("NFKC", shown) in _SIGNS
