"""Reading the LiveSQLBench format: real document sets, and what real ones get wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.documents import MEANINGS, SCHEMA, rule, write_documents

from okf_compiler.documents import Documents, list_databases
from okf_compiler.errors import UserError
from okf_compiler.model import Database
from okf_compiler.readers.livesqlbench import read
from okf_compiler.settings import load_settings

FOLDERS = {
    "livesqlbench-base-lite": (18, 175, 2286, 1082),
    "livesqlbench-base-lite-postgres": (2, 25, 287, 110),
    "livesqlbench-base-full-v1": (7, 73, 601, 481),
}


def document_sets(root: Path) -> dict[str, Documents]:
    return list_databases(load_settings(root, {"agent": {"raw_docs": str(root)}}))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_real_document_set_is_read(test_data: Path, folder: str) -> None:
    databases = [read(documents) for documents in document_sets(test_data / folder).values()]
    tables = [table for database in databases for table in database.tables]
    rules = [rule for database in databases for rule in database.rules]
    columns = [column for table in tables for column in table.columns]
    assert (len(databases), len(tables), len(columns), len(rules)) == FOLDERS[folder]
    keyless = ["joint_condition", "joint_performance", "mechanical_status"]
    assert [t.name for t in tables if not t.primary_key] == (keyless if folder == "livesqlbench-base-lite" else [])
    # What cannot be read is reported, and in these files only misspelt meanings are.
    assert {p.message.partition("names a ")[1] for d in databases for p in d.problems} <= {"names a "}


def test_cross_border_reads_despite_its_quoted_keywords(test_data: Path) -> None:
    database = read(document_sets(test_data / "livesqlbench-base-full-v1")["cross_border"])
    flow, risk = database.table("dataflow"), database.table("RiskManagement")
    assert flow is not None and risk is not None
    assert [c.name for c in flow.columns] == ["RecordRegistry", "FLOWSTAMP", "flow_overview"]
    assert flow.primary_key == ("RecordRegistry",)
    assert [(k.columns, k.ref_table) for k in risk.foreign_keys] == [(("flow_link",), "dataflow")]
    assert len(flow.columns[2].fields) > 10


def test_meanings_that_name_no_table_are_reported_with_their_line(test_data: Path) -> None:
    database = read(document_sets(test_data / "livesqlbench-base-full-v1")["virtual_idol"])
    lost = [p for p in database.problems if "names a table that the schema does not have" in p.message]
    assert len(lost) == 7
    assert [p.line for p in lost] == list(range(9, 16))


def test_publishers_address(test_data: Path) -> None:
    lite = read(document_sets(test_data / "livesqlbench-base-lite")["disaster"])
    assert lite.sources[0].resource == (
        "https://huggingface.co/datasets/birdsql/livesqlbench-base-lite-sqlite/blob/main/disaster/disaster_schema.txt"
    )


def test_names_types_keys_and_fields(tmp_path: Path) -> None:
    database = read(write_documents(tmp_path / "root"))
    orders = database.table("orders")
    assert orders is not None and database.problems == ()
    assert [(c.name, c.type, c.nullable) for c in orders.columns] == [
        ("id", "bigint", False),
        ("customer_id", "bigint", True),
        ("total", "numeric(10,2)", True),
        ("details", "jsonb", True),
    ]
    assert orders.columns[0].default == "nextval('orders_id_seq'::regclass)"
    assert orders.foreign_keys[0].ref_table == "customers"
    assert [f.path for f in orders.columns[3].fields] == [("delivery", "carrier"), ("delivery", "days")]
    assert [c.meaning for c in database.tables[0].columns] == ["Number of the customer.", "Full name | as given."]
    assert database.rules[1].depends_on == ("0",)
    assert database.sources[0].resource == "root/x/x_schema.txt"


COLUMNS = {
    "mood USER-DEFINED NULL": ("mood", "USER-DEFINED"),
    "tags ARRAY NULL": ("tags", "ARRAY"),
    "tags text[] NOT NULL": ("tags", "text[]"),
    "Timestamp text(20) NULL": ("timestamp", "text(20)"),
    '"Order Date" date NULL': ("Order Date", "date"),
    "ts timestamp without time zone NULL": ("ts", "timestamp without time zone"),
    "n double precision DEFAULT 0.5 CHECK (n > 0)": ("n", "double precision"),
    "n int GENERATED ALWAYS AS IDENTITY": ("n", "int"),
    "n integer REFERENCES customers (id)": ("n", "integer"),
    '"default" text DEFAULT \'a, "b"\'': ("default", "text"),
    "größe numeric NULL": ("größe", "numeric"),
    "naïve numeric(5,2) NOT\nNULL": ("naïve", "numeric(5,2)"),
}


@pytest.mark.parametrize("line", COLUMNS)
def test_column_definitions(tmp_path: Path, line: str) -> None:
    schema = f'CREATE TABLE "sales"."Items" (\nid int,\n{line}\n);\n"First" 3 rows:\n...\n'
    database = read(write_documents(tmp_path, schema=schema, meanings=None, rules=None))
    table = database.table("items", "sales")
    assert table is not None
    assert (table.columns[1].name, table.columns[1].type) == COLUMNS[line]
    assert [p for p in database.problems if p.line] == []


def test_constraints_on_several_lines(tmp_path: Path) -> None:
    schema = """CREATE TABLE IF NOT EXISTS t (
        a int, b int, c text UNIQUE,
        CONSTRAINT pk PRIMARY KEY (a,
            B),
        CONSTRAINT fk FOREIGN KEY (a, b)
            REFERENCES other."Parts" ("X", y) ON DELETE CASCADE,
        UNIQUE (b, c), CHECK (a < 5)
    )"""
    table = read(write_documents(tmp_path, schema=schema, meanings=None, rules=None)).tables[0]
    assert table.primary_key == ("a", "b")
    assert table.unique == (("c",), ("b", "c"))
    assert table.checks == ("a < 5",)
    key = table.foreign_keys[0]
    assert (key.columns, key.ref_schema, key.ref_table, key.ref_columns) == (("a", "b"), "other", "Parts", ("X", "y"))


UNREADABLE = {
    "a broken column": ("CREATE TABLE t (\na int,\nb !! what,\nc text\n);\n", 3, ["a", "c"]),
    "a broken key": ("CREATE TABLE t (\na int,\nPRIMARY KEY a b\n);\n", 3, ["a"]),
    "no closing bracket": ("CREATE TABLE t (\na int,\nb text\n", 3, ["a", "b"]),
    "text before": ("what is this\nCREATE TABLE t (a int);\n", 1, ["a"]),
    "text after": ("CREATE TABLE t (a int);\nCREAT TABLE u (b int);\n", 2, ["a"]),
    "another statement": ("CREATE TABLE t (a int);\nCREATE INDEX i ON t (a);\n", 2, ["a"]),
    "an open quote": ('CREATE TABLE t (a int);\n\nCREATE TABLE "u (b int);\n', 3, ["a"]),
    "a column twice": ("CREATE TABLE t (\na int,\nb text,\nA text\n);\n", 4, ["a", "b"]),
    "a table twice": ("CREATE TABLE t (a int);\nCREATE TABLE t (b int);\n", 2, ["a"]),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_reported_and_the_rest_is_kept(tmp_path: Path, case: str) -> None:
    schema, line, columns = UNREADABLE[case]
    documents = write_documents(tmp_path, schema=schema, meanings={}, rules=[])
    database = read(documents)
    assert [c.name for c in database.tables[0].columns] == columns
    assert [(p.file, p.line) for p in database.problems] == [(str(documents.schema), line)]


def test_what_follows_a_statement_that_cannot_be_read_is_reported_too(tmp_path: Path) -> None:
    schema = "CREATE TABLE t (a int);\nCREATE TYPE m AS\nENUM ('x');\nALTER TABLE t ADD PRIMARY KEY (a);\n"
    problems = read(write_documents(tmp_path, schema=schema, meanings={}, rules=[])).problems
    assert [(p.line, p.message.partition(":")[0]) for p in problems] == [
        (2, "this is not a CREATE TABLE with columns"),
        (4, "belongs to no statement"),
    ]


def test_latex_whose_backslashes_the_file_does_not_double(tmp_path: Path) -> None:
    documents = write_documents(tmp_path)
    definition = r"\frac{\text{a}}{b} \times \beta \right) \\times\tb\teach\nc"
    rule = '{"id": 1, "knowledge": "R", "description": "", "definition": "%s", "type": "t", "children_knowledge": -1}'
    documents.rules.write_text(rule % definition, encoding="utf-8")
    (found,) = read(documents).rules
    assert found.definition == "\\frac{\\text{a}}{b} \\times \\beta \\right) \\times\tb\teach\nc"


def test_crlf_and_bom_change_nothing(tmp_path: Path) -> None:
    plain = read(write_documents(tmp_path, rules=[rule(0, "a", "b\nc")]))
    windows = {"schema": SCHEMA, "meanings": json.dumps(MEANINGS), "rules": json.dumps(rule(0, "a", "b\nc")) + "\n"}
    marked = {k: b"\xef\xbb\xbf" + v.replace("\n", "\r\n").encode() for k, v in windows.items()}
    assert read(write_documents(tmp_path, **marked)) == plain


def test_rule_lines_that_cannot_be_read(tmp_path: Path) -> None:
    lines = [
        json.dumps(rule(1, "good")),
        '{"id": 2, "knowledge": ',
        "[1]",
        "",
        json.dumps(rule(1, "same id")),
        json.dumps({"knowledge": "no id"}),
        json.dumps(rule(3, "wrong", children_knowledge={"a": 1})),
        json.dumps(rule(4, "gone", children_knowledge=[99])),
        json.dumps({"id": 5, "knowledge": 7, "definition": ["a"]}),
    ]
    database = read(write_documents(tmp_path, rules="\n".join(lines)))
    assert [r.id for r in database.rules] == ["1", "1-2", "line-6", "3", "4", "5"]
    assert sorted(p.line for p in database.problems) == [2, 3, 5, 6, 7, 8, 9, 9]


def test_an_id_of_5000_digits_is_a_problem_of_its_line(tmp_path: Path) -> None:
    rules = '{"id": ' + "9" * 5000 + ', "knowledge": "A"}\n{"id": 2, "knowledge": "B", "definition": "b"}'
    database = read(write_documents(tmp_path, rules=rules))
    assert [rule.id for rule in database.rules] == ["2"]
    assert [p.line for p in database.problems if "not a JSON object" in p.message] == [1]


def test_meanings_that_do_not_fit(tmp_path: Path) -> None:
    lines = ('"x|orders|total": "once"', '"x|orders|total": "twice"', '"x|orders|nope": "a"', '"odd": "b"')
    text = "{\n" + ",\n".join([*lines, '"x|orders|id": 5']) + "\n}"
    database = read(write_documents(tmp_path, meanings=text))
    assert sorted(p.line for p in database.problems) == [2, 4, 5, 6]
    assert database.tables[1].columns[2].meaning == "twice"


REFUSED = {
    "schema is missing": ({"schema": None}, "is missing"),
    "schema is empty": ({"schema": ""}, "has no CREATE TABLE"),
    "schema is not UTF-8": ({"schema": b"CREATE TABLE t (\xff int)"}, "is not UTF-8"),
    "meanings are not JSON": ({"meanings": '{\n"a": }'}, "_base.json:2: not JSON"),
    "a meaning of 5,000 digits": (
        {"meanings": '{"x|orders|id": ' + "9" * 5000 + "}"},
        "_base.json: cannot be read",
    ),
    "meanings are nested": ({"meanings": "[" * 50_000}, "_base.json: cannot be read: maximum recursion"),
    "meanings are a list": ({"meanings": "[]"}, "must be one JSON object"),
    "rules are not UTF-8": ({"rules": b"\xff"}, "is not UTF-8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_broken_documents_are_one_message(tmp_path: Path, case: str) -> None:
    files, message = REFUSED[case]
    with pytest.raises(UserError, match=message):
        read(write_documents(tmp_path, **files))


def test_missing_companions_are_problems(tmp_path: Path) -> None:
    database: Database = read(write_documents(tmp_path, meanings=None, rules=None))
    assert [p.message for p in database.problems] == [
        "is missing, so columns have no meanings",
        "is missing, so there are no business rules",
    ]
