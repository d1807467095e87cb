"""How near each table and each rule is to a question, by the words they share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from okf_agent.bundles.cards import Cards, RuleCard, TableCard
from okf_agent.search import ranking
from okf_agent.search.text import key_stems

SEARCH_FROM = 60
"""Tables and rules together from which the search index is asked too: below, every one is scored here."""
SEARCHED = 40
"""Of its results, how many count."""


@dataclass(frozen=True)
class Scores:
    """How near each concept is to the question, by path; what shares no word with it is not there."""

    tables: Mapping[str, float]
    rules: Mapping[str, float]
    named_rules: tuple[str, ...]
    """Rules whose whole title the question uses."""
    named_tables: frozenset[str]
    searched: tuple[str, ...] = ()
    """What the search index finds besides, the nearest first: it knows abbreviations and other names."""


def rank(question: str, known: Cards, searched: tuple[str, ...] = ()) -> Scores:
    """Score tables and rules by the words they share with the question.

    Where the question names rules, others count only if a word of their title is said besides: not in the names
    of those rules, nor as the name of a table, which most rules about it have in their title.
    """
    asked = key_stems(question)
    named = tuple(path for path, rule in known.rules.items() if _is_named(rule, question, asked))
    told = {stem for path in named for stem in key_stems(known.rules[path].title)}
    told |= {stem for table in known.tables.values() for stem in key_stems(table.name)}
    rest = set(asked) - told
    texts = {
        path: _rule_words(rule)
        for path, rule in known.rules.items()
        if path not in named and (not named or rest & set(key_stems(rule.title)))
    }
    return Scores(
        tables=ranking.bm25(asked, {path: _table_words(table) for path, table in known.tables.items()}),
        rules=ranking.bm25(asked, texts),
        named_rules=named,
        named_tables=frozenset(p for p, t in known.tables.items() if _beside(key_stems(t.name), asked)),
        searched=searched,
    )


def searched(question: str, known: Cards, bundle: Path) -> tuple[str, ...]:
    """Paths that the search index gives for the question, the nearest first; none for a small bundle."""
    if len(known.tables) + len(known.rules) < SEARCH_FROM:
        return ()
    from okf_agent.search.index import shared  # its library is loaded only where it helps

    return tuple(path for path, _ in shared(bundle).rank(question, SEARCHED))


def _rule_words(rule: RuleCard) -> list[str]:
    """A title counts three times, since it is what people say."""
    return key_stems(rule.title) * 3 + key_stems(f"{rule.description} {rule.definition}")


def _table_words(table: TableCard) -> list[str]:
    names = key_stems(table.name) * 4 + key_stems(table.description)
    for column in table.columns + table.fields:
        names += key_stems(column.name) * 2 + key_stems(column.meaning)
    return names


def _is_named(rule: RuleCard, question: str, asked: list[str]) -> bool:
    """Whether the words of the title stand side by side in the question, or its abbreviation does."""
    title, _, rest = rule.title.partition("(")
    short = rest.partition(")")[0]
    abbreviated = short.isupper() and re.search(rf"\b{re.escape(short)}\b", question) is not None
    return abbreviated or _beside(key_stems(title), asked)


def _beside(stems: list[str], asked: list[str]) -> bool:
    places = range(len(asked) - len(stems) + 1)
    return bool(stems) and any(asked[i : i + len(stems)] == stems for i in places)
