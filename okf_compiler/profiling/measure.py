"""One table measured: its rows, then of all columns at once the counts, then their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg import errors, sql

from okf_compiler.postgres import Row
from okf_compiler.profiling import json_paths, lists, queries
from okf_compiler.profiling.facts import ColumnProfile, TableProfile
from okf_compiler.profiling.limits import Ask, Request, asking, reason, source_of
from okf_compiler.profiling.store import shows, shows_whole
from okf_compiler.profiling.targets import SAMPLED_KINDS, Relation, Target, column_targets

CELLS = 5_000_000
"""Cells whose different values one query counts: they are sorted, and the role's disk for that is limited."""
MOST_COLUMNS = 100
MOST_SETS = 30
"""PostgreSQL's GROUPING() takes 31."""


@dataclass(frozen=True, slots=True)
class TableMeasured:
    profile: TableProfile | None
    """None where the table could not be measured at all."""
    values: dict[str, list[tuple[str, int]]]
    """For the value index: of each column that goes into it, the different values and their rows."""
    unmeasured: dict[str, str] = field(default_factory=dict)
    """Table, column or path -> why."""


@dataclass(frozen=True, slots=True)
class _Counts:
    rows: int
    filled: int
    distinct: int
    empty: int
    has_text: bool
    low: str | None
    high: str | None
    specials: tuple[str, ...]

    @property
    def every_once(self) -> bool:
        """Whether no value stands twice."""
        return self.distinct == self.filled


def measure(connection: psycopg.Connection[Any], relation: Relation, request: Request) -> TableMeasured:
    """One table. What cannot be measured is named with its reason, and the rest goes on.

    Raises:
        UserError: the connection is lost.
    """
    if not relation.populated:
        why = "the materialized view is not populated: REFRESH MATERIALIZED VIEW fills it"
        return TableMeasured(None, {}, {relation.name: why})
    try:
        with asking(connection, request.limits.seconds) as ask:
            return _Table(relation, request, ask).measured()
    except psycopg.DatabaseError as error:
        return TableMeasured(None, {}, {relation.name: reason(error, request.limits)})


class _Table:
    """The state of one table's measuring."""

    def __init__(self, relation: Relation, request: Request, ask: Ask) -> None:
        self.relation = relation
        self.request = request
        self.ask = ask
        self.rows, self.estimated = self._rows()
        self.source, self.sampled = source_of(relation, self.rows, request.limits)
        self.values: dict[str, list[tuple[str, int]]] = {}
        self.unmeasured: dict[str, str] = {}

    def measured(self) -> TableMeasured:
        looked_at = self.rows
        if self.sampled:
            looked_at = int(self.ask(sql.SQL("SELECT count(*)::text FROM {}").format(self.source))[0][0] or 0)
        targets = self._targets()
        counted = self._counted(targets, looked_at)
        found = self._found([t for t in targets if t.name in counted], counted)
        columns = {
            t.name: self._column(t, counted[t.name], found.get(t.name, [])) for t in targets if t.name in counted
        }
        sampled = looked_at if self.sampled else None
        profile = TableProfile(self.relation.name, self.rows, sampled, columns, self.estimated)
        return TableMeasured(profile, self.values, self.unmeasured)

    def _rows(self) -> tuple[int, bool]:
        """How many rows, and whether that is the planner's estimate only."""
        try:
            return int(
                self.ask(sql.SQL("SELECT count(*)::text FROM {}").format(self.relation.source))[0][0] or 0
            ), False
        except errors.QueryCanceled:
            if not self.relation.estimate or self.relation.table.kind not in SAMPLED_KINDS:
                raise
            return self.relation.estimate, True

    def _targets(self) -> list[Target]:
        """Its columns, each JSON column followed by its paths."""
        targets: list[Target] = []
        for target in map(self._shown_whole, column_targets(self.relation)):
            if target.kind != "json":
                targets.append(target)
                continue
            try:
                found = self.ask(json_paths.query(target.name, self.source))
            except psycopg.DatabaseError as error:
                self._give_up(target.name, error)
                targets.append(target)
                continue
            paths, left_out = json_paths.targets(target.name, found, self._documented_paths(target.name))
            shown = (p for p in paths if shows(self.request.hide, self.relation.name, p.name))
            targets += [target, *map(self._shown_whole, shown)]
            if left_out:
                self.unmeasured[f"{self.relation.name}.{target.name}"] = f"{left_out:,} paths more than are measured"
        return targets

    def _shown_whole(self, target: Target) -> Target:
        """The target, its values unseen where something inside them is hidden."""
        if shows_whole(self.request.hide, self.relation.name, target.name, target.type):
            return target
        return replace(target, shown=False)

    def _documented_paths(self, column: str) -> list[json_paths.Path]:
        documented, own = self.request.documented, self.relation.table
        if documented is None:
            return []
        table = documented.table(own.name, own.schema) or documented.table(own.name)
        described = table.column(column) if table else None
        return [f.path for f in described.fields] if described else []

    def _counted(self, targets: Sequence[Target], rows: int) -> dict[str, _Counts]:
        """The counts of every target that can be counted, some at a time in one scan."""
        step = max(1, min(MOST_COLUMNS, CELLS // max(rows, 1)))
        counted: dict[str, _Counts] = {}
        for start in range(0, len(targets), step):
            some = targets[start : start + step]
            try:
                counted |= self._count(some)
            except errors.QueryCanceled as error:
                for target in some:  # each for itself could take as long
                    self._give_up(target.name, error)
            except psycopg.DatabaseError:
                for target in some:  # one of them cannot be read: which?
                    try:
                        counted |= self._count([target])
                    except psycopg.DatabaseError as error:
                        self._give_up(target.name, error)
        return counted

    def _count(self, targets: Sequence[Target]) -> dict[str, _Counts]:
        query = sql.SQL("SELECT count(*)::text, {} FROM {}").format(
            sql.SQL(", ").join(part for target in targets for part in queries.aggregates(target)), self.source
        )
        rows, *cells = self.ask(query)[0]
        width = len(cells) // len(targets)
        return {
            target.name: _counts(int(rows or 0), cells[place * width : (place + 1) * width])
            for place, target in enumerate(targets)
        }

    def _found(self, targets: Sequence[Target], counted: dict[str, _Counts]) -> dict[str, list[tuple[str, int]]]:
        """Values with their rows, the most frequent first: all of columns that have few, the first of the others."""
        found: dict[str, list[tuple[str, int]]] = {}
        shown = [target for target in targets if target.shown and counted[target.name].filled]
        few = [target for target in shown if counted[target.name].distinct <= queries.MOST_VALUES]
        for start in range(0, len(few), MOST_SETS):
            some = few[start : start + MOST_SETS]
            for place, value, rows in self._try(some, queries.values_of_all(some, self.source)):
                found.setdefault(some[int(place or 0)].name, []).append((value or "", int(rows or 0)))
        for target in shown:
            if target.elements is not None:
                self._index_elements(target)
            if target not in few:
                query = queries.first_values(target, self.source, counted[target.name].every_once)
                found[target.name] = [(value or "", int(rows or 0)) for value, rows in self._try([target], query)]
        return {name: sorted(values, key=lambda v: (-v[1], v[0])) for name, values in found.items()}

    def _index_elements(self, target: Target) -> None:
        """The different texts inside arrays go into the value index, each with the rows that hold it."""
        found = self._try([target], queries.elements(target, self.source))
        if len(found) <= queries.MOST_VALUES:
            self.values[target.name] = [
                (value, int(rows or 0))
                for value, rows in found
                if value and value.strip() and len(value) <= queries.LONGEST_VALUE
            ]

    def _column(self, target: Target, counts: _Counts, found: list[tuple[str, int]]) -> ColumnProfile:
        blank = counts.rows > 0 and not (counts.has_text if target.has_empty else counts.filled)
        short = [(value, rows) for value, rows in found if len(value) <= queries.LONGEST_VALUE]
        is_text = target.kind == "text"
        if is_text and counts.distinct <= queries.MOST_VALUES and not blank:
            self.values[target.name] = [(value, rows) for value, rows in short if value.strip()]
        unique = counts.filled > 0 and counts.every_once and not self.sampled
        return ColumnProfile(
            name=target.name,
            type=target.type,
            rows=counts.rows,
            nulls=counts.rows - counts.filled,
            empty=counts.empty if target.has_empty else None,
            distinct=counts.distinct,
            unique=unique or (self.sampled and target.known_unique),
            only_value=counts.distinct == 1 and not blank and not self.sampled,
            blank=blank,
            examples=tuple(value for value, _ in found if value.strip())[: queries.EXAMPLES],
            low=counts.low,
            high=counts.high,
            list_separator=lists.separator([value for value, _ in found]) if is_text else None,
            sampled=self.sampled,
            specials=counts.specials,
            path=target.path,
        )

    def _try(self, targets: Sequence[Target], query: sql.Composed) -> list[Row]:
        try:
            return self.ask(query)
        except psycopg.DatabaseError as error:
            for target in targets:
                self._give_up(f"values of {target.name}", error)
            return []

    def _give_up(self, what: str, error: psycopg.DatabaseError) -> None:
        self.unmeasured[f"{self.relation.name}.{what}"] = reason(error, self.request.limits)


def _counts(rows: int, cells: Sequence[str | None]) -> _Counts:
    filled, distinct, empty, has_text, low, high, specials = cells
    return _Counts(
        rows, int(filled or 0), int(distinct or 0), int(empty or 0), has_text == "true", low, high,
        tuple(specials.split(",")) if specials else (),
    )  # fmt: skip
