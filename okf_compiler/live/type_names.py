"""Types as documents and PostgreSQL spell them, compared so that only a real difference counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

FAMILIES = {
    "integer": "int int2 int4 int8 integer smallint bigint tinyint serial smallserial bigserial",
    "fraction": "numeric decimal real float float4 float8 double money",
    "text": "text varchar char character bpchar string name citext varying clob nvarchar",
    "boolean": "boolean bool",
    "date": "date",
    "time": "time timetz",
    "timestamp": "timestamp timestamptz datetime",
    "interval": "interval",
    "json": "json jsonb",
    "uuid": "uuid",
    "bytes": "bytea blob",
}
_FAMILY = {word: family for family, words in FAMILIES.items() for word in words.split()}
_ANY = ("user-defined", "array", "")
_KEPT_AS_TEXT = frozenset(("date", "time", "timestamp", "interval", "json", "uuid", "boolean", "bytes"))

Difference = Literal["type", "precision", "length"]


def family(type_name: str) -> str:
    """The family of a type, or its own name in lower case.

    >>> family("character varying(20)"), family("double precision"), family("REAL(5,2)"), family("mood")
    ('text', 'fraction', 'fraction', 'mood')
    """
    words = re.findall(r"[^\s(),]+", type_name.lower())
    return _FAMILY.get(words[0], re.sub(r"\(.*", "", type_name.lower()).strip()) if words else ""


def is_sqlite(types: Iterable[str]) -> bool:
    """Whether documents spell types as the SQLite edition does (`text(20)`): it has no dates, enums or booleans."""
    return any(re.match(r"(?i)(text|real|integer)\s*\(", t) for t in types)


def differs(documented: str, held: str, *, labels: bool = False, sqlite: bool = False) -> Difference | None:
    """How a documented type differs from the database's, if it does. `labels`: the database's is an enum.

    >>> differs("text(20)", "character varying(20)"), differs("integer", "text"), differs("varchar(5)", "varchar(9)")
    (None, 'type', 'length')
    >>> differs("USER-DEFINED", "mood", labels=True), differs("real", "numeric"), differs("date", "text", sqlite=True)
    (None, None, None)
    """
    documented, held = (re.sub(r" \(domain .*\)$", "", t).strip() for t in (documented, held))
    if documented.lower() in _ANY or documented.lower() == held.lower():
        return None
    if documented.endswith("[]") != held.endswith("[]"):
        return "type"
    one, other = family(documented.removesuffix("[]")), family(held.removesuffix("[]"))
    if one == other:
        lengths = [re.findall(r"\d+", t) for t in (documented, held)]
        return "length" if all(lengths) and lengths[0] != lengths[1] else None
    if {one, other} == {"integer", "fraction"}:
        return "precision"
    if labels and one == "text":
        return None
    pair = {one, other}
    if sqlite and (pair == {"integer", "boolean"} or ("text" in pair and (labels or pair & _KEPT_AS_TEXT))):
        return None
    return "type"
