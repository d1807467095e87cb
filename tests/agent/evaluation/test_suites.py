"""Suites: what they hold, what they keep back, how they are found, pinned and loaded."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.databases import loaded, made

from okf_agent.config import Config, load_config
from okf_agent.engines import Server
from okf_agent.evaluation import gold, suites
from okf_agent.evaluation.predictions import predictions
from okf_agent.evaluation.suites import databases, pins, sqlite_dump
from okf_agent.evaluation.transpile import to_postgres
from okf_agent.sql.database import Database
from okf_compiler.documents import find_documents
from okf_compiler.errors import UserError
from okf_compiler.settings import DatabaseSection

PROJECT = Path(__file__).parents[3]


def config_of(root: Path, *roots: Path) -> Config:
    return load_config(root, changes=["agent.raw_docs=" + json.dumps([each.as_posix() for each in roots])])


@pytest.fixture
def real(tmp_path: Path, test_data: Path) -> Config:
    return config_of(tmp_path, test_data, PROJECT / "data")


@pytest.mark.parametrize(
    ("name", "tasks", "management", "answers", "refusals", "databases", "ordered"),
    [
        ("shop", 30, 0, 30, 4, 1, 11),
        ("livesqlbench-base-lite", 270, 90, 0, 0, 18, 121),
        ("livesqlbench-base-full", 185, 55, 0, 0, 7, 70),
        ("defog", 357, 0, 357, 105, 9, 44),
        ("bird-superhero", 129, 0, 129, 0, 1, 0),
    ],
)
def test_public_suite(
    real: Config, name: str, tasks: int, management: int, answers: int, refusals: int, databases: int, ordered: int
) -> None:
    suite = suites.load(name, real)
    answered = gold.load(suite)
    assert (len(suite.tasks), len(suite.management), len(suite.databases)) == (tasks, management, databases)
    assert len(suite.queries) + len(suite.management) == len({task.id for task in suite.tasks})
    assert (len(answered), sum(not each.answerable for each in answered.values())) == (answers, refusals)
    assert sum(task.ordered for task in suite.tasks) == ordered
    assert not [each for each in answered.values() if each.error]
    assert answered.keys() <= {task.id for task in suite.tasks}
    assert pins.differences(suite) == {}


@pytest.mark.parametrize("name", ["shop", "defog", "bird-superhero"])
def test_tasks_hold_no_gold_and_no_hint(real: Config, name: str) -> None:
    suite = suites.load(name, real)
    told = json.dumps([asdict(task) for task in suite.tasks], ensure_ascii=False)
    for answer in gold.load(suite).values():
        for text in (*answer.sql, *answer.refusals, answer.hint):
            assert not text or json.dumps(text, ensure_ascii=False)[1:-1] not in told


def test_hints_are_given_apart(real: Config) -> None:
    suite = suites.load("bird-superhero", real)
    hints = gold.hints(suite)
    assert len(hints) > 100 and "power_name" in hints["717"]
    assert all(not task.hint for task in suite.tasks)
    assert gold.hints(suites.load("defog", real)) == {}


def test_list_says_what_is_missing(tmp_path: Path) -> None:
    config = config_of(tmp_path, PROJECT / "data")
    found = {each.name: each for each in suites.listed(config)}
    assert [each.name for each in suites.listed(config) if each.folder] == ["shop"]
    assert found["shop"].folder == PROJECT / "data" / "shop"
    assert found["defog"].folder is None and "okf-agent data get defog" in found["defog"].get


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("defgo", "did you mean 'defog'"),
        ("livesqlbench-large", "okf-agent data get livesqlbench-large"),
        ("nothing.jsonl", "There is no suite 'nothing.jsonl', and no such file"),
    ],
)
def test_no_such_suite(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        suites.load(name, config_of(tmp_path, PROJECT / "data"))


# --- Suites whose data cannot be had here, in their publishers' shapes ---


def write(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list) and name.endswith(".jsonl"):
            content = "".join(json.dumps(each) + "\n" for each in content)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


LARGE = {
    "instance_id": "bank_1", "selected_database": "bank", "query": "How risky is he?", "normal_query": "…",
    "preprocess_sql": [], "clean_up_sqls": [], "sol_sql": [], "external_knowledge": [], "test_cases": [],
    "category": "Query", "high_level": False, "conditions": {"decimal": 2, "distinct": False, "order": True},
    "difficulty_tier": "Challenging",
}  # fmt: skip


@pytest.mark.parametrize("gold_name", ["gold.jsonl", "livesqlbench_large_v1_gt_kg_testcases.jsonl"])
def test_large_with_and_without_its_authors_answers(tmp_path: Path, gold_name: str) -> None:
    folder = tmp_path / "data" / "livesqlbench-large-v1"
    management = LARGE | {"instance_id": "bank_M_1", "category": "Management"}
    write(folder, {"livesqlbench_data.jsonl": [LARGE, management], "bank/bank_schema.txt": "CREATE TABLE t (a int);"})
    config = config_of(tmp_path)
    suite = suites.load("livesqlbench-large", config)
    assert [(task.id, task.kind, task.ordered, task.difficulty) for task in suite.tasks] == [
        ("bank_1", "query", True, "Challenging"),
        ("bank_M_1", "management", True, "Challenging"),
    ]
    assert gold.load(suite) == {}
    answer = {"instance_id": "bank_1", "sol_sql": ["SELECT 1"], "external_knowledge": [4, 7], "test_cases": []}
    write(folder, {gold_name: [answer]})
    found = gold.load(suites.load("livesqlbench-large", config))
    assert found["bank_1"].sql == ("SELECT 1",) and found["bank_1"].rules == (4, 7)
    assert "SELECT 1" not in repr(suites.load("livesqlbench-large", config).tasks)


def test_answers_merged_into_the_tasks_file_are_read_by_gold_alone(tmp_path: Path) -> None:
    merged = LARGE | {"sol_sql": ["SELECT 0", "SELECT 41 + 1"], "external_knowledge": [3]}
    write(tmp_path / "data" / "livesqlbench-base-full-v1", {"livesqlbench_data.jsonl": [merged]})
    suite = suites.load("livesqlbench-base-full", config_of(tmp_path))
    assert "41" not in repr(suite.tasks)
    assert gold.load(suite)["bank_1"].sql == ("SELECT 41 + 1",)
    assert gold.load(suite)["bank_1"].ordered


def sqlite_file(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def test_mini_dev(tmp_path: Path, postgres: Server) -> None:
    folder = tmp_path / "data" / "bird-minidev"
    task = {
        "question_id": 1471, "db_id": "debit_card", "question": "What is the ratio?", "evidence": "ratio = a / b",
        "SQL": "SELECT CAST(SUM(IIF(Currency = 'EUR', 1, 0)) AS FLOAT) / SUM(IIF(Currency = 'CZK', 1, 0)) "
               "FROM `Customers`",
        "difficulty": "simple",
    }  # fmt: skip
    write(folder, {"mini_dev_sqlite.json": [task]})
    place = folder / "dev_databases" / "debit_card"
    described = (
        "original_column_name,column_name,column_description,data_format,value_description\n"
        "CustomerID,CustomerID,identification of the customer,integer,\nCurrency,,its money,text,\n"
    )
    write(place, {"database_description/Customers.csv": described})
    sqlite_file(place / "debit_card.sqlite", """
        CREATE TABLE Customers (CustomerID INTEGER PRIMARY KEY, Currency TEXT);
        INSERT INTO Customers VALUES (1, 'EUR'), (2, 'CZK'), (3, 'CZK');""")  # fmt: skip
    config = config_of(tmp_path)
    suite = suites.load("bird-minidev", config)
    assert [(each.id, each.database, each.difficulty, each.hint) for each in suite.tasks] == [
        ("1471", "debit_card", "simple", "")
    ]
    own = databases.configured(suite, config).settings
    documents = find_documents(own, "debit_card")
    assert "its money" in documents.meanings.read_text(encoding="utf-8")
    assert 'CREATE TABLE "customers"' in documents.schema.read_text(encoding="utf-8")
    assert documents.dump
    loaded(postgres, "debit_card", documents.dump)
    assert postgres.admin is not None
    with Database(postgres.admin, "debit_card", DatabaseSection()) as database:
        answer = gold.load(suite)["1471"]
        assert database.run(answer.sql[0]).rows == (("0.5",),)
        assert answer.hint == "ratio = a / b"
        assert databases.check_rows(suite, database) == ()


# --- SQLite ---


def test_sqlite_content_arrives_as_it_is(tmp_path: Path, postgres: Server) -> None:
    source = sqlite_file(tmp_path / "s.sqlite", """
        CREATE TABLE Parent (Id INTEGER PRIMARY KEY, Name TEXT);
        INSERT INTO Parent VALUES (1, 'tab	quote''s back\\slash'), (2, ''), (3, NULL);
        CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES Parent (Id), "Free Meals %" REAL,
                            mixed INTEGER, born DATE, odd DATE, none DATE,
                            seen DATETIME, raw BLOB, none_yet INTEGER);
        INSERT INTO child VALUES (1, 1, 0.1, 7, '2024-01-31', '2024-01-31', '0000-00-00',
                                  '2024-01-31 10:00:00', x'00ff', NULL),
                                 (2, 3, 1e20, 'x', '2024-02-29', 'soon', '2023-02-29',
                                  '2024-02-29 10:00:00.5', NULL, NULL);
        CREATE TABLE orphan (id INTEGER, parent_id INTEGER REFERENCES Parent (Id), PRIMARY KEY (id));
        INSERT INTO orphan VALUES (1, 99);""")  # fmt: skip
    dump = sqlite_dump.convert(source, tmp_path / "out" / "s.sql")
    written = dump.stat().st_mtime_ns
    assert sqlite_dump.convert(source, dump).stat().st_mtime_ns == written
    loaded(postgres, "from_sqlite", dump)
    assert postgres.admin is not None
    with Database(postgres.admin, "from_sqlite", DatabaseSection()) as database:
        child = database.run("SELECT * FROM child ORDER BY id")
        assert child.columns == ("id", "parent_id", "free meals %", "mixed", "born", "odd", "none", "seen", "raw",
                                 "none_yet")  # fmt: skip
        assert child.types == ("bigint", "bigint", "double precision", "text", "date", "text", "text",
                               "timestamp without time zone", "bytea", "bigint")  # fmt: skip
        assert child.rows == (
            ("1", "1", "0.1", "7", "2024-01-31", "2024-01-31", "0000-00-00", "2024-01-31 10:00:00", "\\x00ff", None),
            ("2", "3", "1e+20", "x", "2024-02-29", "soon", "2023-02-29", "2024-02-29 10:00:00.5", None, None),
        )
        names = database.run("SELECT name FROM parent ORDER BY id").rows
        assert names == (("tab\tquote's back\\slash",), ("",), (None,))
        keys = database.run("SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' ORDER BY 1").rows
        assert keys == (("child",),)
    assert sqlite_dump.row_counts(source) == {"public.Parent".lower(): 3, "public.child": 2, "public.orphan": 1}


@pytest.mark.parametrize(
    ("script", "words"),
    [('CREATE TABLE t (A int, "a" int)', "already|duplicate"), ("", "letter case")],
)
def test_names_that_differ_in_case_only(tmp_path: Path, script: str, words: str) -> None:
    path = tmp_path / "s.sqlite"
    if script:  # SQLite refuses it itself
        with pytest.raises(sqlite3.OperationalError, match=words):
            sqlite_file(path, script)
        return
    path.write_bytes(b"no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(UserError, match="cannot be read as a SQLite database"):
        sqlite_dump.convert(path, tmp_path / "s.sql")


@pytest.mark.parametrize(
    ("sqlite", "postgres_sql"),
    [
        ("SELECT Name FROM T", "SELECT name FROM t"),
        ("SELECT `A b` FROM T AS T1", 'SELECT "a b" FROM t AS t1'),
        ("SELECT CAST(x AS REAL)", "SELECT CAST(x AS DOUBLE PRECISION)"),
        ("SELECT a FROM t WHERE a LIKE 'X%'", "SELECT a FROM t WHERE a ILIKE 'X%'"),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a NULLS FIRST"),
        ("SELECT 'Name' = 'NAME'", "SELECT 'Name' = 'NAME'"),
    ],
)
def test_transpiled(sqlite: str, postgres_sql: str) -> None:
    assert to_postgres(sqlite) == (postgres_sql, "")


def test_what_cannot_be_transpiled_is_said() -> None:
    sql, error = to_postgres("SELECT (((")
    assert sql == "" and error.startswith("sqlglot: ")


# --- Suites of one's own ---

GOOD = {"question": "How many?", "database": "shop", "sql": "SELECT 1"}


def test_own_suite(tmp_path: Path) -> None:
    write(tmp_path, {"mine.jsonl": [GOOD, GOOD | {"id": "b", "ordered": True, "rules": ["/knowledge/x.md"],
                                                   "sql": ["SELECT 1", "SELECT 2"], "hint": "h", "difficulty": "hard"},
                                    {"question": "?", "database": "shop", "answerable": False}]})  # fmt: skip
    suite = suites.load("mine.jsonl", config_of(tmp_path, PROJECT / "data"))
    assert [(task.id, task.ordered, task.difficulty) for task in suite.tasks] == [
        ("1", False, ""), ("b", True, "hard"), ("3", False, "")
    ]  # fmt: skip
    answers = gold.load(suite)
    assert answers["b"].sql == ("SELECT 1", "SELECT 2") and answers["b"].rules == ("/knowledge/x.md",)
    assert (answers["1"].answerable, answers["3"].answerable) == (True, False)
    assert gold.hints(suite) == {"b": "h"}


def test_own_suite_in_the_words_of_other_benchmarks(tmp_path: Path) -> None:
    lines = [
        {
            "question_id": 7,
            "db_id": "shop",
            "question": "?",
            "evidence": "e",
            "SQL": "SELECT 1",
            "difficulty": "simple",
        },
        {"instance_id": "x", "db_name": "shop", "question": "?", "query": "SELECT 2"},
    ]
    write(tmp_path, {"mine.jsonl": lines})
    suite = suites.load("mine.jsonl", config_of(tmp_path, PROJECT / "data"))
    assert [(task.id, task.database, task.hint) for task in suite.tasks] == [("7", "shop", ""), ("x", "shop", "")]
    assert {each.task_id: (each.sql, each.hint) for each in gold.load(suite).values()} == {
        "7": (("SELECT 1",), "e"), "x": (("SELECT 2",), "")
    }  # fmt: skip


def test_own_suite_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"mine/a.jsonl": [GOOD], "mine/b.jsonl": [GOOD, GOOD]})
    suite = suites.load("mine", config_of(tmp_path, PROJECT / "data"))
    assert (suite.name, [task.id for task in suite.tasks]) == ("mine", ["a_1", "b_1", "b_2"])
    assert gold.load(suite).keys() == {"a_1", "b_1", "b_2"}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([GOOD, '{"question": "?"'], r"mine\.jsonl:2: not JSON"),
        ([GOOD, '{"id": ' + "9" * 5000 + "}"], r"mine\.jsonl:2: not JSON"),
        ([GOOD, "", '["a"]'], r"mine\.jsonl:3: a JSON object was expected"),
        ([{"question": "?", "sql": "SELECT 1"}], r"mine\.jsonl:1: there is no 'database'"),
        ([GOOD, {"question": "?", "database": "shop"}], r"mine\.jsonl:2: there is no 'sql'.*answerable"),
        ([GOOD | {"database": "shopp"}], r"mine\.jsonl:1: there is no database 'shopp'; did you mean 'shop'"),
        ([GOOD | {"id": "a"}, GOOD | {"id": "a"}], r"mine\.jsonl:2: the id 'a' is given twice"),
        ([GOOD | {"db": "shop"}], r"mine\.jsonl:1: there is no key 'db'\. The keys: question, database, sql, id"),
        ([GOOD | {"orderd": True}], r"mine\.jsonl:1: there is no key 'orderd'; did you mean 'ordered'"),
        ([GOOD | {"question": ["?"]}], r"mine\.jsonl:1: question must be text, not list"),
        ([GOOD, GOOD | {"question": " "}], r"mine\.jsonl:2: 'question' is empty"),
        ([GOOD | {"id": ""}], r"mine\.jsonl:1: 'id' is empty"),
        ([GOOD | {"ordered": "false"}], r"mine\.jsonl:1: 'ordered' must be true or false, not 'false'"),
        ([GOOD | {"answerable": "no"}], r"mine\.jsonl:1: 'answerable' must be true or false, not 'no'"),
        ([GOOD | {"rules": "12"}], r"mine\.jsonl:1: 'rules' must be a list of ids, not '12'"),
        ([GOOD | {"sql": None}], r"mine\.jsonl:1: there is no 'sql'"),
        ([GOOD | {"sql": ""}], r"mine\.jsonl:1: 'sql' must be a query or a list of queries, not ''"),
        ([GOOD | {"sql": {"a": 1}}], r"mine\.jsonl:1: 'sql' must be a query or a list of queries"),
        ([GOOD | {"sql": []}], r"mine\.jsonl:1: 'sql' must be a query or a list of queries"),
        ([GOOD | {"answerable": False}], r"mine\.jsonl:1: a question that cannot be answered has no gold"),
        ([], "There are no questions in"),
    ],
)
def test_own_suite_with_a_fault(tmp_path: Path, lines: list[Any], words: str) -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    write(tmp_path, {"mine.jsonl": text})
    with pytest.raises(UserError, match=words):
        suites.load("mine.jsonl", config_of(tmp_path, PROJECT / "data"))


# --- Pins ---


def test_own_suite_may_change_and_that_is_said(tmp_path: Path) -> None:
    write(tmp_path, {"mine.jsonl": [GOOD]})
    config = config_of(tmp_path, PROJECT / "data")
    first = suites.load("mine.jsonl", config)
    before = first.hash
    told: list[str] = []
    suites.hold_pins(first, told.append)
    assert not first.pins and suites.load("mine.jsonl", config).pins
    suites.hold_pins(suites.load("mine.jsonl", config), told.append)
    assert not told
    write(tmp_path, {"mine.jsonl": [GOOD | {"sql": "SELECT 2"}]})
    changed = suites.load("mine.jsonl", config)
    assert changed.hash != before
    suites.hold_pins(changed, told.append)
    (said,) = told
    assert said.startswith("mine was changed since it was last run here: mine.jsonl. That is all right")
    suites.hold_pins(suites.load("mine.jsonl", config), told.append)
    assert told == [said], "it is said once"


def test_what_was_fetched_is_pinned_by_its_lock_file(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "livesqlbench-large-v1"
    write(folder, {"livesqlbench_data.jsonl": [LARGE]})
    entry = {"url": "u", "size": 1, "sha256": "0" * 64, "git": None}
    write(folder, {"okf-data.lock.json": {"files": {"livesqlbench_data.jsonl": entry, "README.md": entry}}})
    suite = suites.load("livesqlbench-large", config_of(tmp_path))
    with pytest.raises(UserError, match=r"bench_data\.jsonl has another content than the one pinned\nBring back"):
        suites.hold_pins(suite, print)


def test_a_public_suite_without_known_pins_is_held_to_its_first_run(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "livesqlbench-large-v1"
    write(folder, {"livesqlbench_data.jsonl": [LARGE]})
    config = config_of(tmp_path)
    suites.hold_pins(suites.load("livesqlbench-large", config), print)
    write(folder, {"livesqlbench_data.jsonl": [LARGE, LARGE]})
    changed = suites.load("livesqlbench-large", config)
    with pytest.raises(UserError, match=r"or delete .*livesqlbench-large\.json to go on with these"):
        suites.hold_pins(changed, print)


def test_a_changed_input_of_a_pinned_suite_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "shop"
    for file in (PROJECT / "data" / "shop").glob("*[!y]"):
        if file.suffix in (".jsonl", ".json", ".txt", ".sql"):
            write(folder, {file.name: file.read_text(encoding="utf-8")})
    config = config_of(tmp_path)
    assert pins.differences(suites.load("shop", config)) == {}
    with (folder / "shop_kb.jsonl").open("a", encoding="utf-8") as rules:
        rules.write("\n")
    changed = {"shop_kb.jsonl": "has another content than the one pinned"}
    assert pins.differences(suites.load("shop", config)) == changed
    with (folder / "shop.sql").open("a", encoding="utf-8") as dump:
        dump.write("\n")
    assert suites.load("shop", config).row_counts == {}, "rows are known for one dump only"


def test_a_database_that_is_not_whole_is_noticed(tmp_path: Path, postgres: Server) -> None:
    suite = suites.load("shop", config_of(tmp_path, PROJECT / "data"))
    tables = [table.partition(".")[2] for table in suite.row_counts["shop"]]
    empty = "".join(f"CREATE TABLE {table} (a int);" for table in tables[1:])
    with made(postgres, "shop", empty) as params, Database(params, "shop", DatabaseSection()) as database:
        said = databases.check_rows(suite, database)
    assert len(said) == len(tables)
    assert said[0].startswith(f"public.{tables[0]} cannot be read")
    assert said[1].startswith(f"public.{tables[1]} has 0 rows, not ")


# --- Predictions made elsewhere ---


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"task_id": "shop_1"}, r"p\.jsonl:1: there is no 'sql'"),
        ({"task_id": "shop_99", "sql": "SELECT 1"}, r"p\.jsonl:1: shop has no task 'shop_99'"),
        ({"sql": "SELECT 1"}, r"p\.jsonl:1: there is no 'task_id'"),
    ],
)
def test_prediction_with_a_fault(tmp_path: Path, line: dict[str, str], words: str) -> None:
    write(tmp_path, {"p.jsonl": [line]})
    suite = suites.load("shop", config_of(tmp_path, PROJECT / "data"))
    with pytest.raises(UserError, match=words):
        [*predictions(tmp_path / "p.jsonl", suite)]


def test_predictions(tmp_path: Path) -> None:
    write(tmp_path, {"p.jsonl": [{"task_id": "shop_1", "sql": "SELECT 1"}, {"task_id": "shop_2", "sql": ""}]})
    suite = suites.load("shop", config_of(tmp_path, PROJECT / "data"))
    found = [*predictions(tmp_path / "p.jsonl", suite)]
    assert [(each.task_id, each.sql) for each in found] == [("shop_1", "SELECT 1"), ("shop_2", "")]
