"""Tables that a rule needs besides its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.linking import a_rule

from okf_compiler.link import link
from okf_compiler.model import Column, Database, ForeignKey, Table


def chain(*keys: tuple[str, str]) -> tuple[Table, ...]:
    names = dict.fromkeys(name for key in keys for name in key)
    return tuple(
        Table(
            name,
            (Column(f"{name}_value", "text"), Column("id", "text")),
            primary_key=("id",),
            foreign_keys=tuple(ForeignKey((f"to_{up}",), up, ("id",)) for low, up in keys if low == name),
        )
        for name in names
    )


JOINS: dict[str, tuple[Sequence[tuple[str, str]], tuple[str, ...]]] = {
    "one way up": ((("a", "b"), ("b", "c")), ("a", "c", "b")),
    "two ways up": ((("a", "b"), ("b", "c"), ("a", "d"), ("d", "c")), ("a", "c")),
    "a key of its own": ((("a", "c"), ("a", "b"), ("b", "c")), ("a", "c")),
    "the same parent": ((("a", "b"), ("c", "b")), ("a", "c")),
    "a child of both": ((("b", "a"), ("b", "c")), ("a", "c")),
}


@pytest.mark.parametrize("case", JOINS)
def test_tables_that_only_join(case: str) -> None:
    keys, reached = JOINS[case]
    links = link(Database("x", chain(*keys), (a_rule("a_value / c_value"),)))
    assert links.reached["1"] == reached
