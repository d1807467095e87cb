"""PostgreSQL's errors in words that help whoever wrote the query: message, place, hint, what exists instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import psycopg

from okf_agent.sql.lexer import significant
from okf_agent.sql.query_error import PASSING, QueryError
from okf_agent.sql.refusals import NEVER
from okf_compiler.errors import near_names
from okf_compiler.inert import inert
from okf_compiler.postgres import without_secrets
from okf_compiler.sql_names import sql_name

Ask = Callable[..., list[tuple[Any, ...]]]
"""Rows of a query over the catalogue, run as the same role: (query, *parameters)."""

NO_RIGHT = "This will never be allowed: the role that runs queries has no right to it. Answer without it."
MAX_MESSAGE = 1_000
MAX_LINE = 160
_NEVER_STATES = ("42501", "25006")
_LOST_STATES = ("57P01", "57P02", "57P03", "08000", "08003", "08006")

TABLES = """
SELECT n.nspname, c.relname, pg_catalog.pg_table_is_visible(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))
LIMIT 5000"""
COLUMNS = """
SELECT c.relname, a.attname
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
LIMIT 50000"""
PARTLY = """
SELECT c.relname, a.attname
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
  AND NOT pg_catalog.has_table_privilege(c.oid, 'SELECT')
  AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')
  AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY c.oid, a.attnum LIMIT 50000"""
FUNCTIONS = """
SELECT DISTINCT proname FROM pg_catalog.pg_proc
WHERE pg_catalog.pg_function_is_visible(oid) AND prorettype <> 'pg_catalog.internal'::pg_catalog.regtype
  AND pg_catalog.has_function_privilege(oid, 'EXECUTE') AND prokind <> 'p'"""
LABELS = """
SELECT t.typname, e.enumlabel
FROM pg_catalog.pg_enum e JOIN pg_catalog.pg_type t ON t.oid = e.enumtypid ORDER BY t.typname, e.enumsortorder"""


def stopped(reason: str, seconds: float, max_bytes: int, key: str) -> QueryError:
    """The error of a query that we stopped ourselves; `key` of config.yaml is its time limit."""
    if reason == "time":
        return QueryError(
            f"The query was stopped after {seconds:g} s ({key}). Filter earlier, join on keys, or aggregate less.",
            sqlstate="57014",
        )
    if reason == "size":
        return QueryError(
            f"The query was stopped: the server sent one row, plan or message of more than {max_bytes:,} bytes. "
            "Select less of it, for example left(column, 1000)."
        )
    return QueryError("The query was cancelled.", sqlstate="57014")


def explain(error: psycopg.Error, sql: str, params: Mapping[str, Any], ask: Ask) -> QueryError:
    """What PostgreSQL said and where, and what helps next; `sql` is the text the query had.

    No message has a password of `params`, or the folder of a socket.
    """
    state = error.sqlstate or ""
    if not state or state in _LOST_STATES:
        return QueryError(
            _redacted(
                f"The database could not be asked: {_in_one_line(error)} The same query can be sent again.", params
            ),
            sqlstate=state,
            lost=True,
        )
    if state == "57014":
        return QueryError(
            "The query was stopped by the server's time limit, or by somebody. Filter earlier, join on keys, "
            "or aggregate less.",
            sqlstate=state,
        )
    never = state in _NEVER_STATES
    lines = [f"ERROR: {_message(error)} (SQLSTATE {state})", *_place(error, sql)]
    for label, text in (("DETAIL", error.diag.message_detail), ("HINT", error.diag.message_hint)):
        if text:
            lines.append(f"{label}: {_short(text)}")
    readable = _readable_columns(_message(error), ask) if state == "42501" else []
    if readable:
        never = False  # another wording of it works
        lines += readable
    else:
        lines += [NO_RIGHT if state == "42501" else NEVER] if never else _help(error, state, sql, ask)
    return QueryError(_redacted("\n".join(lines), params), sqlstate=state, never=never)


def _message(error: psycopg.Error) -> str:
    return _short(error.diag.message_primary or str(error))


def _in_one_line(error: psycopg.Error) -> str:
    return _short(" ".join(str(error.diag.message_primary or error).split())).rstrip(".") + "."


def _short(text: str) -> str:
    """One line of it, cut: what it quotes of a cell may hold lines that look like ours or PostgreSQL's."""
    if len(text) <= MAX_MESSAGE:
        return inert(text)
    return f"{inert(text[:MAX_MESSAGE])}… (cut, {MAX_MESSAGE:,} of {len(text):,} characters)"


def _redacted(text: str, params: Mapping[str, Any]) -> str:
    """The text without passwords, and without the folder of the server's socket: a model has no use for it."""
    folder = str(params.get("host") or "")
    if folder.startswith("/"):
        text = text.replace(f"{folder}/", "")
    return without_secrets(text, params)


def _position(error: psycopg.Error, sql: str) -> int | None:
    """The offset in `sql` that PostgreSQL points at."""
    position = error.diag.statement_position
    at = int(position) - 1 if position else -1
    return at if 0 <= at <= len(sql) else None


def _place(error: psycopg.Error, sql: str) -> list[str]:
    """The line PostgreSQL points at, and a mark below the place."""
    at = _position(error, sql)
    if at is None:
        return []
    start = sql.rfind("\n", 0, at) + 1
    end = sql.find("\n", at)
    line = sql[start : end if end >= 0 else len(sql)]
    column = at - start
    if len(line) > MAX_LINE:
        left = max(0, column - MAX_LINE // 2)
        line, column = line[left : left + MAX_LINE], column - left
    prefix = f"LINE {sql.count(chr(10), 0, start) + 1}: "
    return [prefix + line.replace("\t", " "), " " * (len(prefix) + column) + "^"]


def _help(error: psycopg.Error, state: str, sql: str, ask: Ask) -> list[str]:
    """Lines that name what exists, for the errors where a name was invented."""
    if state in ("42P01", "3F000"):
        return _near_tables(_names_at(error, sql), ask)
    if state == "42703":
        return _near_columns(_names_at(error, sql), sql, ask)
    if state == "42883":
        return _near_functions(_names_at(error, sql), ask)
    if state == "22P02":
        return _enum_labels(_message(error), ask)
    if state in PASSING:
        return ["This may pass: the same query can be sent again, or one that sorts and joins less."]
    return []


def _readable_columns(message: str, ask: Ask) -> list[str]:
    """What may be read of a table that was refused, if it is some of its columns: PostgreSQL names only the table."""
    columns: dict[str, list[str]] = {}
    for table, column in ask(PARTLY):
        if re.search(rf"(?<!\w){re.escape(table)}(?!\w)", message):
            columns.setdefault(table, []).append(sql_name(column))
    return [
        f"Of {sql_name(table)} the role may read these columns: {', '.join(names)}. Name them; the others, and *, "
        "will never be allowed."
        for table, names in columns.items()
    ]


def _names_at(error: psycopg.Error, sql: str) -> list[str]:
    """The dotted name PostgreSQL points at, in its parts: `o."Order ID"` -> ["o", "Order ID"]."""
    at = _position(error, sql)
    names: list[str] = []
    if at is None:
        return names
    for token in significant(sql[at:]):
        if token.text == "." and names:
            continue
        if token.name is None or (names and not sql[at : at + token.start].rstrip().endswith(".")):
            break
        names.append(token.name)
    return names


def _near_tables(names: list[str], ask: Ask) -> list[str]:
    tables = {
        sql_name(name) if visible == "t" else f"{sql_name(schema)}.{sql_name(name)}": name
        for schema, name, visible in ask(TABLES)
    }
    if not tables:
        return ["There is no table that this role may read."]
    # PostgreSQL points at `o.id` where no table is called `o`: then the table is what stands first.
    near = next((found for name in reversed(names) if (found := near_names(name, tables.values(), 3))), [])
    shown = [table for table, name in tables.items() if name in near]
    if shown:
        return [f"Nearest tables: {', '.join(shown)}."]
    return [f"The tables are: {', '.join(list(tables)[:30])}{' …' if len(tables) > 30 else ''}."]


def _near_columns(names: list[str], sql: str, ask: Ask) -> list[str]:
    """Near columns of the tables the query names, else of any table; all columns of a small table."""
    used = {token.name for token in significant(sql) if token.name}
    rows = ask(COLUMNS)
    wanted = names[-1] if names else ""
    mine = [(table, column) for table, column in rows if table in used]
    for candidates in (mine, rows):
        near = near_names(wanted, (column for _, column in candidates), 3)
        found = [f"{sql_name(t)}.{sql_name(c)}" for t, c in candidates if c in near]
        if found:
            return [f"Nearest columns: {', '.join(found[:8])}."]
    return [_column_list(table, mine) for table in dict.fromkeys(t for t, _ in mine)][:3]


def _column_list(table: str, columns: Iterable[tuple[str, str]]) -> str:
    names = [sql_name(c) for t, c in columns if t == table]
    return f"Columns of {sql_name(table)}: {', '.join(names[:60])}{' …' if len(names) > 60 else ''}."


def _near_functions(names: list[str], ask: Ask) -> list[str]:
    known = [str(row[0]) for row in ask(FUNCTIONS)]
    if not names or names[-1] in known:
        return []
    near = near_names(names[-1], known, 3)
    return [f"Nearest functions: {', '.join(near)}."] if near else []


def _enum_labels(message: str, ask: Ask) -> list[str]:
    """The labels of the enum types the message names, whatever its language."""
    labels: dict[str, list[str]] = {}
    for name, label in ask(LABELS):
        labels.setdefault(name, []).append(label)
    before_value = message.split(': "', 1)[0]
    words = set(re.findall(r'[\w.]+|"[^"]+"', before_value))
    names = {w.strip('"').rsplit(".", 1)[-1] for w in words}
    return [
        f"Values of {name}: {', '.join(repr(v) for v in values[:50])}{' …' if len(values) > 50 else ''}."
        for name, values in labels.items()
        if name in names
    ]
