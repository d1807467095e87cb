"""Sources combine: what each of them adds, and every conflict with what stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from okf_compiler.model import Column, Database, ForeignKey, Place, Rule, Source, Table
from okf_compiler.readers import dbt, defog, dictionary, glossary
from okf_compiler.sources import combine

ORDERS = Table(
    "orders",
    (
        Column("id", "bigint", nullable=False),
        Column("state", "text", meaning="How far"),
        Column("Customer", "bigint"),
    ),
    primary_key=("id",),
)
BASE = Database(
    "shop",
    (ORDERS, Table("items", (Column("id", "bigint"),)), Table("items", (Column("id", "bigint"),), schema="old")),
    rules=(Rule("1", "Active", "domain_knowledge", definition="ordered in 90 days"),),
    sources=(Source("schema", "shop_schema.txt", "Schema of shop"), Source("kb", "shop_kb.jsonl", "Rules of shop")),
)


def described(*tables: Table, id: str = "dictionary") -> Database:
    places = {(t.schema, t.name, c.name): Place("d.csv", n) for t in tables for n, c in enumerate(t.columns, 2)}
    places |= {(t.schema, t.name): Place("d.csv", 1) for t in tables}
    tables = tuple(replace(t, sources=(id,)) for t in tables)
    return Database("d", tables, sources=(Source(id, "d.csv", "Dictionary d"),), places=places)


def said(*rules: Rule, title: str = "Glossary g") -> Database:
    rules = tuple(replace(rule, source="glossary") for rule in rules)
    places = {(r.id,): Place("g.yaml", n) for n, r in enumerate(rules, 1)}
    return Database("g", (), rules, (Source("glossary", "g.yaml", title),), places=places)


def orders(database: Database) -> Table:
    found = database.table("orders")
    assert found is not None
    return found


def test_a_dictionary_adds_what_the_base_does_not_say() -> None:
    extra = Table(
        "ORDERS",
        (Column("ID", "int8", meaning="The key"), Column("customer", "", nullable=False, meaning="Who bought")),
        schema="",
        foreign_keys=(ForeignKey(("customer",), "Items", ("id",), ""),),
        unique=(("customer",), ("id",), ("gone",)),
        description="One row per order",
    )
    combined = combine(BASE, described(extra))
    assert combined.problems == ()
    assert orders(combined) == replace(
        ORDERS,
        columns=(
            Column("id", "bigint", nullable=False, meaning="The key"),
            Column("state", "text", meaning="How far"),
            Column("Customer", "bigint", meaning="Who bought\nNever null."),
        ),
        foreign_keys=(ForeignKey(("Customer",), "items", ("id",), "public"),),
        unique=(("Customer",),),
        description="One row per order",
        sources=("schema", "dictionary"),
    )
    assert [s.id for s in combined.sources] == ["schema", "kb", "dictionary"]
    assert [t.sources for t in combined.tables] == [("schema", "dictionary"), ("schema",), ("schema",)]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            Table("orders", (Column("state", "", meaning="Shipped or not"),), schema=""),
            "d.csv:2: orders.state has two meanings: 'How far' in Schema of shop, and 'Shipped or not' in Dictionary d,"
            " which stands",
        ),
        (
            Table("orders", (Column("state", "integer"),)),
            "d.csv:2: orders.state is text in Schema of shop and integer in Dictionary d; text stands",
        ),
        (
            Table("orders", (Column("stat", "", meaning="x"),)),
            "d.csv:2: there is no column 'stat' in orders; did you mean 'state'?",
        ),
        (
            Table("order", (Column("id", "", meaning="x"),), schema=""),
            "d.csv:1: there is no table 'order' to describe; did you mean 'orders'?",
        ),
        (
            Table("orders", (Column("id", "", meaning="x"),), schema="sales"),
            "d.csv:1: there is no table 'sales.orders' to describe; did you mean 'orders'?",
        ),
        (
            Table("orders", (Column("id", ""),), foreign_keys=(ForeignKey(("customer",), "buyers", ("id",), ""),)),
            "d.csv:1: orders.Customer refers to buyers.id, which is not there; the reference is not used",
        ),
        (
            Table("orders", (Column("id", ""),), foreign_keys=(ForeignKey(("customer",), "items", ("no",), "old"),)),
            "d.csv:1: orders.Customer refers to old.items.no, which is not there; the reference is not used",
        ),
        (
            Table("orders", (Column("id", ""),), primary_key=("state",)),
            "d.csv:1: the primary key of orders is (id) in Schema of shop and (state) in Dictionary d; the first "
            "stands",
        ),
    ],
)
def test_a_conflict_is_reported_with_what_stands(table: Table, problem: str) -> None:
    combined = combine(BASE, described(table))
    assert [str(p) for p in combined.problems] == [problem]
    assert len(combined.tables) == len(BASE.tables)


@pytest.mark.parametrize("type", ["TEXT", "varchar(20)", "character varying", "string", "mood", ""])
def test_types_that_do_not_disagree(type: str) -> None:
    assert combine(BASE, described(Table("orders", (Column("state", type),)))).problems == ()


@pytest.mark.parametrize("meaning", ["how  FAR", "How far\nAccepted values: new, paid", None, " "])
def test_meanings_that_do_not_differ(meaning: str | None) -> None:
    combined = combine(BASE, described(Table("orders", (Column("state", "", meaning=meaning),))))
    assert combined.problems == ()
    column = orders(combined).column("state")
    assert column is not None and column.meaning is not None and column.meaning.lower().split()[:2] == ["how", "far"]


def test_the_later_dictionary_stands_and_source_ids_stay_apart() -> None:
    first = described(Table("orders", (Column("id", "", meaning="first"),)))
    combined = combine(BASE, first, described(Table("orders", (Column("id", "", meaning="second"),))))
    column = orders(combined).column("id")
    assert column is not None and column.meaning == "second"
    assert orders(combined).sources == ("schema", "dictionary", "dictionary-2")
    assert len(combined.problems) == 1


def test_a_table_in_two_schemas_wants_its_schema_named() -> None:
    base = replace(BASE, tables=(replace(ORDERS, schema="a"), replace(ORDERS, schema="b")))
    combined = combine(base, described(Table("orders", (Column("id", "", meaning="x"),), schema="")))
    assert [p.message for p in combined.problems] == [
        "table orders could be a.orders, b.orders; its description is not used. Name the schema"
    ]
    combined = combine(base, described(Table("orders", (Column("id", "", meaning="x"),), schema="B")))
    assert [t.columns[0].meaning for t in combined.tables] == [None, "x"]


def test_rules_of_two_sources_keep_their_ids_apart_and_find_each_other() -> None:
    combined = combine(
        BASE,
        said(
            Rule("1", "Lost", "ratio", definition="1 - active", depends_on=("ACTIVE", "nowhere")),
            Rule("2", "Kept", "ratio", definition="not lost", depends_on=("1",)),
        ),
    )
    assert [(r.id, r.source, r.depends_on) for r in combined.rules] == [
        ("1", "kb", ()),
        ("glossary-1", "glossary", ("1",)),
        ("2", "glossary", ("glossary-1",)),
    ]
    assert [str(p) for p in combined.problems] == ["g.yaml:1: rule 'Lost' depends on 'nowhere', which no source has."]


def test_a_rule_with_two_definitions_is_reported_and_the_later_stands() -> None:
    base = replace(BASE, rules=(*BASE.rules, Rule("2", "Share", "", definition="active / all", depends_on=("1",))))
    combined = combine(base, said(Rule("a", "active", "x", definition="ordered this year", synonyms=("live",))))
    assert [(r.id, r.definition, r.depends_on) for r in combined.rules] == [
        ("2", "active / all", ("a",)),
        ("a", "ordered this year", ()),
    ]
    assert [str(p) for p in combined.problems] == [
        "g.yaml:1: rule 'active' has two definitions: 'ordered in 90 days' in Rules of shop, and 'ordered this year'"
        " in Glossary g, which stands"
    ]


def test_a_rule_told_twice_is_one_rule() -> None:
    combined = combine(BASE, said(Rule("a", "Active", "x", "Who still buys", "Ordered in  90 days", (), ("live",))))
    assert [(r.id, r.description, r.synonyms) for r in combined.rules] == [("a", "Who still buys", ("live",))]
    assert combined.problems == ()


def test_one_source_with_one_name_twice_keeps_both() -> None:
    combined = combine(said(Rule("a", "Share", "", definition="x / y"), Rule("b", "share", "", definition="y / x")))
    assert len(combined.rules) == 2
    assert [p.message for p in combined.problems] == [
        "two rules are called 'share' and say different things, 'x / y' (rule a) and 'y / x' (rule b); both stand"
    ]


def test_a_project_alone_is_a_database(test_data: Path) -> None:
    combined = combine(dbt.read(test_data / "dbt" / "jaffle-shop"))
    assert {t.schema for t in combined.tables} == {"public", "raw"}
    assert {k.ref_schema for t in combined.tables for k in t.foreign_keys} == {"public"}
    assert len(combined.rules) == 39
    assert len(combined.problems) == 1


def test_a_real_base_with_a_dictionary_and_a_glossary(test_data: Path, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(
        "schema;table;column;description;type\n"
        "consumer_div;users;uid;Who they are;bigint\n"
        ";users;user_type;one of three;boolean\n"
        ";wallet_transactions_daily;amont;Paid;numeric\n",
        encoding="utf-8",
    )
    (tmp_path / "g.csv").write_text(
        "name,definition,depends_on\nTTV per user,TTV / users,Total Transaction Volume (TTV)\n", encoding="utf-8"
    )
    combined = combine(
        defog.read(test_data / "defog" / "ewallet" / "ewallet.json"),
        dictionary.read(tmp_path / "d.csv"),
        glossary.read(tmp_path / "g.csv"),
    )
    assert [(p.line, p.message.partition(":")[0]) for p in combined.problems] == [
        (3, "consumer_div.users.user_type is VARCHAR(20) in Metadata ewallet.json and boolean in Data dictionary "
            "d.csv; VARCHAR(20) stands"),
        (3, "consumer_div.users.user_type has two meanings"),
        (4, "there is no column 'amont' in consumer_div.wallet_transactions_daily; did you mean 'amount'?"),
    ]  # fmt: skip
    assert combined.rules[-1].depends_on == ("4",)


@pytest.mark.parametrize(
    ("own", "other", "message", "stands"),
    [
        ("Items.id", "items.ID", "", ["Items.id"]),
        ("Items.id", "Items.no", "and Items.no in Dictionary d; the first stands", ["Items.id"]),
        ("Items.id", "buyers.id", "and buyers.id in Dictionary d; both stand", ["Items.id", "buyers.id"]),
    ],
)
def test_a_foreign_key_that_two_sources_lead_elsewhere(own: str, other: str, message: str, stands: list[str]) -> None:
    def key(to: str, schema: str) -> ForeignKey:
        return ForeignKey(("Customer",), to.split(".")[0], (to.split(".")[1],), schema)

    items = Table("Items", (Column("id", "bigint"), Column("no", "bigint")))
    base = replace(
        BASE,
        tables=(
            replace(ORDERS, foreign_keys=(key(own, "public"),)),
            items,
            Table("buyers", (Column("id", "bigint"),)),
        ),
    )
    extra = Table("orders", (Column("Customer", ""),), schema="", foreign_keys=(key(other, ""),))
    combined = combine(base, described(extra))
    found = [f"{k.ref_table}.{k.ref_columns[0]}" for k in orders(combined).foreign_keys]
    assert found == stands
    if message:
        (problem,) = combined.problems
        assert problem.message == f"orders.Customer refers to public.Items.id in Schema of shop {message}"
    else:
        assert combined.problems == ()


@pytest.mark.parametrize(
    ("own", "other", "problems", "meaning"),
    [
        ("'new'::text", "new", [], None),
        ("now()", "CURRENT_TIMESTAMP", [], None),
        ("(0)::numeric", "1", ["the default of orders.state is (0)::numeric in Schema of shop and 1 in Dictionary d; "
                               "(0)::numeric stands"], None),
        (None, "1", [], "Default: 1"),
    ],
)  # fmt: skip
def test_a_default_that_another_source_knows(
    own: str | None, other: str, problems: list[str], meaning: str | None
) -> None:
    base = replace(BASE, tables=(Table("orders", (Column("state", "text", default=own),)),))
    combined = combine(base, described(Table("orders", (Column("state", "", default=other),), schema="")))
    assert [p.message for p in combined.problems] == problems
    state = orders(combined).columns[0]
    assert (state.default, state.meaning) == (own, meaning)


@pytest.mark.parametrize("text", ["N/A", "-", " tbd", "?"])
def test_a_placeholder_says_nothing_beside_a_meaning(text: str) -> None:
    def state(column: str, base: str | None, other: str) -> str | None:
        tables = (Table("orders", (Column(column, "text", meaning=base),)),)
        combined = combine(
            replace(BASE, tables=tables), described(Table("orders", (Column(column, "", meaning=other),), schema=""))
        )
        assert combined.problems == ()
        return orders(combined).columns[0].meaning

    assert [state("s", "How far", text), state("s", text, "How far"), state("s", None, text)] == [
        "How far",
        "How far",
        text,
    ]
