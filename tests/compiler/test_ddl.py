"""CREATE TABLE statements as facts."""

from __future__ import annotations

import pytest

from okf_compiler.ddl import parse_create_table


@pytest.mark.parametrize(
    "columns",
    [
        "a int, b text, c int, PRIMARY KEY (a, b)",
        'a int NULL, "b" text, c int, PRIMARY KEY ("a", b)',
        "a int PRIMARY KEY, b text NOT NULL, c int",
        "a int, b text, c int, CONSTRAINT k PRIMARY KEY (a, b)",
        "a int CHECK (a > 0), b text, c int, PRIMARY KEY (a, b)",
    ],
)
def test_a_primary_key_is_never_null(columns: str) -> None:
    table, unread = parse_create_table(f"CREATE TABLE t ({columns})")
    assert table and not unread
    assert {c.name: c.nullable for c in table.columns} == {"a": False, "b": False, "c": True}


def test_what_is_nested_too_deeply_costs_itself_alone() -> None:
    table, unread = parse_create_table(f"CREATE TABLE t (a int, b int CHECK {'(' * 5_000}1{')' * 5_000}, c text)")
    assert table and [c.name for c in table.columns] == ["a", "c"]
    assert [u.message[:15] for u in unread] == ["cannot be read:"]
