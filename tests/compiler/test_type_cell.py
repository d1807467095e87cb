"""A type cell says what it was made from, whatever the default or the labels hold."""

from __future__ import annotations

import pytest

from okf_compiler.model import Column, Table
from okf_compiler.type_cell import TypeCell, parse_type, type_cell


@pytest.mark.parametrize(
    ("column", "key", "read"),
    [
        (Column("a", "integer"), (), TypeCell("integer")),
        (Column("a", "numeric(8, 2)", nullable=False), (), TypeCell("numeric(8, 2)", is_filled=True)),
        (Column("a", "bigint", nullable=False), ("a",), TypeCell("bigint", key="primary key")),
        (Column("a", "bigint", nullable=False), ("a", "b"), TypeCell("bigint", key="primary key (part)")),
        (
            Column("a", "mood", default="'sad'", enum_labels=("fine", "sad"), nullable=False),
            (),
            TypeCell("mood", "'fine', 'sad'", is_filled=True, default="'sad'"),
        ),
        (
            Column("a", "mood", enum_labels=("it's, not null", "a, default b")),
            (),
            TypeCell("mood", "'it's, not null', 'a, default b'"),
        ),
        (
            Column("a", "text", default="', one of '::text"),
            (),
            TypeCell("text", default="', one of '::text"),
        ),
        (Column("a", "int", generated="identity"), ("a",), TypeCell("int", key="primary key", generated="identity")),
    ],
)
def test_what_is_written_is_read(column: Column, key: tuple[str, ...], read: TypeCell) -> None:
    assert parse_type(type_cell(Table("t", (column,), primary_key=key), column)) == read


@pytest.mark.parametrize("cell", ["", "primary key", "money, in cents", "text, not null, see below"])
def test_what_people_wrote_is_a_type(cell: str) -> None:
    assert parse_type(cell) == TypeCell(cell)
