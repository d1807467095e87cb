"""What a table's line in an index says, where its documents describe only the columns."""

from __future__ import annotations

import pytest

from okf_compiler.gist import table_gist
from okf_compiler.model import Column, ForeignKey, Table

A = Column("a_id", "int", meaning="Foreign key referencing a, uniquely identifying each pair.")
B = Column("b_id", "int", meaning="FK to b.")
NOTE = Column("note", "text", meaning="What was said.")


@pytest.mark.parametrize(
    ("columns", "gist"),
    [
        ((A, B), "a_id; b_id (2 columns; refers to a)."),
        ((A, NOTE), "what was said (2 columns; refers to a)."),
        ((A,), "a_id (1 column; refers to a)."),
    ],
)
def test_keys_show_their_names_and_other_columns_a_few_words(columns: tuple[Column, ...], gist: str) -> None:
    assert table_gist(Table("t", columns, foreign_keys=(ForeignKey(("a_id",), "a", ("id",)),))) == gist
