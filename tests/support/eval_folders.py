"""A generated evaluation folder as the runner leaves one: cells × tasks × repeats, steps included, always the same."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATABASES = ("shop", "alien", "disaster", "superhero", "museum")
LEVELS = ("Simple", "Moderate", "Challenging")
SKILL = {"schema": 0.35, "pack": 0.55, "bundle": 0.68, "search": 0.62}
COST = {"schema": 0.004, "pack": 0.006, "bundle": 0.031, "search": 0.024}
MODEL = "openai/scripted-70b"
STARTED = "2026-11-29T20:00:00.000+00:00"
MISSES = {
    "knowledge not opened": "never opened /knowledge/valid-order.md",
    "wrong table or column": "gold uses orders.net, the answer uses orders.gross instead",
    "wrong value": "gold has orders.state = 'paid', the answer has orders.state = 'Paid'",
    "wrong grain or join": "gold groups by customers.region, the answer customers.region, customers.id",
    "formula differs": "gold calculates sum(i.qty * i.price), the answer sum(i.price)",
    "wrong output columns": "right but for extra columns",
    "order": "gold sorts by sum(orders.total) desc, the answer by nothing",
    "error": "the answer's SQL fails: column nope does not exist",
    "gave up": "no query by the end of the run (step_limit)",
    "wrongly declined": "there is an answer, and the model declined: no such data",
}
QUESTIONS = (
    "How many active customers does {d} have in region {i}, and how did that change since last year?",
    "For each kind of signal in {d}, what is the average quality indicator of sensor {i}? Highest first.",
    "Which {i} distribution hubs of {d} have the worst resource utilisation ratio?",
)
HOSTILE = (
    "<script>document.title = 'taken'</script> & <img src=x onerror=alert(1)> [red]no markup[/red] \x1b[31m | {{ 7*7 }}"
)
SQL = "SELECT c.region, count(*) AS orders\nFROM orders o\nJOIN customers c ON c.id = o.customer_id\nGROUP BY c.region"


@dataclass(frozen=True)
class Size:
    """How much is generated."""

    cells: tuple[str, ...] = ("schema", "pack", "bundle")
    tasks: int = 60
    repeat: int = 2
    result_chars: int = 600
    """Of each tool result."""


def make_evaluation(folder: Path, size: Size | None = None, *, with_misses: bool = True) -> Path:
    """Write an evaluation into `folder`, and give it back.

    Task shop_0 has hostile texts, task _13 no score, task _29 a gold query that fails.
    """
    size = size or Size()
    rng = random.Random(240)
    (folder / "steps").mkdir(parents=True)
    tasks = [_task(i) for i in range(size.tasks)]
    facts = {
        "name": folder.name,
        "suite": "made-up",
        "suite_hash": "0" * 64,
        "cells": [{"name": name, **settings(name)} for name in size.cells],
        "tasks": [task["id"] for task in tasks],
        "repeat": size.repeat,
        "started_at": STARTED,
        "versions": {"python": "3.11.2", "okf-sql-agent": "0.1.0"},
        "budget_usd": None,
    }
    (folder / "eval.json").write_text(json.dumps(facts), encoding="utf-8")
    runs, scores = [], []
    for repeat in range(1, size.repeat + 1):
        for task in tasks:
            for cell in size.cells:
                miss = _outcome(rng, task, cell)
                steps = rng.randint(3, 8) if cell in ("bundle", "search") else rng.randint(1, 2)
                events = _events(rng, task, steps, size, _answer(rng, task, miss))
                run = _run(rng, task, cell, repeat, miss, events)
                runs.append(run)
                if not task["id"].endswith("_13"):
                    scores.append(_score(task, run, miss, with_misses))
                write_lines(folder / "steps" / f"{run['run_id']}.jsonl", events)
    write_lines(folder / "runs.jsonl", runs)
    write_lines(folder / "scores.jsonl", scores)
    return folder


def write_lines(file: Path, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_text(text, encoding="utf-8", newline="\n")


def settings(cell: str) -> dict[str, Any]:
    return {"model": MODEL, "knowledge": cell, "profiles": True, "rules": True, "values": True}


def _task(i: int) -> dict[str, Any]:
    database = DATABASES[i % len(DATABASES)]
    question = QUESTIONS[i % len(QUESTIONS)].format(d=database, i=i)
    level = LEVELS[i % 7 % 3]
    return {
        "id": f"{database}_{i}",
        "database": database,
        "question": f"{question} {HOSTILE}" if i == 0 else question,
        "difficulty": level,
        "hard": 0.3 * (i % 9 / 9 - 0.5) + 0.1 * LEVELS.index(level),
    }


def _outcome(rng: random.Random, task: Mapping[str, Any], cell: str) -> str:
    """The class of the miss; "" for a right answer."""
    if rng.random() < SKILL[cell] - task["hard"]:
        return ""
    miss = rng.choice([*MISSES])
    return "formula differs" if miss == "knowledge not opened" and cell in ("schema", "pack") else miss


def _answer(rng: random.Random, task: Mapping[str, Any], miss: str) -> dict[str, Any]:
    sql = "" if miss in ("gave up", "wrongly declined") else SQL
    text = HOSTILE if task["id"] == "shop_0" else f"There are {rng.randint(2, 900)}."
    checked = "error" if miss == "error" else "ran" if sql else "not_run"
    return {"sql": sql, "answer": text, "rows_total": 3 if sql else None, "checked": checked}


def _run(
    rng: random.Random,
    task: Mapping[str, Any],
    cell: str,
    repeat: int,
    miss: str,
    events: list[dict[str, Any]],
) -> dict[str, Any]:
    replies = [event for event in events if event["event"] == "ModelReplied"]
    reads = [path for event in events for path in event.get("files", ())] if cell in ("bundle", "search") else []
    cost = round(COST[cell] * rng.uniform(0.6, 1.6), 6)
    unknown = cell == "schema" and repeat == 1 and task["id"].endswith("7")
    return {
        "run_id": f"20261129-200000-{task['id']}-{cell}-{repeat}",
        "follows": None,
        "task_id": task["id"],
        "database": task["database"],
        "model": MODEL,
        "question": task["question"],
        "mode": cell,
        "started_at": STARTED,
        "stop_reason": {"gave up": "step_limit", "wrongly declined": "declined"}.get(miss, "submitted"),
        "error": "",
        "llm_calls": len(replies),
        "failed_reads": rng.randint(0, 1) if reads else 0,
        "files_opened": reads,
        "input_tokens": sum(event["usage"]["input_tokens"] for event in replies),
        "output_tokens": sum(event["usage"]["output_tokens"] for event in replies),
        "cached_calls": 0,
        "cost_usd": None if unknown else cost,
        "cost_known_usd": 0.0 if unknown else cost,
        "seconds": round(len(replies) * rng.uniform(1.5, 6), 3),
        "answer": events[-1]["answer"],
        "bundle_hash": "b" * 64,
        "cell": {"name": cell, **settings(cell)},
        "repeat": repeat,
    }


def _score(task: Mapping[str, Any], run: Mapping[str, Any], miss: str, with_misses: bool) -> dict[str, Any]:
    gone = task["id"].endswith("_29")
    return {
        "run_id": run["run_id"],
        "task_id": task["id"],
        "database": task["database"],
        "cell": run["cell"]["name"],
        "repeat": run["repeat"],
        "difficulty": task["difficulty"],
        "holdout": int(task["id"].rpartition("_")[2]) % 5 > 1,
        "strict": None if gone else not miss,
        "lenient": None if gone else miss in ("", "order", "wrong output columns"),
        "soft_f1": float(not miss),
        "r_ves": None,
        "reason": "3 rows, gold has 4" if miss else "",
        "gold_error": "relation gone does not exist" if gone else "",
        "differences": [],
        "knowledge_recall": 0.5 + 0.5 * (not miss) if run["files_opened"] else None,
        "knowledge_precision": 0.75 if run["files_opened"] else None,
        "judge": "MATCH" if not miss or miss == "order" else "MISMATCH",
        "judge_cost_usd": 0.0005,
        "miss": miss if miss and with_misses else None,
        "evidence": MISSES.get(miss, "") if with_misses else "",
    }


def _events(
    rng: random.Random, task: Mapping[str, Any], steps: int, size: Size, answer: Mapping[str, Any]
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"event": "Started", "question": task["question"]},
        {"event": "Instructions", "messages": [{"role": "system", "content": "You answer questions."}]},
    ]
    for step in range(1, steps + 1):
        events += _step(rng, task, step, size, answer if step == steps else None)
    return [*events, {"event": "Answered", "answer": answer, "columns": ["region", "count"], "rows": [["Nord", "12"]]}]


def _step(
    rng: random.Random, task: Mapping[str, Any], step: int, size: Size, answer: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    name = "submit_answer" if answer else rng.choice(["read_file", "run_sql"])
    paths = [f"/knowledge/rule-{rng.randint(1, 30)}.md"] if name == "read_file" else []
    arguments: dict[str, Any] = {"paths": paths} if paths else {"sql": SQL}
    if answer:
        arguments = {"sql": answer["sql"], "answer": answer["answer"]}
    row = HOSTILE if task["id"] == "shop_0" else "Nord"
    usage = {"input_tokens": 900 * step + rng.randint(0, 400), "output_tokens": rng.randint(40, 300), "cost_usd": 0.001}
    return [
        {"event": "StepStarted", "step": step},
        {
            "event": "ModelReplied",
            "step": step,
            "content": f"I look at what {name} says.",
            "reasoning": "",
            "finish_reason": "tool_calls",
            "tool_calls": [{"name": name, "arguments": json.dumps(arguments)}],
            "usage": usage,
        },
        {"event": "ToolStarted", "step": step, "name": name, "arguments": arguments},
        {
            "event": "ToolFinished",
            "step": step,
            "name": name,
            "text": (f"region | count\n--- | ---\n{row} | 12\n" * 200)[: size.result_chars],
            "failed": rng.random() < 0.05,
            "files": paths,
        },
    ]
