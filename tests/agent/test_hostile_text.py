"""Text that a model, a document or a database wrote to make its reader fail, or never end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from okf_agent.bundles import reading
from okf_agent.evaluation import sql_shape, transpile
from okf_agent.models.arguments import ArgumentError, parse_arguments
from okf_agent.models.errors import one_line
from okf_agent.models.written_calls import calls_in_text
from okf_agent.models.written_sql import sql_in_text
from okf_agent.sql import sql_text
from okf_agent.sql.query_error import QueryError
from okf_agent.tools import read_file
from okf_agent.tools.grounding import Evidence
from okf_compiler import gist, markdown, validate
from okf_compiler.console import without_passwords
from okf_compiler.linking import rule_names
from okf_compiler.readers import dictionary

SECONDS = 5.0
"""Of processor time for 100,000 characters: a hundred times what it takes, a hundredth of what it would."""
NAMES = ("run_sql", "submit_answer")


def calls(text: str) -> object:
    return calls_in_text(text, NAMES)


def numbers(text: str) -> object:
    evidence = Evidence()
    evidence.add_text(" ".join(map(str, range(10_000, 20_000))))
    return evidence.missing(text)


def parse_sql(text: str) -> object:
    try:
        return sql_text.parse(text)
    except QueryError:
        return None


HOSTILE: list[tuple[str, Callable[[str], object], str]] = [
    ("one word before an object", calls, "a" * 100_000 + '{"x": 1}'),
    ("one word before a call", calls, "a" * 100_000 + '\n{"name": "run_sql", "arguments": {}}'),
    ("many objects", calls, "{} " * 33_000),
    ("parameters without an end", calls, "<function=run_sql>" + "<parameter=a>" * 7_500),
    ("marks before a call", calls, "<tool_call>" * 9_000 + '{"name": "run_sql", "arguments": {}}'),
    ("fences before a call", calls, "```" * 33_000 + '{"name": "run_sql", "arguments": {}}'),
    ("nested objects", calls, '{"a":' * 20_000),
    ("line ends after a query", sql_in_text, "SELECT a FROM b" + "\n" * 100_000 + "."),
    ("spaced line ends after a query", sql_in_text, "SELECT a FROM b" + " \n" * 50_000 + "."),
    ("thoughts without an end", sql_in_text, "<think>" * 14_000),
    ("paragraphs in an open bracket", sql_in_text, "SELECT ( a FROM b" + "\n\na" * 33_000),
    ("fences", sql_in_text, "```\n" * 25_000),
    ("an answer of numbers", numbers, "".join(f"{number}.5 " for number in range(30_000, 44_000))),
    ("an answer of digits", numbers, "9" * 100_000 + " million"),
    ("an answer of line ends", numbers, "\n" * 100_000),
    ("backticks", markdown.codes, "`" * 100_000),
    ("backticks in runs", markdown.codes, "".join("`" * length + "a" for length in range(440))),
    ("a line of dashes", dictionary._RULE.fullmatch, "-" * 100_000 + "!"),
    ("spaces at the beginning", rule_names._DEFINES.match, " " * 100_000),
    ("a name before an address", validate._PASSWORD.search, "a." * 50_000),
    ("footnotes without an end", validate._CITES.search, "[^" * 50_000),
    ("spaces in a meaning", gist._TAIL.search, "a" + " " * 100_000 + "b"),
    ("one word in an error", without_passwords, "a" * 100_000),
    ("capitals in brackets", rule_names._ABBREVIATION.fullmatch, "A" * 100_000 + "!"),
    ("capitals at the beginning", rule_names._DEFINES.match, "A" * 100_000 + "!"),
    ("conditions", sql_shape.parse, "SELECT a FROM t WHERE " + "a = 1 AND " * 900 + "a = 1"),
    ("spaces after a fence of a query", parse_sql, "SELECT 1\n```" + " " * 100_000 + "x"),
    ("line ends after a fence of a query", parse_sql, "SELECT 1\n```" + "\n" * 100_000 + "x"),
    ("fences after a query", parse_sql, "SELECT 1" + "\n```" * 25_000 + "x"),
    ("literals that could go on", parse_sql, "SELECT " + "E'a' \n --\n" * 9_000),
    ("a literal that could go on", parse_sql, "SELECT E'a'" + " --\n" * 25_000),
    ("brackets for SQLite", transpile.to_postgres, "SELECT " + "(" * 20_000),
]


@pytest.mark.parametrize(("read", "text"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hundred_thousand_characters_are_read_in_time(read: Callable[[str], object], text: str) -> None:
    begin = time.process_time()
    read(text)
    assert time.process_time() - begin < SECONDS


def test_what_is_cut_short_is_read_as_before() -> None:
    assert calls('I look. <tool_call>\n```json\nrun_sql({"sql": "SELECT 1"})') == (
        "I look.",
        [("run_sql", '{"sql": "SELECT 1"}')],
    )
    written = "<function=run_sql><parameter=sql>SELECT 1</parameter><parameter=x>"
    assert calls(written) == ("", [("run_sql", '{"sql": "SELECT 1"}')])
    assert sql_in_text("<think>a</think>b</think>SELECT 1\n \n\nIt is one. <think>") == "SELECT 1"
    assert sql_in_text("SELECT a,\n\nb FROM t WHERE (x\n\nand y)\n\nIt is so.") == (
        "SELECT a,\n\nb FROM t WHERE (x\n\nand y)"
    )


@pytest.mark.parametrize("cell", ["1e9999999", "-1E999999", "1e-9999999", "NaN", "sNaN", "Infinity", "9" * 20_000])
def test_no_cell_is_a_number_too_large_to_compare(cell: str) -> None:
    evidence = Evidence()
    evidence.add_rows([[cell, "0.125", "12345678901234567890123456789012345678"]])
    assert evidence.missing("12.5%, 12,345,678,901,234,567,890,123,456,789,012,345,678 and 7%") == ("7%",)


@pytest.mark.parametrize("value", ["[" * 100_000, '[{"a": ' * 20_000])
def test_a_list_nested_too_deep_is_a_path_or_an_error(value: str) -> None:
    with pytest.raises(ArgumentError):
        parse_arguments(read_file.tool(), f'{{"paths": {value}')
    text = value.replace('"', '\\"')
    assert parse_arguments(read_file.tool(), f'{{"paths": "{text}"}}') == {"paths": [value]}


def test_a_place_in_a_file_with_thousands_of_digits_is_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a", encoding="utf-8")
    assert reading.read(tmp_path, "/a.md#" + "9" * 5_000).text == "a"


def test_no_part_of_a_key_is_left_where_an_error_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT_API_KEY", "hunter-2")
    monkeypatch.setenv("LONG_API_KEY", "hunter-2-and-more-of-it")
    for before in range(470, 500):
        said = one_line(ValueError("x" * before + " hunter-2-and-more-of-it"))
        assert "hunter" not in said and "more" not in said and len(said) <= 500


@pytest.mark.parametrize("before", ["", "1", "a.", "-", "see:"])
def test_a_password_is_hidden_whatever_stands_before_its_url(before: str) -> None:
    assert "s3cret" not in without_passwords(f"{before}postgresql://ann:s3cret@db/shop")


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("42.\nSo many are late.", ("42",)),
        ("42. ", ("42",)),
        ("12. customers are late", ("12",)),
        ("1. Ann\n2. Bob", ()),
        (" (1) Ann\n (2) Bob\n 17) is the sum", ("17",)),
        ("1. Ann has 5\n\n2. Bob\n3) Cid", ("5",)),
    ],
)
def test_a_number_that_begins_a_line_is_a_mark_only_in_a_list(answer: str, missing: tuple[str, ...]) -> None:
    assert Evidence().missing(answer) == missing
