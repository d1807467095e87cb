"""Where the numbers of an answer come from: what a run has seen, and which numbers it has not."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext

NUMBER = re.compile(
    r"(?<![\w.,])(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?P<fraction>\.\d+)?(?!\d)"
    r"(?P<ordinal>st\b|nd\b|rd\b|th\b)?(?:\s?(?P<unit>%|percent|thousand|k|million|m|billion|bn)(?!\w))?",
    re.IGNORECASE,
)
"""A number as a sentence writes it. One glued to a name (`tier2`, `HUB_17`) is part of that name."""
SEEN = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
LIST_MARK = re.compile(r"^[^\S\n]*\(?(?P<number>\d{1,2})[.)](?=[^\S\n]+\S)", re.MULTILINE)
"""What may be the mark of an item in a list: a text stands behind it."""
SCALES = {
    "thousand": Decimal(10**3),
    "k": Decimal(10**3),
    "million": Decimal(10**6),
    "m": Decimal(10**6),
    "billion": Decimal(10**9),
    "bn": Decimal(10**9),
}
_WIDE = Context(prec=400, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""For numbers as long as a database may hold, and as large as a cell may write."""


class Evidence:
    """The numbers and the names that a run has seen so far."""

    def __init__(self) -> None:
        self._numbers: set[Decimal] = set()
        self._documents: set[Decimal] = set()
        self._names: set[str] = set()

    def add_text(self, text: str) -> None:
        """The numbers in a question, or in what was said before it."""
        self._numbers.update(_numbers_in(text))

    def add_document(self, text: str) -> None:
        """The numbers in a rule or another document."""
        self._documents.update(_numbers_in(text))

    def add_count(self, count: int) -> None:
        """A number of rows."""
        self._numbers.add(Decimal(count))

    def add_rows(self, rows: Iterable[Sequence[str | None]]) -> None:
        """The cells of a result, as PostgreSQL prints them."""
        for row in rows:
            for cell in row:
                if cell and any(c.isdigit() for c in cell):
                    self._add_cell(cell)

    def _add_cell(self, cell: str) -> None:
        try:
            number = Decimal(cell)
        except InvalidOperation:
            self._names.add(cell)
            self.add_text(cell)
        else:
            if number.is_finite():
                self._numbers.add(number.copy_abs())

    def missing(self, answer: str) -> tuple[str, ...]:
        """The numbers of `answer` that nothing seen accounts for, as they are written, each once.

        A number counts as seen if a seen one, rounded to the digits that the answer shows, equals it; a
        percentage also if the seen one is its hundredth. Signs, list marks and ordinals do not count.

        >>> evidence = Evidence()
        >>> evidence.add_rows([["0.4567", "HUB-17"], ["1234567.8", None]])
        >>> evidence.missing("HUB-17 uses 45.67%, 1.23 million in all, and 3,000 more")
        ('3,000',)
        """
        answer = self._without_names(answer)
        return _not_among(answer, self._numbers | self._documents)

    def _without_names(self, answer: str) -> str:
        """The answer without the marks of a list, and without the names that results gave."""
        items = len(LIST_MARK.findall(answer))  # `12. customers are late` is one line, and no twelfth item
        answer = LIST_MARK.sub(lambda mark: " " if int(mark["number"]) <= items else mark.group(), answer)
        for name in sorted(self._names, key=len, reverse=True):
            answer = answer.replace(name, " ")
        return answer

    def documented(self, answer: str, sql: str) -> tuple[str, ...]:
        """The numbers of `answer` that stand in documents alone: in no result, question or query of this run."""
        missing = self.missing(answer)
        unseen = _not_among(self._without_names(answer), self._numbers | _numbers_in(sql))
        return tuple(number for number in unseen if number not in missing)


def _numbers_in(text: str) -> set[Decimal]:
    return {Decimal(found.replace(",", "")) for found in SEEN.findall(text)}


def _not_among(answer: str, numbers: set[Decimal]) -> tuple[str, ...]:
    """The numbers of `answer` that no one of `numbers` accounts for, as they are written, each once."""
    seen = sorted(numbers)
    with localcontext(_WIDE):
        found = [m for m in NUMBER.finditer(answer) if not m["ordinal"] and not _is_among(m, seen)]
    return tuple(dict.fromkeys(m.group().strip() for m in found))


def _is_among(match: re.Match[str], seen: Sequence[Decimal]) -> bool:
    """Whether a number of an answer is one of those seen, which are in order, as far as its digits show."""
    fraction = match["fraction"] or ""
    unit = (match["unit"] or "").lower()
    scale = SCALES.get(unit, Decimal(1))
    value = Decimal(match["whole"].replace(",", "") + fraction) * scale
    tolerance = scale * Decimal(10) ** -max(len(fraction) - 1, 0) / 2
    for factor in (1, 100) if unit in ("%", "percent") else (1,):
        place = bisect_left(seen, (value - tolerance) / factor)
        if place < len(seen) and seen[place] <= (value + tolerance) / factor:
            return True
    return False
