"""What a model may not read is found wherever it lies and however it is set; documents as they are raise no alarm."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from okf_agent.evaluation.leakage import Secret, scan, stop_on
from okf_compiler.errors import UserError

ROOT = Path(__file__).parents[3]
PROMPTS = ROOT / "okf_agent" / "prompts"
QUESTION = (
    "How many active customers who bought more than three times live in Germany, and what did each of them spend?"
)
SQL = (
    "SELECT COUNT(DISTINCT o.customer_id) AS n FROM orders o WHERE o.is_test = false AND o.order_state NOT IN "
    "('draft', 'cancelled') AND o.placed_at >= '2025-04-01'"
)
HINT = "active customers refers to customers with a valid order in the last three months"
SECRETS = [Secret("t_1", "question", QUESTION), Secret("t_1", "gold SQL", SQL), Secret("t_1", "evidence", HINT)]


@pytest.mark.parametrize(
    ("name", "text", "kind", "line"),
    [
        ("knowledge/rule.md", f"# Rule\n\nAsk: {QUESTION}\n", "question", 3),
        ("knowledge/rule.md", "\n" + QUESTION.upper().replace(" ", "\n> "), "question", 2),
        ("knowledge/rule.md", f"> **{QUESTION[:110]}**", "question", 1),
        ("tables/orders.md", f"```sql\n{SQL}\n```", "gold SQL", 2),
        ("tables/orders.md", SQL.lower().replace(" ", "\n  ").replace("o.", '"o".'), "gold SQL", 1),
        ("profile.json", json.dumps({"examples": [1, SQL]}), "gold SQL", 1),
        ("index.md", f"* [x](/x.md) - {HINT}\n", "evidence", 1),
        ("words.bin", f"\x00\x01{QUESTION}\xff", "question", 1),
    ],
)
def test_a_leak_is_found_with_its_line(tmp_path: Path, name: str, text: str, kind: str, line: int) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    (leak,) = scan(SECRETS, [tmp_path])
    assert (leak.file, leak.line, leak.kind, leak.task_id) == (file, line, kind, "t_1")
    with pytest.raises(UserError, match=f"{file.name}:{line}: the {kind} of task t_1"):
        stop_on([leak])


def test_an_entry_of_a_task_file_is_found_by_its_fields(tmp_path: Path) -> None:
    (tmp_path / "rule.md").write_text('# Rule\n\n{"external_knowledge": [0, 1, 2]}\n', encoding="utf-8")
    (leak,) = scan([], [tmp_path])
    assert (leak.line, leak.kind) == (3, "external_knowledge")


def test_a_value_index_is_read_by_its_rows(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "values.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE value (id INTEGER, text TEXT)")
        connection.executemany("INSERT INTO value VALUES (?, ?)", [(1, "Berlin"), (2, HINT)])
    (leak,) = scan(SECRETS, [tmp_path])
    assert (leak.line, leak.kind) == (2, "evidence")


@pytest.mark.parametrize(
    "text",
    [
        "Active customers bought something in the last three months.",
        "SELECT COUNT(DISTINCT o.customer_id) AS n FROM orders o",
        f"{QUESTION[:40]} … {QUESTION[60:]}",
        "",
    ],
)
def test_a_part_or_another_wording_is_no_leak(tmp_path: Path, text: str) -> None:
    (tmp_path / "rule.md").write_text(text, encoding="utf-8")
    assert scan([*SECRETS, Secret("t_2", "gold SQL", "SELECT count(*) FROM customers")], [tmp_path]) == []
    stop_on([])


def test_the_shop_as_it_ships_is_clean() -> None:
    folder = ROOT / "data" / "shop"
    tasks, gold = (lines(folder / name) for name in ("tasks.jsonl", "gold.jsonl"))
    hidden = [Secret(task["instance_id"], "question", task["query"]) for task in tasks]
    hidden += [Secret(entry["instance_id"], "gold SQL", sql) for entry in gold for sql in entry["sol_sql"]]
    read = [ROOT / "bundles" / "compiled", ROOT / "bundles" / "shop-by-hand", PROMPTS, *folder.glob("shop_*")]
    assert len(hidden) > 50
    assert scan(hidden, read) == []


def test_public_suites_as_they_are_raise_no_alarm(test_data: Path) -> None:
    for hidden, documents in (*livesqlbench(test_data), defog(test_data), superhero(test_data)):
        assert len(hidden) > 150 and documents
        assert scan(hidden, [*documents, PROMPTS]) == []


def livesqlbench(data: Path) -> list[tuple[list[Secret], list[Path]]]:
    found = []
    for name in ("livesqlbench-base-lite", "livesqlbench-base-full-v1"):
        tasks = lines(next((data / name).glob("*.jsonl")))
        documents = [file for kind in ("*/*.txt", "*/*.json*") for file in (data / name).glob(kind)]
        found.append(([Secret(task["instance_id"], "question", task["query"]) for task in tasks], documents))
    return found


def defog(data: Path) -> tuple[list[Secret], list[Path]]:
    tasks = lines(data / "defog" / "tasks.jsonl")
    hidden = [Secret(task["instance_id"], "question", task["question"]) for task in tasks]
    hidden += [Secret(task["instance_id"], "gold SQL", task["query"]) for task in tasks]
    hidden += [Secret(task["instance_id"], "evidence", task.get("instructions") or "") for task in tasks]
    return hidden, [*(data / "defog").glob("*/*")]


def superhero(data: Path) -> tuple[list[Secret], list[Path]]:
    folder = data / "bird-superhero"
    hidden = []
    for task in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        texts = {"question": task["question"], "gold SQL": task["SQL"], "evidence": task["evidence"]}
        hidden += [Secret(str(task["question_id"]), kind, text) for kind, text in texts.items()]
    return hidden, [folder / "database_description"]


def lines(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
