"""The words of a pack: tables as CREATE TABLE with what was measured, joins, rules, values; each section in a frame.

What comes from documents or data stays data: it stands on one line, so that no comment can end, with its controls
written out, and cannot end the frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from okf_agent import prompts
from okf_agent.bundles.cards import ColumnCard, RuleCard, TableCard
from okf_agent.packing.shape import Shape
from okf_agent.prompts import framing
from okf_agent.search.named_values import Named
from okf_agent.tools import find_value
from okf_compiler.inert import inert
from okf_compiler.profiling import ColumnProfile, Profile, text
from okf_compiler.sql_names import schema_and_table, sql_name, sql_table
from okf_compiler.type_cell import WHOLE_KEY, parse_type

SECTIONS = ("tables", "joins", "rules", "values")
MAX_ENUM_DISTINCT = 12
"""Different values up to which a small model is shown examples of a column of short texts."""

_TYPE_FIRST = re.compile(
    r"\A(?:an?\s+)?(?:text|varchar|character varying|char|integer|bigint|smallint|numeric|decimal|real|float|double|"
    r"boolean|date|timestamp|time|jsonb?|uuid|serial)\b(?:\s*\([^)]*\))?(?:\s+column)?\s*[.,:]\s*",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\A(?:an?\s+)?\w+ referencing \w+\([\w, ]+\)\s*[.;:]?\s*", re.IGNORECASE)
_FRACTION = re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}")
MAX_FRACTIONS = 20
"""Fractions inside one another that are written as formulas."""
_KEY = re.compile(r"->>?'((?:[^']|'')*)'")


class Writer:
    """Writes what is chosen, in one shape, with what was measured where there is something."""

    def __init__(self, shape: Shape, profile: Profile | None = None, measured: Profile | None = None) -> None:
        """`profile` is what is shown of columns and joins; `measured` says when the values were counted."""
        self.shape = shape
        self.profile = profile
        self.measured = measured or profile
        self.join_facts = dict(_join_facts(profile)) if profile and not shape.brief else {}

    def table(self, table: TableCard, left_out: int = 0) -> str:
        """A CREATE TABLE with a comment a column; `left_out`: columns that are not shown."""
        if not table.columns and table.text:
            said = [f"{table.name}: {table.description}", *filter(None, table.text.splitlines())]
            return "\n".join(f"-- {inert(line)}" for line in said)
        measured = self.profile.tables.get(table.title) if self.profile else None
        rows = f" -- {text.rows(measured)}" if measured and not self.shape.brief else ""
        columns = measured.columns if measured else {}
        lines = [f"CREATE TABLE {inert(table.name)} ({rows}"]
        for column in table.columns:
            plain = plain_name(column.name)
            lines.append(self._line(f"{column.name} {_type(column)},", column, columns.get(plain)))
            for field in table.fields:
                if field.name.startswith(column.name + "->"):
                    path = ".".join([plain, *(key.replace("''", "'") for key in _KEY.findall(field.name))])
                    lines.append(self._line(f"  -- {field.name}", field, columns.get(path), mark=":"))
        if left_out:
            lines.append("  -- " + prompts.say("pack_columns_left_out", count=left_out))
        return "\n".join([*lines, ");"])

    def joins(self, tables: Iterable[TableCard]) -> list[str]:
        """The conditions between the tables, each once, with the rows that a join leaves out."""
        chosen = list(tables)
        paths = {table.path for table in chosen}
        conditions = dict.fromkeys(c for table in chosen for path, c in table.joins if path in paths)
        lines = []
        for condition in conditions:
            facts = self.join_facts.get(condition)
            lines.append(inert(condition) + (f" -- {inert(facts)}" if facts else ""))
        return lines

    def rule(self, rule: RuleCard) -> str:
        """A rule on one line, word for word; for a small model its LaTeX as formulas."""
        definition = _formulas(rule.definition) if self.shape.brief else " ".join(rule.definition.split())
        return f"- {inert(rule.title)}: {inert(definition)}"

    def note(self) -> str:
        """That counts are measured and no answer; "" where nothing measured is shown."""
        return text.note(self.measured) if self.measured and not self.shape.brief else ""

    def value(self, named: Named) -> str:
        """A value that the question names, with every column it stands in."""
        if self.shape.brief:
            hits = dict.fromkeys(f"{h.table}.{h.column} = {text.quoted(h.value)}" for h in named.hits[:4])
            return f"- {inert(', '.join(hits))}"
        return f"- {inert(text.quoted(named.text))}: {inert('; '.join(map(find_value.line, named.hits)))}"

    def _line(self, start: str, column: ColumnCard, measured: ColumnProfile | None, mark: str = " --") -> str:
        parts = [self._meaning(column.meaning), self._facts(measured, column.meaning) if measured else ""]
        comment = " | ".join(part for part in parts if part)
        return f"  {inert(start)}{mark} {inert(comment)}" if comment else f"  {inert(start)}"

    def _meaning(self, meaning: str) -> str:
        """A meaning without the type and the reference that the schema says already, in one line."""
        short = _REFERENCE.sub("", _TYPE_FIRST.sub("", " ".join(meaning.split())))
        most = self.shape.meaning_chars
        return short if len(short) <= most else short[:most].rsplit(" ", 1)[0] + " …"

    def _facts(self, column: ColumnProfile, meaning: str) -> str:
        """What was measured; for a small model no values that the meaning names: said twice, they pass for asked."""
        if not self.shape.brief:
            return text.facts(column)
        parts = []
        if column.empty and column.nulls:
            parts.append(prompts.say("pack_null_and_empty"))
        if column.list_separator is not None:
            parts.append(prompts.say("pack_list"))
        short = column.low is None and column.empty is not None and column.distinct <= MAX_ENUM_DISTINCT
        examples = [] if column.unique else [*map(text.quoted, column.examples)]
        if short and not all(example in meaning for example in examples):
            parts.append("e.g. " + ", ".join(examples))
        return "; ".join(parts)


def plain_name(name: str) -> str:
    """The column's own name from the one that SQL has."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _type(column: ColumnCard) -> str:
    """The type, an enum's labels and `primary key`; what else the schema says helps no query."""
    cell = parse_type(column.type)
    labels = f", one of {cell.labels}" if cell.labels else ""
    key = f", {cell.key}" if cell.key == WHOLE_KEY else ""
    written = f"{cell.type}{labels}{key}".replace("USER-DEFINED", "enum")
    return written.replace("timestamp without time zone", "timestamp")


def _join_facts(profile: Profile) -> Iterator[tuple[str, str]]:
    """What is measured of each foreign key, by its condition as a bundle writes it, either way round."""
    for key in profile.foreign_keys:
        facts = text.join_facts(key)
        if facts:
            here, there = _sql_table(key.table), _sql_table(key.other_table)
            pairs = [
                (f"{here}.{sql_name(a)}", f"{there}.{sql_name(b)}")
                for a, b in zip(key.columns, key.other_columns, strict=False)
            ]
            yield " AND ".join(f"{a} = {b}" for a, b in pairs), facts
            yield " AND ".join(f"{b} = {a}" for a, b in pairs), facts


def _sql_table(qualified: str) -> str:
    return sql_table(*schema_and_table(qualified))


def _formulas(definition: str) -> str:
    """A definition in one line; its LaTeX as formulas of PostgreSQL, which small models copy as they stand.

    >>> _formulas(r"CA = \\frac{\\sum amount_cents}{100}, with \\text{cost} / 3")
    'CA = (sum of amount_cents) / 100.0, with cost / 3.0'
    """
    plain = " ".join(definition.split())
    plain = re.sub(r"\\text\{([^{}]*)\}", r"\1", plain)
    for _ in range(MAX_FRACTIONS):  # from the innermost one outwards
        plain, changed = _FRACTION.subn(r"(\1) / (\2)", plain)
        if not changed:
            break
    for latex, written in (("\\times", "*"), ("\\sum", "sum of"), ("\\geq", ">="), ("\\leq", "<=")):
        plain = plain.replace(latex, written)
    plain = re.sub(r"/ \((\d+)\)", r"/ \1", plain)
    return re.sub(r"/ (\d+)\b(?!\.\d)", r"/ \1.0", plain)


def sections(
    writer: Writer, tables: Sequence[tuple[TableCard, int]], rules: Sequence[RuleCard], named: Sequence[Named]
) -> tuple[str, ...]:
    """The sections of a pack in their order, each in its frame; one without content is left out."""
    contents = (
        "\n\n".join(writer.table(table, left_out) for table, left_out in tables),
        "\n".join(writer.joins(table for table, _ in tables)),
        "\n".join(map(writer.rule, rules)),
        "\n".join(map(writer.value, named)),
    )
    written = [framing.framed(mark, content) for mark, content in zip(SECTIONS, contents, strict=True) if content]
    note = writer.note()
    if note and writer.profile and tables:
        return (f"{written[0]}\n{note}", *written[1:])
    return (*written[:-1], f"{written[-1]}\n{note}") if note and named else tuple(written)
