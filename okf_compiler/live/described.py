"""What descriptions claim of a column or a JSON field, against what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from psycopg import sql

from okf_compiler.live.claims import Claim, claims
from okf_compiler.live.data import NUMBER, Data, Place, Spread, number
from okf_compiler.live.finding import Finding
from okf_compiler.live.type_names import differs, family
from okf_compiler.model import Column, Database

SHOWN = 10
"""Values or names that one finding shows."""
ENOUGH = 5
"""Rows for each listed value; a column with fewer may lack one by chance."""


def check_column(data: Data, place: Place, documented: Column, live: Database) -> Iterator[Finding]:
    """The column's own claims: its description, and NOT NULL where the documents' schema says it."""
    found = claims(documented.meaning)
    if not documented.nullable and place.column.nullable and not any(c.kind == "not null" for c in found):
        found.append(Claim("not null", "NOT NULL"))
    yield from _check(data, place, found, live)


def check_fields(data: Data, place: Place, documented: Column, live: Database) -> Iterator[Finding]:
    """The fields of a JSON column: which there are, and what their descriptions claim."""
    paths = {f.path for f in documented.fields}
    parents = dict.fromkeys(path[:depth] for path in paths for depth in range(len(path)))
    held = {parent: data.keys(Place(place.table, place.column, parent)) for parent in parents}
    for parent, keys in held.items():
        if keys is None:
            continue
        named = {path[len(parent)] for path in paths if path[: len(parent)] == parent and len(path) > len(parent)}
        for key in sorted(named - keys.keys()) if keys else ():
            yield Finding(
                "missing-field", "error", str(Place(place.table, place.column, (*parent, key))),
                f"documented, but no row holds it; held: {_some(sorted(keys))}",
            )  # fmt: skip
        for key in sorted(keys.keys() - named):
            yield Finding(
                "extra-field", "warning", str(Place(place.table, place.column, (*parent, key))),
                f"{keys[key]:,} rows hold it; no document describes it",
            )  # fmt: skip
    for field in documented.fields:
        if field.path[-1] in (held.get(field.path[:-1]) or ()):
            yield from _check(data, Place(place.table, place.column, field.path), claims(field.meaning), live)


def _check(data: Data, place: Place, found: Sequence[Claim], live: Database) -> Iterator[Finding]:
    kinds = {c.kind for c in found}
    for claim in found:
        if claim.kind == "values":
            yield from _values(data, place, claim, "case noise" in kinds)
        elif checker := CHECKERS.get(claim.kind):
            yield from checker(data, place, claim)
        elif claim.kind == "reference":
            yield from _reference(place, claim, live)


def normal(value: str) -> str:
    """A value as lists are compared: in any letter case, numbers by their size.

    >>> normal(" Needs Update"), normal("450.0") == normal("450")
    ('needs update', True)
    """
    text = " ".join(value.split()).casefold()
    return f"{float(text):g}" if re.match(NUMBER.replace(r"\s", " "), text) else text


def _labels(place: Place, claim: Claim) -> Iterator[Finding]:
    """An enum's labels against a list: what the type allows, whatever the rows hold."""
    labels, listed = ({normal(v): v for v in values} for values in (place.column.enum_labels, claim.values))
    parts = [
        f"{words}: {_some(repr(values[v]) for v in values if v not in others)}"
        for words, values, others in (("no label", listed, labels), ("not listed", labels, listed))
        if values.keys() - others.keys()
    ]
    if parts:
        yield Finding(
            "changed-enum", "warning", str(place), f"labels of the enum {place.column.type}; {'; '.join(parts)}"
        )


def _values(data: Data, place: Place, claim: Claim, noisy: bool) -> Iterator[Finding]:
    if place.column.enum_labels and not place.path:
        yield from _labels(place, claim)
        return
    spread = data.spread(place)
    if spread is None or spread.nulls == spread.rows:
        return
    if spread.values is None:
        yield Finding(
            "unlisted-value", "warning", str(place),
            f"{len(claim.values)} values are listed; more than 200 different ones are held ({spread.scope})",
        )  # fmt: skip
        return
    held = {normal(v) for v in spread.values}
    if unheld := [v for v in claim.values if normal(v) not in held] if spread.whole else []:
        nulls = f", {spread.nulls:,} of them NULL" if spread.nulls else ""
        yield Finding(
            "unheld-value", weight(spread, claim.values), str(place),
            f"listed, but held by no row ({spread.scope}{nulls}): {_some(map(repr, unheld))}",
        )  # fmt: skip
    yield from _unlisted(place, claim, spread)
    exact = [
        v for v in claim.values if v not in spread.values and v.casefold() in {h.casefold() for h in spread.values}
    ]
    if exact and not noisy:
        yield Finding(
            "value-spelling", "warning", str(place), f"held in another letter case only: {_some(map(repr, exact))}"
        )


def weight(spread: Spread, listed: Sequence[str]) -> Literal["warning", "info"]:
    """How much it says that a listed value is not held: little, where few rows hold anything."""
    return "warning" if spread.rows - spread.nulls >= ENOUGH * len(listed) else "info"


def _unlisted(place: Place, claim: Claim, spread: Spread) -> Iterator[Finding]:
    if rows := unlisted(spread, claim.values):
        yield Finding("unlisted-value", "warning", str(place), f"held, but not listed: {rows} of {spread.scope}")


def unlisted(spread: Spread, listed: Iterable[str]) -> str:
    """The held values that a list leaves out, in any letter case, each with its rows; "" if there are none."""
    known = {normal(v) for v in listed}
    rows: dict[str, tuple[str, int]] = {}
    for value, count in (spread.values or {}).items():
        if normal(value) not in known:
            first, before = rows.get(normal(value), (value, 0))
            rows[normal(value)] = (first, before + count)
    return _some(f"{value!r} ({count:,} rows)" for value, count in rows.values())


def _examples(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    """Examples stand for values only where a column holds few: of an identifier any example will do."""
    spread = data.spread(place)
    if spread is None or spread.values is None or not spread.whole or spread.nulls == spread.rows:
        return
    held = {normal(v) for v in spread.values}
    parts = held | {normal(p) for v in spread.values for p in v.split(",")}
    unheld = [v for v in claim.values if normal(v) not in parts]
    if unheld and len(held) < max(spread.rows - spread.nulls, 2) / 2:
        yield Finding(
            "unheld-example", "info", str(place),
            f"given as an example, but held by no row ({spread.scope}): {_some(map(repr, unheld))}",
        )  # fmt: skip


def _range(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    bounds = data.bounds(place) if family(place.column.type) in ("integer", "fraction", "text", "json") else None
    if not bounds or bounds[0] is None or bounds[1] is None:
        return
    low, high = (float(b) for b in bounds if b is not None)
    if low >= claim.low and high <= claim.high:
        return
    outside = data.count(
        place,
        sql.SQL("CASE WHEN v ~ {} THEN v::numeric < {} OR v::numeric > {} END").format(
            sql.Literal(NUMBER), number(claim.low), number(claim.high)
        ),
    )
    doubtful = claim.kind == "percent" or "typically" in claim.quote
    yield Finding(
        "out-of-range", "info" if doubtful else "warning", str(place),
        f"{claim.quote!r}, but {outside or 0:,} rows are outside; held: {bounds[0]} to {bounds[1]}",
    )  # fmt: skip


def _unique(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    keys = [place.table.primary_key, *place.table.unique]
    if not place.path and ((place.column.name,) in keys or place.column.name in place.table.primary_key):
        return
    repeated = data.repeated(place)
    if repeated:
        yield Finding(
            "not-unique", "warning", str(place), f"{claim.quote!r}, but {repeated:,} values stand in several rows"
        )


def _not_null(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    spread = data.spread(place) if place.path or place.column.nullable else None
    if spread and spread.nulls:
        yield Finding(
            "null-value", "warning", str(place), f"{claim.quote!r}, but NULL in {spread.nulls:,} of {spread.scope}"
        )


def _has_null(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    if not place.path and not place.column.nullable:
        yield Finding("no-null", "info", str(place), f"{claim.quote!r}, but the column is NOT NULL")
        return
    spread = data.spread(place)
    if spread and spread.rows and not spread.nulls and spread.whole:
        yield Finding("no-null", "info", str(place), f"{claim.quote!r}, but none of {spread.scope} is NULL")


def _date(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    yield from _form(data, place, rf"^\s*{claim.values[0]}\s*$", "wrong-format", f"dates are said to be {claim.quote}")


def _unit(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    amount = NUMBER.removesuffix(r"\s*$")
    pattern = rf"{amount}\s+{re.escape(claim.values[0])}\s*$".replace(r"\-", "-").replace(r"\ ", " ")
    yield from _form(data, place, pattern, "wrong-unit", f"values are said to be numbers of {claim.values[0]}")


def _form(data: Data, place: Place, pattern: str, code: str, said: str) -> Iterator[Finding]:
    if not place.path and family(place.column.type) != "text":
        return
    odd = data.count(place, sql.SQL("v !~ {}").format(sql.Literal(pattern)))
    if odd:
        spread = data.spread(place)
        scope = spread.scope if spread else "the rows"
        yield Finding(code, "warning", str(place), f"{said}, but {odd:,} of {scope} are written otherwise")


def _time(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    if place.path or family(place.column.type) in ("text", "date"):
        spread = data.spread(place)
        if spread and spread.rows > spread.nulls and data.count(place, sql.SQL(r"v ~ '\d:\d\d'")) == 0:
            yield Finding(
                "no-time", "info", str(place), f"{claim.quote!r}, but no value of {spread.scope} has a time of day"
            )


def _case(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    spread = data.spread(place)
    if spread and spread.values and len({v.casefold() for v in spread.values}) == len(spread.values):
        yield Finding("no-variants", "info", str(place), f"{claim.quote!r}, but each value is written in one way only")


def _type(data: Data, place: Place, claim: Claim) -> Iterator[Finding]:
    said = claim.values[0]
    if not place.path:
        if differs(said, place.column.type, labels=bool(place.column.enum_labels)) == "type":
            yield Finding("changed-type", "warning", str(place), f"described as {said}, is {place.column.type}")
        return
    pattern = {"integer": r"^\s*-?\d+(\.0+)?\s*$", "fraction": NUMBER, "boolean": "^(true|false)$"}.get(family(said))
    odd = data.count(place, sql.SQL("v !~ {}").format(sql.Literal(pattern))) if pattern else 0
    if odd:
        yield Finding(
            "changed-type", "warning", str(place), f"described as {said}, but {odd:,} rows hold something else"
        )


def _reference(place: Place, claim: Claim, live: Database) -> Iterator[Finding]:
    name = claim.values[0]
    tables = [t for t in live.tables if t.name.lower() == name.lower()]
    column = claim.values[1] if len(claim.values) > 1 else ""
    if not tables:
        yield Finding("unknown-reference", "warning", str(place), f"{claim.quote!r}, but there is no table {name}")
    elif column and not any(t.column(column) for t in tables):
        yield Finding("unknown-reference", "warning", str(place), f"{claim.quote!r}, but {name} has no column {column}")


CHECKERS: dict[str, Callable[[Data, Place, Claim], Iterator[Finding]]] = {
    "examples": _examples,
    "range": _range,
    "percent": _range,
    "unique": _unique,
    "key": _unique,
    "not null": _not_null,
    "has null": _has_null,
    "date": _date,
    "time": _time,
    "unit": _unit,
    "case noise": _case,
    "type": _type,
}


def _some(items: Iterable[str]) -> str:
    found = list(items)
    return ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
