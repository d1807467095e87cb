"""What shares of its tokens a pack gives to what, each from both sides of its threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from okf_agent.bundles.cards import Cards, ColumnCard, RuleCard, TableCard
from okf_agent.packing import choose
from okf_agent.packing.choose import Chooser, Chosen
from okf_agent.packing.rank import Scores
from okf_agent.packing.shape import SMALL, Shape, large
from okf_agent.packing.write import Writer
from okf_compiler.tokens import tokens

BUDGET = 1_000
FILLING = replace(large(BUDGET), table_tokens=0, rule_tokens=0)
SPARING = replace(SMALL, table_tokens=0, rule_tokens=0)


def a_rule(name: str, definition: str = "", tables: Mapping[str, Sequence[str]] | None = None) -> RuleCard:
    used = {path: tuple(columns) for path, columns in (tables or {}).items()}
    return RuleCard(f"/knowledge/{name}.md", name, "", definition, used, ())


def sized(name: str, form: Shape, size: int) -> RuleCard:
    """A rule that takes `size` tokens of a pack."""
    rule = a_rule(name)
    while tokens(Writer(form).rule(rule)) + 1 < size:
        rule = replace(rule, definition=rule.definition + " a")
    assert tokens(Writer(form).rule(rule)) + 1 == size
    return rule


def a_table(name: str, *columns: str) -> TableCard:
    cards = tuple(ColumnCard(column, "integer", "") for column in columns or ("id",))
    return TableCard(f"/tables/{name}.md", name, name, "", cards, (), ())


def chosen(
    form: Shape,
    rules: Sequence[RuleCard] = (),
    tables: Sequence[TableCard] = (),
    named: Sequence[str] = (),
    scores: Mapping[str, float] | None = None,
    values: Sequence[str] = (),
) -> Chosen:
    found = dict(scores or {})
    known = Cards({table.path: table for table in tables}, {rule.path: rule for rule in rules})
    near = Scores(
        tables={path: score for path, score in found.items() if path in known.tables},
        rules={path: score for path, score in found.items() if path in known.rules},
        named_rules=tuple(f"/knowledge/{name}.md" for name in named),
        named_tables=frozenset(),
    )
    return Chooser(known, "anything", near, Writer(form), BUDGET).choose(values)


@pytest.mark.parametrize("form", [FILLING, SPARING])
@pytest.mark.parametrize(("size", "whole"), [(900, True), (901, False)])
def test_a_rule_that_is_named_may_take_nine_tenths(form: Shape, size: int, whole: bool) -> None:
    """A larger one is cut to less than half of that, and says so."""
    rule = sized("named", form, size)
    (taken,) = chosen(form, [rule], named=["named"]).rules
    assert (taken == rule) == whole
    if not whole:
        assert BUDGET * 0.3 < tokens(Writer(form).rule(taken)) < BUDGET * 0.47
        assert taken.path == f"{rule.path}#cut" and taken.definition != rule.definition


@pytest.mark.parametrize(("size", "taken"), [(400, 1), (401, 0)])
def test_a_rule_that_is_near_may_take_four_tenths_where_tables_fill_the_rest(size: int, taken: int) -> None:
    rule = sized("near", FILLING, size)
    assert len(chosen(FILLING, [rule], scores={rule.path: 1.0}).rules) == taken


@pytest.mark.parametrize(("size", "taken"), [(900, 1), (901, 0)])
def test_and_nine_tenths_where_they_do_not(size: int, taken: int) -> None:
    rule = sized("near", SPARING, size)
    assert len(chosen(SPARING, [rule], scores={rule.path: 1.0}).rules) == taken


def test_fewer_rules_are_taken_for_their_score_the_more_are_named() -> None:
    rules = [a_rule(f"near{n}", "x") for n in range(5)]
    scores = {rule.path: 1.0 for rule in rules}
    by_named = {
        count: len(chosen(SPARING, [*rules, *(a_rule(f"n{n}", "x") for n in range(count))],
                          named=[f"n{n}" for n in range(count)], scores=scores).rules) - count
        for count in (0, 1, 2)
    }  # fmt: skip
    assert SPARING.max_rules == 3 and by_named == {0: 3, 1: 1, 2: 0}


@pytest.mark.parametrize(("score", "taken"), [(0.55, 2), (0.54, 1)])
def test_a_rule_counts_as_near_from_a_share_of_the_best_score(score: float, taken: int) -> None:
    best, other = a_rule("best", "x"), a_rule("other", "x")
    assert len(chosen(SPARING, [best, other], scores={best.path: 1.0, other.path: score}).rules) == taken


def test_two_tables_are_taken_for_their_score_where_nothing_names_one() -> None:
    tables = [a_table(f"t{n}") for n in range(4)]
    assert choose.MAX_TABLES == 2
    assert len(chosen(SPARING, tables=tables, scores={table.path: 1.0 for table in tables}).tables) == 2


@pytest.mark.parametrize(
    ("columns", "taken"),
    [(["state"], ["wanted"]), (["state", "price"], ["other", "wanted"]), (["unit_price"], ["other", "wanted"])],
)
def test_an_ordinary_word_is_half_a_reason_for_a_table(columns: list[str], taken: list[str]) -> None:
    wanted, other = a_table("wanted", "mass_kg", "size_cm"), a_table("other", *columns)
    rule = a_rule("named", "x", {wanted.path: ["mass_kg"], other.path: columns})
    found = chosen(SPARING, [rule], [wanted, other], ["named"]).tables
    assert sorted(table.name for table, _ in found) == taken


def test_all_rules_are_shown_where_they_push_out_no_table() -> None:
    form = replace(FILLING, rule_tokens=BUDGET)
    rules = [sized(f"r{n}", form, 100) for n in range(4)]
    wide = a_table("wide", *(f"column_number_{n}" for n in range(90)))
    assert tokens(Writer(form).table(wide, 1)) > BUDGET * 0.6
    assert len(chosen(form, rules, [wide]).rules) == 4
    assert len(chosen(form, [*rules, a_rule("one_more")], [wide]).rules) == 0
