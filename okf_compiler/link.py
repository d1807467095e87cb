"""Rules linked to the columns, tables and rules they speak of. Every link carries its evidence.

Stated links only: what the source itself says. Inferred links join as one more function in `PASSES`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from okf_compiler.model import Column, Database, Rule, Table

_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"\w+(?:(?:\.|->>?)'?\w+'?)+")
_STEP = re.compile(r"(?:\.|->>?)")


@dataclass(frozen=True, slots=True)
class Target:
    """What a link points at: another rule, or a table, a column in it, a field in that."""

    rule: str = ""
    """The rule's id; then everything else is empty."""
    table: str = ""
    """`Table.qualified_name`."""
    column: str = ""
    path: tuple[str, ...] = ()
    """Keys inside a JSON column."""

    def __str__(self) -> str:
        return self.rule or ".".join(part for part in (self.table, self.column, *self.path) if part)


@dataclass(frozen=True, slots=True)
class Link:
    rule: str
    """Id of the rule that the link starts from."""
    target: Target
    kind: Literal["stated", "inferred"]
    evidence: str
    """Why the link is there, as a reader of the concept sees it."""
    score: float
    """1.0 for what can mean nothing else; a name that n tables share gives 1/n."""


@dataclass(frozen=True)
class Links:
    """All links of one database, in order of rules and then of the places they are found in."""

    links: tuple[Link, ...]

    @cached_property
    def columns_of(self) -> Mapping[str, list[Link]]:
        """Rule id -> its links to tables, columns and fields."""
        return _group((link.rule, link) for link in self.links if link.target.table)

    @cached_property
    def rules_of(self) -> Mapping[str, list[Link]]:
        """Qualified table name -> the links that point into the table."""
        return _group((link.target.table, link) for link in self.links if link.target.table)

    @cached_property
    def depends_on(self) -> Mapping[str, list[Link]]:
        """Rule id -> its links to the rules it builds on."""
        return _group((link.rule, link) for link in self.links if link.target.rule)

    @cached_property
    def used_by(self) -> Mapping[str, list[Link]]:
        """Rule id -> the links of the rules that build on it."""
        return _group((link.target.rule, link) for link in self.links if link.target.rule)


def link(database: Database) -> Links:
    """Every link that the passes find; a target is linked from a rule once, by its best evidence."""
    best: dict[tuple[str, Target], Link] = {}
    for run_pass in PASSES:
        for found in run_pass(database):
            key = (found.rule, found.target)
            if key not in best or found.score > best[key].score:
                best[key] = found
    return Links(tuple(best.values()))


def unlinked(database: Database, links: Links) -> list[Rule]:
    """The rules that name no table and no column."""
    return [rule for rule in database.rules if rule.id not in links.columns_of]


def dependencies(database: Database) -> Iterator[Link]:
    """What the source lists as a rule's children."""
    known = {rule.id for rule in database.rules}
    for rule in database.rules:
        for other in rule.depends_on:
            if other in known:
                yield Link(rule.id, Target(rule=other), "stated", "the source lists it", 1.0)


def named_columns(database: Database) -> Iterator[Link]:
    """Columns whose name is a whole word (letters, digits, underscores) of a title or definition, in any case."""
    names = _Names(database)
    for rule in database.rules:
        for place, text in (("title", rule.name), ("definition", rule.definition)):
            for word in dict.fromkeys(w.lower() for w in _WORD.findall(text)):
                yield from _links(rule, names.by_word.get(word, ()), place)
            for phrase, pattern in names.phrases.items():
                if pattern.search(text):
                    yield from _links(rule, names.by_word[phrase], place)


def named_paths(database: Database) -> Iterator[Link]:
    """Paths such as `impactMetrics.communication` or `operations.status`, written with dots or arrows."""
    names = _Names(database)
    for rule in database.rules:
        for place, text in (("title", rule.name), ("definition", rule.definition)):
            for match in _DOTTED.findall(text):
                steps = [step.strip("'") for step in _STEP.split(match)]
                found = [*_follow(names, steps)]
                for table, column, path in found:
                    target = Target(table=table.qualified_name, column=column.name, path=path)
                    evidence = f"`{match}` in the {place}"
                    yield Link(rule.id, target, "stated", evidence, 1 / len(found))


PASSES = (dependencies, named_columns, named_paths)


class _Names:
    """Columns by their lower-case names; names that are not one word are looked for as phrases."""

    def __init__(self, database: Database) -> None:
        self.by_word: dict[str, list[tuple[Table, Column]]] = defaultdict(list)
        for table in database.tables:
            for column in table.columns:
                self.by_word[column.name.lower()].append((table, column))
        self.phrases = {
            name: re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
            for name in self.by_word
            if name and not _WORD.fullmatch(name)
        }


def _links(rule: Rule, places: Sequence[tuple[Table, Column]], place: str) -> Iterator[Link]:
    for table, column in places:
        evidence = f"named in the {place}"
        if len(places) > 1:
            evidence += f", as {len(places)} tables have it"
        target = Target(table=table.qualified_name, column=column.name)
        yield Link(rule.id, target, "stated", evidence, 1 / len(places))


def _follow(names: _Names, steps: Sequence[str]) -> Iterator[tuple[Table, Column, tuple[str, ...]]]:
    """The columns and fields that a dotted path leads to: `[schema.][table.]column[.field…]`."""
    for position, step in enumerate(steps):
        places = names.by_word.get(step.lower(), [])
        if position:
            owner = steps[position - 1].lower()
            places = [(t, c) for t, c in places if t.name.lower() == owner]
        found = [(t, c, _field_path(c, steps[position + 1 :])) for t, c in places]
        if position:
            yield from found
        else:
            yield from (place for place in found if place[2])


def _field_path(column: Column, steps: Sequence[str]) -> tuple[str, ...]:
    """The longest documented path of the column that the steps spell, in its own spelling; () if none."""
    for length in range(len(steps), 0, -1):
        wanted = tuple(step.lower() for step in steps[:length])
        for field in column.fields:
            if tuple(part.lower() for part in field.path[:length]) == wanted:
                return field.path[:length]
    return ()


def _group(pairs: Iterator[tuple[str, Link]]) -> Mapping[str, list[Link]]:
    groups: dict[str, list[Link]] = {}
    for key, found in pairs:
        groups.setdefault(key, []).append(found)
    return groups
