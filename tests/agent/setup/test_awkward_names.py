"""`init` and the compiler on a database whose tables share names, and whose comments are formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.command import run
from support.databases import made

from okf_agent.bundles import cards
from okf_agent.engines import Server
from okf_agent.setup import drafts
from okf_compiler.bundle import load
from okf_compiler.compile import compile_database
from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, Source, Table
from okf_compiler.postgres import connect
from okf_compiler.readers import catalogue, dictionary, glossary
from okf_compiler.sources import combine
from okf_compiler.validate import validate

SCRIPT = """
CREATE SCHEMA sales;
CREATE SCHEMA "a.b";
CREATE TABLE sales."2024" (id int PRIMARY KEY, net int);
CREATE TABLE public."sales.2024" (id int PRIMARY KEY, gross int REFERENCES sales."2024");
CREATE TABLE "a.b".c (id int PRIMARY KEY, one int REFERENCES public."sales.2024");
CREATE TABLE public."""  # the names below are put in quoted


NAMES = ("a.b.c", '"quoted"', "=SUM(A1)", "x.", "tables/../x", "log")
COMMENTS = ('=HYPERLINK("http://x")', "\ufeff=1+1", "＝1", "'-' means none", "-5 to 5", "@all")


def _script(names: tuple[str, ...]) -> str:
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    tables = [f"CREATE TABLE public.{name} (id int PRIMARY KEY, c text);" for name in quoted]
    said = [
        f"COMMENT ON COLUMN public.{name}.c IS '{c.replace(chr(39), chr(39) * 2)}';"
        for name, c in zip(quoted, COMMENTS, strict=True)
    ]
    return "\n".join([SCRIPT.removesuffix("CREATE TABLE public."), *tables, *said])


@pytest.fixture(scope="module")
def awkward(postgres: Server) -> Iterator[Database]:
    with made(postgres, "awkward", _script(NAMES)) as params, connect(params, "awkward") as connection:
        yield catalogue.read(connection, "awkward")


def _described(database: Database, folder: Path) -> Database:
    """The database with init's own dictionary, in which a person has described every table by its schema and name."""
    lines = list(csv.reader(io.StringIO(drafts.dictionary(database, []))))
    tables = iter(database.tables)
    for line in lines[1:]:
        if not line[1]:
            table = next(tables)
            line[2] = f"It is {table.name} in {table.schema}."
    file = folder / "dictionary.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows(lines)
    return combine(database, dictionary.read(file))


def test_each_table_keeps_its_own_name_from_the_catalogue_to_the_query(awkward: Database, tmp_path: Path) -> None:
    database = _described(awkward, tmp_path)
    assert [str(p) for p in database.problems] == []
    assert {t.description for t in database.tables} == {f"It is {t.name} in {t.schema}." for t in awkward.tables}
    (tmp_path / "rules.yaml").write_text(
        "- {name: Net, definition: 'sales.2024.net / 2'}\n- {name: Gross, definition: 'gross / 2'}\n", encoding="utf-8"
    )
    database = combine(database, glossary.read(tmp_path / "rules.yaml"))
    out = tmp_path / "awkward"
    compile_database(database, out)
    assert not compile_database(database, out, check=True).saved
    assert validate(out) == []
    bundle = load(out)
    assert len(bundle.tables) == len(awkward.tables) == 9
    found = {card.name: card for card in cards.read(out).tables.values()}
    assert found['"sales.2024"'].path != found['sales."2024"'].path == "/tables/sales.2024.md"
    assert found['"sales.2024"'].joins[0][0] == "/tables/sales.2024.md"
    assert found['"a.b".c'].joins == ((found['"sales.2024"'].path, '"a.b".c.one = "sales.2024".id'),)
    rules = {card.title: card.tables for card in cards.read(out).rules.values()}
    assert rules["Gross"] == {found['"sales.2024"'].path: ("gross",)}
    index = (out / "index.md").read_text("utf-8")
    assert all(f"]({card.path})" in index for card in found.values())


def test_every_name_is_one_that_postgresql_reads(postgres: Server, awkward: Database, tmp_path: Path) -> None:
    assert postgres.admin is not None
    compile_database(awkward, tmp_path / "awkward")
    with psycopg.connect(**postgres.admin, dbname="awkward") as connection:
        for card in cards.read(tmp_path / "awkward").tables.values():
            connection.execute(f"SELECT id FROM {card.name}".encode())


def test_a_name_with_a_dot_may_be_written_without_quotes_where_no_schema_is_meant(
    awkward: Database, tmp_path: Path
) -> None:
    alone = Database("x", tuple(t for t in awkward.tables if t.schema == "public"), sources=awkward.sources)
    (tmp_path / "d.csv").write_text("table,column,description\nsales.2024,gross,With tax\n", encoding="utf-8")
    database = combine(alone, dictionary.read(tmp_path / "d.csv"))
    table = database.table("sales.2024")
    assert database.problems == () and table
    assert [c.meaning for c in table.columns] == [None, "With tax"]


def test_two_tables_of_one_name_are_refused_before_anything_is_saved(tmp_path: Path) -> None:
    table = Table("orders", (Column("id", "int"),))
    database = Database("x", (table, table), sources=(Source("schema", "x", "X"),))
    for check in (False, True):
        with pytest.raises(UserError, match="2 tables and rules gave 1 concepts"):
            compile_database(database, tmp_path / "x", check=check)
    assert not (tmp_path / "x").exists()


def test_no_cell_of_inits_dictionary_is_a_formula(awkward: Database, tmp_path: Path) -> None:
    text = drafts.dictionary(awkward, [])
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell.lstrip("\ufeff").startswith(("=", "＝", "@"))]
    assert '\'=HYPERLINK("http://x")' in cells and "'\ufeff=1+1" in cells and "'=SUM(A1)" in cells
    database = _described(awkward, tmp_path)
    meanings = {t.name: t.columns[1].meaning for t in database.tables if t.name in NAMES}
    assert meanings == dict(zip(NAMES, COMMENTS, strict=True))
    assert database.problems == ()


def test_a_workspace_of_such_a_database(postgres: Server, tmp_path: Path) -> None:
    """`compile --from`, `validate`, `index --check` and `compile --check`, as people call them."""
    from support.databases import url

    with made(postgres, "awkward_too", _script(NAMES)) as params:
        (tmp_path / "config.yaml").write_text("", encoding="utf-8")
        compiled = ("compile", "awkward_too", "--from", url(params, "awkward_too"))
        done = run("okf-compiler", *compiled, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for call in (
            (*compiled, "--check"),
            ("validate", "--strict", "awkward_too"),
            ("index", "--check", "awkward_too"),
        ):
            done = run("okf-compiler", *call, cwd=tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
