"""Which tables a rule needs in the end: its own, those of the rules it builds on, and what joins them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from okf_compiler.linking.links import Links
from okf_compiler.model import Database

_MOST_STEPS = 3
"""Keys from a table up to another; what is further apart is joined by people, not by a guess."""


def reach(database: Database, links: Links) -> Mapping[str, tuple[str, ...]]:
    """Rule id -> qualified names of the tables it reaches: in the order found, then those that only join them."""
    own = {rule: tuple(link.target.table for link in found) for rule, found in links.columns_of.items()}
    joins = Joins(database)
    reached: dict[str, tuple[str, ...]] = {}
    for rule in database.rules:
        tables = tuple(dict.fromkeys(t for id in builds_on(links, rule.id) for t in own.get(id, ())))
        reached[rule.id] = (*tables, *joins.between(tables))
    return reached


def builds_on(links: Links, rule: str) -> list[str]:
    """The rule and all rules that it depends on, through all levels, nearest first."""
    found = {rule: None}
    todo = [rule]
    for current in todo:
        for link in links.depends_on.get(current, ()):
            if link.target.rule not in found:
                found[link.target.rule] = None
                todo.append(link.target.rule)
    return list(found)


class Joins:
    """The foreign keys of a database, followed upwards: from a row to the one row it refers to."""

    def __init__(self, database: Database) -> None:
        self._parents: dict[str, set[tuple[str, tuple[str, ...]]]] = defaultdict(set)
        self._up: dict[str, dict[str, tuple[str, ...] | None]] = {}
        tables = {(t.schema.lower(), t.name.lower()): t for t in database.tables}
        for table in database.tables:
            for key in table.foreign_keys:
                target = tables.get((key.ref_schema.lower(), key.ref_table.lower()))
                if target and target is not table:
                    columns = tuple(c.lower() for c in key.ref_columns or target.primary_key)
                    self._parents[table.qualified_name].add((target.qualified_name, columns))

    def between(self, tables: Sequence[str]) -> list[str]:
        """The tables that a join of these needs besides.

        Two tables are joined by keys that lead up from one to the other, if the shortest such way is the only one of
        its length. A third table above or below both is a choice that only the question can make.
        """
        groups: list[set[str]] = []
        for table in tables:
            joined = [g for g in groups if any(self._meet(table, other) for other in g)]
            groups = [g for g in groups if g not in joined] + [{table}.union(*joined)]
        found: dict[str, None] = {}
        while len(groups) > 1:
            first, rest = groups[0], groups[1:]
            ways = [(way, g) for g in rest for a in sorted(first) for b in sorted(g) if (way := self._way(a, b))]
            groups = rest
            if ways:
                way, group = min(ways, key=lambda item: len(item[0]))
                found.update(dict.fromkeys(way))
                groups = [first | group | set(way), *(g for g in rest if g is not group)]
        return [table for table in found if table not in tables]

    def _meet(self, one: str, other: str) -> bool:
        """Whether a key leads from one to the other, or both have a key to the same columns."""
        parents, others = self._parents.get(one, set()), self._parents.get(other, set())
        return bool(parents & others) or any(p == other for p, _ in parents) or any(p == one for p, _ in others)

    def _way(self, one: str, other: str) -> tuple[str, ...]:
        """The tables between two, of which one lies above the other."""
        way = self._ups(one).get(other) or self._ups(other).get(one) or ()
        return way[1:-1]

    def _ups(self, table: str) -> dict[str, tuple[str, ...] | None]:
        """The tables above, itself included, with the way to each from here; None where two ways are as short."""
        if table not in self._up:
            found: dict[str, tuple[str, ...] | None] = {table: (table,)}
            ways: list[tuple[str, ...]] = [(table,)]
            for _ in range(_MOST_STEPS):
                following: dict[str, tuple[str, ...] | None] = {}
                for way in ways:
                    for parent in sorted({parent for parent, _ in self._parents.get(way[-1], ())} - found.keys()):
                        following[parent] = None if parent in following else (*way, parent)
                found |= following
                ways = [way for way in following.values() if way]
            self._up[table] = found
        return self._up[table]
