"""Links of whole databases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.linking import SHOP, a_rule, linked, targets

from okf_compiler.documents import list_databases
from okf_compiler.link import link, unlinked
from okf_compiler.model import Database
from okf_compiler.readers.livesqlbench import read
from okf_compiler.settings import load_settings


def test_rules_that_reach_nothing_are_reported_and_circles_end() -> None:
    rules = (
        a_rule("custlifeval > 1", "1", "A"),
        a_rule("x", "2", "B", "domain_knowledge", "1", "3"),
        a_rule("x", "3", "C", "domain_knowledge", "2"),
        a_rule("x", "4", "D", "domain_knowledge", "5"),
        a_rule("x", "5", "E", "domain_knowledge", "4"),
    )
    links = linked(*rules)
    assert links.reached["3"] == ("customers",)
    assert [rule.id for rule in unlinked(Database("x", SHOP.tables, rules), links)] == ["4", "5"]


NAME_NO_COLUMN = {
    # 37 writes `hazlevel\\_numeric`, which is a name of its own: inferred, as it begins with the column's
    "disaster": (54, 4, [], ["37"]),
    # 60 names fields inside JSON columns; 53 orders by `ctrval`, which may be a word as far as can be told: inferred
    "news": (61, 48, ["60"], ["53"]),
    "alien": (56, 10, [], []),
    # 38 names fields behind escaped underscores
    "virtual": (55, 15, ["38"], []),
}
"""Rules; rules that name no column by whole words of title and definition; which of those state a link; the reverse."""


@pytest.mark.parametrize("name", NAME_NO_COLUMN)
def test_rules_that_name_no_column(test_data: Path, name: str) -> None:
    root = test_data / "livesqlbench-base-lite"
    database = read(list_databases(load_settings(root, {"agent": {"raw_docs": str(root)}}))[name])
    columns = {column.name.lower() for table in database.tables for column in table.columns}
    words = {rule.id: re.findall(r"\w+", f"{rule.name} {rule.definition}".lower()) for rule in database.rules}
    none = [id for id, found in words.items() if not columns.intersection(found)]
    links = link(database)
    stated = {rule.id for rule in database.rules if targets(links, rule.id, "stated")}
    more, fewer = [id for id in none if id in stated], [id for id in words if id not in none and id not in stated]
    assert (len(words), len(none), more, fewer) == NAME_NO_COLUMN[name]
    assert all(links.reached[id] for id in fewer)
    if name == "disaster":
        assert none == ["42", "50", "51", "52"]
