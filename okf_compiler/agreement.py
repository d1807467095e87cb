"""Whether two sources say the same of a type, a default, a foreign key or in a text, each in its own words."""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from okf_compiler.model import ForeignKey

_FAMILIES = {
    "number": exp.DataType.NUMERIC_TYPES,
    "text": exp.DataType.TEXT_TYPES,
    "time": exp.DataType.TEMPORAL_TYPES,
    "boolean": {exp.DataType.Type.BOOLEAN},
    "json": {exp.DataType.Type.JSON, exp.DataType.Type.JSONB},
    "uuid": {exp.DataType.Type.UUID},
    "array": exp.DataType.ARRAY_TYPES,
}
_LOOSE = {"string": "text", "str": "text", "number": "number", "datetime": "time", "bool": "boolean"}
"""Words of dictionaries that are no type of PostgreSQL."""


def types_disagree(one: str, other: str) -> bool:
    """Whether two types are of different families; a type that is no known one agrees with everything.

    >>> types_disagree("character varying(20)", "TEXT"), types_disagree("bigint", "timestamp")
    (False, True)
    >>> types_disagree("mood", "text")
    False
    """
    families = {_family(one), _family(other)}
    return None not in families and len(families) > 1


@lru_cache(maxsize=10_000)
def _family(type: str) -> str | None:
    word = type.strip().lower().partition("(")[0].rstrip()
    if word in _LOOSE:
        return _LOOSE[word]
    try:
        kind = exp.DataType.build(type, dialect="postgres").this
    except (SqlglotError, ValueError):
        return None
    return next((family for family, kinds in _FAMILIES.items() if kind in kinds), None)


def same_target(one: ForeignKey, other: ForeignKey) -> bool:
    """Whether two keys refer to the same columns, or one does not say which."""
    columns = [[name.lower() for name in key.ref_columns] for key in (one, other)]
    return one.ref_table.lower() == other.ref_table.lower() and (columns[0] == columns[1] or not all(columns))


def shown_key(key: ForeignKey) -> str:
    return ".".join(part for part in (key.ref_schema, key.ref_table, ", ".join(key.ref_columns)) if part)


def literal(default: str | None) -> str | None:
    """A default that is a plain value, without quotes and casts; None for an expression, which can be written in
    many ways.

    >>> literal("'new'::character varying"), literal("new"), literal("(0)::numeric"), literal("now()")
    ('new', 'new', '0', None)
    """
    plain = re.sub(r"::[\w .\"]+(?:\([\d, ]*\))?$", "", (default or "").strip())
    found = re.fullmatch(r"\((-?[\d.]+)\)|'([^']*)'|([\w.+-]+)", plain)
    return next(group for group in found.groups() if group is not None).casefold() if found else None


def holds(text: str, part: str) -> bool:
    """Whether `text` is `part` with lines before or behind it."""
    inner = " ".join(part.split()).casefold()
    outer = " ".join(text.split()).casefold()
    return outer.startswith(inner + " ") or outer.endswith(" " + inner)
