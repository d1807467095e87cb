"""Defog's metadata files: nine real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from okf_compiler.errors import UserError
from okf_compiler.readers.defog import read

REAL = {
    "academic": (15, 42, 0),
    "advising": (14, 109, 0),
    "atis": (24, 127, 0),
    "broker": (4, 43, 7),
    "ewallet": (9, 96, 7),
    "geography": (7, 29, 0),
    "restaurants": (3, 12, 0),
    "scholar": (12, 28, 0),
    "yelp": (7, 36, 0),
}


@pytest.mark.parametrize("name", REAL)
def test_every_real_file_is_read_whole(test_data: Path, name: str) -> None:
    file = test_data / "defog" / name / f"{name}.json"
    database = read(file)
    columns = [(t, c) for t in database.tables for c in t.columns]
    assert (len(database.tables), len(columns), len(database.rules)) == REAL[name]
    assert not database.problems
    source = json.loads(file.read_text(encoding="utf-8"))["table_metadata"]
    described = [c for entries in source.values() for c in entries if c["column_description"]]
    assert [c.meaning for _, c in columns if c.meaning] == [c["column_description"] for c in described]
    lines = file.read_text(encoding="utf-8").split("\n")
    for t, c in columns:
        assert f'"{c.name}"' in lines[database.places[t.schema, t.name, c.name].line - 1]


def test_the_glossary_of_ewallet_as_rules(test_data: Path) -> None:
    database = read(test_data / "defog" / "ewallet" / "ewallet.json")
    assert {t.schema for t in database.tables} == {"consumer_div"}
    names = [rule.name for rule in database.rules]
    assert names[3:] == [
        "Total Transaction Volume (TTV)",
        "Total Coupon Discount Redeemed (TCDR)",
        "Session Density",
        "Active Merchants Percentage (APM)",
    ]
    assert database.rules[1].definition.count("\n  - ") == 3  # what is indented below a rule belongs to it
    assert database.rules[3].definition.endswith("= SUM(wallet_transactions_daily.amount)")


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    content = {"table_metadata": {"t": [{"column_name": "a"}, {"data_type": "int"}]}, "glossary": [1], "more": 1}
    file.write_text(json.dumps(content), encoding="utf-8")
    database = read(file)
    assert [c.name for c in database.tables[0].columns] == ["a"]
    assert [p.message.split(":")[0] for p in database.problems] == [
        "the key 'more' is not read",
        "table t has an entry without a column_name",
        "the glossary is not a text",
    ]


@pytest.mark.parametrize("text", ["[]", "{", '{"tables": {}}', "[" * 100_000])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError):
        read(tmp_path / "x.json")
