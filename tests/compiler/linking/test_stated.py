"""Columns that a rule names: where a word is a name, and whose."""

from __future__ import annotations

import pytest
from support.linking import a_rule, linked, targets

from okf_compiler.link import link
from okf_compiler.model import Column, Database, Rule, Table

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


def test_a_word_that_many_columns_have_is_evidence_for_none() -> None:
    tables = tuple(Table(f"t{n}", (Column("harbour", "text", meaning="The harbour."),)) for n in range(5))
    rule = Rule("1", "A", "domain_knowledge", definition="Ships in the harbour with harbour = 'x'.")
    assert link(Database("x", tables, (rule,))).columns_of == {}
    other = Rule("2", "B", "domain_knowledge", definition="Ships of t3 with harbour = 'x'.")
    assert targets(link(Database("x", tables, (rule, other))), "2", "stated") == ["t3.harbour"]
