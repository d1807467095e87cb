"""Indexes that a model can read: their size, their order, how far a concept is from the root, and what people wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from okf_compiler.bundle import Concept, save
from okf_compiler.indexes import INDEX_TOKENS, indexes, is_smaller_index, keep_prose, outdated, write
from okf_compiler.log import add_to_log
from okf_compiler.tokens import tokens
from okf_compiler.validate import validate

LINK = re.compile(r"\]\(<?/([^)>]+)>?\)")


def concept(id: str, type: str = "T", body: str = "", **more: object) -> Concept:
    return Concept(id, {"type": type, "title": id.rpartition("/")[2], "description": f"About {id}.", **more}, body)


def reads(texts: Mapping[str, str]) -> dict[str, int]:
    """How many reads after the root's index each file takes, its own included."""
    found, here = {"index.md": 0}, ["index.md"]
    while here:
        path = here.pop(0)
        for target in LINK.findall(texts.get(path, "")):
            if target not in found:
                found[target] = found[path] + 1
                here.append(target)
    return found


TABLES = [
    concept(f"tables/{a}_{p}_{n}", "PostgreSQL Table")
    for a in ("order", "bill", "ship")
    for p in "ab"
    for n in range(300)
]
BUNDLES = {
    "small": [concept("tables/a"), concept("knowledge/b", "R")],
    "one folder of many": TABLES,
    "tables and rules": [
        *TABLES,
        *(concept(f"knowledge/r-{n}", f"R{n % 3}", f"[x](/tables/order_a_{n % 300}.md)") for n in range(3000)),
    ],
    "schemas": [concept(f"tables/s{n % 40}.t{n}", "PostgreSQL Table") for n in range(4000)],
    "all at the root": [concept(f"c{n}") for n in range(3000)],
    "deep folders": [concept(f"a/b/c/d{n % 9}/x{n}") for n in range(900)],
    "a folder each": [concept(f"f{n}/x") for n in range(1500)],
    "a type each": [concept(f"k/x{n}", f"Type {n}") for n in range(1500)],
    "long texts": [concept(f"k/{'名' * 40}{n}", description="描" * 3000) for n in range(300)],
    "no titles, no types": [Concept(f"k/{n}", {}, "") for n in range(900)],
}  # fmt: skip


@pytest.mark.parametrize("name", BUNDLES)
def test_no_index_is_too_large_and_no_concept_too_far(name: str) -> None:
    texts = indexes(BUNDLES[name])
    assert {p: tokens(t) for p, t in texts.items() if tokens(t) > INDEX_TOKENS} == {}
    distance = reads(texts)
    assert {c.id: distance.get(f"{c.id}.md") for c in BUNDLES[name] if distance.get(f"{c.id}.md", 9) > 3} == {}
    assert all(path.endswith("index.md") for path in texts)


@pytest.mark.slow
def test_thirty_thousand_concepts_are_within_three_reads() -> None:
    many = [concept(f"tables/{chr(97 + n % 26)}{n % 7}_t{n}", "PostgreSQL Table") for n in range(10_000)]
    many += [concept(f"knowledge/r-{n}", f"R{n % 3}") for n in range(20_000)]
    texts = indexes(many, ["tables", "knowledge"])
    distance = reads(texts)
    assert max(distance[f"{c.id}.md"] for c in many) == 3
    assert max(map(tokens, texts.values())) <= INDEX_TOKENS


def test_a_smaller_index_is_about_a_topic() -> None:
    texts = indexes(TABLES)
    assert "* [bill … order](/tables/contents/" in texts["tables/index.md"] or "* [bill" in texts["tables/index.md"]
    one = next(text for path, text in texts.items() if is_smaller_index(path) and "bill_a_0" in text)
    assert "ship_" not in one


def test_entries_stand_under_their_kind_in_order_of_titles() -> None:
    concepts = [Concept(f"k/{n}", {"type": t, "title": n, "description": "D\n# E"}, "") for n, t in ("bB", "aA", "cA")]
    texts = indexes(concepts)
    assert (
        texts["k/index.md"]
        == "# A\n\n* [a](/k/a.md) - D # E\n* [c](/k/c.md) - D # E\n\n# B\n\n* [b](/k/b.md) - D # E\n"
    )
    assert texts["index.md"].startswith(
        '---\nokf_version: "0.2"\n---\n\n# Folders\n\n* [k](/k/index.md) - 2 A, 1 B\n\n# A\n'
    )


def test_other_words_for_a_concept_stand_in_its_line() -> None:
    texts = indexes([concept("k/a", synonyms=["turnover", "sales"])])
    assert "* [a](/k/a.md) - About k/a. (also: turnover, sales)\n" in texts["k/index.md"]


KEPT = {
    "prose at the beginning": ("Read this first.\n\n# A\n\n* [a](/k/a.md) - x\n", "Read this first.\n\n# A\n"),
    "prose under a heading": (
        "# A\n\nThese count.\n\n* [a](/k/a.md) - old\n",
        "# A\n\nThese count.\n\n* [a](/k/a.md) - new\n",
    ),
    "a section of one's own": (
        "# Start\n\n* [a](/k/a.md) - begin here\n",
        "\n# Start\n\n* [a](/k/a.md) - begin here\n",
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_people_wrote_into_an_index_stays(case: str) -> None:
    old, expected = KEPT[case]
    new = keep_prose(old, "# A\n\n* [a](/k/a.md) - new\n", {"/k/a.md": "A"})
    assert expected in new and "* [a](/k/a.md) - new" in new
    assert keep_prose(new, "# A\n\n* [a](/k/a.md) - new\n", {"/k/a.md": "A"}) == new


@pytest.mark.parametrize(
    "old", ["# B\n\n* [gone](/k/gone.md) - x\n", "# A\n\n* [a](/k/a.md)\n", "# C\n\n* [1](/k/contents/1/index.md)\n"]
)
def test_an_old_index_leaves_nothing_of_its_own(old: str) -> None:
    new = "# A\n\n* [a](/k/a.md) - new\n"
    assert keep_prose(old, new, {"/k/a.md": "A"}) == new


def test_the_indexes_of_any_bundle(tmp_path: Path) -> None:
    root = tmp_path / "b"
    head = "---\ntype: Note\ntitle: A\ndescription: B.\n---\n"
    save(root, {"a.md": head, "k/b.md": head, "k/contents/old/index.md": "# Old\n"})
    assert [what for what, _ in outdated(root)] == ["missing", "missing", "superfluous"]
    write(root)
    assert outdated(root) == [] and validate(root) == []
    assert not (root / "k/contents/old/index.md").exists()
    (root / "k/b.md").write_text(head.replace("B.", "C."), encoding="utf-8", newline="\n")
    assert ("changed", "k/index.md") in outdated(root)


def test_the_log_keeps_what_is_there() -> None:
    first = add_to_log(None, "2024-01-01", "* a")
    same_day = add_to_log(first, "2024-01-01", "* b")
    assert same_day == "# Log\n\n## 2024-01-01\n\n* b\n* a\n"
    next_day = add_to_log(same_day, "2024-01-02", "* c")
    assert next_day == "# Log\n\n## 2024-01-02\n\n* c\n\n## 2024-01-01\n\n* b\n* a\n"


def test_titles_stand_alone_before_an_index_is_split() -> None:
    texts = indexes([concept(f"k/rule-{n:03}", description="word " * 50) for n in range(60)])
    assert "* [rule-059](/k/rule-059.md)\n" in texts["k/index.md"]
    assert list(texts) == ["index.md", "k/index.md"] and "* [rule-059]" in texts["index.md"]
