"""Signposts: what a question's words lead to, and what goes with it."""

from __future__ import annotations

import re
from pathlib import Path

from okf_agent.cell import Cell
from okf_agent.knowledge import Sources, prepare
from okf_agent.records.json_lines import read_lines
from okf_agent.search import index as search_index
from okf_agent.search.signposts import MAX_MATCHES, MAX_TABLES, matches, tables
from okf_compiler.bundle import Concept, load

SHOP = Path(__file__).parents[3] / "bundles" / "compiled" / "shop"


def test_the_matches_of_a_question_are_named_with_what_they_depend_on() -> None:
    def concept(name: str, body: str) -> Concept:
        return Concept(f"knowledge/{name}", {"title": name.replace("-", " "), "description": f"About {name}"}, body)

    concepts = {
        c.id: c
        for c in (
            concept("margin", "# Definition\n\nx\n\n# Depends on\n\n* [Net](/knowledge/net.md)\n\n# Used by\n"),
            concept("net", "# Depends on\n\n* [Day](/knowledge/day.md)\n* [Margin](/knowledge/margin.md)\n"),
            concept("day", ""),
            concept("hub-class", "# Depends on\n\n* [Gone](/knowledge/gone.md)\n"),
        )
    }
    ranked = [("/knowledge/margin.md", 9.0), ("/knowledge/hub-class.md", 3.0), ("/knowledge/vanished.md", 8.0)]
    assert matches(ranked, concepts) == ["knowledge/margin", "knowledge/net", "knowledge/day"]
    assert matches(ranked[1:2], concepts) == ["knowledge/hub-class"], "near is told from the best score"
    assert matches([], concepts) == []


def test_the_tables_of_the_rules_are_named_those_of_most_rules_first() -> None:
    def concept(id: str, body: str = "") -> Concept:
        return Concept(id, {"title": id, "type": "Table" if id.startswith("tables/") else "Rule"}, body)

    lone = "".join(f"* [t{n}](/tables/t{n}.md), to join the others\n" for n in range(MAX_TABLES))
    concepts = {
        c.id: c
        for c in (
            concept(
                "knowledge/a",
                f"# Columns used\n\n* [x](/tables/x.md): `[y](/tables/y.md)`\n\n# Tables reached\n\n{lone}",
            ),
            concept(
                "knowledge/b", "# Columns inferred\n\nNot said.\n\n* [z](/tables/z.md): `c` (a reason; score 0.9)\n"
            ),
            concept("knowledge/c", "# Columns used\n\n* [z](/tables/z.md): `d`\n* [gone](/tables/gone.md): `e`\n"),
            concept("knowledge/d", "# Used by\n\n* [y](/tables/y.md)\n"),
            *(concept(f"tables/{name}") for name in ("x", "y", "z", *(f"t{n}" for n in range(MAX_TABLES)))),
        )
    }
    found = ["knowledge/a", "knowledge/b", "knowledge/c", "knowledge/d", "tables/t0"]
    named = tables(found, concepts)
    assert named[:3] == ["tables/z", "tables/x", "tables/t1"] and len(named) == MAX_TABLES
    assert not {"tables/y", "tables/t0", "tables/gone"} & {*named}
    assert tables(["knowledge/d"], concepts) == []


def test_matches_find_the_rules_that_questions_of_the_shop_need() -> None:
    concepts, index = load(SHOP).concepts, search_index.Index(SHOP)
    rule = re.compile(r"rule (\S+)$")
    ids = {m[1]: c.id for c in concepts.values() if (m := rule.search(c.frontmatter["sources"][-1]["title"]))}
    shop = SHOP.parents[2] / "data" / "shop"
    tasks = {t["instance_id"]: t["query"] for t in read_lines(shop / "tasks.jsonl")}
    needed = named = listed = 0
    for gold in read_lines(shop / "gold.jsonl"):
        found = matches(index.rank(tasks[gold["instance_id"]], MAX_MATCHES), concepts)
        rules = [ids[str(id)] for id in gold["external_knowledge"]]
        needed, named, listed = needed + len(rules), named + len({*rules} & {*found}), listed + len(found)
    assert named >= 0.95 * needed and listed / len(tasks) < 8


def test_signposts_stand_in_both_modes_and_can_be_switched_off() -> None:
    question = "What was our late share in May?"
    for mode in ("bundle", "search"):
        shown = prepare(mode, question, Sources("shop", bundle=SHOP)).signposts
        assert "* /knowledge/late-share.md - " in shown and "* /knowledge/late-delivery.md - " in shown
        assert prepare(mode, question, Sources("shop", bundle=SHOP, cell=Cell("", signposts=False))).signposts == ""
        assert prepare(mode, "hi", Sources("shop", bundle=SHOP)).signposts == ""
