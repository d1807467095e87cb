"""Links between rules and columns: each kind of evidence, and each trap, on databases small enough to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from okf_compiler.link import Links, link, unlinked
from okf_compiler.model import Column, Database, ForeignKey, JsonField, Rule, Table
from okf_compiler.readers.livesqlbench import read
from okf_compiler.settings import list_databases, load_settings

CUSTOMERS = Table(
    "customers",
    (
        Column("id", "bigint", meaning="Number of the customer."),
        Column("name", "text", meaning="Full name as given."),
        Column("status", "text", meaning="Whether the login works. Possible values: open, closed."),
        Column("custlifeval", "numeric", meaning="Customer lifetime value in USD."),
    ),
    primary_key=("id",),
)
ORDERS = Table(
    "orders",
    (
        Column("id", "bigint", meaning="Number of the order."),
        Column("customer_id", "bigint", meaning="Who ordered."),
        Column("total", "numeric", meaning="What was paid."),
        Column("shipFeeCents", "bigint", meaning="Shipping fee in cents."),
        Column("fundstate", "text", meaning="Funding state. Possible values: Adequate, Critical, Limited."),
        Column(
            "details",
            "jsonb",
            meaning="How it was sent.",
            fields=(
                JsonField(("delivery", "carrier"), "Who carried it."),
                JsonField(("delivery", "days"), "How long it took."),
                JsonField(("delivery", "break_rate"), "How often parcels break."),
                JsonField(("weather", "wind"), "Wind speed on the way."),
            ),
        ),
    ),
    primary_key=("id",),
    foreign_keys=(ForeignKey(("customer_id",), "customers", ("id",)),),
)
SENSORS = Table(
    "sensors",
    (
        Column("sensor_key", "text", meaning="Key of the sensor."),
        Column("ScanResolMm", "real", meaning="Resolution of the scan."),
        Column("hubutilpct", "real", meaning="Hub's utilization percentage."),
        Column("status", "text", meaning="State of the sensor. Possible values: Idle, Broken."),
        Column("emerglvl", "text", meaning="Emergency level. Possible values: Black, Orange, Red."),
        Column("order date", "date", meaning="When it was ordered."),
    ),
    primary_key=("sensor_key",),
)
SHOP = Database("shop", (CUSTOMERS, ORDERS, SENSORS))


def linked(*rules: Rule) -> Links:
    return link(Database(SHOP.name, SHOP.tables, rules))


def targets(links: Links, rule: str, kind: str) -> list[str]:
    return [str(each.target) for each in links.columns_of.get(rule, ()) if each.kind == kind]


def a_rule(definition: str, id: str = "1", name: str = "A", type: str = "domain_knowledge", *on: str) -> Rule:
    return Rule(id, name, type, definition=definition, depends_on=on)


STATED = {
    # the whole word, in any case, in formulas and in LaTeX
    "custlifeval > 7": ["customers.custlifeval"],
    "\\frac{TOTAL}{2}": ["orders.total"],
    "TOTAL / 2": ["orders.total"],
    "\\text{ship\\_fee} and shipfeecents": ["orders.shipFeeCents"],
    "hubUtilPct, hubutil, pct": ["sensors.hubutilpct"],
    "the 'order date' counts": ["sensors.order date"],
    # an ordinary word is a name only where names stand
    "the total of all": [],
    "total = 3": ["orders.total"],
    "`total` of all": ["orders.total"],
    # paths
    "orders.id": ["orders.id"],
    "public.orders.total": ["orders.total"],
    "customers.status is open": ["customers.status"],
    "details->'delivery'->>'Days'": ["orders.details.delivery.days"],
    "Details.delivery": ["orders.details.delivery"],
    "orders.details.weather.wind": ["orders.details.weather.wind"],
    "details.colour": ["orders.details"],
    "break_rate of parcels": ["orders.details.delivery.break_rate"],
    # a name that several tables have
    "status = 'open'": [],
    "status = 'open' for customers": ["customers.status"],
    "custlifeval where status = 'open'": ["customers.custlifeval", "customers.status"],
    # only named to say that it is not meant: still named
    "customers.status is not what decides": ["customers.status"],
    "totals, sub_total, total_x": [],
}


@pytest.mark.parametrize("definition", STATED)
def test_columns_that_a_definition_names(definition: str) -> None:
    assert targets(linked(a_rule(definition)), "1", "stated") == STATED[definition]


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


def test_a_word_that_many_columns_have_is_evidence_for_none() -> None:
    tables = tuple(Table(f"t{n}", (Column("harbour", "text", meaning="The harbour."),)) for n in range(5))
    rule = Rule("1", "A", "domain_knowledge", definition="Ships in the harbour with harbour = 'x'.")
    assert link(Database("x", tables, (rule,))).columns_of == {}
    other = Rule("2", "B", "domain_knowledge", definition="Ships of t3 with harbour = 'x'.")
    assert targets(link(Database("x", tables, (rule, other))), "2", "stated") == ["t3.harbour"]


def test_an_illustration_is_of_the_column_that_its_title_names() -> None:
    rule = a_rule("'Red': wind speed over 100.", name="Emergency Levels", type="value_illustration")
    assert targets(linked(rule), "1", "inferred") == ["sensors.emerglvl"]


def rule_links(links: Links) -> list[tuple[str, str, str]]:
    return [(each.rule, each.target.rule, each.evidence) for each in links.links if each.target.rule]


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


def test_the_words_of_a_rules_name_are_not_about_columns() -> None:
    load = a_rule("anything", "1", "Shipping Fee Load")
    assert targets(linked(load, a_rule("A high shipping fee load.", "2")), "2", "inferred") == []
    assert targets(linked(a_rule("A high shipping fee.", "2")), "2", "inferred") == ["orders.shipFeeCents"]


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


def test_a_column_that_claims_to_hold_the_result() -> None:
    links = linked(a_rule("The sum of all totals.", name="Customer Lifetime Value (CLV)", type="calculation_knowledge"))
    assert [str(each.target) for each in links.stored_results["1"]] == ["customers.custlifeval"]
    assert targets(links, "1", "inferred") == []
    assert [each.rule for each in links.stored_in["customers"]] == ["1"]


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
