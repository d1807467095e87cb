"""A real PostgreSQL with one of everything, read as a role that can only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.databases import documents_of, loaded, made

from okf_agent.engines import Server
from okf_compiler.concepts import concepts
from okf_compiler.link import link
from okf_compiler.model import Database, ForeignKey, Table
from okf_compiler.names import assign
from okf_compiler.postgres import connect
from okf_compiler.readers import catalogue, livesqlbench

SCRIPT = Path(__file__).parents[2] / "data" / "catalogue.sql"
NAME = "catalogue_test"


@pytest.fixture(scope="module")
def reader(postgres: Server) -> Iterator[dict[str, Any]]:
    """Connect parameters of a role with the rights that catalogue.sql gives."""
    with made(postgres, NAME, SCRIPT.read_text(encoding="utf-8"), "catalogue_reader") as params:
        yield params


@pytest.fixture(scope="module")
def database(reader: dict[str, Any]) -> Database:
    with connect(reader, NAME) as connection:
        return catalogue.read(connection, "shop")


def table(database: Database, name: str, schema: str = "public") -> Table:
    found = database.table(name, schema)
    assert found is not None, name
    return found


def test_tables_are_all_kinds_but_parts_the_systems_and_extensions_own(database: Database) -> None:
    assert {(t.schema, t.name, t.kind) for t in database.tables} == {
        ("public", "people", "table"),
        ("Sales", "Order Lines", "table"),
        ("public", "parcels", "table"),
        ("public", "events", "partitioned table"),
        ("public", "follow_ups", "table"),
        ("public", "adults", "view"),
        ("public", "contacts", "view"),
        ("public", "contacts_again", "view"),
        ("public", "as_json", "view"),
        ("public", "head_count", "view"),
        ("public", "totals", "materialized view"),
        ("public", "far_away", "foreign table"),
        ("public", "half_open", "table"),
    }


@pytest.mark.parametrize(
    ("column", "type", "nullable", "default", "labels", "generated"),
    [
        ("id", "bigint", False, None, (), "identity"),
        ("name", "character varying(40)", False, "'nobody'::character varying", (), None),
        ("feels", "mood", True, None, ("angry", "sad", "so so", "happy"), None),
        ("moods", "mood[]", True, None, ("angry", "sad", "so so", "happy"), None),
        ("born", 'integer (domain "год")', True, None, (), None),
        ("joined", "integer (domain late_year)", False, None, (), None),
        ("tags", "text[]", True, None, (), None),
        ("price", "numeric(10,2)", True, "1.5", (), None),
        ("at", "timestamp(3) with time zone", True, None, (), None),
        ("gross", "numeric", True, None, (), "(price * 1.2)"),
    ],
)
def test_columns(
    database: Database, column: str, type: str, nullable: bool, default: str | None, labels: tuple[str, ...],
    generated: str | None,
) -> None:  # fmt: skip
    found = table(database, "people").column(column)
    assert found is not None
    assert (found.type, found.nullable, found.default, found.enum_labels, found.generated) == (
        type, nullable, default, labels, generated,
    )  # fmt: skip


def test_comments_are_descriptions_and_meanings(database: Database) -> None:
    people = table(database, "people")
    assert people.description == "Everyone; 'quoted' and \"so\""
    assert {c.name: c.meaning for c in people.columns if c.meaning} == {
        "name": "What they are called",
        "feels": "How someone feels",
        "moods": "How someone feels",
    }
    assert table(database, "totals").description == "People by year"


def test_keys_checks_and_unique_columns(database: Database) -> None:
    people, lines = table(database, "people"), table(database, "Order Lines", "Sales")
    assert people.primary_key == ("id",)
    assert people.unique == (("name", "born"),)
    assert set(people.checks) == {
        "born (domain \"год\"): CHECK (VALUE >= 1901 AND VALUE <= 2155)",
        "joined (domain \"год\"): CHECK (VALUE >= 1901 AND VALUE <= 2155)",
        "joined (domain late_year): CHECK (VALUE::integer > 2000)",
        "CHECK (price > 0::numeric)",
        "CHECK (length(email) < 80)",
        "CHECK (price < 100000::numeric) NOT VALID",
    }  # fmt: skip
    assert lines.primary_key == ("Order", "Line No")
    assert lines.unique == (("box", "person"),)
    assert lines.foreign_keys == (ForeignKey(("person",), "people", ("id",)),)
    assert [c.type for c in lines.columns if c.enum_labels] == ['"Sales"."Size Of Box"']
    assert table(database, "parcels").foreign_keys == (
        ForeignKey(("order", "line"), "Order Lines", ("Order", "Line No"), "Sales"),
        ForeignKey(("owner",), "people", ("id",)),
    )


def test_a_key_to_or_from_a_partitioned_table_stands_once(database: Database) -> None:
    assert table(database, "events").primary_key == ("id", "day")
    assert table(database, "events").foreign_keys == (ForeignKey(("parcel",), "parcels", ("id",)),)
    assert table(database, "follow_ups").foreign_keys == (ForeignKey(("event", "day"), "events", ("id", "day")),)


def test_what_the_role_may_not_read_is_left_out_and_reported(database: Database) -> None:
    half_open = table(database, "half_open")
    assert [c.name for c in half_open.columns] == ["id", "note"]
    assert half_open.checks == ()  # it names the salary
    assert sorted(p.message for p in database.problems) == [
        "1 column (salary) of half_open left out: the role may not read them",
        "1 table (forbidden) of schema public left out: the role may not read them",
        "1 table (secrets) of schema closed left out: the role may not read them",
        "foreign key to_owner of parcels is NOT VALID: rows may break it",
    ]


def test_the_source_holds_no_connection(database: Database) -> None:
    assert [(s.id, s.resource, s.title) for s in database.sources] == [
        ("schema", "postgresql:shop", "Catalogue of shop")
    ]


@pytest.mark.parametrize(
    ("hide", "gone_columns", "gone_tables"),
    [
        (["people.email"], {"email"}, {"contacts", "contacts_again", "as_json"}),
        (["PUBLIC.People.EMAIL"], {"email"}, {"contacts", "contacts_again", "as_json"}),
        (["*.email", "contacts.shouted", "as_json.everything"], {"email"}, {"contacts_again"}),
        (["people.born"], {"born"}, {"adults", "as_json", "totals"}),
    ],
)
def test_hidden_columns_show_nowhere(
    reader: dict[str, Any], database: Database, hide: list[str], gone_columns: set[str], gone_tables: set[str]
) -> None:
    with connect(reader, NAME) as connection:
        found = catalogue.read(connection, "shop", hide=hide)
    columns = {c.name for c in table(found, "people").columns}
    assert {c.name for c in table(database, "people").columns} - columns == gone_columns
    left = {t.name for t in found.tables}
    assert {t.name for t in database.tables} - left == gone_tables
    assert not any("email" in text for t in found.tables for text in t.checks) or "email" in columns
    assert not any("email" in (c.generated or "") for t in found.tables for c in t.columns) or "email" in columns
    assert [p.message for p in found.problems if "is left out" in p.message] == [
        message
        for message in (p.message for p in found.problems)
        if any(f" {name} " in message for name in gone_tables)
    ]


def test_a_hidden_name_that_is_nowhere_is_reported(reader: dict[str, Any]) -> None:
    with connect(reader, NAME) as connection:
        found = catalogue.read(connection, "shop", hide=["people.emial"])
    assert "hide names people.emial, which is no column here" in [p.message for p in found.problems]


@pytest.mark.parametrize("autocommit", [False, True])
def test_reading_leaves_the_connection_as_it_was(reader: dict[str, Any], autocommit: bool) -> None:
    with connect(reader, NAME, autocommit=autocommit) as connection:
        before = connection.execute("SHOW search_path").fetchone()
        catalogue.read(connection, "shop")
        assert connection.execute("SHOW search_path").fetchone() == before
        with pytest.raises(Exception, match=r"read-only|permission denied"):
            connection.execute("CREATE TABLE x (id int)")


def test_the_catalogue_becomes_concepts(database: Database) -> None:
    made = concepts(database, link(database), assign(database))
    assert len(made) == len(database.tables)
    lines = next(c for c in made if "Order Lines" in c.title)
    assert "Size Of Box" in lines.body


def test_queries_do_not_grow_with_tables(reader: dict[str, Any]) -> None:
    with connect(reader, NAME) as connection:
        asked: list[object] = []

        class Counting(psycopg.Cursor[Any]):
            def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                asked.append(query)
                return super().execute(query, *args, **kwargs)

        connection.cursor_factory = Counting
        catalogue.read(connection, "shop", hide=["people.email"])
    assert len(asked) <= 8


SAMPLES = {"pagila": ("neon", 23), "chinook": ("neon", 11), "northwind": ("northwind", 14)}


@pytest.mark.parametrize("name", SAMPLES)
def test_real_dumps(postgres: Server, test_data: Path, name: str) -> None:
    folder, tables = SAMPLES[name]
    loaded(postgres, name, test_data / "samples" / folder / f"{name}.sql")
    with connect(postgres.admin or {}, name) as connection:
        found = catalogue.read(connection, name)
    assert len(found.tables) == tables
    assert found.problems == ()
    if name == "pagila":
        assert table(found, "rental_by_category").kind == "materialized view"
        assert "release_year (domain year): CHECK (VALUE >= 1901 AND VALUE <= 2155)" in table(found, "film").checks
        assert not [t.name for t in found.tables if t.name.startswith("payment_p")]


DUMPS = {
    "virtual_idol": "virtual_idol",
    "mental_health": "mental_healths",
    "households": "households",
    "solar_panel": "solar_panel",
    "cross_border": "cross_border",
    "disaster_relief": "disaster_relief",
}


@pytest.mark.parametrize("name", DUMPS)
def test_a_benchmark_database_has_the_columns_its_documents_say(postgres: Server, test_data: Path, name: str) -> None:
    root = test_data / "livesqlbench-base-full-v1"
    loaded(postgres, name, root / "dumps" / f"{DUMPS[name]}_full.sql")
    with connect(postgres.admin or {}, name) as connection:
        found = catalogue.read(connection, name)
    documented = livesqlbench.read(documents_of(root, name))
    assert {t.name.lower() for t in found.tables} == {t.name.lower() for t in documented.tables}
    for one in documented.tables:
        other = table(found, one.name)
        assert [c.name.lower() for c in one.columns] == [c.name.lower() for c in other.columns]
        assert [c.nullable for c in one.columns] == [c.nullable for c in other.columns]
        assert one.primary_key == other.primary_key
