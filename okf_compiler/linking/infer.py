"""Links that the compiler infers: a phrase of a rule against what each column is called and about.

A phrase fits a column as well as its words cover the column's name, and the column's name and meaning cover the phrase:
the geometric mean of the two, each word weighted by how rare it is in this database. The rest of the rule adds a
little where it speaks of the column's surroundings, and values quoted beside the phrase where the column lists them.
A phrase that fits two columns as well is evidence for neither. No rule meets all columns: an index leads from words
to the few columns that have them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from okf_compiler.linking.columns import Columns, Described, begins
from okf_compiler.linking.links import Link, Target, shown
from okf_compiler.linking.mentions import Mention, Phrases
from okf_compiler.linking.rule_names import ILLUSTRATION, without_brackets
from okf_compiler.linking.words import level
from okf_compiler.model import Database, Rule

ACCEPT = 0.44
"""The least fit that makes a link; all constants were set on half of the labelled databases, see docs/decisions.md."""
KNOWN = 0.15
"""How much more it takes where the rule states other columns,"""
SPELLED = 0.33
"""and where most of the database's rules do: then what is not spelled is rarely meant."""
BEFORE = 0.3
"""How much words of a phrase before the first that fits count,"""
AFTER = 0.6
"""and those after the last: `funding` fits `funding state` better than `funding gap` does."""
CONTEXT = 0.2
ALONE = 0.8
"""What is left of a phrase of one word that is not all of the column's name."""
BEGUN = 0.8
"""For a name of the rule's own that begins as one column's name does: `lastmile_factor` for `lastmilestatus`."""
VALUE, NO_VALUE = 0.2, -0.5
TABLE = 0.05
CLOSE = 0.01
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(slots=True)
class _Match:
    column: Described
    mention: Mention
    score: float
    by_value: bool


def inferred(
    database: Database,
    columns: Columns,
    stated: Mapping[str, Sequence[Link]],
    definitions: Mapping[str, str],
    names: Container[str],
) -> Iterator[Link]:
    """Yield links to the columns that the rules' phrases fit, besides those that are stated already.

    `definitions` are those of the rules, by id, without the names of rules. `names` are words that can only be
    columns' names: where they stand, nothing needs to be inferred.
    """
    phrases = Phrases(columns.words.split, names)
    spelled = len(stated) > len(database.rules) / 2
    for rule in database.rules:
        known = stated.get(rule.id, ())
        accept = ACCEPT + KNOWN * bool(known) + SPELLED * spelled
        reader = _Reader(rule, columns, {link.target.table for link in known}, accept)
        found: dict[Target, _Match] = {}
        for mention in _mentions(rule, bool(known), columns, phrases, definitions[rule.id]):
            match = reader.best(mention)
            if match and (match.column.target not in found or found[match.column.target].score < match.score):
                found[match.column.target] = match
        for target, match in found.items():
            yield Link(rule.id, target, "inferred", _evidence(match), round(min(match.score, 0.99), 2))
        if rule.type != ILLUSTRATION:
            yield from _stored(rule, columns)


def _mentions(rule: Rule, known: bool, columns: Columns, phrases: Phrases, definition: str) -> Iterator[Mention]:
    if rule.type == ILLUSTRATION:
        found = [] if known else phrases.find(rule.name, "title")
    else:
        found = phrases.find(definition, "definition")
    for mention in found:
        if mention.text.lower() not in columns.by_value:
            yield mention


class _Reader:
    """One rule, against the columns."""

    def __init__(self, rule: Rule, columns: Columns, tables: set[str], accept: float) -> None:
        self._rule = rule
        self._columns = columns
        self._tables = tables
        self._accept = accept
        self._contexts: dict[Target, float] = {}

    @cached_property
    def _words(self) -> set[str]:
        text = f"{self._rule.name} {self._rule.description} {self._rule.definition}".lower()
        return {level(word) for word in set(_WORD.findall(text))}

    def best(self, mention: Mention) -> _Match | None:
        """The one column that the phrase fits well enough, and better than any other."""
        words = dict.fromkeys(mention.words)
        begun = self._columns.begun(mention.text)
        if begun:
            return _Match(begun, mention, BEGUN, False)
        candidates = self._columns.having(words, mention.values)
        matches = [m for column in candidates if (m := self._match(mention, words, column))]
        matches.sort(key=lambda m: -m.score)
        if not matches or matches[0].score < self._accept:
            return None
        return matches[0] if len(matches) == 1 or matches[1].score < matches[0].score - CLOSE else None

    def _match(self, mention: Mention, words: Mapping[str, None], column: Described) -> _Match | None:
        by_value = any(value in column.values for value in mention.values)
        covered = self._columns.covered(column, words)
        score = (covered * self._fitting([*words], column)) ** 0.5 * (1 - CONTEXT)
        if len(words) == 1 and covered < 0.99:
            score *= ALONE
        if by_value:
            score += VALUE
        elif mention.values and column.values:
            score += NO_VALUE
        if column.target.table in self._tables:
            score += TABLE
        if score + CONTEXT < self._accept - CLOSE:
            return None
        return _Match(column, mention, score + CONTEXT * self._context(column), by_value)

    def _fitting(self, words: Sequence[str], column: Described) -> float:
        """The part of the phrase that the column's name and meaning cover."""
        hits = {i for i, word in enumerate(words) if word in column.name or word in column.meaning}
        if not hits:
            return 0.0
        first, last = min(hits), max(hits)
        total = matched = 0.0
        for i, word in enumerate(words):
            weight = self._columns.weight(word)
            total += weight * (BEFORE if i < first else AFTER if i > last else 1.0)
            if i in hits:
                matched += weight
        return matched / total

    def _context(self, column: Described) -> float:
        """Return the part of the column's meaning and surroundings that the whole rule speaks of."""
        if column.target not in self._contexts:
            weight = self._columns.weight
            total = sum(map(weight, column.meaning))
            spoken_of = sum(weight(word) for word in column.meaning if word in self._words)
            self._contexts[column.target] = spoken_of / total if total else 0.0
        return self._contexts[column.target]


def _evidence(match: _Match) -> str:
    mention, column = match.mention, match.column
    if match.score == BEGUN and begins(mention.text):
        return f"`{shown(mention.text)}` in the {mention.place} begins as its name does"
    named = all(word in column.name for word in mention.words)
    evidence = f"`{shown(mention.text)}` in the {mention.place} fits its name" + ("" if named else " and meaning")
    values = [value for value in mention.values if value in column.values]
    return evidence + (f", and it lists {' and '.join(repr(v) for v in values[:3])}" if values else "")


def _stored(rule: Rule, columns: Columns) -> Iterator[Link]:
    """Columns whose name and meaning say that they hold what the rule computes: the title covers all of the name."""
    title = without_brackets(rule.name)
    words = dict.fromkeys(level(word.lower()) for word in _WORD.findall(title))
    strong = [word for word in words if not columns.is_weak(word)]
    if len(words) < 2 or not strong:
        return
    for column in columns.having(strong):
        if columns.covered(column, words) > 0.85 and all(w in column.name or w in column.meaning for w in words):
            yield Link(rule.id, column.target, "stored", "its name and meaning are those of this rule", 0.9)
