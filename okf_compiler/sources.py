"""Several sources, one database: tables from the first, meanings and rules from all, every conflict reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from okf_compiler.agreement import holds, literal, same_target, shown_key, types_disagree
from okf_compiler.draft import same_text, says_nothing, shorten
from okf_compiler.errors import did_you_mean
from okf_compiler.model import Column, Database, ForeignKey, Place, Problem, Source, Table
from okf_compiler.rules import combine_rules

_COMPARISONS = 200_000
"""Near names are looked for until this many are compared: every name with every other would take minutes."""


def combine(base: Database, *others: Database) -> Database:
    """The tables of `base` with what the others say of them, and everybody's rules.

    What stands where two sources differ is always reported: of meanings and descriptions, the later source's; of
    types and keys, the base's, because it is nearest to the database. A table or column that only another source
    knows is a problem, not a table. Foreign keys, unique columns and checks of the others are added; what another
    source says of a column's NULLs and default, where the base says nothing, stands in its meaning.
    """
    databases = _numbered([base, *others])
    tables = _Tables(databases[0])
    for other in databases[1:]:
        tables.add(other)
    rules, rule_problems = combine_rules(databases)
    return Database(
        name=base.name,
        tables=tuple(tables.finish()),
        rules=rules,
        sources=tuple(source for database in databases for source in database.sources),
        problems=(*(p for database in databases for p in database.problems), *tables.problems, *rule_problems),
        places={key: place for database in reversed(databases) for key, place in database.places.items()},
    )


def _numbered(databases: Sequence[Database]) -> list[Database]:
    """The databases with source ids that are unique among them: a second `dictionary` is `dictionary-2`."""
    taken: set[str] = set()
    renamed = []
    for database in databases:
        ids: dict[str, str] = {}
        for source in database.sources:
            others = (f"{source.id}-{n}" for n in range(2, len(taken) + 3))
            ids[source.id] = source.id if source.id not in taken else next(id for id in others if id not in taken)
            taken.add(ids[source.id])
        renamed.append(
            replace(
                database,
                sources=tuple(replace(s, id=ids[s.id]) for s in database.sources),
                tables=tuple(replace(t, sources=tuple(ids.get(s, s) for s in t.sources)) for t in database.tables),
                rules=tuple(replace(r, source=ids.get(r.source, r.source)) for r in database.rules),
            )
        )
    return renamed


@dataclass(frozen=True)
class _Described:
    """One table of a further source, and the title of that source."""

    table: Table
    source: str
    places: Mapping[tuple[str, ...], Place]

    def place(self, column: str = "") -> Place:
        key = (self.table.schema, self.table.name, *([column] if column else []))
        return self.places.get(key, Place(self.source))


class _Tables:
    """The base's tables while the other sources add to them."""

    def __init__(self, base: Database) -> None:
        self.problems: list[Problem] = []
        self.base = base
        self.tables = [
            replace(t, schema=t.schema or "public", sources=t.sources or _sources_of(t, base.sources))
            for t in base.tables
        ]
        self.by_name: dict[str, list[int]] = {}
        for position, table in enumerate(self.tables):
            self.by_name.setdefault(table.name.lower(), []).append(position)
        self.said: dict[tuple[str, ...], str] = {}
        """Title of the source that a meaning or description comes from; the base's where there is no entry."""
        self.compared = 0

    def finish(self) -> list[Table]:
        return [replace(t, foreign_keys=tuple(self._key(t, k) for k in t.foreign_keys)) for t in self.tables]

    def add(self, other: Database) -> None:
        title = other.sources[0].title if other.sources else other.name
        for table in other.tables:
            described = _Described(table, title, other.places)
            position = self._find(described)
            if position is not None:
                self.tables[position] = self._merge(self.tables[position], described)

    def _problem(self, message: str, place: Place) -> None:
        self.problems.append(Problem(message, place.file, place.line))

    def _find(self, described: _Described) -> int | None:
        """The base's table of this name, in any letter case; an exact name, and then `public`, comes first."""
        wanted = described.table
        found = [
            position
            for position in self.by_name.get(wanted.name.lower(), [])
            if not wanted.schema or self.tables[position].schema.lower() == wanted.schema.lower()
        ]
        if not found and wanted.schema:  # a dot that is part of the name, written without quotes
            found = self.by_name.get(f"{wanted.schema}.{wanted.name}".lower(), [])
        exact = [p for p in found if self.tables[p].name == wanted.name] or found
        public = [p for p in exact if self.tables[p].schema == "public"] or exact
        if len(public) == 1:
            return public[0]
        place = described.place()
        if public:
            names = ", ".join(self.tables[p].qualified_name for p in public)
            self._problem(f"table {wanted.name} could be {names}; its description is not used. Name the schema", place)
        else:
            near = self._near(wanted.qualified_name, [t.qualified_name for t in self.tables])
            self._problem(f"there is no table {wanted.qualified_name!r} to describe{near}", place)
        return None

    def _near(self, name: str, known: Collection[str]) -> str:
        self.compared += len(known)
        return did_you_mean(name, known) if self.compared <= _COMPARISONS else "."

    # --- one table ---

    def _merge(self, table: Table, described: _Described) -> Table:
        new = described.table
        columns = {c.name: c for c in table.columns}
        for column in new.columns:
            own = table.column(column.name)
            if own is not None:
                columns[own.name] = self._column(table, columns[own.name], column, described)
            elif table.columns:
                near = self._near(column.name, columns)
                self._problem(
                    f"there is no column {column.name!r} in {table.qualified_name}{near}", described.place(column.name)
                )
            else:
                columns[column.name] = column  # the base knows the table's name only
        merged = replace(table, columns=tuple(columns.values()))
        key = (table.schema, table.name)
        return replace(
            merged,
            description=self._text(
                key, f"table {table.qualified_name}", (table.description, new.description), described, described.place()
            ),
            primary_key=self._primary_key(merged, described),
            unique=(*table.unique, *self._known(merged, (u for u in new.unique), (*table.unique, table.primary_key))),
            foreign_keys=(*table.foreign_keys, *self._new_keys(merged, described)),
            checks=(*table.checks, *(c for c in new.checks if c not in table.checks)),
            sources=tuple(dict.fromkeys((*table.sources, *new.sources))),
        )

    def _column(self, table: Table, own: Column, new: Column, described: _Described) -> Column:
        name = f"{table.qualified_name}.{own.name}"
        place = described.place(new.name)
        if own.type and new.type and types_disagree(own.type, new.type):
            both = f"{own.type} in {self._base_title()} and {new.type} in {described.source}"
            self._problem(f"{name} is {both}; {own.type} stands", place)
        if literal(own.default) and literal(new.default) and literal(own.default) != literal(new.default):
            both = f"{own.default} in {self._base_title()} and {new.default} in {described.source}"
            self._problem(f"the default of {name} is {both}; {own.default} stands", place)
        key = (table.schema, table.name, own.name)
        meaning = self._text(key, name, (own.meaning, new.meaning), described, place)
        said = [meaning] if meaning else []
        said += ["Never null."] * (own.nullable and not new.nullable)
        if new.default and not own.default and not own.generated:
            said.append(f"Default: {new.default}")
        meaning = "\n".join(said) or None
        return replace(
            own,
            type=own.type or new.type,
            meaning=meaning,
            fields=own.fields or new.fields,
            enum_labels=own.enum_labels or new.enum_labels,
        )

    def _text(
        self, key: tuple[str, ...], what: str, texts: tuple[str | None, str | None], described: _Described, place: Place
    ) -> str | None:
        """Of two texts the later one, reported where they differ; one that holds the other whole says both."""
        old, new = texts
        if not new or (says_nothing(new) and old):
            return old
        before = self.said.get(key, self._base_title())
        self.said[key] = described.source
        if says_nothing(old) or not old or same_text(old, new) or holds(new, old):
            return new
        if holds(old, new):
            return old
        both = f"{shorten(old)} in {before}, and {shorten(new)} in {described.source}"
        self._problem(f"{what} has two meanings: {both}, which stands", place)
        return new

    def _base_title(self) -> str:
        return self.base.sources[0].title if self.base.sources else self.base.name

    def _primary_key(self, table: Table, described: _Described) -> tuple[str, ...]:
        (new,) = self._known(table, [described.table.primary_key], ()) or [()]
        if new and table.primary_key and set(new) != set(table.primary_key):
            first, second = f"({', '.join(table.primary_key)})", f"({', '.join(new)})"
            both = f"{first} in {self._base_title()} and {second} in {described.source}"
            self._problem(f"the primary key of {table.qualified_name} is {both}; the first stands", described.place())
        return table.primary_key or new

    def _known(
        self, table: Table, groups: Iterable[tuple[str, ...]], had: Sequence[tuple[str, ...]]
    ) -> list[tuple[str, ...]]:
        """The groups as the table spells their columns; one with an unknown column, or already there, is left out."""
        found = []
        for group in groups:
            columns = [table.column(name) for name in group]
            names = tuple(c.name for c in columns if c is not None)
            if names and len(names) == len(group) and set(names) not in [set(h) for h in had]:
                found.append(names)
        return found

    def _new_keys(self, table: Table, described: _Described) -> list[ForeignKey]:
        """The foreign keys that the table does not have yet; one that leads nowhere, or elsewhere, is a problem."""
        keys: list[ForeignKey] = []
        for key in described.table.foreign_keys:
            columns = self._known(table, [key.columns], ())
            if not columns or any(k.columns == columns[0] and same_target(k, key) for k in table.foreign_keys):
                continue
            target = self._target(table, key)
            name = f"{table.qualified_name}.{', '.join(columns[0])}"
            if target is None or not all(target.column(column) for column in key.ref_columns):
                self._problem(
                    f"{name} refers to {shown_key(key)}, which is not there; the reference is not used",
                    described.place(),
                )
                continue
            had = [k for k in table.foreign_keys if k.columns == columns[0]]
            same_table = any(k.ref_table.lower() == key.ref_table.lower() for k in had)
            if had:
                both = f"{shown_key(had[0])} in {self._base_title()} and {shown_key(key)} in {described.source}"
                stands = "the first stands" if same_table else "both stand"
                self._problem(f"{name} refers to {both}; {stands}", described.place())
            if not same_table:
                keys.append(replace(key, columns=columns[0]))
        return keys

    def _target(self, table: Table, key: ForeignKey) -> Table | None:
        """The table that a key refers to: in the schema it names, else in its own table's schema, else in `public`."""
        found = [self.tables[p] for p in self.by_name.get(key.ref_table.lower(), [])]
        found = [t for t in found if key.ref_schema.lower() in ("", t.schema.lower())]
        return min(found, key=lambda t: (t.schema != table.schema, t.schema != "public"), default=None)

    def _key(self, table: Table, key: ForeignKey) -> ForeignKey:
        """The foreign key with the schema and spelling of the table it refers to, where its source gave none."""
        target = self._target(table, key)
        if key.ref_schema and target is None:
            return key
        return (
            replace(key, ref_schema=target.schema, ref_table=target.name)
            if target
            else replace(key, ref_schema="public")
        )


def _sources_of(table: Table, sources: Sequence[Source]) -> tuple[str, ...]:
    """Ids of a base's sources that speak of the table: not its rules, and meanings only where it has any."""
    described = any(c.meaning or c.fields for c in table.columns)
    return tuple(s.id for s in sources if s.id != "kb" and (s.id != "column_meaning_base" or described))
