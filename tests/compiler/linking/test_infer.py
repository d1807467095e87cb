"""Columns that a rule's phrases mean: each kind of evidence, and each trap."""

from __future__ import annotations

import pytest
from support.linking import a_rule, linked, targets

INFERRED = {
    # compound names, abbreviations and endings, through the meaning and without it
    "The scan resolution is below 2.": ["sensors.ScanResolMm"],
    "Hubs whose utilization exceeds 90%.": ["sensors.hubutilpct"],
    "High shipping fees.": ["orders.shipFeeCents"],
    "An order whose funding state is 'Critical'.": ["orders.fundstate"],
    "emergency_level is 'Red' or 'Black'": ["sensors.emerglvl"],
    "It must be Red: the level of emergency is 'Red'.": ["sensors.emerglvl"],
    "The speed of the wind.": ["orders.details.weather.wind"],
    # what only comments is not what is meant
    "Large parcels, indicating a high scan resolution.": [],
    # words that every database has, keys, values alone, and the names of tables are no evidence
    "The total number of points.": [],
    # a name of the rule's own that begins as one column's name does
    "scanresol_factor is 2": ["sensors.ScanResolMm"],
    "The number of the order.": [],
    "Limited": [],
    "Orders of sensors.": [],
    # listed values that the column does not have speak against it
    "The funding of orders is 'Purple'.": [],
    "The funding of orders is 'Limited'.": ["orders.fundstate"],
}


@pytest.mark.parametrize("definition", INFERRED)
def test_columns_that_a_definition_speaks_of(definition: str) -> None:
    assert targets(linked(a_rule(definition)), "1", "inferred") == INFERRED[definition]


def test_an_inferred_link_says_why() -> None:
    [found] = linked(a_rule("Its funding state is 'Critical'.")).columns_of["1"]
    assert found.kind == "inferred"
    assert found.evidence == "`funding state` in the definition fits its name, and it lists 'critical'"
    assert 0.5 < found.score < 1


def test_an_illustration_is_of_the_column_that_its_title_names() -> None:
    rule = a_rule("'Red': wind speed over 100.", name="Emergency Levels", type="value_illustration")
    assert targets(linked(rule), "1", "inferred") == ["sensors.emerglvl"]


def test_the_words_of_a_rules_name_are_not_about_columns() -> None:
    load = a_rule("anything", "1", "Shipping Fee Load")
    assert targets(linked(load, a_rule("A high shipping fee load.", "2")), "2", "inferred") == []
    assert targets(linked(a_rule("A high shipping fee.", "2")), "2", "inferred") == ["orders.shipFeeCents"]


def test_a_column_that_claims_to_hold_the_result() -> None:
    links = linked(a_rule("The sum of all totals.", name="Customer Lifetime Value (CLV)", type="calculation_knowledge"))
    assert [str(each.target) for each in links.stored_results["1"]] == ["customers.custlifeval"]
    assert targets(links, "1", "inferred") == []
    assert [each.rule for each in links.stored_in["customers"]] == ["1"]
