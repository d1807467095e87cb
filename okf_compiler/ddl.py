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
_CLAUSES = frozenset(
    ("NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "REFERENCES", "CHECK", "CONSTRAINT", "GENERATED", "COLLATE")
)
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a statement that could not be read; `line` is 1-based within the text given."""

    line: int
    message: str


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
    if not closed and segments:
        sql, tokens, end = sql + "\n)", [*tokens, *_POSTGRES.tokenize(")")], len(tokens)
    schema = _parse(tokens[: end + 1], sql)
    if schema is not None:
        parts = list(schema.expressions)
    else:
        schema, parts, failed = _parse_by_segment(sql, tokens[: start + 1], segments)
        unread += failed
    if schema is None:
        return None, [Unread(1, "this is not a CREATE TABLE with columns"), *unread]
    table, strange = _table(schema, parts, {s[0].text: _clauses(sql, s) for s in segments if s})
    unread += [Unread(_line_of(segments, part), f"cannot be read: {part.sql()[:80]}") for part in strange]
    return table, unread


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
    try:
        tree = _POSTGRES.parser().parse(tokens, sql)[0]
    except SqlglotError:
        return None
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
        return tree.this
    return None


def _parse_by_segment(
    sql: str, head: list[Token], segments: list[list[Token]]
) -> tuple[exp.Schema | None, list[exp.Expression], list[Unread]]:
    """Each segment parsed alone, so that one broken line costs one column and not its table."""
    schema: exp.Schema | None = None
    parts: list[exp.Expression] = []
    failed: list[Unread] = []
    closing = _POSTGRES.tokenize(")")
    for segment in segments:
        one = _parse([*head, *segment, *closing], sql)
        if one is None:
            text = sql[segment[0].start : segment[-1].end + 1]
            failed.append(Unread(segment[0].line, f"cannot be read: {' '.join(text.split())[:80]}"))
        else:
            schema = schema or one
            parts += one.expressions
    return schema, parts, failed


def _clauses(sql: str, segment: Sequence[Token]) -> dict[str, str]:
    """The text of a column's type (under "") and of its clauses, by their first word."""
    clauses: dict[str, list[Token]] = {}
    word, depth = "", 0
    for token in segment[1:]:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0 and token.text.upper() in _CLAUSES and kind not in _QUOTED:
            word = token.text.upper()
        clauses.setdefault(word, []).append(token)
    return {word: " ".join(sql[part[0].start : part[-1].end + 1].split()) for word, part in clauses.items()}


def _table(
    schema: exp.Schema, parts: Sequence[exp.Expression], clauses: dict[str, dict[str, str]]
) -> tuple[Table, list[exp.Expression]]:
    """The table, and the parts of its body that are neither a column nor a constraint."""
    columns: list[Column] = []
    keys = _Keys()
    strange: list[exp.Expression] = []
    for part in parts:
        if isinstance(part, exp.ColumnDef) and part.kind is not None:
            columns.append(_column(part, clauses.get(part.name, {}), keys))
        elif not _constraint(part, keys):
            strange.append(part)
    target = schema.this
    bare = Table(name="", columns=tuple(columns))
    own = tuple(_own_name(bare, name) for name in keys.primary)
    return (
        Table(
            name=_name(target.this),
            schema=_name(target.args["db"]) if target.args.get("db") else "public",
            columns=tuple(replace(c, nullable=c.nullable and c.name not in own) for c in columns),
            primary_key=own,
            foreign_keys=tuple(
                replace(key, columns=tuple(_own_name(bare, c) for c in key.columns)) for key in keys.foreign
            ),
            unique=tuple(tuple(_own_name(bare, c) for c in key) for key in keys.unique),
            checks=tuple(keys.checks),
        ),
        strange,
    )


class _Keys:
    """Constraints, collected while the parts of a table are read."""

    def __init__(self) -> None:
        self.primary: tuple[str, ...] = ()
        self.foreign: list[ForeignKey] = []
        self.unique: list[tuple[str, ...]] = []
        self.checks: list[str] = []


def _column(part: exp.ColumnDef, clauses: dict[str, str], keys: _Keys) -> Column:
    name = _name(part.this)
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
            keys.primary = (*keys.primary, name)
        elif isinstance(kind, exp.UniqueColumnConstraint):
            keys.unique.append((name,))
        elif isinstance(kind, exp.CheckColumnConstraint):
            keys.checks.append(kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.Reference):
            keys.foreign.append(_foreign_key((name,), kind))
    return column


def _constraint(part: exp.Expression, keys: _Keys) -> bool:
    """Read a table constraint; False if it is none."""
    if isinstance(part, exp.Constraint):
        return all(_constraint(inner, keys) for inner in part.expressions)
    if isinstance(part, exp.PrimaryKey):
        keys.primary = tuple(_name(e) for e in part.expressions)
    elif isinstance(part, exp.ForeignKey):
        keys.foreign.append(_foreign_key(tuple(_name(e) for e in part.expressions), part.args["reference"]))
    elif isinstance(part, exp.UniqueColumnConstraint) and isinstance(part.this, exp.Schema):
        keys.unique.append(tuple(_name(e) for e in part.this.expressions))
    elif isinstance(part, exp.CheckColumnConstraint):
        keys.checks.append(part.this.sql(dialect="postgres"))
    else:
        # EXCLUDE and LIKE say nothing that a concept shows; anything else is not SQL we know.
        return isinstance(part, exp.ExcludeColumnConstraint | exp.LikeProperty)
    return True


def _foreign_key(columns: tuple[str, ...], reference: exp.Expression) -> ForeignKey:
    target = reference.this
    table = target.this if isinstance(target, exp.Schema) else target
    return ForeignKey(
        columns=columns,
        ref_table=_name(table.this),
        ref_columns=tuple(_name(e) for e in target.expressions) if isinstance(target, exp.Schema) else (),
        ref_schema=_name(table.args["db"]) if table.args.get("db") else "public",
    )


def _name(node: exp.Expression) -> str:
    """A name as PostgreSQL stores it: quoted as it stands, unquoted in lower case."""
    while isinstance(node, exp.Ordered | exp.Column):
        node = node.this
    return str(node.name) if node.args.get("quoted") else str(node.name).lower()


def _own_name(table: Table, name: str) -> str:
    """The column's own spelling; documents quote a name in one line and not in the next."""
    column = table.column(name)
    return column.name if column else name


def _line_of(segments: Sequence[Sequence[Token]], part: exp.Expression) -> int:
    first = part.find(exp.Identifier)
    names = {part.name, first.name if first else part.name}
    return next((s[0].line for s in segments if s[0].text in names), segments[0][0].line if segments else 1)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:120]
