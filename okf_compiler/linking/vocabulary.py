"""The words of a database's own documents, and names cut into them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from okf_compiler.linking.words import GENERIC, SAME, SHORT_FOR, STOP, level, pieces
from okf_compiler.model import Database

_WORD = re.compile(r"[^\W\d_]+")
_ENUM = re.compile(r"(?<!\w)\w+_enum\b")
_SHORTEST, _LONGEST = 2, 15
"""Letters of the words that names are cut into."""
_LONGEST_NAME = 200
"""Letters from which a name is one word: PostgreSQL keeps 63 bytes, and the time to cut grows with their square."""
_COSTS = {
    word: 1.9 if len(word) == _SHORTEST else 1.4 if word in SHORT_FOR else 1.25
    for word in {*SAME, *GENERIC}
    if _SHORTEST <= len(word) <= _LONGEST
}
"""What a piece costs that is such a word."""
_NO_LONGER = (_SHORTEST,)
_OWN, _BEGUN, _OPEN, _LETTER = 1.0, 1.2, 2.4, 0.9
"""A word of what is said about the name; the beginning of one; letters that belong to nothing, and each of them."""
_NEVER = 1e9
Cut = tuple[float, int, str]
"""The cost of the best way to here, where its last piece begins, and the word that this piece stands for."""


class Vocabulary:
    """A set of words, in lower case. What is asked of it twice is worked out once."""

    def __init__(self, words: Collection[str]) -> None:
        self._words = frozenset(words)
        self._split: dict[str, tuple[str, ...]] = {}
        self._compounds: dict[str, tuple[str, ...]] = {}

    def __contains__(self, word: object) -> bool:
        return word in self._words

    def beginning_with(self, stub: str) -> list[str]:
        """The first dozen words, by letters, that begin so."""
        start = bisect_left(self._sorted, stub)
        return [word for word in self._sorted[start : start + 12] if word.startswith(stub)]

    def split(self, name: str) -> tuple[str, ...]:
        """The words of an identifier, levelled."""
        if name not in self._split:
            found: list[str] = []
            for piece in pieces(name):
                found += [piece] if len(piece) < 6 or piece in self._words else self.compound(piece)
            self._split[name] = tuple(level(word) for word in found if word not in STOP)
        return self._split[name]

    def compound(self, name: str, own: Iterable[str] = ()) -> tuple[str, ...]:
        """A name without marks as the words it is made of, as good as they can be told; lower case.

        `own` are the words of what is said about it, whose beginnings may stand for them. Of all ways to cut the name
        the one with the fewest and best known pieces is taken; letters that belong to nothing make a piece of their
        own.

        >>> known = Vocabulary({"water", "quality", "index"})
        >>> known.compound("waterqualityindex")
        ('water', 'quality', 'index')
        >>> known.compound("hubutilpct", ["hub", "utilization", "percentage"])
        ('hub', 'utilization', 'pct')
        """
        if len(name) > _LONGEST_NAME:
            return (name,)
        placed = _placed(name, own)
        if placed:
            return self._cut(name, placed, False) or self._cut(name, placed, True)
        if name not in self._compounds:
            self._compounds[name] = self._cut(name, {}, False) or self._cut(name, {}, True)
        return self._compounds[name]

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._words)

    @cached_property
    def _costs(self) -> Mapping[str, float]:
        return {word: 1.25 for word in self._words if 3 < len(word) <= _LONGEST} | _COSTS

    @cached_property
    def _lengths(self) -> Mapping[str, set[int]]:
        """The first three letters of the words that a name may be cut into -> how long these are, or two letters."""
        found: dict[str, set[int]] = defaultdict({_SHORTEST}.copy)
        for word in self._costs:
            found[word[:3]].add(len(word))
        return found

    def _cut(self, name: str, own: Mapping[int, Sequence[tuple[str, int]]], leftovers: bool) -> tuple[str, ...]:
        """The pieces of the best way; none if there is no way, which with `leftovers` there is. `own` is `_placed`."""
        costs, lengths, last = self._costs, self._lengths, len(name)
        cuts: list[Cut] = [(0.0, 0, "")] + [(_NEVER, 0, "")] * last
        open_cost, open_at = _NEVER, 0
        for start in range(last):
            if leftovers and open_cost < cuts[start][0]:
                cuts[start] = (open_cost, open_at, name[open_at:start])
            cost = cuts[start][0]
            if cost == _NEVER:
                continue
            if leftovers:
                open_cost += _LETTER
                if cost + _OPEN < open_cost:
                    open_cost, open_at = cost + _OPEN, start
            for word, end in own.get(start, ()):
                total = cost + (_OWN if end - start == len(word) else _BEGUN)
                if total < cuts[end][0]:
                    cuts[end] = (total, start, word)
            for length in lengths.get(name[start : start + 3], _NO_LONGER):
                end = start + length
                part = name[start:end]
                if end <= last and part in costs and cost + costs[part] < cuts[end][0]:
                    cuts[end] = (cost + costs[part], start, part)
        if leftovers and open_cost < cuts[last][0]:
            cuts[last] = (open_cost, open_at, name[open_at:])
        return _pieces(cuts)


def vocabulary(database: Database) -> Vocabulary:
    """The words of the database's own documents, without what is only ever a column's name in a rule."""
    texts: list[str] = []
    names: set[str] = set()
    for table in database.tables:
        for column in table.columns:
            names.add(column.name.lower())
            texts.append(column.meaning or "")
            texts += [field.meaning for field in column.fields]
    rules = (f"{rule.name} {rule.description} {rule.definition}" for rule in database.rules)
    said = _each_once(texts)
    words = {*_WORD.findall(_ENUM.sub(" ", said) if "_enum" in said else said)}
    return Vocabulary(words | {*_WORD.findall(_each_once(rules))} - names)


def _each_once(texts: Iterable[str]) -> str:
    """What stands between blanks in the texts, each once and in lower case: documents repeat themselves."""
    return " ".join({*" ".join(texts).lower().split()})


def _placed(name: str, own: Iterable[str]) -> Mapping[int, list[tuple[str, int]]]:
    """Place in the name -> words that stand there, or begin so with three letters or more; and where that ends."""
    found: dict[int, list[tuple[str, int]]] = {}
    for word in own:
        begin = word[:3]
        start = name.find(begin)
        while start >= 0:
            end = start + len(begin)
            while end < len(name) and end - start < len(word) and name[end] == word[end - start]:
                end += 1
            whole = end - start == len(word)
            ends = (end,) if whole else range(start + 3, end + 1)
            found.setdefault(start, []).extend((word, each) for each in ends)
            start = name.find(begin, start + 1)
    return found


def _pieces(cuts: Sequence[Cut]) -> tuple[str, ...]:
    found: list[str] = []
    end = len(cuts) - 1
    while end:
        cost, end, word = cuts[end]
        if cost == _NEVER:
            return ()
        found.append(word)
    return tuple(found[::-1])
