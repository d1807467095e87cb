"""Rules that rules name."""

from __future__ import annotations

import pytest
from support.linking import a_rule, linked, rule_links, targets

from okf_compiler.link import link
from okf_compiler.model import Column, Database, Rule, Table

SALES = Table("sales", (Column("profit", "numeric"), Column("active", "boolean"), Column("Margin", "numeric")))
RULES = (
    a_rule("SUM(paid)", "r", "Revenue"),
    a_rule("SUM(left)", "p", "Profit"),
    a_rule("AVG(share)", "m", "Margin"),
    a_rule("customers who paid", "c", "Active customer"),
    a_rule("total over all", "g", "GMV"),
    a_rule("'a' is new", "i", "Stage", "value_illustration"),
)
ONE_WORD = {
    "Revenue / 1.19": ["r"],
    "1.19 * revenue": ["r"],
    "(REVENUE - costs)": ["r"],
    "\\frac{Revenue}{2}": ["r"],
    # in prose it is an ordinary word, in a path a table's or a column's name
    "the revenue of all": [],
    "revenue.total / 2": [],
    "shop.revenue / 2": [],
    "Revenue(x) / 2": [],
    "revenues / 2": [],
    # a column is called so too: the title's spelling is the rule, unless the column has it as well
    "Profit / 2": ["p"],
    "profit / 2": [],
    "Margin / 2": [],
    "Stage / 2": [],
    "what is left of GMV": ["g"],
    "Revenue / Active customer": ["r", "c"],
}


def test_rules_name_rules() -> None:
    ratio = a_rule("hubutilpct / 2", "1", "Resource Utilization Ratio (RUR)")
    short = a_rule("SNR = total / 3", "2", "Signal Noise")
    user = a_rule("RUR > 3, SNR < 2 or a high resource utilization ratio; RURAL", "3", "User")
    listed = a_rule("anything", "4", "Listed", "domain_knowledge", "1", "99")
    links = linked(ratio, short, user, listed)
    assert rule_links(links) == [
        ("4", "1", "the source lists it"),
        ("3", "1", "`RUR` in the definition"),
        ("3", "2", "`SNR` in the definition"),
    ]
    assert links.reached == {"1": ("sensors",), "2": ("orders",), "3": ("sensors", "orders"), "4": ("sensors",)}


def test_an_abbreviation_of_two_rules_is_of_neither() -> None:
    rules = (a_rule("x", "1", "One (ABC)"), a_rule("y", "2", "Other (ABC)"), a_rule("ABC > 2", "3", "User"))
    assert rule_links(linked(*rules)) == []


@pytest.mark.parametrize("definition", ONE_WORD)
def test_a_title_of_one_word_is_a_term_of_a_formula(definition: str) -> None:
    rules = (*RULES, a_rule(definition, "1", "Asked"))
    links = link(Database("x", (SALES,), rules))
    assert [other for rule, other, _ in rule_links(links) if rule == "1"] == ONE_WORD[definition]


def test_the_words_of_a_rules_name_are_no_columns() -> None:
    def columns(definition: str) -> list[str]:
        rule = Rule("1", "ARPU", "calculation_knowledge", definition=definition)
        return targets(link(Database("x", (SALES,), (*RULES, rule))), "1", "stated")

    assert columns("Revenue / Active customer") == []
    assert columns("Revenue / Active") == ["sales.active"]
    assert columns("Profit / 2") == []
    assert columns("profit / Active customer") == ["sales.profit"]
