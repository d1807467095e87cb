"""A data dictionary in CSV, as people keep it: one file for all tables, or a folder with one file a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from okf_compiler.draft import Draft, DraftTable
from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, ForeignKey, Place, Problem, Source
from okf_compiler.profiling.spelling import unaccented
from okf_compiler.spreadsheets import unguarded
from okf_compiler.sql_names import name_parts, schema_and_table
from okf_compiler.text_files import DELIMITERS, Row, is_delimiter_line, read_text, rows

SOURCE_ID = "dictionary"

# What headers call a column's facts, reduced to letters and digits without accents; the best name of each comes first.
_HEADERS = {
    "schema": "schema schemaname tableschema tableschemaname owner dataset schemata",
    "table": "table tablename entity entityname object objectname relation model view tabelle tabla tabella tableau",
    "column": "originalcolumnname column columnname fieldname field columnid attribute attributename variable "
    "variablename physicalname element dataelement spalte spaltenname feld feldname colonne champ columna campo "
    "colonna name",
    "label": "label displayname businessname businessterm friendlyname logicalname title alias caption bezeichnung",
    "description": "columndescription description fielddescription businessdescription businessdefinition definition "
    "meaning desc explanation details beschreibung bedeutung descripcion descrizione comment comments remarks remark "
    "note notes kommentar commentaire columncomment columncomments",
    "type": "datatype type columntype fieldtype dataformat sqltype format datentyp typ tipo tipodato",
    "nullable": "nullable isnullable null nulls nullallowed nullsallowed allownull allownulls allowsnull optional",
    "required": "required mandatory isrequired ismandatory notnull pflichtfeld obligatoire",
    "values": "values valuedescription allowedvalues acceptedvalues possiblevalues validvalues permittedvalues "
    "valuerange range enum enumvalues enumeration domain codes codelist coding werte valeurs valores",
    "example": "example examples examplevalue examplevalues samplevalue samplevalues sample beispiel exemple",
    "unit": "unit units unitofmeasure einheit unite",
    "default": "default defaultvalue columndefault",
    "key": "primarykey isprimarykey pk ispk key keytype columnkey",
    "unique": "unique isunique",
    "references": "references foreignkey fk reference foreignkeyto refersto relatedtable",
    "table_description": "tabledescription tablecomment tablemeaning",
}
ASIDE = ("known", "to do")
"""Headers of the cells that `okf-agent init` fills for whoever describes the columns; no part of a meaning."""
_SPARE = ("description", "label", "values", "example", "unit")
"""Facts that a meaning can carry in words, so that a second header for one loses nothing."""
_YES = frozenset(["y", "yes", "true", "t", "1", "x", "ja", "j", "oui", "si", "null", "nullable", "optional"])
_RULE = re.compile(r"[\s|]*|[\s|]*:?[-=+]{2}[-=+:]*[\s|]*")
"""A line between a header and its rows, as markdown and terminals draw it."""
_NO = frozenset(["n", "no", "false", "f", "0", "nein", "non", "not", "notnull", "required", "mandatory", "nonnull"])
_TARGET = re.compile(r"(?P<table>[^()]+)\((?P<column>[^()]+)\)|(?P<path>[^()]+)")
_HEADER_ROWS = 10
"""A title and a date may stand above the header; further down none is looked for."""


@dataclass(frozen=True)
class _Header:
    row: int
    """Position among the rows."""
    names: tuple[str, ...]
    roles: Mapping[str, int]
    """Role -> position of the cell."""
    spare: tuple[int, ...]
    """Cells that go into the meaning under their own header."""
    unread: tuple[str, ...]


def read(path: Path) -> Database:
    """What a CSV file, or every CSV file of a folder, says of tables and columns.

    Without a column for the table, the file's name is the table. Where the file names no schema, `Table.schema` is
    empty; where it gives no type, `Column.type` is. Nothing but `nullable=False` is a claim about NULL.

    Raises:
        UserError: there is no such file, or none in which a header names columns.
    """
    problems: list[Problem] = []
    draft = Draft(problems)
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in (".csv", ".tsv")) if path.is_dir() else [path]
    read_files = [file for file in files if _read_file(file, draft, problems)]
    if not read_files:
        raise UserError(
            f"{path} has no data dictionary that can be read: the first line of a CSV file must name its columns, "
            f"such as table, column, description." + "".join(f"\n{p}" for p in problems[:3]),
            status=2,
        )
    return Database(
        name=path.stem,
        tables=draft.finish(SOURCE_ID),
        sources=(Source(SOURCE_ID, path.name, f"Data dictionary {path.name}"),),
        problems=tuple(problems),
        places=draft.places,
    )


def _read_file(path: Path, draft: Draft, problems: list[Problem]) -> bool:
    """Whether the file is a data dictionary; what it says goes into the draft."""
    file = str(path)
    text = read_text(path, problems)
    found = _find_header(text)
    if found is None:
        problems.append(Problem("no header names a column and what to say of it (column, description)", file, 1))
        return False
    delimiter, header = found
    if header.unread:
        names = ", ".join(repr(n) for n in header.unread)
        problems.append(Problem(f"the header has columns that are not read: {names}", file))
    entries = list(rows(text, delimiter, file, problems))[header.row + 1 :]
    _Reader(path, header, draft, problems).read(entries)
    return True


def _find_header(text: str) -> tuple[str, _Header] | None:
    """The delimiter and the row that make most sense as a header."""
    best: tuple[int, str, _Header] | None = None
    head = "\n".join(text.split("\n")[:200])
    for delimiter in DELIMITERS:
        for position, row in enumerate(list(rows(head, delimiter, "", []))[:_HEADER_ROWS]):
            header = _header(position, row)
            if header and (best is None or len(header.roles) > best[0]):
                best = (len(header.roles), delimiter, header)
    return best and (best[1], best[2])


def _header(position: int, row: Row) -> _Header | None:
    """The roles of a row's cells; None where it is no header. A spare name for a taken role keeps its words."""
    if is_delimiter_line(row):
        return None
    words = [_reduce(cell) for cell in row.cells]
    roles: dict[str, int] = {}
    spare: list[int] = []
    for role, names in _HEADERS.items():
        cells = [words.index(name) for name in names.split() if name in words]
        free = [c for c in cells if c not in roles.values()]
        if free:
            roles[role] = free[0]
        if role in _SPARE:
            spare += free[1:]
        elif role == "column" and "label" not in roles and free[1:]:
            roles["label"] = free[1]
    if words[roles.get("schema", 0)] == "owner" and roles.get("schema", 0) + 1 != roles.get("table"):
        del roles["schema"]  # only Oracle's catalogue calls the schema so, and writes it before the table
    if "column" not in roles or len(roles) < 2:
        return None
    known = {*roles.values(), *spare, *(i for i, name in enumerate(row.cells) if name.strip().lower() in ASIDE)}
    unread = [name for i, name in enumerate(row.cells) if i not in known and name.strip()]
    return _Header(position, row.cells, roles, tuple(spare), tuple(unread))


class _Reader:
    """The rows of one file; blank cells of a table's column stand for the table above, as merged cells do."""

    def __init__(self, path: Path, header: _Header, draft: Draft, problems: list[Problem]) -> None:
        self.path = path
        self.header = header
        self.draft = draft
        self.problems = problems
        self.above: tuple[str, str] | None = None
        self.filled_down = 0

    def read(self, entries: Iterable[Row]) -> None:
        for position, row in enumerate(entries):
            if position or not all(_RULE.fullmatch(cell) for cell in row.cells):
                self._row(row)
        if self.filled_down:
            self._problem(f"rows without a table, taken to belong to the one above: {self.filled_down}", 0)

    def _problem(self, message: str, line: int) -> None:
        self.problems.append(Problem(message, str(self.path), line))

    def _cell(self, row: Row, role: str) -> str:
        position = self.header.roles.get(role)
        return unguarded(row.cells[position].strip()) if position is not None and position < len(row.cells) else ""

    def _row(self, row: Row) -> None:
        width = len(self.header.names)
        if any(cell.strip() for cell in row.cells[width:]):
            self._problem(
                f"the row has {len(row.cells)} cells and the header {width}, so it is not read; "
                "a text that holds the delimiter must stand in quotes",
                row.line,
            )
            return
        name = self._cell(row, "column")
        place = Place(str(self.path), row.line)
        table = self._table(row, name, place)
        if table is None:
            return
        self.draft.describe(table, self._cell(row, "table_description"), place)
        if name:
            self._column(table, name if "table" in self.header.roles else name_parts(name)[-1], row, place)
        elif description := self._cell(row, "description"):
            self.draft.describe(table, description, place)
        elif not self._is_to_do(row):
            self._problem("the row names no column and does not describe its table", row.line)

    def _table(self, row: Row, column: str, place: Place) -> DraftTable | None:
        if "table" not in self.header.roles:
            *owner, _ = name_parts(column)
            schema, table = ("", *(owner or name_parts(self.path.stem)))[-2:]
            return self.draft.table(table, schema or self._cell(row, "schema"), place)
        schema, table = schema_and_table(self._cell(row, "table"))
        schema = self._cell(row, "schema") or schema
        if not table:
            if self.above is None or not column:
                self._problem("the row names no table", row.line)
                return None
            self.filled_down += 1
            schema, table = self.above
        self.above = (schema, table)
        return self.draft.table(table, schema, place)

    def _column(self, table: DraftTable, name: str, row: Row, place: Place) -> None:
        nullable = self._flag(row, "nullable")
        required = self._flag(row, "required")
        default = self._cell(row, "default")
        column = Column(
            name=name,
            type=self._cell(row, "type"),
            nullable=not (nullable is False or required is True),
            default=default if default and default.lower() != "null" else None,
            meaning=self._meaning(name, row),
        )
        self.draft.column(table, column, place)
        key = self._cell(row, "key").lower()
        if key in _YES or key.startswith(("pk", "pri")):
            table.add_key(name)
        if self._flag(row, "unique") or key.startswith("uni"):
            table.add_unique((name,))
        if target := self._cell(row, "references"):
            self._reference(table, name, target, row.line)

    def _is_to_do(self, row: Row) -> bool:
        """Whether the row waits for somebody to describe its table."""
        named = zip(self.header.names, row.cells, strict=False)
        return any(cell.strip() for name, cell in named if name.strip().lower() in ASIDE)

    def _flag(self, row: Row, role: str) -> bool | None:
        text = self._cell(row, role)
        word = _reduce(text)
        if not word:
            return None
        if word not in _YES | _NO:
            self._problem(f"{self.header.names[self.header.roles[role]]} is {text!r}, neither yes nor no", row.line)
            return None
        return word in _YES

    def _reference(self, table: DraftTable, name: str, target: str, line: int) -> None:
        match = _TARGET.fullmatch(target)
        parts = [*name_parts(match["table"]), match["column"]] if match and match["table"] else []
        parts = [part.strip() for part in parts or (name_parts(match["path"]) if match else [])]
        if len(parts) in (2, 3) and all(parts):
            schema, other, column = ("", *parts)[-3:]
            table.add_foreign_key(ForeignKey((name,), other, (column,), schema or table.schema))
        elif _reduce(target) not in _YES | _NO:
            self._problem(f"the foreign key {target!r} is neither table.column nor table(column)", line)

    def _meaning(self, name: str, row: Row) -> str | None:
        """The description word for word, and below it what other cells say, each under its own header."""
        parts = [self._cell(row, "description")]
        label = self._cell(row, "label")
        if label and _reduce(label) != _reduce(name):
            parts.append(f"Called: {label}")
        cells = [self.header.roles[role] for role in ("values", "unit", "example") if role in self.header.roles]
        for position in (*cells, *self.header.spare):
            text = row.cells[position].strip() if position < len(row.cells) else ""
            if text:
                header = " ".join(self.header.names[position].replace("_", " ").split())
                parts.append(f"{header[:1].upper()}{header[1:]}: {text}")
        return "\n".join(p for p in parts if p) or None


def _reduce(header: str) -> str:
    """Lower case letters and digits only, without accents.

    >>> _reduce("Column_Name "), _reduce("Descripción"), _reduce("Nullable?")
    ('columnname', 'descripcion', 'nullable')
    """
    return re.sub(r"[\W_]+", "", unaccented(header))
