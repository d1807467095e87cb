"""Rules by what other rules call them: their titles, and the abbreviations that they define."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from okf_compiler.linking.terms import is_term
from okf_compiler.model import Column, Database, Rule, Table

ILLUSTRATION = "value_illustration"
"""A rule that says what a column's values mean: its title says which column, its definition speaks of the values."""
_WORD = re.compile(r"\w+")
_GOES_ON = re.compile(r"\.\w|->|\(")
"""What stands behind a word that is a table, a JSON column or a function."""
_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_ABBREVIATION = re.compile(r"[A-Z][a-z0-9]*[A-Z][A-Za-z0-9]*")
_DEFINES = re.compile(r"^\s*+\$*+\s*+([A-Z][a-z0-9]*[A-Z][A-Za-z0-9]*+)\s*=(?!=)")


@dataclass(frozen=True, slots=True)
class Named:
    """A rule's name in a text."""

    rule: str
    start: int
    end: int


class RuleNames:
    """Finds the names of rules in texts; a name that two rules have belongs to neither.

    A title of one word is a name where a formula uses it as a term. If a column is called so too, the word is the
    rule's name only where it is written as in the title and not as the column; of a rule that illustrates a column's
    values it is the column's.
    """

    def __init__(self, rules: Sequence[Rule], tables: Sequence[Table]) -> None:
        titles: dict[tuple[str, ...], set[str]] = defaultdict(set)
        short: dict[str, set[str]] = defaultdict(set)
        spelled: dict[str, str] = {}
        for rule in rules:
            title = tuple(_WORD.findall(without_brackets(rule.name)))
            if len(title) > 1 or (title and rule.type != ILLUSTRATION):
                titles[tuple([word.lower() for word in title])].add(rule.id)
            if len(title) == 1:
                spelled[title[0].lower()] = title[0]
            for name in abbreviations(rule):
                short[name].add(rule.id)
        columns = {name for table in tables for column in table.columns for name in _names_of(column)}
        shared = {column.lower() for column in columns} & spelled.keys()
        self._spelled = {word: "" if spelled[word] in columns else spelled[word] for word in shared}
        self._short = {name: ids.pop() for name, ids in short.items() if len(ids) == 1}
        self._titles = {words: ids.pop() for words, ids in titles.items() if len(ids) == 1}
        self._single = {words[0] for words in self._titles if len(words) == 1}
        self._first = {words[0] for words in self._titles}
        lengths: dict[tuple[str, ...], set[int]] = defaultdict(set)
        for words in self._titles:
            lengths[words[:2]].add(len(words))
        self._lengths = {begin: sorted(found, reverse=True) for begin, found in lengths.items()}

    def find(self, text: str) -> Iterator[Named]:
        """The names in the text, from left to right; the longest of those that begin at one place."""
        words, first, short = _WORD.findall(text), self._first, self._short
        lower = tuple([word.lower() for word in words])
        begins = [
            i
            for i, word in enumerate(lower)
            if words[i] in short or (word in first and (word in self._single or lower[i : i + 2] in self._lengths))
        ]
        places = [match.span() for match in _WORD.finditer(text)] if begins else []
        skip = 0
        for position in begins:
            if position < skip:
                continue
            start, end = places[position]
            if words[position] in self._short:
                yield Named(self._short[words[position]], start, end)
                continue
            for length in (*self._lengths.get(lower[position : position + 2], ()), 1):
                rule = self._titles.get(lower[position : position + length])
                if rule is None or position + length > len(words):
                    continue
                if length > 1 or self._is_term(text, start, end):
                    skip = position + length
                    yield Named(rule, start, places[skip - 1][1])
                    break

    def _is_term(self, text: str, start: int, end: int) -> bool:
        """Return whether a title of one word stands here for its rule: neither in a path nor as a column's name."""
        written = text[start:end]
        if text[start - 1 : start] == "." or _GOES_ON.match(text, end):
            return False
        return self._spelled.get(written.lower(), written) == written and is_term(text, start, end)


Spoken = Mapping[str, Sequence[Named]]
"""Rule id -> the names of rules in its definition, its own included."""


def spoken(database: Database) -> Spoken:
    names = RuleNames(database.rules, database.tables)
    return {rule.id: tuple(names.find(rule.definition)) for rule in database.rules}


def without_names(database: Database, spoken: Spoken) -> Mapping[str, str]:
    """Return the rules' definitions by id, without the names of rules: where one stands, no column is spoken of.

    The name of a rule that illustrates a column's values stays, since it is the column's.
    """
    illustrations = {rule.id for rule in database.rules if rule.type == ILLUSTRATION}
    return {
        rule.id: _hide(rule.definition, [named for named in spoken[rule.id] if named.rule not in illustrations])
        for rule in database.rules
    }


def _hide(text: str, names: Sequence[Named]) -> str:
    """Return the text with an ampersand, which ends a phrase and is no operator, for each of the names."""
    parts, end = [], 0
    for named in names:
        parts += [text[end : named.start], "&"]
        end = named.end
    return "".join([*parts, text[end:]])


def _names_of(column: Column) -> Iterator[str]:
    yield column.name
    yield from (field.path[-1] for field in column.fields)


def without_brackets(title: str) -> str:
    """A title without what stands in brackets."""
    return _BRACKETS.sub(" ", title)


def abbreviations(rule: Rule) -> list[str]:
    """Return what stands in brackets in the title or before the `=` that the definition begins with, and a short title.

    >>> abbreviations(Rule("1", "Resource Utilization Ratio (RUR)", "", definition="RUR = a / b"))
    ['RUR']
    >>> abbreviations(Rule("2", "ARPU", "", definition="revenue / customers"))
    ['ARPU']
    """
    found = [each for each in (*_BRACKETS.findall(rule.name), rule.name) if _ABBREVIATION.fullmatch(each)]
    begin = _DEFINES.match(rule.definition)
    return list(dict.fromkeys(found + ([begin[1]] if begin else [])))
