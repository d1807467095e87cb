"""CREATE TABLE statements, parsed with sqlglot, as `Table` facts. What cannot be read is reported, the rest is kept."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from okf_compiler.ddl_parts import Parts, read_column, read_constraint, stored_name
from okf_compiler.model import Column, ForeignKey, Table

# sqlglot logs what it cannot parse; here that is reported as a problem with its line instead.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

_POSTGRES = Postgres()
_OPEN, _CLOSE, _BODY = (_POSTGRES.tokenize(text) for text in ("(", ")", "(c int)"))
_NUMBER = re.compile(r"\d+")
_CLAUSES = frozenset(
    ("NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "REFERENCES", "CHECK", "CONSTRAINT", "GENERATED", "COLLATE")
)
_SIMPLE = frozenset({"", "NOT", "NULL", "DEFAULT"})
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
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
    parts = Parts()
    others = [s for s in segments if not _read_simple(sql, s, parts) and not _read_simple_key(s, parts)]
    target = _read_others(sql, tokens[:start], others, parts, unread) if segments else None
    if target is None:
        others_lost = _leftovers(sql, tokens, -1) if any(t.token_type is TokenType.SEMICOLON for t in tokens) else ()
        return None, [Unread(1, "this is not a CREATE TABLE with columns"), *others_lost]
    unread += _twice(sql, parts)
    return _table(target, parts), unread


def _twice(sql: str, parts: Parts) -> Iterator[Unread]:
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


def _read_simple(sql: str, segment: list[Token], parts: Parts) -> bool:
    """Read a column that has a name, a type, whether it may be null and a default; False if it is anything else.

    Nine columns in ten are like that, and giving each to the parser would double the time of a compile.
    """
    name, clauses = segment[0], _clauses(sql, segment)
    if not clauses.keys() <= _SIMPLE or name.text.upper().partition(" ")[0] in _CLAUSES:
        return False
    if not _is_type(_NUMBER.sub("1", clauses.get("", ""))):
        return False
    folded = name.text if name.token_type is TokenType.IDENTIFIER else name.text.lower()
    default = clauses["DEFAULT"][len("DEFAULT") :].strip() if "DEFAULT" in clauses else None
    parts.columns[name.start] = Column(folded, clauses[""], "NOT" not in clauses, default)
    return True


def _read_simple_key(segment: list[Token], parts: Parts) -> bool:
    """Read `PRIMARY KEY (a, b)` and `FOREIGN KEY (a) REFERENCES t(b)` of plain names; False if it is anything else."""
    words = [token.text.upper() for token in segment]
    names, end = _name_list(segment, 1)
    if words[0] == "PRIMARY KEY" and names and end == len(segment):
        parts.primary = names
        return True
    if words[0] != "FOREIGN KEY" or not names or words[end : end + 1] != ["REFERENCES"]:
        return False
    target = segment[end + 1 : end + 2]
    ref_columns, end = _name_list(segment, end + 2)
    if not target or target[0].token_type not in _NAMES or not ref_columns or end != len(segment):
        return False
    parts.foreign.append(ForeignKey(names, _stored(target[0]), ref_columns))
    return True


def _name_list(tokens: Sequence[Token], start: int) -> tuple[tuple[str, ...], int]:
    """The names in the bracket that opens at `start`, and where it ends; () where there is something else in it."""
    names: list[str] = []
    kinds = [token.token_type for token in tokens]
    if kinds[start : start + 1] != [TokenType.L_PAREN]:
        return (), start
    for index in range(start + 1, len(tokens) - 1, 2):
        if kinds[index] not in _NAMES or kinds[index + 1] not in (TokenType.COMMA, TokenType.R_PAREN):
            return (), start
        names.append(_stored(tokens[index]))
        if kinds[index + 1] is TokenType.R_PAREN:
            return tuple(names), index + 2
    return (), start


def _stored(token: Token) -> str:
    return token.text if token.token_type is TokenType.IDENTIFIER else token.text.lower()


def _simple_head(tokens: Sequence[Token]) -> exp.Expression | None:
    """The name in `CREATE TABLE name` as parsed; None where more stands there."""
    if (
        len(tokens) != 3
        or [t.text.upper() for t in tokens[:2]] != ["CREATE", "TABLE"]
        or tokens[2].token_type not in _NAMES
    ):
        return None
    quoted = tokens[2].token_type is TokenType.IDENTIFIER
    return exp.Table(this=exp.Identifier(this=tokens[2].text, quoted=quoted))


def _read_others(
    sql: str, head: list[Token], segments: list[list[Token]], parts: Parts, unread: list[Unread]
) -> exp.Expression | None:
    """Read constraints and the other columns; the table's name as parsed, None if `head` creates no table."""
    if not segments and (target := _simple_head(head)):
        return target
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
            parts.columns[segment[0].start] = read_column(part, _clauses(sql, segment), parts)
        elif part is None or not read_constraint(part, parts):
            text = " ".join(sql[segment[0].start : segment[-1].end + 1].split())
            unread.append(Unread(segment[0].line, f"cannot be read: {text[:80]}"))
    return schema.this if schema else None


@lru_cache(maxsize=4096)
def _is_type(text: str) -> bool:
    """Whether sqlglot reads the text as the type of a column."""
    sql = f"CREATE TABLE t (c {text})"
    schema = _parse(_POSTGRES.tokenize(sql), sql) if text else None
    part = schema.expressions[0] if schema else None
    return isinstance(part, exp.ColumnDef) and part.kind is not None and not part.constraints


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


def _table(target: exp.Expression, parts: Parts) -> Table:
    bare = Table(name="", columns=tuple(column for _, column in sorted(parts.columns.items())))
    primary = tuple(_own_name(bare, name) for name in parts.primary)
    return Table(
        name=stored_name(target.this),
        schema=stored_name(target.args["db"]) if target.args.get("db") else "public",
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
