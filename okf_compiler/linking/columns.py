"""What each column and field is called and about, in levelled words, with an index from words to columns."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from okf_compiler.linking.links import Target
from okf_compiler.linking.vocabulary import Vocabulary
from okf_compiler.linking.words import GENERIC, SHORT_FOR, STOP, level, pieces
from okf_compiler.model import Database, Table

_WORD = re.compile(r"[^\W\d_]+")
_MAY_LIST = re.compile(r"value|options|categories|levels")
_MAY_HAVE_ASIDE = re.compile(r"value|e\.g\.|example|such as|null")
_MAY_BE_KEY = re.compile(r"key|pk|fk|unique")
"""What must stand in a meaning, in lower case, for the patterns below to be worth trying: they are slow."""
_TYPE = re.compile(
    r"^(?:An?\s+)?"
    r"(?:JSONB column\.|[A-Z][A-Z0-9_]{2,}(?:\s+(?:PRECISION|KEY|NULL|NOT|PRIMARY|FOREIGN))*|enum\b|\w+_enum\b)"
    r"(?:\s*\([^)]*\))?(?:\s+(?:field|column|value))?[\s.,:]*"
)
_LISTED = re.compile(
    r"(?:values?|options|categories|levels)\b[^:;.(]{0,30}[:=]?\s*((?:'[^']+'|[^.;)]+)+)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\(?\b(?:possible values?|values?:|examples?\b|e\.g\.|for example|such as|\*\*NULL|NULL means|NULL indicates)"
    r".*?(?:\)|\.(?=\s|$)|;|$)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"(?<!\w)'([^'\n]{1,40})'(?!\w)|\"([^\"\n]{1,40})\"|“([^”\n]{1,40})”|‘([^’\n]{1,40})’")
_MANY = 60
_QUOTE = re.compile(r"['\"“‘]")
_KEY = re.compile(r"\bPK\b|\bFK\b|primary[ -]key|foreign[ -]key|\bunique (?:\w+ ){0,3}identifier", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Described:
    """One column, or one documented field inside a JSON column."""

    target: Target
    name: Mapping[str, int]
    """Levelled words of its own name -> which part of the name each stands for; several may stand for one."""
    meaning: frozenset[str]
    """Levelled words of its meaning, its outer keys and its table."""
    values: frozenset[str]
    """Listed values and enum labels, in lower case."""


class Columns:
    """All columns of a database. Keys are left out: a rule that speaks of an order does not use `order_id`."""

    def __init__(self, database: Database, words: Vocabulary) -> None:
        self.words = words
        self._entities = frozenset(term for table in database.tables for term in self.words.split(table.name))
        self.items: list[Described] = [c for table in database.tables for c in self._of_table(table)]
        self._count: Counter[str] = Counter()
        self.by_value: dict[str, list[int]] = defaultdict(list)
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for position, column in enumerate(self.items):
            self._count.update(column.meaning.union(column.name))
            for term in column.name:
                if not self.is_weak(term):
                    self._by_name[term].append(position)
            for value in column.values:
                self.by_value[value].append(position)
        self._weights: dict[str, float] = {}
        self._names = sorted((column.target.name.lower(), place) for place, column in enumerate(self.items))

    def weight(self, term: str) -> float:
        """How much a word says: less the more columns have it, little where it is of the words all databases have."""
        weight = self._weights.get(term)
        if weight is None:
            weight = math.log(1 + len(self.items) / (self._count.get(term) or 2)) / math.log(1 + len(self.items))
            if self.is_weak(term):
                weight *= 0.35
            self._weights[term] = weight
        return weight

    def having(self, words: Iterable[str], values: Sequence[str] = ()) -> Iterator[Described]:
        """The columns whose name has one of the words, or that list one of the values, in the documents' order.

        What many columns have leads to none of them: no evidence by itself, and too much to look at.
        """
        found: set[int] = set()
        for postings in (*(self._by_name.get(w, ()) for w in words), *(self.by_value.get(v, ()) for v in values)):
            if len(postings) <= _MANY:
                found.update(postings)
        return (self.items[position] for position in sorted(found))

    def begun(self, word: str) -> Described | None:
        """The one column whose name begins as the word does up to its last underscore."""
        stub = begins(word)
        if not stub or stub in GENERIC:
            return None
        start = bisect_left(self._names, (stub,))
        found = [place for name, place in self._names[start : start + 2] if name.startswith(stub)]
        return self.items[found[0]] if len(found) == 1 else None

    def covered(self, column: Described, words: Mapping[str, None]) -> float:
        """The part of a column's name that the words stand for, by weight."""
        parts: dict[int, float] = {}
        named: dict[int, float] = {}
        for word, part in column.name.items():
            weight = self.weight(word)
            if word in words:
                named[part] = max(named.get(part, 0.0), weight)
            elif weight > parts.get(part, 0.0):
                parts[part] = weight
        total = sum({**parts, **named}.values())
        return sum(named.values()) / total if total else 0.0

    def is_weak(self, term: str) -> bool:
        """Whether a word alone is no evidence: it is of every database, or of a table's name, as `order` is."""
        return term in GENERIC or term in self._entities

    def _of_table(self, table: Table) -> Iterator[Described]:
        keys = {name for key in table.foreign_keys for name in key.columns} | set(table.primary_key)
        about = self.words.split(table.name)
        for column in table.columns:
            if column.name in keys or _is_key(column.meaning or ""):
                continue
            if column.fields:
                outer = [*about, *self.words.split(column.name)]
                for field in column.fields:
                    steps = [self.words.split(step) for step in field.path[:-1]]
                    target = Target(table=table.qualified_name, column=column.name, path=field.path)
                    inside = steps[-1] if steps else outer
                    about_field = [*outer, *(word for step in steps for word in step)]
                    yield self._described(target, field.meaning, about_field, inside)
            else:
                target = Target(table=table.qualified_name, column=column.name)
                yield self._described(target, column.meaning or "", about, about, column.enum_labels)

    def _described(
        self, target: Target, meaning: str, about: Iterable[str], owner: Iterable[str], labels: Sequence[str] = ()
    ) -> Described:
        said = [word.lower() for word in _WORD.findall(_core(meaning))]
        words = [word for word in said if word not in STOP]
        parts: dict[str, int] = {}
        count = 0
        for piece in pieces(target.name):
            cut = (piece,) if piece in words or len(piece) < 4 else self.words.compound(piece, words)
            for part in cut:
                if len(part) > 1 and part not in STOP:
                    count = self._add_part(parts, count, part, words, said)
        if all(self.is_weak(term) for term in parts):
            for term in owner:
                parts.setdefault(term, count)
                count += 1
        return Described(
            target,
            parts,
            frozenset([*map(level, words), *about]),
            frozenset(v.lower() for v in (*labels, *_listed(meaning))),
        )

    def _add_part(self, parts: dict[str, int], count: int, part: str, words: list[str], said: list[str]) -> int:
        """Add one piece of a name with what it may stand for; returns the next part's number."""
        if part in words or part in SHORT_FOR or part in self.words:
            parts.setdefault(level(part), count)
            return count + 1
        if len(part) < 6:
            initials = "".join(word[0] for word in said)
            start = initials.find(part)
            while start >= 0:
                for word in said[start : start + len(part)]:
                    if word not in STOP:
                        parts.setdefault(level(word), count)
                        count += 1
                start = initials.find(part, start + 1)
        parts.setdefault(level(part), count)
        if len(part) > 2:
            for word in self.words.beginning_with(part):
                parts.setdefault(level(word), count)
        return count + 1


def _is_key(meaning: str) -> bool:
    """Whether the meaning says that the column is a key."""
    return bool(_MAY_BE_KEY.search(meaning.lower()) and _KEY.search(meaning))


def _core(meaning: str) -> str:
    """The meaning without its type, its lists of values and its examples."""
    kind = _TYPE.match(meaning)
    meaning = meaning[kind.end() :] if kind else meaning
    return _ASIDE.sub(" ", meaning) if _MAY_HAVE_ASIDE.search(meaning.lower()) else meaning


def _listed(meaning: str) -> list[str]:
    """The values that a meaning lists, quoted or after `values:`."""
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(meaning)] if _QUOTE.search(meaning) else []
    if quoted:
        return quoted if len(quoted) > 1 else []
    match = _LISTED.search(meaning) if "," in meaning and _MAY_LIST.search(meaning.lower()) else None
    if not match or "," not in match[1]:
        return []
    return [value.strip().rstrip(".") for value in match[1].split(",") if 0 < len(value.strip()) <= 40]


def begins(word: str) -> str:
    """What stands before the last underscore of one word, in lower case, if that is long enough to tell columns apart.

    >>> begins("lastmile_factor"), begins("ppe_factor"), begins("last mile_x")
    ('lastmile', '', '')
    """
    stub = word.rpartition("_")[0].lower()
    return stub if len(stub) > 5 and stub.isidentifier() else ""
