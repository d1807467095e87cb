"""What links are: from a rule to a column, a table or another rule, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

_EVIDENCE_CHARS = 200


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

    @property
    def name(self) -> str:
        """What a column or a field is called itself."""
        return self.path[-1] if self.path else self.column

    def __str__(self) -> str:
        return self.rule or ".".join(part for part in (self.table, self.column, *self.path) if part)


@dataclass(frozen=True, slots=True)
class Link:
    rule: str
    """Id of the rule that the link starts from."""
    target: Target
    kind: Literal["stated", "inferred", "stored"]
    """`stored`: the column claims to hold what the rule computes."""
    evidence: str
    """Why the link is there, as a reader of the concept sees it."""
    score: float
    """From 0 to 1; 1.0 for what can mean nothing else."""


@dataclass(frozen=True)
class Links:
    """All links of one database, in order of rules and then of the places they are found in."""

    links: tuple[Link, ...]
    reached: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Rule id -> qualified names of the tables it needs in the end, see `reach`."""

    @cached_property
    def columns_of(self) -> Mapping[str, list[Link]]:
        """Rule id -> its links to tables, columns and fields."""
        return _group((link.rule, link) for link in self.links if link.target.table and link.kind != "stored")

    @cached_property
    def rules_of(self) -> Mapping[str, list[Link]]:
        """Qualified table name -> the links that point into the table."""
        return _group((k.target.table, k) for k in self.links if k.target.table and k.kind != "stored")

    @cached_property
    def stored_results(self) -> Mapping[str, list[Link]]:
        """Rule id -> the columns that claim to hold what it computes."""
        return _group((link.rule, link) for link in self.links if link.kind == "stored")

    @cached_property
    def stored_in(self) -> Mapping[str, list[Link]]:
        """Qualified table name -> the same links, by the table that has the column."""
        return _group((link.target.table, link) for link in self.links if link.kind == "stored")

    @cached_property
    def depends_on(self) -> Mapping[str, list[Link]]:
        """Rule id -> its links to the rules it builds on."""
        return _group((link.rule, link) for link in self.links if link.target.rule)

    @cached_property
    def used_by(self) -> Mapping[str, list[Link]]:
        """Rule id -> the links of the rules that build on it."""
        return _group((link.target.rule, link) for link in self.links if link.target.rule)


def _group(pairs: Iterator[tuple[str, Link]]) -> Mapping[str, list[Link]]:
    groups: dict[str, list[Link]] = {}
    for key, found in pairs:
        groups.setdefault(key, []).append(found)
    return groups


def shown(path: str) -> str:
    """Return a path as evidence quotes it; a long one would stand in every concept that it leads to."""
    return path if len(path) <= _EVIDENCE_CHARS else f"{path[: _EVIDENCE_CHARS - 1]}…"
