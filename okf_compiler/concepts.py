"""A database and its links as concepts: one a table, one a rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from okf_compiler import markdown
from okf_compiler.bundle import Concept
from okf_compiler.gist import table_gist
from okf_compiler.headings import (
    BUSINESS_RULE,
    CALCULATION,
    DEFINITION,
    DEPENDS_ON,
    JOINS,
    JSON_FIELDS,
    SCHEMA,
    TABLE_TYPE,
    USED_BY,
)
from okf_compiler.link_text import of_rule, of_table
from okf_compiler.linking.links import Links
from okf_compiler.markdown import Part, cell, code
from okf_compiler.model import Database, ForeignKey, Rule, Source, Table
from okf_compiler.names import Ids
from okf_compiler.sql_names import needs_quotes, sql_name, sql_table
from okf_compiler.type_cell import type_cell

BUNDLE_FORMAT = "0.2"
"""Changes when what the compiler writes changes, not with every release."""
GENERATOR = f"okf-compiler/{BUNDLE_FORMAT}"

RULE_TYPES = {
    "calculation_knowledge": CALCULATION,
    "domain_knowledge": BUSINESS_RULE,
    "value_illustration": "Value Illustration",
}
KEYS = ("type", "title", "description", "synonyms", "tags", "generated", "sources")
"""Frontmatter that belongs to the compiler; `generated.at` is filled in when the concept is saved."""

_DESCRIPTION_CHARS = 240


def concepts(database: Database, links: Links, ids: Ids) -> list[Concept]:
    """One concept for each table and each rule, in the source's order."""
    writer = _Writer(database, links, ids)
    return [*map(writer.table, database.tables), *map(writer.rule, database.rules)]


def rule_type(source_type: str) -> str:
    """The readable name of a source's type.

    >>> rule_type("domain_knowledge"), rule_type("metric_note"), rule_type("")
    ('Business Rule', 'Metric Note', 'Business Rule')
    """
    readable = " ".join(source_type.replace("_", " ").split()).title()
    return RULE_TYPES.get(source_type) or readable or BUSINESS_RULE


def rule_title(rule: Rule) -> str:
    return markdown.one_line(rule.name) or f"Rule {rule.id}"


class _Writer:
    """What every concept of one database needs at hand."""

    def __init__(self, database: Database, links: Links, ids: Ids) -> None:
        self.database = database
        self.links = links
        self.ids = ids
        self.rules = {rule.id: rule for rule in database.rules}
        self.sources = {source.id: source for source in database.sources}
        self.referenced_by: dict[str, list[tuple[Table, ForeignKey]]] = {}
        for table in database.tables:
            for key in table.foreign_keys:
                target = database.table(key.ref_table, key.ref_schema)
                if target:
                    self.referenced_by.setdefault(target.qualified_name, []).append((table, key))

    def table(self, table: Table) -> Concept:
        described = any(c.meaning or c.fields for c in table.columns)
        default = ("schema", *["column_meaning_base"] * described)
        parts = [
            Part(SCHEMA, _schema(table)),
            Part(JSON_FIELDS, _json_fields(table)),
            Part(JOINS, self._joins(table)),
            *of_table(self.links, table.qualified_name, self._rule_link),
        ]
        return Concept(
            id=self.ids.tables[table.qualified_name],
            frontmatter=self._frontmatter(
                TABLE_TYPE,
                table.qualified_name,
                table.description or table_gist(table),
                table.synonyms,
                [self.sources[id] for id in table.sources or default if id in self.sources],
            ),
            body=markdown.join(p for p in parts if p.text),
        )

    def rule(self, rule: Rule) -> Concept:
        source = self.sources.get(rule.source or "kb")
        *columns, reached = of_rule(self.links, rule.id, self._table_link, self._rule_link)
        parts = [
            Part(DEFINITION, markdown.verbatim(rule.definition)),
            *columns,
            Part(DEPENDS_ON, self._rule_list(link.target.rule for link in self.links.depends_on.get(rule.id, ()))),
            reached,
            Part(USED_BY, self._rule_list(link.rule for link in self.links.used_by.get(rule.id, ()))),
        ]
        return Concept(
            id=self.ids.rules[rule.id],
            frontmatter=self._frontmatter(
                rule_type(rule.type),
                rule_title(rule),
                rule.description or markdown.one_line(rule.definition)[:_DESCRIPTION_CHARS],
                rule.synonyms,
                [Source(source.id, source.resource, f"{source.title}, rule {rule.id}")] if source else [],
            ),
            body=markdown.join(p for p in parts if p.text or p.heading == DEFINITION),
        )

    def _frontmatter(
        self, type: str, title: str, description: str, synonyms: Sequence[str], sources: Sequence[Source]
    ) -> dict[str, object]:
        frontmatter: dict[str, object] = {"type": type, "title": title}
        if description.strip():
            frontmatter["description"] = markdown.one_line(description)
        if synonyms:
            frontmatter["synonyms"] = list(map(markdown.one_line, synonyms))
        frontmatter["tags"] = [self.database.name]
        frontmatter["generated"] = {"by": GENERATOR}
        if sources:
            frontmatter["sources"] = [{"id": s.id, "resource": s.resource, "title": s.title} for s in sources]
        return frontmatter

    def _table_link(self, name: str) -> str:
        return markdown.link(name, self.ids.table_path(name))

    def _joins(self, table: Table) -> str:
        lines = []
        for key in table.foreign_keys:
            target = self.database.table(key.ref_table, key.ref_schema)
            if target is None:
                name = markdown.plain(key.ref_table)
                lines.append(f"* {name} (not among the tables): {_condition(table, key, None)}")
            else:
                lines.append(f"* {self._table_link(target.qualified_name)}: {_condition(table, key, target)}")
        for other, key in self.referenced_by.get(table.qualified_name, ()):
            lines.append(f"* referenced by {self._table_link(other.qualified_name)}: {_condition(other, key, table)}")
        return "\n".join(lines)

    def _rule_link(self, rule_id: str) -> str:
        return markdown.link(rule_title(self.rules[rule_id]), self.ids.rule_path(rule_id))

    def _rule_list(self, rule_ids: Iterable[str]) -> str:
        return "\n".join(f"* {self._rule_link(id)}" for id in dict.fromkeys(rule_ids))


def _schema(table: Table) -> str:
    rows = ((cell(code(c.name)), cell(type_cell(table, c)), cell(c.meaning or "")) for c in table.columns)
    text = markdown.table(("Column", "Type", "Description"), rows)
    own = sql_table(table.schema, table.name)
    quoted = [own] * ('"' in own) + [sql_name(c.name) for c in table.columns if needs_quotes(c.name)]
    if quoted:
        text += f"\n\nIn SQL these names need their double quotes: {', '.join(map(code, quoted))}."
    notes = [f"* this is a {table.kind}"] if table.kind != "table" else []
    notes += ["* row security: a role sees only the rows that its policies let through"] * table.row_security
    notes += [f"* unique: {', '.join(map(code, key))}" for key in table.unique]
    notes += [f"* check: {code(check)}" for check in table.checks]
    return text + ("\n\n" + "\n".join(notes) if notes else "")


def _json_fields(table: Table) -> str:
    """`column.field` paths with how SQL reaches them."""
    rows = [
        (cell(code(".".join((c.name, *f.path)))), cell(code(_accessor(c.name, f.path))), cell(f.meaning))
        for c in table.columns
        for f in c.fields
    ]
    return markdown.table(("Path", "In SQL", "Description"), rows) if rows else ""


def _accessor(column: str, path: Sequence[str]) -> str:
    """The PostgreSQL expression for a field as text: `c->'a'->>'b'`."""
    steps = [step if step.isdecimal() else "'" + step.replace("'", "''") + "'" for step in path]
    return sql_name(column) + "".join(f"->{s}" for s in steps[:-1]) + f"->>{steps[-1]}"


def _condition(table: Table, key: ForeignKey, target: Table | None) -> str:
    """The join condition in SQL; without listed columns a key refers to the target's primary key."""
    ref_columns = key.ref_columns or (target.primary_key if target else ())
    if target:
        ref_columns = tuple(c.name if (c := target.column(name)) else name for name in ref_columns)
    left = sql_table(table.schema, table.name)
    right = sql_table(target.schema, target.name) if target else sql_table(key.ref_schema, key.ref_table)
    pairs = zip(key.columns, ref_columns, strict=False)
    return code(" AND ".join(f"{left}.{sql_name(a)} = {right}.{sql_name(b)}" for a, b in pairs))
