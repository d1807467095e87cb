"""The three tools by hand: any path, any arguments, any SQL, and what an answer must stand up to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import hubs

from okf_agent.bundles.reading import PIECE_CHARS
from okf_agent.engines import Server
from okf_agent.models.arguments import ArgumentError, parse_arguments
from okf_agent.models.written_calls import calls_in_text
from okf_agent.sql.database import Database, QueryResult
from okf_agent.sql.query_error import QueryError
from okf_agent.tools import Context, Tool, ToolResult, read_file, run_sql, submit_answer, unknown_tool
from okf_agent.tools.grounding import Evidence
from okf_compiler.settings import DatabaseSection

READ, RUN, SUBMIT = read_file.tool(), run_sql.tool(20), submit_answer.tool()
RULE = "/knowledge/utilization.md"


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    with Database(postgres.agent, hubs.make_database(postgres), DatabaseSection(max_rows=20)) as database:
        yield database


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return hubs.write_bundle(tmp_path / "bundle")


@pytest.fixture
def context(bundle: Path, database: Database) -> Context:
    return Context(bundle=bundle, database=database, step=1)


def read(context: Context, *paths: str) -> ToolResult:
    return READ.run({"paths": list(paths)}, context)


def run(context: Context, sql: str) -> ToolResult:
    return RUN.run({"sql": sql}, context)


def submit(context: Context, sql: str, answer: str) -> ToolResult:
    return SUBMIT.run({"sql": sql, "answer": answer}, context)


# Arguments.


@pytest.mark.parametrize(
    ("tool", "text", "expected"),
    [
        (READ, '{"paths": ["a", "b"]}', {"paths": ["a", "b"]}),
        (READ, '{"paths": "a"}', {"paths": ["a"]}),
        (READ, '{"path": "a"}', {"paths": ["a"]}),
        (READ, '{"path": ["a"]}', {"paths": ["a"]}),
        (READ, '{"paths": "[\\"a\\", \\"b\\"]"}', {"paths": ["a", "b"]}),
        (READ, '"{\\"paths\\": [\\"a\\"]}"', {"paths": ["a"]}),
        (RUN, '{"query": "SELECT 1"}', {"sql": "SELECT 1"}),
        (RUN, '{"sql": "SELECT\n1"}', {"sql": "SELECT\n1"}),
        (SUBMIT, '{"sql": "", "answer": "no"}', {"sql": "", "answer": "no"}),
    ],
)
def test_arguments_in_the_forms_models_use(tool: Tool, text: str, expected: dict[str, Any]) -> None:
    assert parse_arguments(tool, text) == expected


@pytest.mark.parametrize(
    ("tool", "text", "said"),
    [
        (RUN, '{"sql": "SELECT 1"', '{"sql": "SELECT 1"'),
        (RUN, "not json", "not json"),
        (RUN, "", "needs `sql`"),
        (RUN, "{}", "needs `sql`"),
        (RUN, "[]", "must be a JSON object"),
        (RUN, "null", "must be a JSON object"),
        (RUN, '"str"', "must be a JSON object"),
        (RUN, '{"sql": 1}', "must be a string, not 1"),
        (RUN, '{"sql": null}', "must be a string, not null"),
        (RUN, '{"sql": "SELECT 1", "limit": 5}', "no argument `limit`"),
        (READ, '{"paths": [1]}', "a list of strings"),
        (SUBMIT, '{"answer": "42"}', "needs `sql`"),
        (RUN, "[" * 100_000, "nested too deep"),
        (RUN, "x" * 5000, "(5000 characters)"),
    ],
)
def test_arguments_that_cannot_be_used_are_quoted(tool: Tool, text: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_arguments(tool, text)
    assert said in str(caught.value) and "nothing was run" in str(caught.value).lower()
    assert len(str(caught.value)) < 1000


def test_run_sql_states_the_row_limit() -> None:
    assert "At most 7 rows" in run_sql.tool(7).description


def test_an_unknown_tool_is_answered_with_the_real_ones() -> None:
    said = unknown_tool("run_query", [READ, RUN, SUBMIT])
    assert "read_file, run_sql, submit_answer" in said and "Did you mean 'run_sql'?" in said


# read_file.


@pytest.mark.parametrize(
    "path",
    [RULE, "knowledge/utilization.md", "/knowledge/utilization", "knowledge/utilization", " /knowledge/utilization.md"],
)
def test_a_path_may_be_written_in_any_form(context: Context, path: str) -> None:
    found = read(context, path)
    assert found.text.startswith(f"=== {RULE} ===\n---\ntype: Calculation") and not found.failed
    assert (found.files, found.failed_reads) == ((RULE,), 0)


def test_several_paths_stand_each_under_its_own_and_one_failure_spoils_no_other(context: Context) -> None:
    found = read(context, RULE, "/knowledge/utilisation.md", "/tables/hubs.md")
    assert found.files == (RULE, "/tables/hubs.md") and found.failed_reads == 1 and not found.failed
    parts = found.text.split("=== ")
    assert [p.partition(" ===")[0] for p in parts[1:]] == [RULE, "/knowledge/utilisation.md", "/tables/hubs.md"]
    assert RULE in parts[2], "the near miss is named"


def test_a_folder_gives_its_index_or_one_made_from_its_files(context: Context) -> None:
    assert read(context, "/tables").files == ("/tables/index.md",)
    made = read(context, "/knowledge/")
    assert made.files == ("/knowledge",)
    assert "* utilization.md - Utilization: How full a hub is" in made.text


def test_a_file_is_sent_once_and_again_after_it_was_cut(context: Context) -> None:
    assert "0.85" in read(context, RULE).text
    again = read(context, "knowledge/utilization")
    assert "0.85" not in again.text and "already" in again.text and not again.failed
    context.forget()
    assert "0.85" in read(context, RULE).text


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md",
        "/../outside.md",
        "knowledge/../../outside.md",
        "..\\outside.md",
        "/link.md",
        "/folder/outside.md",
        "outside\0.md",
        "/pipe.md",
        "/config.yaml",
        "C:/outside.md",
        "//etc/passwd",
        "~/outside.md",
        "%2e%2e/outside.md",
        ".hidden.md",
        "/a" * 3000,
        "\ud800.md",
        "file:///etc/passwd",
    ],
)
def test_nothing_outside_the_bundle_is_read(context: Context, bundle: Path, path: str) -> None:
    (bundle.parent / "outside.md").write_text("the secret", encoding="utf-8")
    (bundle / "config.yaml").write_text("the secret", encoding="utf-8")
    (bundle / ".hidden.md").write_text("the secret", encoding="utf-8")
    (bundle / "link.md").symlink_to(bundle.parent / "outside.md")
    (bundle / "folder").symlink_to(bundle.parent, target_is_directory=True)
    os.mkfifo(bundle / "pipe.md")
    found = read(context, path)
    assert "the secret" not in found.text and found.failed and found.failed_reads == 1 and found.files == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00bad", "UTF-8"),
        (b"a\0b", "UTF-8"),
        (b"x" * 5_000_001, "too large"),
    ],
)
def test_what_is_no_readable_text_is_refused(context: Context, bundle: Path, content: bytes, said: str) -> None:
    (bundle / "odd.md").write_bytes(content)
    found = read(context, "/odd.md")
    assert found.failed and said in found.text and len(found.text) < 300


def test_a_byte_order_mark_and_emoji_are_read(context: Context, bundle: Path) -> None:
    (bundle / "bom.md").write_bytes("\ufeff# Grüße 🙂\n".encode())
    assert read(context, "bom").text == "=== /bom.md ===\n# Grüße 🙂\n"


def test_a_long_file_is_read_in_pieces(context: Context, bundle: Path) -> None:
    whole = "".join(f"line {n}\n" for n in range(10_000))
    (bundle / "long.md").write_text(whole, encoding="utf-8", newline="\n")
    asked, pieces = "/long.md", []
    while asked:
        found = read(context, asked)
        piece, _, note = found.text.partition(" ===\n")[2].partition("\n[cut:")
        pieces.append(piece)
        asked = note.rpartition(" ask for ")[2].rstrip("]")
    assert "".join(pieces) == whole and len(pieces) == -(-len(whole) // PIECE_CHARS)


def test_no_path_at_all_is_an_error(context: Context) -> None:
    assert read(context).failed and read(context, " ").failed


# run_sql.


def test_a_query_gives_rows_and_counts(context: Context) -> None:
    found = run(context, "```sql\nSELECT name, used FROM hubs ORDER BY id\n```")
    assert "HUB-17" in found.text and "1234567.89" in found.text
    assert (found.rows, found.sql_attempts, found.sql_errors, found.failed) == (4, 1, 0, False)
    assert found.database_seconds > 0


@pytest.mark.parametrize("sql", ["SELECT nmae FROM hubs", "DROP TABLE hubs", "SELECT 1; SELECT 2", "", "-- only", "\0"])
def test_a_query_that_fails_is_an_error_text(context: Context, sql: str) -> None:
    found = run(context, sql)
    assert (found.failed, found.sql_attempts, found.sql_errors, found.rows) == (True, 1, 1, None)


def test_the_same_query_is_not_run_again(context: Context) -> None:
    first = run(context, "SELECT nmae FROM hubs")
    second = run(context, "SELECT nmae FROM hubs ;")
    assert "exactly this query" in second.text and "name" in second.text and second.database_seconds == 0
    assert first.text.removeprefix("The query failed. ") in second.text
    run(context, "SELECT 1")
    assert "same call before" in run(context, "SELECT 1").text


class OutOfOrder:
    """A database whose first query meets a server out of something, and whose others are answered."""

    def __init__(self, database: Database, sqlstate: str) -> None:
        self.database = database
        self.problem: QueryError | None = QueryError("out of order", sqlstate=sqlstate)

    def run(self, sql: str, *, max_rows: int | None = None) -> QueryResult:
        problem, self.problem = self.problem, None
        if problem:
            raise problem
        return self.database.run(sql, max_rows=max_rows)


@pytest.mark.parametrize(("sqlstate", "again"), [("53100", True), ("53300", True), ("53400", False), ("22012", False)])
def test_the_same_query_is_run_again_where_the_fault_may_have_passed(
    bundle: Path, database: Database, sqlstate: str, again: bool
) -> None:
    context = Context(bundle=bundle, database=OutOfOrder(database, sqlstate), step=1)
    assert run(context, "SELECT count(*) FROM hubs").failed
    assert ("[4]" in run(context, "SELECT count(*) FROM hubs").text) is again


def test_without_content_nothing_is_run(bundle: Path) -> None:
    context = Context(bundle=bundle)
    found = run(context, "SELECT 1")
    assert (found.failed, found.sql_attempts, found.sql_errors, found.rows) == (False, 1, 0, None)
    assert "no content" in found.text
    assert submit(context, "SELECT name FROM hubs;", "The hubs.").text == "Accepted."
    assert context.check is not None
    assert (context.check.answer.sql, context.check.answer.checked) == ("SELECT name FROM hubs", "not_run")


# submit_answer.


@pytest.mark.parametrize(
    ("sql", "answer", "checked", "reason"),
    [
        ("SELECT nmae FROM hubs", "They are hubs.", "error", "failed"),
        ("DELETE FROM hubs", "Done.", "error", "failed"),
        ("SELECT name FROM hubs WHERE id > 99", "None.", "no_rows", "no rows"),
        ("SELECT max(used) FROM hubs WHERE id = 3", "Unknown.", "lone_null", "NULL"),
        ("SELECT count(*) FROM hubs", "There are 5 hubs.", "ran", "5 in the answer"),
    ],
)
def test_a_doubtful_answer_goes_back_once_and_then_stands(
    context: Context, sql: str, answer: str, checked: str, reason: str
) -> None:
    first = submit(context, sql, answer)
    assert first.failed and reason in first.text and context.check is None
    assert "sent back" in submit(context, sql, answer).text, "the same reply cannot have read the reason"
    context.step += 1
    assert submit(context, sql, answer).text == "Accepted."
    assert context.check is not None and context.check.answer.checked == checked
    assert context.check.ungrounded_numbers == (("5",) if "5" in answer else ())


def test_a_good_answer_stands_at_once_with_its_rows(context: Context) -> None:
    found = submit(context, "```sql\nSELECT id, name FROM hubs ORDER BY id;\n```", "All 4 hubs, first HUB-17.")
    assert found.text == "Accepted." and found.sql_attempts == 0 and found.rows is None
    check = context.check
    assert check is not None and check.result is not None
    assert check.answer.sql == "SELECT id, name FROM hubs ORDER BY id"
    assert (check.answer.rows_total, check.answer.checked, len(check.result.rows)) == (4, "ran", 4)
    assert "already" in submit(context, "SELECT 1", "x").text


def test_a_refusal_is_taken_with_a_reason_only(context: Context) -> None:
    assert submit(context, "", " ").failed
    context.step += 1
    assert submit(context, "", "The data has no prices.").text == "Accepted."
    assert context.check is not None and context.check.answer.sql == ""


# Numbers.


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("HUB-17 uses 45.5 of 100.", ()),
        ("About 45.5%, 46 units.", ()),
        ("1,234,567.89 or 1.23 million or 1234568", ()),
        ("1.24 million", ("1.24 million",)),
        ("opened on 2024-05-01, in May 2024", ()),
        ("The threshold is 0.85 (85%).", ()),
        ("-45.50 below", ()),
        ("1. HUB-17\n2) HUB-18", ()),
        ("the 3rd of tier2 and H2O", ()),
        ("99 and 99 and 7.5", ("99", "7.5")),
        ("45.51", ("45.51",)),
        ("4 rows", ()),
        ("10 % of 12", ("10 %",)),
        ("in the year 12", ()),
    ],
)
def test_numbers_are_traced_to_what_was_seen(answer: str, missing: tuple[str, ...]) -> None:
    evidence = Evidence()
    evidence.add_rows([["HUB-17", "45.50", "2024-05-01"], ["HUB-18", "1234567.89", None], ["NaN", "Infinity", "100"]])
    evidence.add_count(4)
    evidence.add_text("Which of the 12 hubs? Above 0.85 a hub is full.")
    assert evidence.missing(answer) == missing


# Calls in text.


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "run_sql", "arguments": {"sql": "SELECT 1"}}',
        'I will look.\n<tool_call>\n{"name": "run_sql", "arguments": {"sql": "SELECT 1"}}\n</tool_call>',
        '```json\n{"name": "run_sql", "parameters": {"sql": "SELECT 1"}}\n```',
        '[TOOL_CALLS][{"name": "run_sql", "arguments": {"sql": "SELECT 1"}}]',
        '{"type": "function", "function": {"name": "run_sql", "arguments": "{\\"sql\\": \\"SELECT 1\\"}"}}',
        "<function=run_sql>\n<parameter=sql>\nSELECT 1\n</parameter>\n</function>",
        'run_sql({"sql": "SELECT 1"})',
    ],
)
def test_a_call_written_as_text_is_found(text: str) -> None:
    before, found = calls_in_text(text, ["run_sql"])
    ((name, arguments),) = found
    assert name == "run_sql" and parse_arguments(RUN, arguments) == {"sql": "SELECT 1"}
    assert before in ("", "I will look.")


@pytest.mark.parametrize("text", ["", "SELECT 1", '{"name": "drop_all", "arguments": {}}', '{"sql": "x"}', "{" * 9999])
def test_other_text_is_no_call(text: str) -> None:
    assert calls_in_text(text, ["run_sql"]) == (text, [])
