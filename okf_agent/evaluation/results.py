"""Results of queries for scorers: fetched whole and read-only, their cells as values that can be compared.

Numbers are decimals, whatever their type: 1, 1.0 and 1.00 are one value, and nothing passes through a float. True and
false are 1 and 0, as the public scorers' Python has it. NaN equals NaN and NULL equals NULL. Text is text; a date,
a timestamp and a text that reads the same are three values. JSON and arrays compare by what they hold.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeAlias

from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError

Value: TypeAlias = Decimal | str | tuple[str, object] | None
"""NULL, a number, a text, or (kind, content) of everything else."""
Row: TypeAlias = tuple[Value, ...]

NUMBERS = frozenset(
    ("smallint", "integer", "bigint", "numeric", "real", "double precision", "oid", "decimal", "int", "float")
)
TAGGED = {
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
    "interval": "interval",
    "bytea": "bytea",
}
"""Types whose texts are values of their own kind."""
SPECIAL = frozenset(("NaN", "Infinity", "-Infinity"))
_MODIFIER = re.compile(r"\([^()]*\)")


def base_type(type_name: str) -> str:
    """`numeric(12,2)` is a `numeric`, `timestamp(3) without time zone` a timestamp; arrays keep their brackets."""
    return " ".join(_MODIFIER.sub(" ", type_name).split()).replace(" []", "[]")


def parse(text: str | None, type_name: str) -> Value:
    """The value of a cell, given PostgreSQL's name of its column's type."""
    if text is None:
        return None
    kind = base_type(type_name)
    if kind.endswith("[]"):
        return ("array", _array(text, kind[:-2]))
    if kind in NUMBERS:
        return ("number", text) if text in SPECIAL else Decimal(text)
    if kind == "boolean":
        return Decimal(text in ("t", "true"))
    if kind in ("json", "jsonb"):
        return ("json", _frozen(json.loads(text, parse_float=Decimal, parse_int=Decimal)))
    if kind in TAGGED:
        return (TAGGED[kind], text)
    return text


def as_double(value: Value) -> Value:
    """A number as SQLite and pandas hold it: whole numbers exactly, others to a double's 17 digits."""
    if not isinstance(value, Decimal) or value == value.to_integral_value():
        return value
    return Decimal(repr(float(value)))


def doubles(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows with their numbers as doubles."""
    return tuple(tuple(as_double(value) for value in row) for row in rows)


def rounded(value: Value, places: int) -> Value:
    """A number to so many decimal places, halves away from zero; also those inside arrays and JSON."""
    return _mapped(value, lambda number: _round(number, places))


def _round(number: Decimal, places: int) -> Decimal:
    if number == number.to_integral_value():
        return number
    # Quantizing fails past the context's 28 digits; a number that long is cut at its own length.
    exponent = Decimal(1).scaleb(-places)
    return number.quantize(exponent, ROUND_HALF_UP) if number.adjusted() < 25 - places else number


def _mapped(value: object, change: Callable[[Decimal], Decimal]) -> Value:
    if isinstance(value, Decimal):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)  # type: ignore[return-value]
    return value  # type: ignore[return-value]


def _frozen(content: object) -> object:
    """JSON content that can be hashed; the order of keys does not count."""
    if isinstance(content, dict):
        return ("object", tuple(sorted((key, _frozen(each)) for key, each in content.items())))
    if isinstance(content, list):
        return ("list", tuple(_frozen(each) for each in content))
    if isinstance(content, bool):
        return ("boolean", content)
    return content


_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}])|([^{},"]+)|(,)', re.DOTALL)


def _array(text: str, element_type: str) -> object:
    """The elements of PostgreSQL's array text, `{1,NULL,"a b"}`, nested as it is nested."""
    stack: list[list[object]] = [[]]
    for quoted, brace, plain, comma in _ELEMENT.findall(text[text.find("{") :]):
        if brace == "{":
            stack.append([])
        elif brace == "}":
            done = tuple(stack.pop())
            stack[-1].append(done)
        elif plain:
            stack[-1].append(None if plain == "NULL" else parse(plain, element_type))
        elif not comma:
            stack[-1].append(parse(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL), element_type))
    return stack[0][0] if stack[0] else ()


def shown(value: Value) -> str:
    """A value in words, for the reason of a verdict."""
    if value is None:
        return "NULL"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return repr(value) if isinstance(value, str) else str(value[1])


def sort_key(value: Value) -> tuple[int, object, str]:
    """A total order over values of any kinds, NULL last, as pandas sorts."""
    if value is None:
        return (3, 0, "")
    if isinstance(value, Decimal):
        return (0, value, "")
    if isinstance(value, str):
        return (1, 0, value)
    return (2, 0, repr(value))


MAX_ROWS = 100_000
"""Rows past which a result is not compared any more."""
MAX_CHARS = 200_000_000
"""Characters of all its cells past which it is not."""


@dataclass(frozen=True)
class Result:
    """A whole result: column names as the query gives them, and rows in its order."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def fetch(database: Database, sql: str) -> Result:
    """The whole result of one query, within `database.statement_timeout_s`.

    Raises:
        QueryError: refused, failed, stopped, or too long to compare.
    """
    rows: list[Row] = []
    size = 0
    with database.stream(sql) as export:
        for batch in export:
            for row in batch:
                size += sum(len(cell) for cell in row if cell)
                rows.append(tuple(parse(_text(cell), kind) for cell, kind in zip(row, export.types, strict=True)))
            if len(rows) > MAX_ROWS or size > MAX_CHARS:
                raise QueryError(f"The result has more than {MAX_ROWS:,} rows or {MAX_CHARS:,} characters.")
        return Result(export.columns, tuple(rows))


def seconds(database: Database, sql: str) -> float:
    """How long a query takes, its rows' transfer included, by our clock.

    Raises:
        QueryError: as `fetch`.
    """
    began = time.perf_counter()
    with database.stream(sql) as export:
        for _ in export:
            pass
    return time.perf_counter() - began


def _text(cell: object) -> str | None:
    return None if cell is None else cell if isinstance(cell, str) else str(cell)
