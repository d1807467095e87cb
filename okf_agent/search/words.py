"""What else a word of a question may be called: abbreviations and synonyms of general English, business and data.

A bundle's own names (`synonyms` of a concept, "(RUR)" behind a title) are in its index. Each list says where its words
come from.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeAlias

from okf_agent.search import text

Names: TypeAlias = list[tuple[str, float]]
"""What one word may be called: stems with a weight of at most 1, the likeliest first, its own stem before all."""
Asked: TypeAlias = list[Names]
"""The names of each word of a question."""

MAX_WORDS = 40
"""Words of a question that are looked for; more say nothing more of it."""
SAME, SHORT, SYNONYM, AMONG_MANY = 0.95, 0.9, 0.6, 0.15
"""Weights of another form of the word, of what it is short for, of a synonym, and of one in a long question."""
IN_PHRASE = 0.5
"""What is left of a word's weights where it stands in a phrase that the lists know: "back" in "come back"."""
LONG = 10
"""Words from which a question is long: it names what it needs, and synonyms lead away from it."""
LONGEST = 3
"""Words of the longest phrase in the lists."""


def asked(question: str) -> Asked:
    """The names of a question's words, and of those of its phrases that the lists know.

    >>> asked("avg height")[0][:3]
    [('avg', 1.0), ('averag', 0.9), ('mean', 0.9)]
    >>> [stem for stem, _ in asked("who signed up")[-1]]
    ['regist', 'registr', 'enrol', 'join', 'signup', 'account', 'creat', 'convers']
    """
    said, spoken = text.stems(question), text.asked_words(question)[:MAX_WORDS]
    worth = AMONG_MANY if len(spoken) >= LONG else SYNONYM
    lists = _lists()
    phrases = [
        phrase
        for length in range(2, LONGEST + 1)
        for start in range(len(said) - length + 1)
        if (phrase := " ".join(said[start : start + length])) in lists.synonyms
    ]
    covered = {stem for phrase in phrases for stem in phrase.split()}
    single = []
    for word in spoken:
        share = IN_PHRASE if text.stem(word) in covered else 1.0
        single.append([(name, share * weight) for name, weight in _names(word, worth)])
    return single + [[(name, worth) for name in lists.synonyms[phrase]] for phrase in phrases]


@functools.lru_cache(maxsize=10_000)
def _names(word: str, worth: float) -> Names:
    lists = _lists()
    own = text.stem(word)
    names = {own: 1.0}
    forms = [own, *lists.forms.get(own, ())]
    for form in forms[1:]:
        names.setdefault(form, SAME)
    for form in forms:
        for short in lists.short.get(form, ()):
            names.setdefault(short, SHORT)
    for form in forms:
        for synonym in lists.synonyms.get(form, ()):
            names.setdefault(synonym, worth)
    return [*names.items()]


@dataclass(frozen=True)
class _Lists:
    """Stems by a stem, and by the stems of a phrase with a space between."""

    forms: Mapping[str, list[str]]
    short: Mapping[str, list[str]]
    synonyms: Mapping[str, list[str]]


@functools.cache
def _lists() -> _Lists:
    forms: dict[str, list[str]] = {}
    short: dict[str, list[str]] = {}
    synonyms: dict[str, list[str]] = {}
    for line in _lines("irregular.txt"):
        base, _, others = line.partition(":")
        for other in others.split(","):
            _add(forms, other, base)
            _add(forms, base, other)
    for line in _lines("abbreviations.txt"):
        name, _, meanings = line.partition(":")
        for meaning in meanings.split(","):
            _add(short, name, meaning)
            _add(short, meaning, name)
    for name in ("synonyms.txt", "everyday.txt"):
        for line in _lines(name):
            before, leads, after = line.partition(">")
            group = before.split(",")
            for one in group:
                for other in after.split(",") if leads else group:
                    _add(synonyms, one, other)
    return _Lists(forms, short, synonyms)


def _add(names: dict[str, list[str]], word: str, other: str) -> None:
    """`word` may be called `other`; a phrase is no name, since the index has single words."""
    key, name = _key(word), _key(other)
    if name != key and " " not in name:
        known = names.setdefault(key, [])
        if name not in known:
            known.append(name)


@functools.cache
def _key(words: str) -> str:
    return " ".join(text.stems(words))


def _lines(name: str) -> Iterator[str]:
    """The lines of a list, without comments."""
    content = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return (line for line in content.splitlines() if line and not line.startswith("#"))
