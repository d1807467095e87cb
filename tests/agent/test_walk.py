"""A task of LiveSQLBench through bundle and raw mode, from the first request to the record, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import hubs
from support.documents import compile_documents
from support.endpoint import Endpoint, calls, submit

from okf_agent import agent
from okf_agent.bundles.reading import brief
from okf_agent.config import ModelSection, TraceSection
from okf_agent.events import Event
from okf_agent.knowledge import Sources, prepare
from okf_agent.llm import Model
from okf_agent.records.json_lines import read_lines
from okf_agent.records.trace import RUNS_FILE, Header, Recorder
from okf_agent.run import Limits, Question
from okf_agent.tasks import Task, find_task
from okf_agent.tools import Context
from okf_compiler.bundle import bundle_hash
from okf_compiler.documents import Documents, find_documents
from okf_compiler.settings import Settings, load_settings

SQL = (
    "SELECT hubregistry, resourceutilization AS rur FROM distributionhubs ORDER BY resourceutilization DESC NULLS LAST"
)
SAID = "All hubs with their Resource Utilization Ratio and its class, highest first. Nothing was run here."
RULES = ["/knowledge/resource-utilization-ratio.md", "/knowledge/resource-utilization-classification.md"]


@pytest.fixture
def settings(test_data: Path, tmp_path: Path) -> Settings:
    (tmp_path / "config.yaml").write_text(
        f"agent:\n  raw_docs: {(test_data / 'livesqlbench-base-lite').as_posix()}\n", encoding="utf-8"
    )
    return load_settings(tmp_path)


@pytest.fixture
def documents(settings: Settings) -> Documents:
    return find_documents(settings, "disaster")


@pytest.fixture
def task(settings: Settings) -> Task:
    return find_task(settings, "disaster_1")


def walk(endpoint: Endpoint, task: Task, mode: str, sources: Sources, runs: Path) -> tuple[dict[str, Any], list[Event]]:
    """One run over the endpoint, recorded: the line it gave, and its events."""
    model = Model(ModelSection(name="openai/scripted", api_base=endpoint.url))
    header = Header(
        database=task.database,
        model=model.name,
        question=task.question,
        mode=mode,
        task_id=task.id,
        bundle_hash=bundle_hash(sources.bundle) if sources.bundle else None,
    )
    events: list[Event] = []
    with Recorder(runs, header, TraceSection()) as recorder:

        def on_event(event: Event) -> None:
            events.append(event)
            recorder.on_event(event)

        run = agent.run(
            Question(task.question, task.database, hubs.DAY),
            prepare(mode, task.question, sources),
            model,
            Context(bundle=sources.bundle),
            Limits(),
            on_event,
        )
        line = recorder.finish(run)
    assert endpoint.missing == 0
    return line, events


def facts(line: dict[str, Any]) -> dict[str, Any]:
    """The line without what differs from run to run, which is checked here."""
    assert line["run_id"] and line["started_at"][10] == "T" and line["started_at"][-6] in "+-"
    assert {"okf-sql-agent", "litellm", "python"} <= set(line["versions"])
    assert 0 < line["model_seconds"] <= line["seconds"] < 60
    varies = ("run_id", "started_at", "versions", "model_seconds", "seconds", "bundle_hash")
    return {name: value for name, value in line.items() if name not in varies}


COMMON = {
    "follows": None,
    "repeat": None,
    "task_id": "disaster_1",
    "database": "disaster",
    "model": "openai/scripted",
    "stop_reason": "submitted",
    "error": "",
    "sql_attempts": 0,
    "sql_errors": 0,
    "failed_reads": 0,
    "cached_tokens": 0,
    "cached_calls": 0,
    "reasoning_tokens": 0,
    "cost_usd": None,
    "cost_known_usd": 0.0,
    "rate_limit_wait_seconds": 0.0,
    "database_seconds": 0.0,
    "answer": {"sql": SQL, "answer": SAID, "rows_total": None, "checked": "not_run"},
    "limits_hit": [],
    "shortened": 0,
    "ungrounded_numbers": [],
    "document_numbers": [],
    "today": "",
    "time_zone": "",
    "unsafe_role": False,
    "cell": None,
    "client": "cli",
}


def test_disaster_1_through_the_bundle(documents: Documents, task: Task, tmp_path: Path) -> None:
    bundle = tmp_path / "bundles" / "disaster"
    compile_documents(documents, bundle)
    script = [
        calls(("read_file", {"paths": RULES})),
        calls(("read_file", {"paths": ["/tables/distributionhubs.md"]})),
        submit(SQL, SAID),
    ]
    with Endpoint(script) as endpoint:
        line, _ = walk(endpoint, task, "bundle", Sources("disaster", documents, bundle), tmp_path / "runs")

    assert facts(line) == COMMON | {
        "mode": "bundle",
        "question": task.question,
        "llm_calls": 3,
        "tool_calls": {"read_file": 2, "submit_answer": 1},
        "files_opened": [*RULES, "/tables/distributionhubs.md"],
        "input_tokens": 300,
        "output_tokens": 30,
    }
    assert line["bundle_hash"] == bundle_hash(bundle)
    first, second, third = endpoint.requests
    assert [t["function"]["name"] for t in first["tools"]] == ["read_file", "run_sql", "submit_answer"]
    index = brief((bundle / "index.md").read_text(encoding="utf-8")).strip()
    assert index in first["messages"][0]["content"]
    asked = first["messages"][1]["content"]
    assert asked.startswith(f"{task.question}\n\n") and all(path in asked for path in RULES)
    for path in RULES:
        assert brief((bundle / path[1:]).read_text(encoding="utf-8")).strip() in endpoint.told(1)[0]
    assert "hubregistry" in endpoint.told(2)[1]
    assert second["messages"][:2] == third["messages"][:2] == first["messages"]
    assert [*read_lines(tmp_path / "runs" / RUNS_FILE)] == [line]


def test_disaster_1_with_raw_documents(documents: Documents, task: Task, tmp_path: Path) -> None:
    with Endpoint([submit(SQL, SAID)]) as endpoint:
        line, _ = walk(endpoint, task, "raw", Sources("disaster", documents), tmp_path / "runs")

    assert facts(line) == COMMON | {
        "mode": "raw",
        "question": task.question,
        "llm_calls": 1,
        "tool_calls": {"submit_answer": 1},
        "files_opened": [],
        "input_tokens": 100,
        "output_tokens": 10,
    }
    assert line["bundle_hash"] is None
    (request,) = endpoint.requests
    assert [t["function"]["name"] for t in request["tools"]] == ["run_sql", "submit_answer"]
    instructions = request["messages"][0]["content"]
    assert "read_file" not in instructions
    for document in (documents.schema, documents.meanings, documents.rules):
        assert document.read_text(encoding="utf-8-sig").strip() in instructions


def test_steps_hold_every_message_of_a_run(documents: Documents, task: Task, tmp_path: Path) -> None:
    with Endpoint([submit(SQL, SAID)]) as endpoint:
        line, events = walk(endpoint, task, "raw", Sources("disaster", documents), tmp_path / "runs")
    steps = [*read_lines(tmp_path / "runs" / "steps" / f"{line['run_id']}.jsonl")]
    assert [s["event"] for s in steps] == ["Started", *(type(e).__name__ for e in events), "Finished"]
    assert steps[1]["messages"] == endpoint.requests[0]["messages"]
    assert steps[-1]["record"] == line
