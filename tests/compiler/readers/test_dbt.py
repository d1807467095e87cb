"""dbt projects: three real ones, counted against their own YAML, and every spelling of the semantic layer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, ForeignKey, Rule, Table
from okf_compiler.readers.dbt import read

REAL = {
    # tables, columns, foreign keys, rules by type
    "jaffle-shop": (18, 50, 6, {"metric": 19, "measure": 13, "semantic_model": 6, "dimension": 1}),
    "jaffle-sl-template": (25, 48, 5, {"metric": 17, "measure": 15, "semantic_model": 5, "dimension": 6}),
    "tuva": (998, 4224, 44, {}),
}


def project(folder: Path, **files: str) -> Database:
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
    return read(folder)


def table(database: Database, name: str, schema: str = "") -> Table:
    found = database.table(name, schema)
    assert found is not None
    return found


def rules(database: Database) -> dict[str, Rule]:
    return {rule.id: rule for rule in database.rules}


def real_models(folder: Path) -> list[dict[str, Any]]:
    documents = [yaml.safe_load(f.read_text(encoding="utf-8")) for f in folder.rglob("*.yml")]
    return [model for d in documents if isinstance(d, dict) for model in d.get("models", []) if isinstance(model, dict)]


@pytest.mark.parametrize("name", REAL)
def test_real_projects_are_read_whole(test_data: Path, name: str) -> None:
    database = read(test_data / "dbt" / name)
    columns = [c for t in database.tables for c in t.columns]
    keys = [k for t in database.tables for k in t.foreign_keys]
    types = Counter(rule.type for rule in database.rules)
    assert (len(database.tables), len(columns), len(keys), dict(types)) == REAL[name]
    assert all(d in rules(database) for rule in database.rules for d in rule.depends_on)


def test_tuva_against_its_own_yaml(test_data: Path) -> None:
    folder = test_data / "dbt" / "tuva"
    database = read(folder)
    models = real_models(folder)
    built = [m for m in models if m["config"].get("materialized") != "ephemeral"]
    assert len(models) == 1058
    assert len(database.tables) == len(built)
    assert sum("ephemeral" in p.message for p in database.problems) == len(models) - len(built)
    names = [{c["name"].lower() for c in m.get("columns") or []} for m in built]
    assert sum(len(t.columns) for t in database.tables) >= sum(map(len, names))
    described = [c for m in built for c in m.get("columns") or [] if (c.get("description") or "").strip()]
    meanings = {c.meaning.split("\nAccepted")[0] for t in database.tables for c in t.columns if c.meaning}
    twice = " ".join(p.message for p in database.problems)
    lost = [c["name"] for c in described if c["description"].strip() not in meanings and c["name"] not in twice]
    assert lost == []


def test_real_facts_of_the_jaffle_shop(test_data: Path) -> None:
    database = read(test_data / "dbt" / "jaffle-shop")
    orders = table(database, "orders")
    assert orders.primary_key == ("order_id",)
    assert orders.foreign_keys == (
        ForeignKey(("customer_id",), "stg_customers", ("customer_id",), ""),
        ForeignKey(("location_id",), "locations", ("location_id",), ""),
        ForeignKey(("customer_id",), "customers", ("customer_id",), ""),
    )
    assert orders.checks == ("order_items_subtotal = subtotal", "order_total = subtotal + tax_paid")
    kind = table(database, "customers").column("customer_type")
    assert kind is not None and kind.meaning is not None
    assert kind.meaning.endswith("first order to date.\nAccepted values: new, returning")
    assert table(database, "raw_orders", "raw").description is not None
    found = rules(database)
    assert found["metric.revenue_growth_mom"].definition == (
        "(current_revenue - revenue_prev_month)*100/revenue_prev_month\n"
        "current_revenue: revenue\n"
        "revenue_prev_month: revenue, offset_window: 1 month"
    )
    large = found["metric.large_orders"]
    assert (large.name, large.synonyms) == ("Large Orders", ("large_orders",))
    assert large.depends_on == ("measure.orders.order_count", "dimension.orders.order_total_dim")
    assert large.definition.endswith("order_id__order_total_dim: order_total of orders")
    assert found["metric.food_revenue_pct"].depends_on == ("metric.food_revenue", "metric.revenue")
    assert [p.message.split(":")[0] for p in database.problems] == ["keys that are not read, and how often they stand"]


NESTED = """
models:
  - name: fct_orders
    config: {alias: orders}
    semantic_model: {enabled: true, name: order_facts}
    agg_time_dimension: ordered_at
    primary_entity: order
    columns:
      - name: order_id
        entity: {type: primary, name: order}
      - name: customer_id
        entity: {type: foreign, name: customer}
      - name: ordered_at
        granularity: day
        dimension: {type: time}
      - name: state
        dimension: {type: categorical, label: Order state}
    derived_semantics:
      dimensions:
        - {name: is_large, type: categorical, expr: amount > 100}
    metrics:
      - {name: revenue, type: simple, label: Revenue, agg: sum, expr: amount}
      - name: large_revenue
        type: simple
        agg: sum
        expr: amount
        filter: "{{ Dimension('order__is_large') }}"
  - name: customers
    semantic_model: true
    columns:
      - {name: customer_id, entity: {type: primary, name: customer}}
metrics:
  - {name: share, type: ratio, numerator: large_revenue, denominator: revenue}
  - name: growth
    type: derived
    expr: now - before
    input_metrics:
      - {name: revenue, alias: now}
      - {name: revenue, alias: before, offset_window: 1 year}
  - {name: total, type: cumulative, input_metric: revenue, grain_to_date: month}
  - name: visits_to_orders
    type: conversion
    entity: customer
    base_metric: visits
    conversion_metric: revenue
"""


def test_the_newer_nested_layout(tmp_path: Path) -> None:
    database = project(tmp_path, models_yml=NESTED)
    orders = table(database, "orders")
    assert orders.primary_key == ("order_id",)
    assert orders.foreign_keys == (ForeignKey(("customer_id",), "customers", ("customer_id",), ""),)
    found = {id: (rule.definition, rule.depends_on) for id, rule in rules(database).items()}
    assert found == {
        "dimension.order_facts.state": ("state of orders", ()),
        "dimension.order_facts.is_large": ("amount > 100 of orders", ()),
        "metric.revenue": ("sum(amount) over orders", ()),
        "metric.large_revenue": (
            "sum(amount) over orders\nfilter: {{ Dimension('order__is_large') }}\n"
            "order__is_large: amount > 100 of orders",
            ("dimension.order_facts.is_large",),
        ),
        "metric.share": ("large_revenue / revenue", ("metric.large_revenue", "metric.revenue")),
        "metric.growth": ("now - before\nnow: revenue\nbefore: revenue, offset_window: 1 year", ("metric.revenue",)),
        "metric.total": ("type: cumulative\nmetric: revenue\ngrain_to_date: month", ("metric.revenue",)),
        "metric.visits_to_orders": (
            "type: conversion\nbase_metric: visits\nconversion_metric: revenue\nentity: customer",
            ("visits", "metric.revenue"),
        ),
    }
    assert not database.problems


def test_metrics_of_the_oldest_layout(tmp_path: Path) -> None:
    database = project(
        tmp_path,
        models_yml="models: [{name: orders}]\n"
        "metrics:\n"
        "  - {name: revenue, label: Revenue, model: ref('orders'), calculation_method: sum, expression: amount,\n"
        "     filters: [{field: state, operator: '=', value: \"'paid'\"}]}\n",
    )
    assert [(r.name, r.definition) for r in database.rules] == [
        ("Revenue", 'sum(amount) over orders\nfilters: [{"field": "state", "operator": "=", "value": "\'paid\'"}]')
    ]


TESTS = """
models:
  - name: orders
    description: '{{ doc("orders") }} And {{ doc("gone") }}'
    tests:
      - dbt_utils.unique_combination_of_columns:
          arguments: {combination_of_columns: [day, shop]}
      - dbt_utils.unique_combination_of_columns: {combination_of_columns: ["{{ x }}", shop]}
    constraints:
      - {type: primary_key, columns: [id]}
      - {type: foreign_key, columns: [day], to: ref('days'), to_columns: [id]}
    columns:
      - name: id
        data_type: bigint
        constraints: [{type: not_null}, {type: check, expression: id > 0}, {type: odd}]
      - name: state
        description: How far
        data_tests:
          - not_null
          - accepted_values: {arguments: {values: [new, "a, b", no, 1]}}
      - name: shop
        tests:
          - not_null: {where: day > 3}
          - unique: {config: {enabled: false}}
          - test_name: relationships
            arguments: {to: "source('raw', 'shops')", field: id}
          - relationships: {to: shops, field: id}
          - elementary.odd_one: {x: 1}
  - {name: gone, config: {enabled: false}}
  - {description: no name}
sources:
  - name: raw
    schema: landing
    tables: [{name: shops, identifier: SHOPS_V2}]
"""


def test_tests_contracts_and_doc_blocks(tmp_path: Path) -> None:
    database = project(tmp_path, models_yml=TESTS, notes_md="{% docs orders %}\nOne row per *order*.\n{% enddocs %}\n")
    orders = table(database, "orders")
    assert orders.description == 'One row per *order*. And {{ doc("gone") }}'
    assert orders.primary_key == ("id",)
    assert orders.unique == (("day", "shop"),)
    assert orders.checks == ("id > 0",)
    assert orders.foreign_keys == (
        ForeignKey(("shop",), "SHOPS_V2", ("id",), "landing"),
        ForeignKey(("day",), "days", ("id",), ""),
    )
    assert orders.columns == (
        Column("id", "bigint", nullable=False),
        Column("state", "", nullable=False, meaning="How far\nAccepted values: new, 'a, b', no, 1"),
        Column("shop", ""),
    )
    assert {(t.schema, t.name) for t in database.tables} == {("", "orders"), ("landing", "SHOPS_V2")}
    assert [(p.line, p.message) for p in database.problems] == [
        (30, "models has an entry without a name"),
        (3, "there is no doc block 'gone'"),
        (13, "table orders: a constraint of type 'odd' is not read"),
        (21, "orders.shop: the relationship to 'shops' cannot be read"),
        (0, "tests that are not read, and how often they stand: dbt_utils.unique_combination_of_columns (1), "
            "elementary.odd_one (1), not_null with where (1)"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models:\n  - name: a\n   b: c\n", "x.yml:3: the file cannot be read: not YAML"),
        ("- a\n", "is not a mapping with models, sources or metrics"),
        ("models: [{name: o, description: 'in {{ target.name }}'}]", "x.yml:1: Jinja is not evaluated; this stands"),
        ("models: [{name: o, versions: [{v: 1}]}]", "x.yml:1: the model o has versions, which are not read"),
        ("models: [{name: o, mapping: z}]\nexposures: [{name: e}]", "keys that are not read, and how often they stand: "
         "exposures (1), mapping (1)"),
        ("semantic_models: [{name: s, model: orders}]", "x.yml:1: the semantic model s names no model: 'orders'"),
        ("metrics: [{name: m, type: simple}, {name: m, type: simple}]", "metric.m stands twice; this one became"),
        ("models: [{name: a, config: {alias: t}}, {name: b, config: {alias: t}}]", "the alias 't' belongs to the mod"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_reported_and_reading_goes_on(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ok.yml").write_text("models: [{name: fine}]", encoding="utf-8")
    database = project(tmp_path, x_yml=text)
    assert database.table("fine", "") is not None
    assert [p for p in database.problems if message in str(p)], database.problems


def test_what_is_installed_or_built_is_not_read(tmp_path: Path) -> None:
    for folder in ("dbt_packages/other", "target", ".venv"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "m.yml").write_text("models: [{name: other}]", encoding="utf-8")
    (tmp_path / "dbt_project.yml").write_text("models: {shop: {+materialized: view}}", encoding="utf-8")
    assert [t.name for t in project(tmp_path, m_yml="models: [{name: own}]").tables] == ["own"]


def test_a_folder_that_is_no_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no \.yml file that describes a model"):
        read(tmp_path)
    with pytest.raises(UserError, match="is not a folder"):
        read(tmp_path / "nowhere")
