"""The shop's tables: one definition, written out as SQL and as the documents' schema text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

Value = None | bool | int | str | Decimal | date | datetime | dict[str, object]
Row = tuple[Value, ...]
Rows = Mapping[str, Sequence[Row]]
"""Rows by table name; each row has its values in the order of the table's columns."""

ENUMS = {"order_state": ("draft", "placed", "shipped", "delivered", "cancelled")}

SHOWN_TYPES = {
    "numeric(10,2)": "numeric",
    "timestamp": "timestamp without time zone",
    **dict.fromkeys(ENUMS, "USER-DEFINED"),
}
"""Types that the schema text spells in the way of information_schema."""


@dataclass(frozen=True)
class Table:
    """`columns` are lines such as `name type NOT NULL`; a foreign key is `columns -> table(columns)`."""

    name: str
    columns: tuple[str, ...]
    primary_key: str
    foreign_keys: tuple[str, ...] = ()

    @property
    def column_names(self) -> list[str]:
        return [line.split()[0] for line in self.columns]

    def constraints(self) -> list[str]:
        references = [key.split(" -> ") for key in self.foreign_keys]
        return [
            f"PRIMARY KEY ({self.primary_key})",
            *(f"FOREIGN KEY ({own}) REFERENCES {target}" for own, target in references),
        ]


TABLES = (
    Table(
        "categories",
        ("category_id integer NOT NULL", "category_name text NOT NULL", "parent_id integer"),
        "category_id",
        ("parent_id -> categories(category_id)",),
    ),
    Table(
        "products",
        (
            "product_id integer NOT NULL",
            "category_id integer NOT NULL",
            "product_name text NOT NULL",
            "list_price numeric(10,2) NOT NULL",
            "unit_cost_cents integer NOT NULL",
            "is_listed boolean NOT NULL",
            "launched_on date NOT NULL",
            "withdrawn_on date",
            "attributes jsonb",
        ),
        "product_id",
        ("category_id -> categories(category_id)",),
    ),
    Table(
        "stock_levels",
        (
            "product_id integer NOT NULL",
            "warehouse text NOT NULL",
            "on_hand integer NOT NULL",
            "reserved integer NOT NULL",
            "damaged integer NOT NULL",
        ),
        "product_id, warehouse",
        ("product_id -> products(product_id)",),
    ),
    Table(
        "customers",
        (
            "customer_id integer NOT NULL",
            "full_name text NOT NULL",
            "email text",
            "country text",
            "signup_date date NOT NULL",
            "status text NOT NULL",
            "segment text",
            "referred_by text",
            "preferences jsonb",
        ),
        "customer_id",
    ),
    Table(
        "campaigns",
        (
            "campaign_id integer NOT NULL",
            "campaign_name text NOT NULL",
            "medium text NOT NULL",
            "starts_on date NOT NULL",
            "ends_on date NOT NULL",
            "budget_cents integer NOT NULL",
            "metrics jsonb",
        ),
        "campaign_id",
    ),
    Table(
        "orders",
        (
            "order_id integer NOT NULL",
            "customer_id integer NOT NULL",
            "campaign_id integer",
            "placed_at timestamp NOT NULL",
            "order_state order_state NOT NULL",
            "is_test boolean NOT NULL",
            "channel text NOT NULL",
            "coupon_code text",
            "shipping_fee_cents integer NOT NULL",
        ),
        "order_id",
        ("customer_id -> customers(customer_id)", "campaign_id -> campaigns(campaign_id)"),
    ),
    Table(
        "order_items",
        (
            "order_id integer NOT NULL",
            "line_no integer NOT NULL",
            "product_id integer NOT NULL",
            "quantity integer NOT NULL",
            "unit_price numeric(10,2) NOT NULL",
            "discount_amount numeric(10,2)",
        ),
        "order_id, line_no",
        ("order_id -> orders(order_id)", "product_id -> products(product_id)"),
    ),
    Table(
        "payments",
        (
            "payment_id integer NOT NULL",
            "order_id integer NOT NULL",
            "method text NOT NULL",
            "state text NOT NULL",
            "amount_cents integer NOT NULL",
            "paid_at timestamp NOT NULL",
        ),
        "payment_id",
        ("order_id -> orders(order_id)",),
    ),
    Table(
        "shipments",
        (
            "shipment_id integer NOT NULL",
            "order_id integer NOT NULL",
            "carrier text NOT NULL",
            "shipped_at timestamp NOT NULL",
            "promised_on date NOT NULL",
            "delivered_at timestamp",
            "tracking jsonb",
        ),
        "shipment_id",
        ("order_id -> orders(order_id)",),
    ),
    Table(
        "returns",
        (
            "return_id integer NOT NULL",
            "order_id integer NOT NULL",
            "line_no integer NOT NULL",
            "quantity integer NOT NULL",
            "reason_code text NOT NULL",
            "state text NOT NULL",
            "requested_on date NOT NULL",
            "refund_amount numeric(10,2)",
        ),
        "return_id",
        ("order_id, line_no -> order_items(order_id, line_no)",),
    ),
    Table(
        "reviews",
        (
            "review_id integer NOT NULL",
            "product_id integer NOT NULL",
            "customer_id integer NOT NULL",
            "stars integer NOT NULL",
            "verified boolean NOT NULL",
            "review_text text",
            "posted_on date NOT NULL",
        ),
        "review_id",
        ("product_id -> products(product_id)", "customer_id -> customers(customer_id)"),
    ),
    Table(
        "support_tickets",
        (
            "ticket_id integer NOT NULL",
            "customer_id integer NOT NULL",
            "order_id integer",
            "topic text NOT NULL",
            "priority integer NOT NULL",
            "opened_at timestamp NOT NULL",
            "first_reply_at timestamp",
            "closed_at timestamp",
            "satisfaction integer",
        ),
        "ticket_id",
        ("customer_id -> customers(customer_id)", "order_id -> orders(order_id)"),
    ),
)
"""In an order in which every table comes after those it refers to."""


def as_text(value: Value) -> str:
    """The value as PostgreSQL takes it in a quoted literal; "" for NULL, as the schema text shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def as_literal(value: Value) -> str:
    """The value as a SQL literal."""
    if value is None:
        return "NULL"
    text = as_text(value)
    return text if isinstance(value, bool | int | Decimal) else "'" + text.replace("'", "''") + "'"


def dump(rows: Rows) -> str:
    """The whole database as SQL for an empty one: types, tables, rows, foreign keys last."""
    parts = [
        "-- The demo shop. Written by make.py; loads into an empty PostgreSQL database.\n"
        "SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\n"
    ]
    for name, labels in ENUMS.items():
        parts.append(f"CREATE TYPE {name} AS ENUM ({', '.join(map(as_literal, labels))});\n")
    for table in TABLES:
        lines = ",\n".join(f"    {line}" for line in (*table.columns, table.constraints()[0]))
        parts.append(f"CREATE TABLE {table.name} (\n{lines}\n);\n")
    for table in TABLES:
        values = ",\n".join("(" + ", ".join(map(as_literal, row)) + ")" for row in rows[table.name])
        parts.append(f"INSERT INTO {table.name} ({', '.join(table.column_names)}) VALUES\n{values};\n")
    for table in TABLES:
        parts.extend(f"ALTER TABLE {table.name} ADD {key};\n" for key in table.constraints()[1:])
    return "\n".join(parts)


def schema_text(rows: Rows) -> str:
    """`CREATE TABLE` and the first three rows of every table, tables in the order of their names."""
    return "\n\n".join(_table_text(table, rows[table.name][:3]) for table in sorted(TABLES, key=_name))


def _name(table: Table) -> str:
    return table.name


def _table_text(table: Table, sample: Iterable[Row]) -> str:
    lines = []
    for line in table.columns:
        name, kind, *rest = line.split()
        lines.append(f"{name} {SHOWN_TYPES.get(kind, kind)} {'NOT NULL' if rest else 'NULL'}")
    lines.extend(f"    {key}" for key in table.constraints())
    cells = [table.column_names, *([as_text(v) for v in row] for row in sample)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    shown = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    return (
        f'CREATE TABLE "{table.name}" (\n'
        + ",\n".join(lines)
        + "\n);\n\nFirst 3 rows:\n"
        + "\n".join(shown)
        + "\n...\n"
    )
