"""What a table's concept tells of its catalogue: names as SQL has them, and what kind of thing it is."""

from __future__ import annotations

import pytest

from okf_compiler.concepts import concepts
from okf_compiler.link import link
from okf_compiler.model import Column, Database, ForeignKey, Table
from okf_compiler.names import assign


def bodies(*tables: Table) -> list[str]:
    database = Database("shop", tables)
    return [concept.body for concept in concepts(database, link(database), assign(database))]


@pytest.mark.parametrize(
    ("schema", "name", "in_sql"),
    [
        ("public", "orders", "orders"),
        ("public", "a.b", '"a.b"'),
        ("public", "order", '"order"'),
        ("sales", "Order Items", 'sales."Order Items"'),
        ("north.west", "t.x", '"north.west"."t.x"'),
        ("user", "t", '"user".t'),
    ],
)
def test_joins_and_hints_name_a_table_as_sql_does(schema: str, name: str, in_sql: str) -> None:
    item = Table("item", (Column("id", "int"), Column("of", "int")), foreign_keys=(
        ForeignKey(("of",), name, ("id",), schema),))  # fmt: skip
    body, target = bodies(item, Table(name, (Column("id", "int"),), schema=schema, primary_key=("id",)))
    assert f"`item.of = {in_sql}.id`" in body
    assert f"`item.of = {in_sql}.id`" in target
    assert (f"double quotes: `{in_sql}`." in target) == ('"' in in_sql)


def test_a_column_that_sql_would_read_as_something_else_is_named() -> None:
    (body,) = bodies(Table("t", (Column("user", "text"), Column("localtime", "time"), Column("name", "text"))))
    assert '`"user"`, `"localtime"`.' in body
    assert '"name"' not in body


@pytest.mark.parametrize("kind", ["view", "materialized view", "foreign table", "partitioned table"])
def test_what_is_no_plain_table_says_so(kind: str) -> None:
    body, plain = bodies(Table("v", (Column("id", "int"),), kind=kind), Table("t", (Column("id", "int"),)))
    assert f"* this is a {kind}" in body
    assert "this is a" not in plain
