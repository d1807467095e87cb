"""LiveSQLBench's rule for Query tasks.

Source: github.com/bird-bench/livesqlbench, `evaluation/src/test_utils.py` (`test_case_default`, `ex_base`).

- Before either query runs: comments are dropped; DISTINCT is dropped, inside aggregates too, unless an ON follows
  before the next bracket (so `DISTINCT ON (…)` stays, and a `SELECT DISTINCT … JOIN … ON` without a bracket before it
  as well); `ROUND(x, n)` becomes `x`. Texts in quotes are left alone, unlike there.
- Dates and timestamps compare by their day, and as text. Numbers are rounded to 2 places, halves away from zero, also
  inside arrays and JSON. Arrays and JSON compare by content.
- Sets of rows are compared, lists where the task's conditions say `order`. No rows on either side is wrong.
- A gold query that only runs as it was written, not without its ROUND or DISTINCT, is compared as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from okf_agent.evaluation.results import Result, Row, Value, rounded
from okf_agent.evaluation.scorers.model import Scorer, missing, out_of_order

PLACES = 2
DAY_CHARS = 10
_PART = re.compile(
    r"""
    (?P<kept> [eE]?'(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )   # quoted: left alone
    | (?P<comment> --[^\r\n]* | /\*.*?\*/ )
    """,
    re.VERBOSE | re.DOTALL,
)
_DISTINCT = re.compile(r"\bDISTINCT\b(?![^()]*\bON\b)", re.IGNORECASE)
_ROUND = re.compile(r"\bROUND\s*\(", re.IGNORECASE)
_BLANK = "\x00"
"""Stands for a character of a quoted text while the rest is searched."""


def clean(sql: str) -> str:
    """The query without comments, DISTINCT and ROUND.

    >>> clean("SELECT DISTINCT round(avg(x), 2) /* mean */ FROM t WHERE note = 'round(1) -- DISTINCT'")
    "SELECT  avg(x)  FROM t WHERE note = 'round(1) -- DISTINCT'"
    """
    sql = _PART.sub(lambda part: part["kept"] or " ", sql).strip()
    mask = _masked(sql)
    for found in reversed(list(_DISTINCT.finditer(mask))):
        sql = sql[: found.start()] + sql[found.end() :]
    while found_round := _ROUND.search(_masked(sql)):
        unrounded = _without_call(sql, found_round)
        if unrounded is None:
            break
        sql = unrounded
    return sql


def _masked(sql: str) -> str:
    """The query with its quoted texts blanked out, of the same length."""
    return _PART.sub(lambda part: _BLANK * len(part[0]), sql)


def _without_call(sql: str, call: re.Match[str]) -> str | None:
    """The query with one call replaced by its first argument; None if its bracket never closes."""
    mask, depth, argument_end = _masked(sql), 1, -1
    for place in range(call.end(), len(mask)):
        depth += {"(": 1, ")": -1}.get(mask[place], 0)
        if argument_end < 0 and (depth == 0 or (depth == 1 and mask[place] == ",")):
            argument_end = place
        if depth == 0:
            return sql[: call.start()] + sql[call.end() : argument_end].strip() + sql[place + 1 :]
    return None


def same(gold: Result, predicted: Result, ordered: bool) -> str:
    """ "" where the rows are the same by the rule, else how they differ."""
    if not gold.rows or not predicted.rows:
        return f"no rows on {'either' if not gold.rows and not predicted.rows else 'one'} side, which counts as wrong"
    expected, got = _comparable(gold.rows), _comparable(predicted.rows)
    if ordered:
        return out_of_order(expected, got)
    one, other = dict.fromkeys(expected), dict.fromkeys(got)
    return "" if one.keys() == other.keys() else missing(list(one), list(other))


def _comparable(rows: Sequence[Row]) -> list[Row]:
    return [tuple(_value(value) for value in row) for row in rows]


def _value(value: Value) -> Value:
    if isinstance(value, tuple) and value[0] in ("date", "timestamp", "timestamptz"):
        return str(value[1])[:DAY_CHARS]
    return rounded(value, PLACES)


SCORER = Scorer(same, clean=clean)
