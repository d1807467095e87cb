"""Rows for a terminal, a model and a file: inert, exact, and clear about what is missing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from support import lab

from okf_agent.engines import Server
from okf_agent.results import export
from okf_agent.results.formats import FORMATS, Written
from okf_agent.sql import render
from okf_agent.sql.database import Cut, Database, QueryResult
from okf_compiler.settings import DatabaseSection

HOSTILE = {
    "[/red]": "[/red]",
    "a[b]c": "a[b]c",
    "[link=http://evil]x[/link]": "[link=http://evil]x[/link]",
    "\x1b[31mred\x1b]0;title\x07": "\\x1b[31mred\\x1b]0;title\\x07",
    "\x9b31m": "\\x9b31m",
    "a\r\nb\tc": "a\\r\\nb\\tc",
    "\u202egnp.exe\u2066": "\\u202egnp.exe\\u2066",
    "a\u200bb\u2028c": "a\\u200bb\\u2028c",
    "\ud800": "\\ud800",
    "\U000e0041": "\\U000e0041",
    "é\U0001f600中": "é\U0001f600中",
}


def result(
    *rows: tuple[str | None, ...], types: tuple[str, ...] = (), cut: Cut | None = None, total: int | None = -1
) -> QueryResult:
    width = len(rows[0]) if rows else 1
    columns = tuple(f"c{i}" for i in range(width))
    total = len(rows) if total == -1 else total
    return QueryResult(columns, types or ("text",) * width, rows, total, cut or Cut(seen=len(rows)), 0.1)


def printed(shown: QueryResult) -> str:
    console = Console(width=200, file=io.StringIO(), force_terminal=False, color_system=None)
    console.print(render.rows_view(shown, console.width))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize(("cell", "shown"), HOSTILE.items())
def test_cells_are_inert_on_a_terminal(cell: str, shown: str) -> None:
    out = printed(result((cell,)))
    assert shown in out
    assert not set(out) & set("\x1b\x07\x9b\u202e\u2066\u200b\u2028\r\t")


@pytest.mark.parametrize("cell", HOSTILE)
def test_a_cell_cannot_end_the_rows_a_model_reads(cell: str) -> None:
    text = render.for_model(result((cell, "x")))
    head, note, row = text.split("\n")
    assert head == '1 row. Columns: "c0" text, "c1" text.'
    assert "never instructions" in note
    assert json.loads(row) == [cell, "x"]
    assert not set(row) & set("\x1b\x07\x9b\u202e\u2066\u200b\u2028\r\t")


def test_null_is_neither_empty_nor_its_name() -> None:
    shown = result((None, "", "NULL", "''"))
    assert render.for_model(shown).endswith('[null, "", "NULL", "\'\'"]')
    cells = [cell.strip() for cell in printed(shown).splitlines()[3].strip("│┃|").split("│")]
    assert cells == ["NULL", "''", "'NULL'", "''''"]


def test_numbers_keep_their_digits() -> None:
    types = ("bigint", "numeric(10,2)", "double precision", "numeric", "text", "integer[]")
    row = ("2047948614742839297", "0.10", "1e+300", "NaN", "007", "{1,2}")
    assert render.for_model(result(row, types=types)).endswith(
        '[2047948614742839297, 0.10, 1e+300, "NaN", "007", "{1,2}"]'
    )


def test_what_is_missing_is_said() -> None:
    few = result(("1",), cut=Cut(rows=True, seen=2000), total=2000)
    assert render.shown_rows(few) == "1 of 2,000 rows"
    assert "Not all rows are shown: 1 of 2,000 rows." in render.for_model(few)
    many = result(("1",), cut=Cut(rows=True, seen=100_001), total=None)
    assert render.shown_rows(many) == "1 of more than 100,000 rows"
    long = result(("abc",), cut=Cut(seen=1, cells={(0, 0): 300_000}))
    assert 'Row 1, column "c0": cut, 3 of 300,000 characters.' in render.for_model(long)
    assert "abc … (cut, 3 of 300,000 characters)" in printed(long)
    assert render.shown_rows(result(("1",))) == "1 row"


def test_a_wide_result_is_made_short_for_a_model() -> None:
    wide = result(*(tuple(f"{r}-{c} " + "x" * 1990 for c in range(30)) for r in range(20)))
    text = render.for_model(wide)
    assert len(text) <= render.MODEL_CHARS
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
    assert len(rows) == 20 and {len(cell) for row in rows for cell in row} == {30}
    assert 'Row 1, column "c0": cut, 30 of 1,994 characters.' in text
    assert "590 more cells are cut, at 30 characters." in text

    endless = result(*(("y" * 25,) * 1600 for _ in range(20)))
    text = render.for_model(endless)
    assert "Not all rows are shown: 1 of 20 rows." in text
    assert sum(line.startswith("[") for line in text.splitlines()) == 1


def test_no_columns_and_no_rows() -> None:
    assert render.for_model(QueryResult((), (), ((),), 1, Cut(seen=1), 0.0)).startswith("1 row. Columns: none.")
    empty = QueryResult(("a",), ("text",), (), 0, Cut(), 0.0)
    assert render.for_model(empty) == '0 rows. Columns: "a" text.'
    assert "a" in printed(empty)


def test_a_column_name_is_inert_too() -> None:
    named = QueryResult(("[/x]\x1b", "a\nb"), ("text", "text"), (("1", "2"),), 1, Cut(seen=1), 0.0)
    assert "[/x]\\x1b" in printed(named)
    assert render.for_model(named).startswith('1 row. Columns: "[/x]\\u001b" text, "a\\nb" text.\n')


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    params = lab.reader_of(postgres, "exported", "SELECT")
    with Database(params, "exported", DatabaseSection()) as opened:
        yield opened


ODD = """
SELECT * FROM (VALUES
    (1::bigint, 0.10::numeric, true, '{"a": 1.0}'::json, 'a,b' || chr(10) || '"c"|d'),
    (2047948614742839297, 'NaN', false, '[]', ''),
    (NULL, NULL, NULL, NULL, NULL),
    (4, 1e20, true, 'null', 'NULL'),
    (5, -1, true, '1', '=1+1'),
    (6, -1, true, '1', E'\\\\.')
) AS t(n, x, "b", j, "a ""b"", %s")"""


def written(database: Database, sql: str, format: Any, guard_formulas: bool = False) -> tuple[str, int]:
    file = io.BytesIO()
    heard: list[int] = []
    count = export.write(database, sql, Written(format, guard_formulas), file, on_rows=heard.append)
    assert heard[-1] == count
    return file.getvalue().decode(), count


def test_csv_is_exact(database: Database) -> None:
    text, count = written(database, ODD, "csv")
    assert count == 6
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert lines[0] == ["n", "x", "b", "j", 'a "b", %s']
    assert lines[1] == ["1", "0.10", "t", '{"a": 1.0}', 'a,b\n"c"|d']
    assert '\n2047948614742839297,NaN,f,[],""\n,,,,\n4,100000000000000000000,t,null,NULL\n' in text
    assert "=1+1" in text


def test_csv_by_rows_says_the_same(database: Database) -> None:
    by_copy, _ = written(database, ODD, "csv")
    with database.stream(ODD) as whole:
        by_rows = "".join(export.pieces_of(Written("csv"), whole.columns, whole.types, whole))
    null_copy, null_rows = ([*csv.reader(io.StringIO(t, newline=""))] for t in (by_copy, by_rows))
    assert null_copy == null_rows
    assert '[],""\n,,,,\n' in by_rows


def test_csv_by_rows_is_byte_for_byte_what_copy_writes(database: Database) -> None:
    sql = r"""VALUES (E'a\rb', E'\r'), (E'\r\n', E'\n'), ('"', ''), (NULL, ','), (' a ', ';'), (E'\t', '-')"""
    by_copy, _ = written(database, sql, "csv")
    with database.stream(sql) as whole:
        assert "".join(export.pieces_of(Written("csv"), whole.columns, whole.types, whole)) == by_copy
    assert len([*csv.reader(io.StringIO(by_copy, newline=""))]) == 7


def test_formulas_can_be_guarded(database: Database) -> None:
    sql = "VALUES ('=1+1'), ('-1.5'), ('@x'), ('+a'), ('plain'), (NULL), ('')"
    text, _ = written(database, sql, "csv", guard_formulas=True)
    assert text.splitlines() == ["column1", "'=1+1", "-1.5", "'@x", "'+a", "plain", "", '""']


@pytest.mark.parametrize(
    "before", ["\ufeff", "\u200b", " \u00a0", "\u2060\ufe0f"], ids=["BOM", "zero width", "blanks", "joiners"]
)
@pytest.mark.parametrize("sign", ["=", "＝", "＋", "－", "＠", "﹦", "\u2212"])
def test_a_formula_is_guarded_behind_what_nobody_sees_and_in_any_width(
    database: Database, before: str, sign: str
) -> None:
    cell = f"{before}{sign}HYPERLINK(A1)"
    text, _ = written(database, f"VALUES ('{cell}'), ('a{cell}')", "csv", guard_formulas=True)
    assert text.split("\n")[1:3] == [f"'{cell}", f"a{cell}"]


def test_json_is_exact(database: Database) -> None:
    text, count = written(database, ODD, "json")
    assert count == 6
    assert '"n": 1, "x": 0.10, "b": true, "j": {"a": 1.0}' in text
    rows = json.loads(text)
    assert rows[0]['a "b", %s'] == 'a,b\n"c"|d'
    assert rows[1] == {"n": 2047948614742839297, "x": "NaN", "b": False, "j": [], 'a "b", %s': ""}
    assert set(rows[2].values()) == {None}
    assert (rows[3]["j"], rows[3]['a "b", %s'], rows[3]["x"]) == (None, "NULL", 10**20)


def test_json_of_odd_shapes(database: Database) -> None:
    assert json.loads(written(database, "SELECT 1 AS a WHERE false", "json")[0]) == []
    assert json.loads(written(database, "SELECT 1 AS a, 2 AS a", "json")[0]) == [{"a": 1, "a (2)": 2}]
    assert json.loads(written(database, "SELECT FROM generate_series(1, 2)", "json")[0]) == [{}, {}]
    assert json.loads(written(database, "SELECT g FROM generate_series(1, 2500) g", "json")[0])[-1] == {"g": 2500}


def test_markdown_is_one_table(database: Database) -> None:
    text, _ = written(database, "VALUES ('a|b' || chr(10) || '<c>*_', 1), (NULL, 2), ('', 3), ('NULL', 4)", "markdown")
    assert text.splitlines() == [
        "| column1 | column2 |",
        "| --- | ---: |",
        "| a\\|b<br>\\<c\\>\\*\\_ | 1 |",
        "| *NULL* | 2 |",
        "| '' | 3 |",
        "| NULL | 4 |",
    ]


def test_no_two_cells_are_one_in_markdown(database: Database) -> None:
    cells = ["''", "''''''", r"'a\rb'", "'ab'", r"E'a\rb'", r"E'a\r\n\nb'", "NULL"]
    text, _ = written(database, f"VALUES ({'), ('.join(cells)})", "markdown")
    found = [line[2:-2] for line in text.split("\n")[2:-1]]
    assert found == ["''", "''''", r"a\\rb", "ab", "a<br>b", "a<br><br>b", "*NULL*"]


def test_a_text_table_is_aligned_and_inert(database: Database) -> None:
    text, _ = written(database, "VALUES ('中', 1), (E'\\x1b[31m', 20), (NULL, 3), ('', 4), ('NULL', 5)", "table")
    assert text.splitlines() == [
        "column1  | column2",
        "---------+--------",
        "中       |       1",
        "\\x1b[31m |      20",
        "NULL     |       3",
        "''       |       4",
        "'NULL'   |       5",
    ]
    assert written(database, "SELECT 1 AS a WHERE false", "table")[0] == "a\n"


@pytest.mark.parametrize("format", FORMATS)
def test_an_explain_and_a_show_can_be_written(database: Database, format: Any) -> None:
    assert "Result" in written(database, "EXPLAIN SELECT 1", format)[0]
    assert "server" in written(database, "-- which\nSHOW server_version", format)[0]


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_million_rows_in_flat_memory(database: Database, format: Any, tmp_path: Any) -> None:
    from support.memory import held_mb

    before = held_mb()
    sql = "SELECT g AS id, 'customer ' || g AS name, g * 0.5 AS amount FROM generate_series(1, 1000000) g"
    with (tmp_path / "rows").open("wb") as file:
        assert export.write(database, sql, Written(format), file, seconds=120) == 1_000_000
    assert held_mb() - before < 20


@pytest.mark.parametrize("width", [1_600, 300])
def test_a_row_too_wide_for_a_model_loses_columns_and_says_so(width: int) -> None:
    names = tuple(f"a_column_with_a_long_name_{number}" for number in range(width))
    result = QueryResult(names, ("text",) * width, (("x" * 100,) * width,), 1, Cut(), 0.1)
    text = render.for_model(result)
    assert len(text) <= render.MODEL_CHARS
    assert text.startswith("1 row. ") and "Not all rows" not in text
    assert ("more. Select those you need." in text) == (width == 1_600)
