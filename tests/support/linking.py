"""Databases small enough to read, and what a test of linking asks of them."""

from __future__ import annotations

from okf_compiler.link import Links, link
from okf_compiler.model import Column, Database, ForeignKey, JsonField, Rule, Table

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


def rule_links(links: Links) -> list[tuple[str, str, str]]:
    return [(each.rule, each.target.rule, each.evidence) for each in links.links if each.target.rule]
