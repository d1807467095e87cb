"""What is a table and what is a rule: the same answer wherever a bundle is counted, shown or searched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from okf_agent.bundles import cards
from okf_agent.cell import Cell
from okf_agent.config import load_config
from okf_agent.interactive.greeting import greeting
from okf_agent.knowledge import Sources, prepare
from okf_agent.results import grounds
from okf_compiler.bundle import Concept
from okf_compiler.loaded import loaded

BY_HAND = Path(__file__).parents[3] / "bundles" / "shop-by-hand"
TABLE, RULES = "/tables/orders.md", ("/words/net-revenue.md", "/words/valid-order.md")


def test_a_bundle_written_by_people_has_one_table_and_two_rules_everywhere(tmp_path: Path) -> None:
    bundle = loaded(BY_HAND)
    assert ([t.path for t in bundle.tables], [r.path for r in bundle.rules]) == ([TABLE], [*RULES])
    known = cards.read(BY_HAND)
    assert (tuple(known.tables), tuple(known.rules)) == ((TABLE,), RULES)
    found = grounds.find([TABLE, *RULES], BY_HAND, "What is our net revenue?", "1", "SELECT 1")
    assert found.tables == (TABLE,) and [rule.path for rule in found.rules] == [RULES[0]]
    first = next(greeting(load_config(tmp_path), "shop", BY_HAND, "bundle", "m", 100))
    assert "(1 tables, 2 rules)" in first
    tables, *others = prepare("pack", "x", Sources("shop", bundle=BY_HAND, cell=Cell("m"))).sections
    assert "-- * `order_state` is an enum" in tables and "CREATE TABLE" not in tables
    assert sum(other.count("\n- ") for other in others) == 2


@pytest.mark.parametrize(
    ("type", "is_table"),
    [("PostgreSQL Table", True), ("BigQuery Table", True), ("table", True), ("Table Rule", False), ("", False)],
)
def test_a_type_says_whether_it_is_a_table(type: str, is_table: bool) -> None:
    assert Concept("a", {"type": type}, "").is_table == is_table


def test_a_file_edited_in_place_is_seen_and_nothing_is_read_twice(tmp_path: Path) -> None:
    folder = shutil.copytree(BY_HAND, tmp_path / "b")
    before, known = loaded(folder), cards.read(folder)
    assert loaded(folder) is before and cards.read(folder) is known
    file = folder / "words" / "net-revenue.md"
    status = file.stat()
    file.write_text(file.read_text(encoding="utf-8").replace("title: Net", "title: Nex"), encoding="utf-8")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert loaded(folder).concepts["words/net-revenue"].title == "Nex revenue"
    assert cards.read(folder).rules[RULES[0]].title == "Nex revenue"
    file.unlink()
    assert len(loaded(folder).concepts) == 2
