"""What gives an answer away stops an evaluation, wherever it lies and however it is set; shared words are counted."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.leakage import (
    EVIDENCE,
    GOLD,
    LONG,
    MOST,
    PART,
    QUESTION,
    Finding,
    Secret,
    is_leak,
    passage,
    scan,
    secrets,
    stop_on,
    summary,
    words,
)
from okf_agent.evaluation.suites.model import Suite
from okf_agent.tasks import Task
from okf_compiler.errors import UserError

ROOT = Path(__file__).parents[3]
PROMPTS = ROOT / "okf_agent" / "prompts"
RULES = Path(__file__).parent / "fixtures" / "sql_rules.jsonl"
ASKED = "How many active customers who bought more than three times live in Germany, and what did each of them spend?"
SQL = (
    "SELECT COUNT(DISTINCT o.customer_id) AS n FROM orders o WHERE o.is_test = false AND o.order_state NOT IN "
    "('draft', 'cancelled') AND o.placed_at >= '2025-04-01'"
)
HINT = "active customers refers to customers with a valid order in the last three months"
SECRETS = [Secret("t_1", QUESTION, ASKED), Secret("t_1", GOLD, SQL), Secret("t_1", EVIDENCE, HINT)]
MAIN_PART = SQL[: SQL.index(" AND o.placed_at")]


@pytest.mark.parametrize(
    ("name", "text", "kind", "line"),
    [
        ("tables/orders.md", f"```sql\n{SQL}\n```", GOLD, 2),
        ("tables/orders.md", SQL.lower().replace(" ", "\n  ").replace("o.", '"o".'), GOLD, 1),
        ("tables/orders.md", SQL.replace("o.", "orders.").replace("orders o", "public.orders"), GOLD, 1),
        ("knowledge/rule.md", f"Last year's report: {MAIN_PART}", GOLD, 1),
        ("profile.json", json.dumps({"examples": [1, SQL.replace(" ", "\n")]}), GOLD, 1),
        ("index.md", f"* [x](/x.md) - {HINT}\n", EVIDENCE, 1),
        ("index.md", f"\n{HINT.removesuffix(' three months')}\n", EVIDENCE, 2),
        ("words.bin", f"\x00\x01{SQL}\xff", GOLD, 1),
    ],
)
def test_gold_and_evidence_stop_with_their_line(tmp_path: Path, name: str, text: str, kind: str, line: int) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    (leak,) = scan(SECRETS, [tmp_path])
    assert (leak.file, leak.line, leak.kind, leak.task_id, leak.leak) == (file, line, kind, "t_1", True)
    with pytest.raises(UserError, match=rf"{file.name}:{line}: \d+% of the {kind} of task t_1"):
        stop_on([leak])


@pytest.mark.parametrize("text", [ASKED, ASKED.upper().replace(" ", "\n> "), f"> **{ASKED[:110]}**"])
def test_a_question_is_counted_and_stops_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "rule.md").write_text(f"# Rule\n\n{text}\n", encoding="utf-8")
    (found,) = scan(SECRETS, [tmp_path])
    assert (found.kind, found.line, found.leak) == (QUESTION, 3, False)
    stop_on([found])
    assert summary([found])["shared"][QUESTION]["tasks"] == 1


def test_a_filled_entry_of_a_task_file_stops(tmp_path: Path) -> None:
    file = tmp_path / "rule.md"
    file.write_text('# Rule\n\n{"external_knowledge": [0, 1, 2]}\n', encoding="utf-8")
    (leak,) = scan([], [tmp_path])
    assert (leak.line, leak.leak) == (3, True)
    for text in ('{"sol_sql": [], "test_cases": ""}', "| test_cases | text | the cases of a test |"):
        file.write_text(text, encoding="utf-8")
        assert scan([], [tmp_path]) == []


def test_a_value_index_is_read_by_its_rows(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "values.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE value (id INTEGER, text TEXT)")
        connection.executemany("INSERT INTO value VALUES (?, ?)", [(1, "Berlin"), (2, HINT)])
    (leak,) = scan(SECRETS, [tmp_path])
    assert (leak.line, leak.kind, leak.leak) == (2, EVIDENCE, True)


@pytest.mark.parametrize(
    "text",
    [
        "Active customers bought something in the last three months.",
        "SELECT COUNT(DISTINCT o.customer_id) AS n FROM orders o",
        f"{ASKED[:40]} … {ASKED[60:]}",
        "",
    ],
)
def test_a_part_or_another_wording_is_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "rule.md").write_text(text, encoding="utf-8")
    assert scan([*SECRETS, Secret("t_2", GOLD, "SELECT count(*) FROM customers")], [tmp_path]) == []
    stop_on([])


def numbered(count: int, first: int = 0) -> str:
    """Words that no other text has."""
    return " ".join(f"w{number}" for number in range(first, first + count))


@pytest.mark.parametrize(("shared", "counted"), [(LONG - 1, False), (LONG, True)])
def test_a_shared_phrase_counts_from_so_many_words_on(tmp_path: Path, shared: int, counted: bool) -> None:
    assert LONG == 16
    (tmp_path / "rule.md").write_text(f"It says {numbered(shared)} there.", encoding="utf-8")
    assert len(scan([Secret("t_1", QUESTION, numbered(60))], [tmp_path])) == counted


@pytest.mark.parametrize(("length", "counted"), [(6, False), (7, True)])
def test_a_short_question_counts_as_a_whole(tmp_path: Path, length: int, counted: bool) -> None:
    (tmp_path / "rule.md").write_text(f"It says {numbered(length)} there.", encoding="utf-8")
    assert len(scan([Secret("t_1", QUESTION, numbered(length))], [tmp_path])) == counted


@pytest.mark.parametrize(("shared", "leak"), [(20, True), (19, False)])
def test_half_of_a_query_with_its_from_stops(shared: int, leak: bool) -> None:
    sql = f"SELECT {numbered(9)} FROM {numbered(29, 9)}"
    assert (PART, len(words(sql))) == (0.5, 40)
    assert is_leak(GOLD, passage(Secret("", GOLD, sql), " ".join(words(sql)[:shared]))) is leak


@pytest.mark.parametrize(("shared", "leak"), [(30, True), (29, False)])
@pytest.mark.parametrize("kind", [GOLD, EVIDENCE])
def test_three_quarters_of_anything_else_stop(kind: str, shared: int, leak: bool) -> None:
    text = f"SELECT {numbered(33)} EXTRACT(year FROM x) FROM t"
    assert (MOST, len(words(text))) == (0.75, 40)
    assert is_leak(kind, passage(Secret("", kind, text), " ".join(words(text)[:shared]))) is leak
    assert not is_leak(QUESTION, passage(Secret("", QUESTION, text), text))


def test_words_count_once_and_within_one_passage() -> None:
    clause = "state NOT IN ('draft', 'cancelled')"
    repeated = Secret("", GOLD, f"SELECT a FROM t WHERE {clause} AND b OR {clause} AND c OR {clause}")
    assert passage(repeated, f"Valid: {clause}").share < 0.3
    sql = f"SELECT {numbered(20)} FROM {numbered(18, 20)}"
    first, last = sql[: len(sql) // 2], sql[len(sql) // 2 :]
    assert passage(Secret("", GOLD, sql), f"{first} and {last}").share > 0.9
    assert passage(Secret("", GOLD, sql), f"{first} {numbered(200, 1000)} {last}").share < 0.6


@pytest.mark.parametrize(("run", "share"), [(3, 0.0), (4, 1.0)])
def test_so_many_words_in_a_row_are_shared(run: int, share: float) -> None:
    secret = numbered(24)
    pieces = [numbered(run, first) for first in range(0, 24, run)]
    assert passage(Secret("", EVIDENCE, secret), " other ".join(pieces)).share == share


def test_fifty_rules_that_are_sql_stop_no_evaluation(tmp_path: Path) -> None:
    rules = lines(RULES)
    assert len(rules) == 50
    hidden = [Secret(str(number), GOLD, rule["gold"]) for number, rule in enumerate(rules)]
    for database in {rule["database"] for rule in rules}:
        mine = "\n\n".join(rule["rule"] for rule in rules if rule["database"] == database)
        (tmp_path / f"{database}.md").write_text(mine, encoding="utf-8")
    found = scan(hidden, [tmp_path])
    stop_on(found)
    assert len(found) > 10, "the longer ones are counted"
    (tmp_path / "planted.md").write_text(rules[0]["gold"], encoding="utf-8")
    with pytest.raises(UserError, match=r"planted\.md:1: 100% of the gold SQL of task 0"):
        stop_on(scan(hidden, [tmp_path]))


def test_only_what_is_asked_is_searched_for() -> None:
    tasks = tuple(Task(id, "shop", ASKED) for id in ("a", "b"))
    gold = {id: Gold(id, (SQL,), hint=HINT) for id in ("a", "b", "gone")}
    suite = Suite("s", tasks, "rows", ())
    assert {secret.task_id for secret in secrets(suite, gold, {"b"})} == {"b"}
    assert [secret.kind for secret in secrets(suite, gold, {"b"})] == [QUESTION, GOLD, EVIDENCE]


def test_what_is_shown_drives_no_terminal(tmp_path: Path) -> None:
    shown = str(Finding(tmp_path / "a\x1b[31m.md", 1, "t\n1", GOLD, 0.5, "w", leak=True))
    assert "\x1b" not in shown and "\n" not in shown


def test_the_shop_as_it_ships_is_clean() -> None:
    folder = ROOT / "data" / "shop"
    tasks, gold = (lines(folder / name) for name in ("tasks.jsonl", "gold.jsonl"))
    hidden = [Secret(task["instance_id"], QUESTION, task["query"]) for task in tasks]
    hidden += [Secret(entry["instance_id"], GOLD, sql) for entry in gold for sql in entry["sol_sql"]]
    read = [ROOT / "bundles" / "compiled", ROOT / "bundles" / "shop-by-hand", PROMPTS, *folder.glob("shop_*")]
    assert len(hidden) > 50
    assert scan(hidden, read) == []


def test_public_suites_as_they_are_go_on(test_data: Path) -> None:
    for hidden, documents in (*livesqlbench(test_data), defog(test_data), superhero(test_data)):
        assert len(hidden) > 150 and documents
        stop_on(scan(hidden, [*documents, PROMPTS]))


def livesqlbench(data: Path) -> list[tuple[list[Secret], list[Path]]]:
    found = []
    for name in ("livesqlbench-base-lite", "livesqlbench-base-full-v1"):
        tasks = lines(next((data / name).glob("*.jsonl")))
        documents = [file for kind in ("*/*.txt", "*/*.json*") for file in (data / name).glob(kind)]
        found.append(([Secret(task["instance_id"], QUESTION, task["query"]) for task in tasks], documents))
    return found


def defog(data: Path) -> tuple[list[Secret], list[Path]]:
    tasks = lines(data / "defog" / "tasks.jsonl")
    hidden = [Secret(task["instance_id"], QUESTION, task["question"]) for task in tasks]
    hidden += [Secret(task["instance_id"], GOLD, task["query"]) for task in tasks]
    hidden += [Secret(task["instance_id"], EVIDENCE, task.get("instructions") or "") for task in tasks]
    return hidden, [*(data / "defog").glob("*/*")]


def superhero(data: Path) -> tuple[list[Secret], list[Path]]:
    folder = data / "bird-superhero"
    hidden = []
    for task in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        texts = {QUESTION: task["question"], GOLD: task["SQL"], EVIDENCE: task["evidence"]}
        hidden += [Secret(str(task["question_id"]), kind, text) for kind, text in texts.items()]
    return hidden, [folder / "database_description"]


def lines(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
