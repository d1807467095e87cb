"""The rules an answer rests on, found in what its run read, word for word as the bundle has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from okf_agent.results.grounds import find

QUESTION = "How many active customers do we have?"
SQL = "SELECT count(DISTINCT customer_id) FROM orders WHERE NOT is_test AND order_state <> 'draft' -- channel"


def concept(folder: Path, path: str, type: str, title: str, body: str) -> None:
    file = folder / path
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(f"---\ntype: {type}\ntitle: {title}\n---\n\n{body}\n", encoding="utf-8")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    active = "# Definition\n\nBuys.\n\n# Depends on\n\n* [Date](/knowledge/date.md)\n* [Valid](/knowledge/valid.md)"
    valid = "# Definition\n\nNeither test\nnor draft.\n\n# Columns used\n\n* [o](/t.md): `is_test`, `order_state` (x)"
    inferred = "# Definition\n\nA way.\n\n# Columns inferred\n\n* [orders](/t.md): `customer_id` (`who` fits its name)"
    concept(tmp_path, "tables/orders.md", "PostgreSQL Table", "orders", "# Schema")
    concept(tmp_path, "knowledge/active.md", "Business Rule", "Active Customer", active)
    concept(tmp_path, "knowledge/valid.md", "Business Rule", "Valid Order", valid)
    concept(tmp_path, "knowledge/date.md", "Value Illustration", "Reporting Date", "# Definition\n\nToday.")
    concept(tmp_path, "knowledge/channel.md", "Business Rule", "Sales Channel",
            "# Definition\n\nWeb.\n\n# Columns used\n\n* [o](/t.md): `channel`")  # fmt: skip
    concept(tmp_path, "knowledge/way.md", "Business Rule", "Way", inferred)
    (tmp_path / "knowledge/broken.md").write_text("no frontmatter", encoding="utf-8")
    return tmp_path


ALL = ["/tables/orders.md", "/knowledge/date.md", "/knowledge/active.md", "/knowledge/valid.md",
       "/knowledge/channel.md", "/knowledge/broken.md", "/knowledge/gone.md", "/knowledge/index.md"]  # fmt: skip


def test_named_used_and_needed_rules_matter_and_others_were_read_besides(bundle: Path) -> None:
    found = find(ALL, bundle, QUESTION, "52 customers are active.", SQL)
    assert [rule.title for rule in found.rules] == ["Reporting Date", "Active Customer", "Valid Order"]
    assert found.rules[2].definition == "Neither test\nnor draft."
    assert found.also_read == ("/knowledge/channel.md",)
    assert found.tables == ("/tables/orders.md",)


def test_a_column_named_only_in_a_comment_does_not_count(bundle: Path) -> None:
    assert find(["/knowledge/channel.md"], bundle, "x", "y", SQL).rules == ()
    assert find(["/knowledge/channel.md"], bundle, "x", "y", "SELECT o.channel FROM o").rules != ()


def test_what_the_compiler_inferred_is_an_assumption(bundle: Path) -> None:
    (rule,) = find(["/knowledge/way.md"], bundle, "x", "y", SQL).rules
    assert rule.assumed == ("[orders](/t.md): `customer_id` (`who` fits its name)",)


def test_where_no_file_was_read_the_rules_that_are_named_are_taken(bundle: Path) -> None:
    named = find([], bundle, QUESTION, "52.", SQL)
    assert ([rule.title for rule in named.rules], named.read) == (["Active Customer"], False)
    assert find([], bundle / "gone", QUESTION, "52.", SQL).rules == ()


def test_a_declined_question_rests_on_nothing(bundle: Path) -> None:
    assert find(ALL, bundle, QUESTION, "There is no such data.", "").rules == ()
