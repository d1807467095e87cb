from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_the_real_tasks_are_found(tmp_path: Path, test_data: Path) -> None:
    roots = [str(test_data / "livesqlbench-base-lite"), str(test_data / "livesqlbench-base-full-v1")]
    settings = load_settings(tmp_path, {"agent": {"raw_docs": roots}})
    assert len(list_tasks(settings)) == 270 + 185
    assert find_task(settings, "disaster_1").database == "disaster"
