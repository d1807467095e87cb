"""What profiles have to cope with, in one small database read as a role that may not read all of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.databases import made
from support.profiled import differences

from okf_agent.engines import Server
from okf_compiler.model import Column, Database, ForeignKey, JsonField, Table
from okf_compiler.postgres import connect
from okf_compiler.profiling import Profile, load, run, store, values
from okf_compiler.profiling.limits import Limits, Request
from okf_compiler.readers import catalogue

SCRIPT = Path(__file__).parents[2] / "data" / "profiled.sql"
HIDE = ("people.secret",)
DOCUMENTED = Database(
    "profiled",
    (
        Table(
            "order", (Column("doc", "jsonb", fields=(JsonField(("a", "gone"), ""), JsonField(("n",), ""))),), "sales"
        ),
        Table("many", (Column("n", "int"),), foreign_keys=(ForeignKey(("n",), "people", ("id",)),)),
        Table("people", (Column("id", "int"),)),
    ),
)

EXPECTED: dict[tuple[str, str], dict[str, Any]] = {
    ("people", "id"): {"unique": True, "low": "1", "high": "4"},
    ("people", "Full Name"): {"nulls": 0, "empty": 1, "distinct": 4, "examples": ("Ann", "Bob", "ann")},
    ("people", "email"): {"nulls": 1, "empty": 1, "distinct": 3},
    ("people", "nick"): {"nulls": 1, "distinct": 2},
    ("people", "written"): {"low": "2024-01-31", "high": "2025-12-01 10:00", "empty": 1},
    ("people", "feeling"): {"empty": None, "distinct": 2, "examples": ("ok", "happy")},
    ("people", "born"): {"low": "0044-03-15 BC", "high": "2000-02-29", "specials": ("infinity",)},
    ("people", "since"): {"type": "integer (domain recent)", "low": "1999", "high": "2001"},
    ("people", "score"): {"low": "-2", "high": "1.5", "specials": ("Infinity", "NaN"), "distinct": 4},
    ("people", "money"): {"low": "10.00", "high": "20.00", "specials": ("NaN",)},
    ("people", "tags"): {"nulls": 1, "distinct": 3, "empty": None},
    ("people", "colours"): {"list_separator": ",", "examples": ("Blue", "Green", "Red")},
    ("people", "active"): {"nulls": 1, "distinct": 2, "examples": ("true", "false")},
    ("people", "nothing"): {"blank": True, "empty": 1, "examples": (), "only_value": False},
    ("people", "never"): {"blank": True, "distinct": 0, "unique": False, "low": None},
    ("people", "spaces"): {"blank": True, "empty": 1, "distinct": 4},
    ("people", "constant"): {"only_value": True, "nulls": 1, "examples": ("same",)},
    ("people", "code"): {"distinct": 2, "examples": ("ab", "cd")},
    ("people", "span"): {"low": "-1 days", "high": "2 days"},
    ("people", "essay"): {"distinct": 3, "examples": (("long text " * 9)[:81], "short"), "empty": 1},
    ("people", "place"): {"distinct": 2},
    ("people", "raw"): {"distinct": 2, "examples": (), "nulls": 2},
    ("people", "both_ways"): {"distinct": 2, "examples": ("(2,y)", "(1,x)")},
    ("people", "twice"): {"unique": True, "high": "8"},
    ("sales.Order", "Id"): {"unique": True},
    ("sales.Order", "doc"): {"nulls": 1, "examples": ()},
    ("sales.Order", "doc.a.b"): {"type": "number", "nulls": 2, "low": "1", "high": "2.5", "path": ("a", "b")},
    ("sales.Order", "doc.a.it's"): {"type": "string", "nulls": 3, "examples": ("x",)},
    ("sales.Order", "doc.a.gone"): {"blank": True, "nulls": 4},
    ("sales.Order", "doc.n"): {"nulls": 2, "low": "9", "high": "10"},
    ("sales.Order", "doc.mixed"): {"type": "number or object or string", "distinct": 3, "examples": ()},
    ("sales.Order", "doc.mixed.deep"): {"only_value": True, "nulls": 3},
    ("sales.Order", "doc.a.c"): {"examples": ("dot",), "path": ("a.c",)},
    ("sales.Order", "doc.0"): {"examples": ("zero",)},
    ("sales.Order", "doc.tags"): {"type": "array", "examples": ('["u", "v"]',)},
    ("sales.Order", "doc.items"): {"type": "array", "distinct": 1, "examples": ('[{"pin": "in a list"}]',)},
    ("sales.Order", "old.k"): {"empty": 1, "nulls": 1, "distinct": 2},
    ("sales.Order", "list"): {"distinct": 2, "nulls": 1},
    ("parts", "region"): {"distinct": 2, "examples": ("south", "north")},
    ("empty", "a"): {"rows": 0, "blank": False, "unique": False, "examples": ()},
    ("many", "word"): {"distinct": 6000, "examples": ("word 0", "word 1", "word 10")},
    ("many", "n"): {"unique": True, "low": "1", "high": "12000"},
    ("names", "name"): {"distinct": 4},
    ("filled", "people"): {"distinct": 2},
    ("fails", "next"): {"low": "2", "high": "5"},
    ("half", "open"): {"only_value": True},
}
ABSENT = [
    ("people", "secret"),
    ("people", "secret_upper"),
    ("leak", "innocent"),
    ("half", "shut"),
    ("fails", "ratio"),
    ("sales.Order", "doc.a"),
    ("closed.private", "id"),
    ("unfilled", "one"),
]


@dataclass(frozen=True)
class Profiled:
    params: dict[str, Any]
    folder: Path
    done: run.Done

    @property
    def profile(self) -> Profile:
        return self.done.profile


@pytest.fixture(scope="module", params=["postgres", pytest.param("postgres15", marks=pytest.mark.slow)])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def profiled(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiled]:
    with made(server, "profiled", SCRIPT.read_text("utf-8"), role="profiler") as params:
        folder = tmp_path_factory.mktemp("profile") / "profiled"
        connection: psycopg.Connection[Any]
        with connect(params, "profiled") as connection:
            done = run.profile(connection, "profiled", folder, Request(DOCUMENTED, HIDE))
        yield Profiled(params, folder, done)


@pytest.mark.parametrize(("table", "column"), EXPECTED)
def test_a_column(profiled: Profiled, table: str, column: str) -> None:
    found = profiled.profile.tables[table].columns[column]
    assert {figure: getattr(found, figure) for figure in EXPECTED[table, column]} == EXPECTED[table, column]


@pytest.mark.parametrize(("table", "column"), ABSENT)
def test_what_is_hidden_or_closed_is_not_there(profiled: Profiled, table: str, column: str) -> None:
    held = profiled.profile.tables.get(table)
    assert held is None or column not in held.columns


def test_nothing_of_a_hidden_column_is_written(profiled: Profiled) -> None:
    for file in profiled.folder.iterdir():
        for word in (b"hush", b"HUSH", b"psst"):
            assert word not in file.read_bytes(), file


def test_a_path_that_is_hidden_hides_its_whole_column(profiled: Profiled, tmp_path: Path) -> None:
    connection: psycopg.Connection[Any]
    with connect(profiled.params, "profiled") as connection:
        request = Request(DOCUMENTED, (*HIDE, "sales.Order.doc.items.pin"))
        columns = run.profile(connection, "profiled", tmp_path, request).profile.tables["sales.Order"].columns
    assert "old.k" in columns and not [name for name in columns if name.split(".")[0] == "doc"]
    assert all(b"in a list" not in file.read_bytes() for file in tmp_path.iterdir())


def test_what_could_not_be_measured_is_named(profiled: Profiled) -> None:
    unmeasured = profiled.profile.unmeasured
    assert "not populated" in unmeasured["unfilled"]
    assert "division by zero" in unmeasured["fails.ratio"]
    assert "Unicode" in unmeasured["sales.Order.broken"]
    left_out = " ".join(profiled.done.left_out)
    assert "shut" in left_out and "private" in left_out and "leak" in left_out
    assert profiled.profile.tables["sales.Order"].columns["broken"].nulls == 2


def test_joins_also_those_that_only_documents_know(profiled: Profiled) -> None:
    keys = {
        (k.table, k.columns, k.other_table): (k.without_partner, k.rows, k.unreferenced, k.other_rows)
        for k in profiled.profile.foreign_keys
    }
    assert keys == {
        ("sales.Order", ("person.id",), "people"): (1, 4, 2, 4),
        ("many", ("n",), "people"): (11_996, 12_000, 0, 4),
    }


def test_the_index_holds_short_texts_of_columns_with_few(profiled: Profiled) -> None:
    with values.open(profiled.folder) as index:  # type: ignore[union-attr]
        columns = set(sqlite3.connect(profiled.folder / store.VALUES).execute("SELECT tab, col FROM columns"))
        assert ("many", "few") in columns and ("people", "feeling") in columns and ("sales.Order", "old.k") in columns
        assert ("many", "word") not in columns and ("people", "id") not in columns
        assert [h.value for h in index.find("short")] == ["short"]
        arrays = [(h.column, h.value, h.rows) for name in ("red", "u") for h in index.find(name) if h.how == "exact"]
        assert arrays == [("tags", "red", 2), ("doc.tags", "u", 1)]
        assert not index.find("long text")


def test_figures_are_those_of_plain_sql(profiled: Profiled) -> None:
    connection: psycopg.Connection[Any]
    with connect(profiled.params, "profiled") as connection:
        live = catalogue.read(connection, "profiled", hide=HIDE)
        assert not list(differences(connection, profiled.profile, live, profiled.folder))
    figure = profiled.profile.tables["many"].columns["few"]
    wrong = type(figure)(**{**{n: getattr(figure, n) for n in figure.__slots__}, "distinct": 8})
    tables = {"many": type(profiled.profile.tables["many"])("many", 12_000, None, {"few": wrong})}
    with connect(profiled.params, "profiled") as connection:
        found = list(differences(connection, Profile("", "", tables), live, profiled.folder))
    assert found == ["many.few.distinct: 8, 9 in plain SQL"]


def test_a_large_table_is_sampled_the_same_way_each_time(profiled: Profiled, tmp_path: Path) -> None:
    found = []
    request = Request(limits=Limits(sample_above=4_000))
    for number in range(2):
        connection: psycopg.Connection[Any]
        with connect(profiled.params, "profiled") as connection:
            done = run.profile(connection, "profiled", tmp_path / str(number), request)
        found.append(done.profile.tables)
    table = found[0]["many"]
    assert found[0] == found[1]
    assert table.rows == 12_000 and table.sampled_rows is not None and 0 < table.sampled_rows < 12_000
    column = table.columns["n"]
    assert column.sampled and column.rows == table.sampled_rows and not column.unique
    assert found[0]["parts"].sampled_rows is None
    with values.open(tmp_path / "0") as index:  # type: ignore[union-attr]
        assert {hit.rows for hit in index.find("few 1")} == {None}


def test_what_takes_too_long_is_named_and_the_rest_goes_on(profiled: Profiled, server: Server, tmp_path: Path) -> None:
    with psycopg.connect(**(server.admin or {}), dbname="profiled", autocommit=True) as admin:
        admin.execute("CREATE VIEW slow AS SELECT 1 AS one FROM pg_sleep(60)")
        admin.execute("GRANT SELECT ON slow TO profiler")
        try:
            connection: psycopg.Connection[Any]
            with connect(profiled.params, "profiled") as connection:
                done = run.profile(connection, "profiled", tmp_path, Request(limits=Limits(seconds=0.5)))
        finally:
            admin.execute("DROP VIEW slow")
    assert "longer than 0.5 s" in done.profile.unmeasured["slow"]
    assert done.profile.tables["people"].rows == 4


def test_a_killed_profile_goes_on_where_it_was(profiled: Profiled, tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def stop(done: int, _steps: int, _what: str) -> None:
        if done == 4:
            raise Killed

    def go(hide: Sequence[str] = (), **options: Any) -> run.Done:
        connection: psycopg.Connection[Any]
        with connect(profiled.params, "profiled") as connection:
            return run.profile(connection, "profiled", tmp_path, Request(hide=hide), **options)

    with pytest.raises(Killed):
        go(progress=stop)
    assert load(tmp_path) is None and values.open(tmp_path) is None
    assert go(hide=("people.email",), progress=run.quiet).taken_up == 0  # what is asked is another thing
    before = load(tmp_path)
    with pytest.raises(Killed):
        go(progress=stop)
    assert load(tmp_path) == before
    assert go().taken_up == 4
    assert go().taken_up == 0
    with pytest.raises(Killed):
        go(progress=stop)
    assert go(again=True).taken_up == 0
    assert {path.name for path in tmp_path.iterdir()} <= {"profile.json", "values.sqlite", ".gitignore", ".lock"}


def test_a_column_hidden_later_is_left_out_when_the_files_are_read(profiled: Profiled) -> None:
    hide = ("people.colours", "sales.Order.person.id", "sales.Order.old", "order.doc.tags.*")
    profile = load(profiled.folder, hide)
    assert profile is not None
    assert "colours" not in profile.tables["people"].columns and "email" in profile.tables["people"].columns
    assert not {"old", "old.k"} & set(profile.tables["sales.Order"].columns)
    assert profile.tables["sales.Order"].columns["doc.tags"].examples == ()
    assert [k.table for k in profile.foreign_keys] == ["many"]
    with values.open(profiled.folder, hide) as index:  # type: ignore[union-attr]
        assert not index.find("Green") and not index.find("Grean")
    with values.open(profiled.folder) as index:  # type: ignore[union-attr]
        assert index.find("Green")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 0}', '{"version": 1}'])
def test_a_file_that_is_no_profile_is_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_text(content, encoding="utf-8")
    (tmp_path / "values.sqlite").write_text(content, encoding="utf-8")
    assert load(tmp_path) is None and values.open(tmp_path) is None
