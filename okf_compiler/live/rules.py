"""Business rules against the database: columns that are gone, and values a rule names that nothing holds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from okf_compiler.link import Links
from okf_compiler.linking.rule_names import ILLUSTRATION
from okf_compiler.linking.terms import missing_columns
from okf_compiler.live.data import Data, Place, Spread
from okf_compiler.live.described import SHOWN, normal, unlisted, weight
from okf_compiler.live.finding import Finding
from okf_compiler.live.type_names import family
from okf_compiler.model import Column, Database, Rule, Table

_QUOTED = re.compile(r"(?<!\w)'((?:[^'\n]|'(?=\w)){0,40})'(?!\w)")
_INDICATES = re.compile(r"(?:^|[.,]\s+|\band\s+)([A-Z][\w-]*(?:[ /][A-Z][\w-]*)*)\s+(?:indicates|means|refers to)\b")
_OPEN = re.compile(r"\bcommon\b|\bsuch as\b|\betc\b|\be\.g\.|\boften\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{3,}")
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        "the and for that with from this which whose who are value values level levels type types status based their "
        "its illustrates describes defines classifies explains different indicates indicate means number text",
    )
)
"""Words that any rule and any column may have."""
CANDIDATES = 3_000
"""Columns that are read in search of a rule's values; a larger database is not searched."""


@dataclass(frozen=True)
class Held:
    """A place with few different values, and the words that speak of it."""

    place: Place
    words: frozenset[str]
    spread: Spread
    values: frozenset[str]
    """The held values, as `normal` writes them."""


def gone_columns(links: Links, rules: Mapping[str, Rule], missing: set[str]) -> Iterator[Finding]:
    """Rules whose links lead to a table or column that the database lacks; `missing` holds their names."""
    for link in links.links:
        target = link.target
        gone = [n for n in (target.table, f"{target.table}.{target.column}") if n and n.lower() in missing]
        if gone and link.rule in rules:
            yield Finding(
                "rule-uses-missing", "error" if link.kind == "stated" else "warning", f"rule {link.rule}",
                f"{rules[link.rule].name} uses {gone[0]}, which the database lacks ({link.kind}: {link.evidence})",
            )  # fmt: skip


def unknown_columns(
    documented: Database, live: Database, exists: Callable[[str, str, str], str | None]
) -> Iterator[Finding]:
    """Yield the columns that rules name, of tables for which neither the documents nor the database have them."""
    for rule, table, column in missing_columns(documented.rules, _together(live.tables, documented.tables)):
        if exists(table.schema or "public", table.name, column) is None:
            yield Finding(
                "rule-names-no-column", "error", f"{table.qualified_name}.{column}",
                f"no such column; rule {rule.name}",
            )  # fmt: skip


def _together(live: Iterable[Table], documented: Iterable[Table]) -> list[Table]:
    """Return the database's tables, each with the columns that only the documents have."""
    described: dict[str, list[Column]] = defaultdict(list)
    for table in documented:
        described[table.name.lower()] += table.columns
    return [replace(table, columns=(*table.columns, *described[table.name.lower()])) for table in live]


def rule_values(rule: Rule) -> tuple[str, ...]:
    """The values that a rule's definition names, in quotes or as `Low indicates …`.

    >>> rule_values(Rule("1", "Tone", "value_illustration", "", "Common values are 'Good' or 'Bad'."))
    ('Good', 'Bad')
    >>> rule_values(Rule("2", "Risk", "value_illustration", "", "Low indicates minimal risk, and High indicates need."))
    ('Low', 'High')
    """
    found = _QUOTED.findall(rule.definition)
    if rule.type == ILLUSTRATION and not found:
        found = [v for group in _INDICATES.findall(rule.definition) for v in group.split("/")]
    return tuple(dict.fromkeys(v.strip() for v in found if v[:1].isalnum()))


def check_values(data: Data, places: Sequence[tuple[Place, str]], database: Database) -> Iterator[Finding]:
    """Values that rules name against what the columns hold. `places` come with their descriptions.

    The column is the one whose name and description share most with the rule's words, among those that hold at least
    two of its values and half of them. A value illustration is compared with that column; of any other rule a value
    counts as missing only if no column of the database holds it.
    """
    named = {rule.id: rule_values(rule) for rule in database.rules}
    wanted = [rule for rule in database.rules if len(named[rule.id]) > 1]
    if not wanted or len(places) > CANDIDATES:
        return
    columns = list(_held(data, places))
    anywhere = {value for column in columns for value in column.values}
    names = {normal(rule.name) for rule in database.rules}
    for rule in wanted:
        values = [v for v in named[rule.id] if normal(v) not in names]
        column = _column_of(rule, values, columns)
        if column is None:
            continue
        held = column.values if rule.type == ILLUSTRATION else anywhere
        unheld = [v for v in values if normal(v) not in held]
        if unheld and column.spread.whole:
            where = f"{column.place} ({column.spread.scope})" if rule.type == ILLUSTRATION else "any column"
            yield Finding(
                "rule-unheld-value", weight(column.spread, values), f"rule {rule.id}",
                f"{rule.name} names values that are not held by {where}: {', '.join(map(repr, unheld[:SHOWN]))}",
            )  # fmt: skip
        if rule.type == ILLUSTRATION:
            yield from _unlisted(rule, values, column)


def _unlisted(rule: Rule, values: Sequence[str], column: Held) -> Iterator[Finding]:
    if rows := unlisted(column.spread, values):
        yield Finding(
            "rule-unlisted-value", "info" if _OPEN.search(rule.definition) else "warning", f"rule {rule.id}",
            f"{rule.name} leaves out values that {column.place} holds: {rows}",
        )  # fmt: skip


def _held(data: Data, places: Sequence[tuple[Place, str]]) -> Iterator[Held]:
    for place, description in places:
        if not place.path and not place.column.enum_labels and family(place.column.type) != "text":
            continue
        spread = data.spread(place)
        if spread and spread.values and spread.rows > spread.nulls:
            words = _words(f"{place} {description}".replace("_", " "))
            yield Held(place, words, spread, frozenset(normal(v) for v in spread.values))


def _column_of(rule: Rule, values: Sequence[str], columns: Sequence[Held]) -> Held | None:
    """The one column that the rule's values come from; None if two fit as well, or none does."""
    words, title = _words(f"{rule.name} {rule.description} {rule.definition}"), _words(rule.name)
    ranked = []
    for column in columns:
        hits = sum(normal(v) in column.values for v in values)
        shared = len(words & column.words) + 2 * len(title & column.words)
        # Without a word in common, only a column that holds every one of the values will do.
        if hits >= 2 and hits * 2 >= len(values) and (shared or hits == len(values)):
            ranked.append((shared, hits, column))
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    if not ranked or (len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]):
        return None
    return ranked[0][2]


def _words(text: str) -> frozenset[str]:
    """The words of a text, in lower case and without endings."""
    words = (re.sub(r"(?:ies|y|ing|ment|ed|es|s)$", "", w) for w in _WORD.findall(text.lower()) if w not in _PLAIN)
    return frozenset(w for w in words if len(w) > 2)
