"""What a database is, as its documents or its catalogue tell it: facts only, frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from okf_compiler.sql_names import qualified


@dataclass(frozen=True, slots=True)
class JsonField:
    """One documented field inside a JSON column."""

    path: tuple[str, ...]
    """Keys from the column inwards: `("population_impact", "injured")`."""
    meaning: str


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """As the source spells it; an enum's labels are in `enum_labels`."""
    nullable: bool = True
    default: str | None = None
    meaning: str | None = None
    """The source's description, word for word; None where there is none."""
    fields: tuple[JsonField, ...] = ()
    enum_labels: tuple[str, ...] = ()
    generated: str | None = None
    """The expression of a generated column, or `identity`."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns[i]` refers to `ref_columns[i]` of the table `ref_schema.ref_table`."""

    columns: tuple[str, ...]
    ref_table: str
    ref_columns: tuple[str, ...]
    ref_schema: str = "public"


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    schema: str = "public"
    """Empty in a source that names tables without saying where they are."""
    kind: str = "table"
    """`table`, `view`, `materialized view`, `foreign table` or `partitioned table`."""
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()
    description: str | None = None
    row_security: bool = False
    """Whether policies decide which of its rows a role sees."""
    synonyms: tuple[str, ...] = ()
    """Other words that people use for it."""
    sources: tuple[str, ...] = ()
    """Ids of the sources that say something of it; empty where its database has one set of documents only."""

    @property
    def qualified_name(self) -> str:
        """The one name of this table, as `sql_names.qualified` writes it: `orders`, `sales.orders`."""
        return qualified(self.schema, self.name)

    def column(self, name: str) -> Column | None:
        """The column of this name in any letter case; an exact match wins."""
        return _find(self.columns, name)


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of a glossary: a calculation, a definition of a business word, or what values mean."""

    id: str
    name: str
    type: str
    """The source's own word: `calculation_knowledge`, `domain_knowledge`, `value_illustration`, …"""
    description: str = ""
    definition: str = ""
    depends_on: tuple[str, ...] = ()
    """Ids of the rules this one builds on, as the source states them."""
    synonyms: tuple[str, ...] = ()
    source: str = ""
    """Id of the source it comes from; empty where its database has one source of rules only."""


@dataclass(frozen=True, slots=True)
class Source:
    """A document or a catalogue that facts came from."""

    id: str
    """`schema`, `column_meaning_base`, `kb`, … : what footnotes and reports call it."""
    resource: str
    """A public address, or a path without secrets. Never a connection URL."""
    title: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that could not be read, or does not fit the rest."""

    message: str
    file: str = ""
    line: int = 0
    """1-based; 0 where no line applies."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return place + self.message


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source something stands."""

    file: str
    line: int = 0
    """1-based; 0 where no line applies."""


@dataclass(frozen=True)
class Database:
    name: str
    tables: tuple[Table, ...]
    rules: tuple[Rule, ...] = ()
    sources: tuple[Source, ...] = ()
    problems: tuple[Problem, ...] = ()
    places: Mapping[tuple[str, ...], Place] = field(default_factory=dict, compare=False, repr=False)
    """Where a fact stands, for messages: by (schema, table), (schema, table, column) or (rule id,)."""

    def table(self, name: str, schema: str = "public") -> Table | None:
        """The table of this name in any letter case; an exact match wins."""
        return _find(self._by_name.get((schema.lower(), name.lower()), ()), name)

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], list[Table]]:
        """The tables by schema and name in lower case: a scan for each name is quadratic."""
        found: dict[tuple[str, str], list[Table]] = {}
        for table in self.tables:
            found.setdefault((table.schema.lower(), table.name.lower()), []).append(table)
        return found


_Named = TypeVar("_Named", Column, Table)


def _find(items: Sequence[_Named], name: str) -> _Named | None:
    exact = next((i for i in items if i.name == name), None)
    return exact or next((i for i in items if i.name.lower() == name.lower()), None)
