"""A bundle as cards: its tables and rules with their parts in reach, read from the concepts' sections.

What the compiler wrote and what people corrected are read alike. A concept that is not a table is a rule; one
without the compiler's sections gives its whole body as the definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from okf_compiler import bundle, markdown
from okf_compiler.bundle import Concept
from okf_compiler.sql_names import sql_name

TABLE_SECTION = "Schema"
_LINK = re.compile(r"\[(?P<title>(?:\\.|[^\]\\])*)\]\((?P<path>/[^)\s]*)\)")
_CODE = re.compile(r"(`+) ?(.+?) ?\1(?!`)")
_CELL = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"\A(`{3,}|~{3,})[^\n]*\n(.*)\n\1\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class ColumnCard:
    """A column, or a field inside a JSON column."""

    name: str
    """As a query writes it, in double quotes where it needs them; for a field `data->'a'->>'b'`."""
    type: str
    """With `primary key`, `not null` and an enum's labels, as the concept has it; "" for a field."""
    meaning: str


@dataclass(frozen=True)
class TableCard:
    path: str
    title: str
    """The name as the catalogue has it: `Orders`, `sales.Orders`; profiles are kept by it."""
    name: str
    """As a query writes it."""
    description: str
    columns: tuple[ColumnCard, ...]
    fields: tuple[ColumnCard, ...]
    joins: tuple[tuple[str, str], ...]
    """(path of the other table, condition in SQL)."""


@dataclass(frozen=True)
class RuleCard:
    path: str
    title: str
    description: str
    definition: str
    tables: Mapping[str, tuple[str, ...]]
    """Path of a table -> the columns of it that the rule uses."""
    depends_on: tuple[str, ...]
    """Paths of the rules it builds on."""


@dataclass(frozen=True)
class Cards:
    """Everything by path, in the bundle's order."""

    tables: Mapping[str, TableCard]
    rules: Mapping[str, RuleCard]


def read(root: Path) -> Cards:
    """The cards of a bundle.

    Raises:
        UserError: it is not there or cannot be read.
    """
    tables: dict[str, TableCard] = {}
    rules: dict[str, RuleCard] = {}
    for concept in bundle.load(root).concepts.values():
        parts = {part.heading: part.text for part in markdown.sections(concept.body)}
        if TABLE_SECTION in parts:
            tables[concept.path] = _table(concept, parts)
        else:
            rules[concept.path] = _rule(concept, parts)
    return Cards(tables, rules)


def _table(concept: Concept, parts: Mapping[str, str]) -> TableCard:
    columns = [ColumnCard(sql_name(_uncode(n)), t, m) for n, t, m in _rows(parts[TABLE_SECTION])]
    fields = [ColumnCard(_uncode(sql), "", meaning) for _, sql, meaning in _rows(parts.get("JSON fields", ""))]
    joins = []
    for line in parts.get("Joins", "").splitlines():
        link, condition = _LINK.search(line), _CODE.search(line)
        if link and condition:
            joins.append((link["path"], condition[2]))
    name, description = ".".join(map(sql_name, concept.title.split(".", 1))), concept.description
    return TableCard(concept.path, concept.title, name, description, tuple(columns), tuple(fields), tuple(joins))


def _rule(concept: Concept, parts: Mapping[str, str]) -> RuleCard:
    tables: dict[str, list[str]] = {}
    for line in parts.get("Columns used", "").splitlines():
        if link := _LINK.search(line):
            columns = tables.setdefault(link["path"], [])
            for group in line[link.end() :].split("; "):
                used = group.partition(" (")[0]  # why they are linked follows in brackets
                columns.extend(code[2] for code in _CODE.finditer(used))
    return RuleCard(
        path=concept.path,
        title=concept.title,
        description=concept.description,
        definition=_unfence(parts["Definition"] if "Definition" in parts else concept.body.strip()),
        tables={path: tuple(names) for path, names in tables.items()},
        depends_on=tuple(link["path"] for link in _LINK.finditer(parts.get("Depends on", ""))),
    )


def _rows(table: str) -> Iterator[tuple[str, str, str]]:
    """The first three cells of each row of a markdown table, below its header."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        cells = [_uncell(cell) for cell in _CELL.split(line)[1:-1]]
        if len(cells) >= 3:
            yield cells[0], cells[1], cells[2]


def _uncell(cell: str) -> str:
    return cell.strip().replace("\\|", "|").replace("<br>", "\n")


def _uncode(text: str) -> str:
    code = _CODE.fullmatch(text)
    return code[2] if code else text


def _unfence(text: str) -> str:
    fenced = _FENCE.match(text)
    return fenced[2] if fenced else text
