"""CREATE TABLE statements, parsed with sqlglot, as `Table` facts. What cannot be read is reported, the rest is kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from okf_compiler.model import Column, ForeignKey, Table

# sqlglot logs what it cannot parse; here that is reported as a problem with its line instead.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

_POSTGRES = Postgres()
_OPEN, _CLOSE, _BODY = (_POSTGRES.tokenize(text) for text in ("(", ")", "(c int)"))
_CLAUSES = frozenset(
    ("NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "REFERENCES", "CHECK", "CONSTRAINT", "GENERATED", "COLLATE")
)
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a statement that could not be read; `line` is 1-based within the text given."""

    line: int
    message: str


class _Parts:
    """Columns and constraints, collected while the segments of a table are read."""

    def __init__(self) -> None:
        self.columns: dict[int, Column] = {}
        """By where they stand in the text."""
        self.primary: tuple[str, ...] = ()
        self.foreign: list[ForeignKey] = []
        self.unique: list[tuple[str, ...]] = []
        self.checks: list[str] = []


def parse_create_table(sql: str) -> tuple[Table | None, list[Unread]]:
    """The table that the text's first statement creates, and what of the text could not be read.

    Unquoted names are folded to lower case, as PostgreSQL does. Types and defaults are kept as spelled.

    >>> table, unread = parse_create_table('CREATE TABLE "T" (Id int PRIMARY KEY, price real(5,2))')
    >>> table.name, [(c.name, c.type) for c in table.columns], table.primary_key, unread
    ('T', [('id', 'int'), ('price', 'real(5,2)')], ('id',), [])
    """
    try:
        tokens = _POSTGRES.tokenize(sql)
    except SqlglotError as error:
        return None, [Unread(1, f"the statement cannot be split into words: {_first_line(error)}")]
    start = next((i for i, t in enumerate(tokens) if t.token_type is TokenType.L_PAREN), len(tokens))
    end, closed = _closing(tokens, start)
    unread = [] if closed else [Unread(tokens[-1].line, "the statement's bracket is never closed")]
    unread += _leftovers(sql, tokens, end)
    segments = _segments(tokens[start + 1 : end])
    parts = _Parts()
    target = _read(sql, tokens[:start], segments, parts, unread) if segments else None
    if target is None:
        others_lost = _leftovers(sql, tokens, -1) if any(t.token_type is TokenType.SEMICOLON for t in tokens) else ()
        return None, [Unread(1, "this is not a CREATE TABLE with columns"), *others_lost]
    unread += _twice(sql, parts)
    return _table(target, parts), unread


def _twice(sql: str, parts: _Parts) -> Iterator[Unread]:
    """Take away columns whose name an earlier one has: a table has no two, so one of them is a mistake."""
    names: set[str] = set()
    for start in sorted(parts.columns):
        name = parts.columns[start].name
        if name in names:
            yield Unread(sql.count("\n", 0, start) + 1, f"column {name} stands twice; the first one counts")
            del parts.columns[start]
        names.add(name)


def _closing(tokens: Sequence[Token], start: int) -> tuple[int, bool]:
    """Index of the bracket that closes the one at `start` (or of the end), and whether there is one."""
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0 and index > start:
            return index, True
    return len(tokens), False


def _leftovers(sql: str, tokens: Sequence[Token], end: int) -> Iterator[Unread]:
    """Lines after the statement that belong to nothing; PARTITION BY, WITH (…) and the like up to `;` do."""
    rest = iter(tokens[end + 1 :])
    if any(t.token_type is TokenType.SEMICOLON for t in tokens[end + 1 :]):
        next(t for t in rest if t.token_type is TokenType.SEMICOLON)
    for line in sorted({t.line for t in rest}):
        yield Unread(line, f"belongs to no statement: {sql.splitlines()[line - 1].strip()[:80]}")


def _segments(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between the commas at the top level."""
    segments: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.COMMA and depth == 0:
            segments.append([])
        else:
            segments[-1].append(token)
    return [s for s in segments if s]


def _parse(tokens: list[Token], sql: str) -> exp.Schema | None:
    """What sqlglot makes of a CREATE TABLE; None if it cannot."""
    try:
        tree = _POSTGRES.parser().parse(tokens, sql)[0]
    except (SqlglotError, RecursionError):
        return None
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
        return tree.this
    return None


def _read(
    sql: str, head: list[Token], segments: list[list[Token]], parts: _Parts, unread: list[Unread]
) -> exp.Expression | None:
    """Read columns and constraints; return the table's name as parsed, None if `head` creates no table."""
    comma = _POSTGRES.tokenize(",")
    body = [token for segment in segments for token in (*comma, *segment)][1:]
    schema = _parse([*head, *_OPEN, *body, *_CLOSE], sql) if body else None
    if schema is None or len(schema.expressions) != len(segments):
        # One that cannot be parsed costs itself and not its table: each is tried alone.
        schema = _parse([*head, *_BODY], sql)
        pieces = [_parse([*head, *_OPEN, *segment, *_CLOSE], sql) for segment in segments]
        found = [piece.expressions[0] if piece and len(piece.expressions) == 1 else None for piece in pieces]
    else:
        found = list(schema.expressions)
    for segment, part in zip(segments, found, strict=True):
        if isinstance(part, exp.ColumnDef) and part.kind is not None:
            parts.columns[segment[0].start] = _read_column(part, _clauses(sql, segment), parts)
        elif part is None or not _read_constraint(part, parts):
            text = " ".join(sql[segment[0].start : segment[-1].end + 1].split())
            unread.append(Unread(segment[0].line, f"cannot be read: {text[:80]}"))
    return schema.this if schema else None


def _clauses(sql: str, segment: Sequence[Token]) -> dict[str, str]:
    """The text of a column's type (under "") and of its clauses, by their first word."""
    clauses: dict[str, list[Token]] = {}
    word, depth = "", 0
    for token in segment[1:]:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        first = token.text.upper().partition(" ")[0]  # PRIMARY KEY is one token
        if depth == 0 and first in _CLAUSES and kind not in _QUOTED:
            word = first
        clauses.setdefault(word, []).append(token)
    return {word: " ".join(sql[part[0].start : part[-1].end + 1].split()) for word, part in clauses.items()}


def _table(target: exp.Expression, parts: _Parts) -> Table:
    bare = Table(name="", columns=tuple(column for _, column in sorted(parts.columns.items())))
    primary = tuple(_own_name(bare, name) for name in parts.primary)
    return Table(
        name=_stored_name(target.this),
        schema=_stored_name(target.args["db"]) if target.args.get("db") else "public",
        columns=tuple(replace(c, nullable=False) if c.name in primary else c for c in bare.columns),
        primary_key=primary,
        foreign_keys=tuple(
            replace(key, columns=tuple(_own_name(bare, c) for c in key.columns)) for key in parts.foreign
        ),
        unique=tuple(tuple(_own_name(bare, c) for c in key) for key in parts.unique),
        checks=tuple(parts.checks),
    )


def _own_name(table: Table, name: str) -> str:
    """The column's own spelling; documents quote a name in one line and not in the next."""
    column = table.column(name)
    return column.name if column else name


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:120]


def _read_column(part: exp.ColumnDef, clauses: dict[str, str], parts: _Parts) -> Column:
    """A column; constraints that stand with it join the parts. `clauses` are its own text by their first words."""
    name = _stored_name(part.this)
    column = Column(name=name, type=clauses.get("", ""))
    for constraint in part.constraints:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint):
            column = replace(column, nullable=bool(kind.args.get("allow_null")))
        elif isinstance(kind, exp.DefaultColumnConstraint):
            text = clauses.get("DEFAULT", "")[len("DEFAULT") :].strip()
            column = replace(column, default=text or kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
            column = replace(column, generated="identity")
        elif isinstance(kind, exp.ComputedColumnConstraint):
            column = replace(column, generated=kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            parts.primary = (*parts.primary, name)
        elif isinstance(kind, exp.UniqueColumnConstraint):
            parts.unique.append((name,))
        elif isinstance(kind, exp.CheckColumnConstraint):
            parts.checks.append(kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.Reference):
            parts.foreign.append(_foreign_key((name,), kind))
    return column


def _read_constraint(part: exp.Expression, parts: _Parts) -> bool:
    """Read a table constraint; False if it is none."""
    if isinstance(part, exp.Constraint):
        return all(_read_constraint(inner, parts) for inner in part.expressions)
    if isinstance(part, exp.PrimaryKey):
        parts.primary = tuple(_stored_name(e) for e in part.expressions)
    elif isinstance(part, exp.ForeignKey):
        parts.foreign.append(_foreign_key(tuple(_stored_name(e) for e in part.expressions), part.args["reference"]))
    elif isinstance(part, exp.UniqueColumnConstraint) and isinstance(part.this, exp.Schema):
        parts.unique.append(tuple(_stored_name(e) for e in part.this.expressions))
    elif isinstance(part, exp.CheckColumnConstraint):
        parts.checks.append(part.this.sql(dialect="postgres"))
    else:
        # EXCLUDE and LIKE say nothing that a concept shows; anything else is not SQL we know.
        return isinstance(part, exp.ExcludeColumnConstraint | exp.LikeProperty)
    return True


def _foreign_key(columns: tuple[str, ...], reference: exp.Expression) -> ForeignKey:
    target = reference.this
    table = target.this if isinstance(target, exp.Schema) else target
    return ForeignKey(
        columns=columns,
        ref_table=_stored_name(table.this),
        ref_columns=tuple(_stored_name(e) for e in target.expressions) if isinstance(target, exp.Schema) else (),
        ref_schema=_stored_name(table.args["db"]) if table.args.get("db") else "public",
    )


def _stored_name(node: exp.Expression) -> str:
    """A name as PostgreSQL stores it: quoted as it stands, unquoted in lower case."""
    while isinstance(node, exp.Ordered | exp.Column):
        node = node.this
    return str(node.name) if node.args.get("quoted") else str(node.name).lower()
