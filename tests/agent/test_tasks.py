from __future__ import annotations

import json
from pathlib import Path

import pytest

from okf_agent.evaluation.suites import livesqlbench
from okf_agent.tasks import find_task, list_tasks
from okf_compiler.errors import UserError
from okf_compiler.settings import load_settings


def write(file: Path, *entries: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(e) for e in entries) + "\n", encoding="utf-8")


def task(task_id: str, question: str = "How many?") -> dict[str, str]:
    return {"instance_id": task_id, "selected_database": "shop", "query": question}


def test_tasks_come_from_roots_and_database_folders(tmp_path: Path) -> None:
    write(tmp_path / "data/tasks.jsonl", task("a"))
    write(tmp_path / "data/shop/tasks.jsonl", task("b"), task("a", "A later one"))
    write(tmp_path / "data/livesqlbench_data.jsonl", task("c"))
    assert {t.id: t.question for t in list_tasks(load_settings(tmp_path)).values()} == {
        "a": "How many?",
        "b": "How many?",
        "c": "How many?",
    }


def test_gold_sql_of_another_format_is_never_a_question(tmp_path: Path) -> None:
    write(tmp_path / "data/tasks.jsonl", {"instance_id": "q1", "question": "Who?", "query": "SELECT 1", "db_name": "x"})
    write(tmp_path / "data/shop/gold.jsonl", task("g"))
    assert list_tasks(load_settings(tmp_path)) == {}


def test_an_unknown_task_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "data/tasks.jsonl", task("disaster_1"))
    with pytest.raises(UserError, match="did you mean 'disaster_1'"):
        find_task(load_settings(tmp_path), "disaster1")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    write(tmp_path / "data/tasks.jsonl", task("a"), {"instance_id": "b"})
    with pytest.raises(UserError, match=r"tasks.jsonl:2: not a task"):
        list_tasks(load_settings(tmp_path))


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    file = tmp_path / "data/tasks.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps(task("a", "One\u2028two\x85three?"), ensure_ascii=False), encoding="utf-8", newline="\n")
    assert find_task(load_settings(tmp_path), "a").question == "One\u2028two\x85three?"


def test_a_file_of_another_encoding_is_named(tmp_path: Path) -> None:
    write(tmp_path / "data/tasks.jsonl", task("a"))
    with (tmp_path / "data/tasks.jsonl").open("ab") as file:
        file.write(json.dumps(task("b", "Größe?"), ensure_ascii=False).encode("latin-1"))
    with pytest.raises(UserError, match=r"tasks\.jsonl cannot be read: .*utf-8"):
        list_tasks(load_settings(tmp_path))


def test_a_question_of_another_format_hides_no_task_behind_it(tmp_path: Path) -> None:
    write(tmp_path / "data/tasks.jsonl", {"question": "Who?", "query": "SELECT 1"}, task("b"))
    assert [*list_tasks(load_settings(tmp_path))] == ["b"]


def test_an_evaluation_asks_what_ask_asks_under_the_same_id(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder / "tasks.jsonl", task("a", "By tasks.jsonl?"))
    write(folder / "livesqlbench_data.jsonl", task("a", "By livesqlbench_data.jsonl?"))
    (evaluated,) = livesqlbench.load("x", folder).tasks
    assert evaluated == find_task(load_settings(tmp_path), "a")


def test_the_real_tasks_are_found(tmp_path: Path, test_data: Path) -> None:
    roots = [str(test_data / "livesqlbench-base-lite"), str(test_data / "livesqlbench-base-full-v1")]
    settings = load_settings(tmp_path, {"agent": {"raw_docs": roots}})
    assert len(list_tasks(settings)) == 270 + 185
    assert find_task(settings, "disaster_1").database == "disaster"
