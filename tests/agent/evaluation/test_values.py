"""Cells as values: what is equal, given PostgreSQL's text and type."""

from __future__ import annotations

from decimal import Decimal

import pytest

from okf_agent.evaluation.results import as_double, parse, rounded

D = Decimal


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (None, "integer", None),
        ("1", "integer", D(1)),
        ("1.50", "numeric(12,2)", D("1.5")),
        ("1e-07", "double precision", D("0.0000001")),
        ("NaN", "numeric", ("number", "NaN")),
        ("-Infinity", "real", ("number", "-Infinity")),
        ("t", "boolean", D(1)),
        ("f", "boolean", D(0)),
        ("12", "text", "12"),
        ("", "character varying(10)", ""),
        ("12.50", "money", "12.50"),
        ("2024-05-06", "date", ("date", "2024-05-06")),
        ("2024-05-06 10:00:00", "timestamp(3) without time zone", ("timestamp", "2024-05-06 10:00:00")),
        ("2024-05-06 10:00:00+00", "timestamp with time zone", ("timestamptz", "2024-05-06 10:00:00+00")),
        ("1 day", "interval", ("interval", "1 day")),
        ("{}", "integer[]", ("array", ())),
        ("{1,NULL,3}", "integer[]", ("array", (D(1), None, D(3)))),
        ('{"a,b","c\\"d",NULL,"NULL",""}', "text[]", ("array", ("a,b", 'c"d', None, "NULL", ""))),
        ("{{1,2},{3,4}}", "numeric(5,1)[]", ("array", ((D(1), D(2)), (D(3), D(4))))),
        ("[0:1]={7,8}", "integer[]", ("array", (D(7), D(8)))),
        ('{"b": 1.50, "a": [true, null]}', "jsonb",
         ("json", ("object", (("a", ("list", (("boolean", True), None))), ("b", D("1.5")))))),
    ],
)  # fmt: skip
def test_parse(text: str | None, kind: str, value: object) -> None:
    assert parse(text, kind) == value


@pytest.mark.parametrize(
    ("number", "places", "expected"),
    [
        ("1.225", 2, "1.23"), ("-1.225", 2, "-1.23"), ("1.224999", 2, "1.22"), ("7", 2, "7"),
        ("123456789012345678901234567890.5", 2, "123456789012345678901234567890.5"), ("0.004", 2, "0"),
    ],
)  # fmt: skip
def test_rounded(number: str, places: int, expected: str) -> None:
    assert rounded(D(number), places) == D(expected)


def test_rounded_goes_inside() -> None:
    assert rounded(("array", (D("1.234"), None, "1.234")), 2) == ("array", (D("1.23"), None, "1.234"))


def test_as_double() -> None:
    assert as_double(D("0.33333333333333333333")) == as_double(D(repr(1 / 3)))
    assert as_double(D("9007199254740993")) != as_double(D("9007199254740992"))
    assert as_double("0.1") == "0.1"
