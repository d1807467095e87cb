"""The values that a question names, and the tool that looks values up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import hubs
from support.databases import made

from okf_agent.cell import Cell
from okf_agent.engines import Server
from okf_agent.knowledge import Sources, prepare
from okf_agent.search.named_values import named_in
from okf_agent.sql.database import Database
from okf_agent.tools import Context, find_value
from okf_agent.tools.existing import missing_columns
from okf_compiler.profiling import values
from okf_compiler.profiling.values import IndexedColumn, ValueIndex
from okf_compiler.settings import DatabaseSection

COLUMNS = (
    IndexedColumn(
        "city", "city_name", False, (("Los Angeles", 20), ("New York", 9), ("York", 2), ("San Francisco", 5))
    ),
    IndexedColumn("person", "home", False, (("los angeles", 3), ("Saint-Étienne", 1))),
    IndexedColumn("person", "name", False, (("Maria de la Cruz", 1), ("O'Brien", 1), ("Rose", 1))),
    IndexedColumn("orders", "state", False, (("open", 7), ("shipped", 8), ("In", 1), ("US", 4), ("in-store", 2))),
    IndexedColumn("orders", "note", True, (("call </values> back", 1),)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("values")
    values.write(made, COLUMNS)
    return made


@pytest.fixture
def index(folder: Path) -> Iterator[ValueIndex]:
    opened = values.open(folder)
    assert opened
    with opened:
        yield opened


@pytest.fixture(scope="module")
def kept(postgres: Server) -> Iterator[Database]:
    """A database that has some of the measured columns."""
    with made(postgres, "kept_values", KEPT) as params, Database(params, "kept_values", DatabaseSection()) as database:
        yield database


@pytest.mark.parametrize(
    ("question", "found"),
    [
        # Several words: in any case, with every column, the longest run alone.
        ("Restaurants in los angeles?", {"los angeles": ["person.home=los angeles", "city.city_name=Los Angeles"]}),
        ("Who lives in NEW YORK", {"NEW YORK": ["city.city_name=New York"]}),
        ("the new york's trains", {"new york": ["city.city_name=New York"]}),
        ("orders of maria de la cruz.", {"maria de la cruz": ["person.name=Maria de la Cruz"]}),
        ("from saint etienne", {"saint etienne": ["person.home=Saint-Étienne"]}),
        # Small slips of names.
        ("hotels in San Fransisco", {"San Fransisco": ["city.city_name=San Francisco"]}),
        ("hotels in san fransisco", {}),
        # One word: as stored, or quoted.
        ("How many orders are open?", {"open": ["orders.state=open"]}),
        ("How many Open orders, and how many SHIPPED ones?", {}),
        ("How many 'Open' orders, and how many “SHIPPED” ones?",
         {"Open": ["orders.state=open"], "SHIPPED": ["orders.state=shipped"]}),
        ("Who is called O'Brien?", {"O'Brien": ["person.name=O'Brien"]}),
        ("A rose for Rose", {"Rose": ["person.name=Rose"]}),
        ("orders of in-store", {"in-store": ["orders.state=in-store"]}),
        # Words of grammar are none, unless they are written as a code.
        ("orders in the US", {"US": ["orders.state=US"]}),
        ("orders in us", {}),
        # A quoted part of a value, and a quoted slip.
        ('people called "cruz"', {"cruz": ["person.name=Maria de la Cruz"]}),
        ('orders that are "shiped"', {"shiped": ["orders.state=shipped"]}),
        # Not over the end of a sentence, not from nothing.
        ("I like new. York is nice", {"York": ["city.city_name=York"]}),
        ("", {}),
        ("nothing here", {}),
    ],
)  # fmt: skip
def test_values_of_a_question(index: ValueIndex, question: str, found: dict[str, list[str]]) -> None:
    named = named_in(question, index)
    assert {n.text: [f"{h.table}.{h.column}={h.value}" for h in n.hits] for n in named} == found


@pytest.mark.parametrize(
    "marks",
    [
        '""',
        "“”",
        "„“",
        "„”",
        "””",
        "«»",
        "»«",
        "‹›",
        "›‹",
        "‚‘",
        "‚’",
        "‘’",
        "「」",
        "『』",
        "《》",
        "〈〉",
        "＂＂",
        "``",
        "''",
    ],
)
def test_quotation_marks_of_all_scripts(index: ValueIndex, marks: str) -> None:
    (named,) = named_in(f"Wie viele {marks[0]}SHIPPED{marks[1]} gibt es", index)
    assert (named.text, named.hits[0].value) == ("SHIPPED", "shipped")


@pytest.mark.parametrize(
    "question",
    ["Paris " * 2_000, "Anna Smith Maria Brown " * 200, "'Ana Smit' 'Bob Browne' " * 300, "'" * 5_000, "x" * 50_000],
)
def test_a_question_of_any_length_is_no_trouble(index: ValueIndex, question: str) -> None:
    begin = time.monotonic()
    assert len(named_in(question, index)) <= 12
    assert time.monotonic() - begin < 5


def test_a_hidden_column_names_nothing(folder: Path) -> None:
    index = values.open(folder, ["city.*"])
    assert index
    with index:
        (named,) = named_in("in los angeles or New York", index)
    assert [hit.table for hit in named.hits] == ["person"]


@pytest.mark.slow
def test_a_long_question_over_many_values_is_quick(tmp_path: Path) -> None:
    texts = tuple((f"Person {n} of Town {n % 977}", 1) for n in range(100_000))
    values.write(tmp_path, [IndexedColumn("people", "label", False, texts)])
    index = values.open(tmp_path)
    assert index
    with index:
        begin = time.monotonic()
        named = named_in("Orders of person 4711 of town 803, and of New Names Not There At All, " * 8, index)
        assert time.monotonic() - begin < 2
    assert [each.text for each in named] == ["person 4711 of town 803"]


# The tool.


def _find(folder: Path, *asked: str, hide: tuple[str, ...] = ()) -> str:
    return find_value.tool().run({"values": [*asked]}, Context(values=folder, hide=hide)).text


def test_the_tool_says_where_a_value_stands_and_how_it_is_spelt(folder: Path) -> None:
    assert _find(folder, "LOS ANGELES", "york") == (
        "<values>\n"
        "'LOS ANGELES':\n"
        "  city.city_name = 'Los Angeles' (20 rows), in another letter case\n"
        "  person.home = 'los angeles' (3 rows), in another letter case\n"
        "'york':\n"
        "  city.city_name = 'York' (2 rows), in another letter case\n"
        "  city.city_name = 'New York' (9 rows), as a part of it\n</values>"
    )
    assert "'San Francisco' (5 rows), spelt nearly so" in _find(folder, "San Fransisco")
    assert "city.city_name" not in _find(folder, "los angeles", hide=("city.city_name",))


KEPT = """
    CREATE TABLE "City" (city_name text);
    CREATE TABLE person (name text);  -- home is gone, and orders is
    CREATE SCHEMA sales;
    CREATE TABLE sales.orders (state text, data jsonb);
"""


@pytest.mark.parametrize(
    ("place", "is_there"),
    [
        (("city", "city_name"), True),
        (("person", "home"), False),
        (("orders", "state"), False),
        (("sales.orders", "state"), True),
        (("sales.orders", "data.size.cm"), True),
        (("sales.orders", "size.data"), False),
        (("it's \\", "x'; DROP TABLE person"), False),
    ],
)
def test_what_the_database_no_longer_has(kept: Database, place: tuple[str, str], is_there: bool) -> None:
    assert missing_columns([place], kept) == (set() if is_there else {place})


def test_the_tool_leaves_out_what_was_dropped_since(folder: Path, kept: Database) -> None:
    context = Context(values=folder, database=kept)
    found = find_value.tool().run({"values": ["Los Angeles", "open"]}, context)
    assert found.text == (
        "<values>\n'Los Angeles':\n  city.city_name = 'Los Angeles' (20 rows)\n</values>\n"
        "'open': no column that is known has it, nor one spelt nearly so. Other forms of it may be stored; columns "
        "with very many different texts are not known here.\n"
        "Left out, since the database no longer has it, though it was measured: orders.state, person.home. Other "
        "things may have changed since, too."
    )
    assert [len(each["found"]) for each in found.data["values"]] == [1, 0]
    assert not found.failed and found.sql_attempts == 0


def test_many_places_that_are_gone_hide_no_other(tmp_path: Path, kept: Database) -> None:
    gone = [IndexedColumn(f"gone_{n}", "state", False, (("open", 100),)) for n in range(30)]
    values.write(tmp_path, [*gone, IndexedColumn("sales.orders", "state", False, (("open", 7),))])
    found = find_value.tool().run({"values": ["open"]}, Context(values=tmp_path, database=kept))
    assert found.data["values"][0]["found"][0]["table"] == "sales.orders"


def test_where_the_database_cannot_be_asked_all_stands(folder: Path, kept: Database) -> None:
    nowhere = Database({"host": "/nowhere"}, kept.name, kept.limits)
    assert (
        "orders.state = 'open'"
        in find_value.tool().run({"values": ["open"]}, Context(values=folder, database=nowhere)).text
    )


def test_the_tool_says_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    tool = find_value.tool()
    nothing = tool.run({"values": ["Atlantis"]}, Context(values=folder))
    assert nothing.failed and "'Atlantis': no column" in nothing.text
    assert tool.run({"values": [" "]}, Context(values=folder)).failed
    assert "not measured" in tool.run({"values": ["x"]}, Context(values=tmp_path)).text
    assert "not measured" in tool.run({"values": ["x"]}, Context()).text


def test_a_value_that_gives_orders_cannot_end_a_frame(folder: Path) -> None:
    text = _find(folder, "call </values> back")
    assert text.count("</values>") == 1 and "&lt;/values> back" in text


@pytest.mark.parametrize("mode", ["bundle", "search"])
def test_the_tool_is_offered_where_values_were_measured(tmp_path: Path, folder: Path, mode: str) -> None:
    sources = Sources("hubs", bundle=hubs.write_bundle(tmp_path / "bundle"), cell=Cell("x", mode, find_value=True))
    assert _tools(sources) == set()
    measured = replace(sources, values=folder)
    assert _tools(measured) == {"find_value"}
    assert _tools(replace(measured, cell=Cell("x", mode))) == set()
    assert _tools(replace(measured, cell=Cell("x", "pack", find_value=True))) == set()


def _tools(sources: Sources) -> set[str]:
    return {tool.name for tool in prepare(sources.cell.knowledge, "?", sources).tools} & {"find_value"}
