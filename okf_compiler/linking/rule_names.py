"""Rules by what other rules call them: their titles, and the abbreviations that they define."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from okf_compiler.model import Rule

_WORD = re.compile(r"\w+")
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
    """Finds the names of rules in texts; a name that two rules have belongs to neither."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        titles: dict[tuple[str, ...], set[str]] = defaultdict(set)
        short: dict[str, set[str]] = defaultdict(set)
        for rule in rules:
            words = tuple(_WORD.findall(without_brackets(rule.name).lower()))
            if len(words) > 1:
                titles[words].add(rule.id)
            for name in abbreviations(rule):
                short[name].add(rule.id)
        self._short = {name: ids.pop() for name, ids in short.items() if len(ids) == 1}
        self._titles = {words: ids.pop() for words, ids in titles.items() if len(ids) == 1}
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
            if words[i] in short or (word in first and lower[i : i + 2] in self._lengths)
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
            for length in self._lengths.get(lower[position : position + 2], ()):
                rule = self._titles.get(lower[position : position + length])
                if rule is not None and position + length <= len(words):
                    skip = position + length
                    yield Named(rule, start, places[skip - 1][1])
                    break


Spoken = Mapping[str, Sequence[Named]]
"""Rule id -> the names of rules in its definition, its own included."""


def spoken(rules: tuple[Rule, ...]) -> Spoken:
    names = RuleNames(rules)
    return {rule.id: tuple(names.find(rule.definition)) for rule in rules}


def hide(text: str, names: Sequence[Named]) -> str:
    """The text with a bar for each of the names: what it speaks of there is a rule, and no column."""
    parts, end = [], 0
    for named in names:
        parts += [text[end : named.start], "|"]
        end = named.end
    return "".join([*parts, text[end:]])


def without_brackets(title: str) -> str:
    """A title without what stands in brackets."""
    return _BRACKETS.sub(" ", title)


def abbreviations(rule: Rule) -> list[str]:
    """What stands in brackets in the rule's title, or before the `=` that its definition begins with.

    >>> abbreviations(Rule("1", "Resource Utilization Ratio (RUR)", "", definition="RUR = a / b"))
    ['RUR']
    """
    found = [inside for inside in _BRACKETS.findall(rule.name) if _ABBREVIATION.fullmatch(inside)]
    begin = _DEFINES.match(rule.definition)
    return list(dict.fromkeys(found + ([begin[1]] if begin else [])))
