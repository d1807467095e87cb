"""A line of runs.jsonl: its schema against the contract and real records; the one-liners of docs/record.md run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from okf_agent.config import TraceSection
from okf_agent.events import (
    Answer,
    Answered,
    Checked,
    LimitReached,
    ModelReplied,
    StopReason,
    ToolFinished,
    Usage,
)
from okf_agent.records.left_behind import close_dead_runs
from okf_agent.records.trace import RUNS_FILE, Header, Recorder
from okf_agent.run import Run, Tally

SCHEMA = json.loads(files("okf_agent.records").joinpath("record.schema.json").read_text(encoding="utf-8"))
PAGE = Path(__file__).parents[3] / "docs" / "record.md"
FIELDS = [
    *("run_id", "follows", "task_id", "repeat", "database", "model", "question", "mode", "started_at"),
    *("today", "time_zone", "stop_reason", "error"),
    *("llm_calls", "cached_calls", "sql_attempts", "sql_errors", "failed_reads", "tool_calls", "files_opened"),
    *("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "cost_known_usd"),
    *("model_seconds", "rate_limit_wait_seconds", "database_seconds", "seconds", "answer"),
    *(
        "versions",
        "bundle_hash",
        "limits_hit",
        "shortened",
        "ungrounded_numbers",
        "document_numbers",
        "unsafe_role",
        "cell",
        "client",
    ),
]
check = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())


def record_runs(runs: Path) -> list[dict[str, Any]]:
    """Runs of every end, recorded; the last one killed."""
    known = {"database": "hubs", "question": "How many?", "bundle_hash": "abc"}
    for number, reason in enumerate(get_args(StopReason)):
        mode = ("bundle", "raw")[number % 2]
        header = Header(**known, model="openai/m", mode=mode, task_id=f"hubs_{number // 2}")
        with Recorder(runs, header, TraceSection()) as recorder:
            cost = None if number == 3 else 0.01
            recorder.on_event(ModelReplied(1, "", (), "stop", Usage(1000, 600, 100, 50, cost, 1.5, 0.5)))
            recorder.on_event(ToolFinished(1, "read_file", "text", files=("/a.md", "/b.md"), failed_reads=1))
            if reason == "submitted":
                recorder.on_event(Answered(Answer("SELECT 1", "One.", 1, "ran"), ("7",)))
            if reason.endswith("_limit"):
                recorder.on_event(LimitReached(reason))
            recorder.finish(Run(reason, recorder.tally, "broken" if reason == "error" else "", 3.0))
    dead = Recorder(runs, Header(**known, model="local", mode="pack"), TraceSection())
    dead._lock.release()
    assert close_dead_runs(runs) == [dead.header.run_id]
    return [json.loads(line) for line in (runs / RUNS_FILE).read_text(encoding="utf-8").splitlines()]


def test_the_schema_is_one_and_has_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert [*SCHEMA["properties"]] == FIELDS == SCHEMA["required"]
    made = {f.name for kind in (Header, Tally) for f in fields(kind)} | {"stop_reason", "error", "seconds"}
    assert made == {*FIELDS}
    assert SCHEMA["properties"]["stop_reason"]["enum"] == [*get_args(StopReason)]
    assert SCHEMA["properties"]["answer"]["oneOf"][1]["properties"]["checked"]["enum"] == [*get_args(Checked)]


def test_the_page_has_every_field() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## With jq")[0]
    assert [name for name in FIELDS if f"`{name}`" not in table] == []


def test_real_records_of_every_end_are_valid(tmp_path: Path) -> None:
    lines = record_runs(tmp_path)
    assert {line["stop_reason"] for line in lines} == {*get_args(StopReason)}
    assert [error.message for line in lines for error in check.iter_errors(line)] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stop_reason", "finished"),
        ("started_at", "2026-11-29T12:00:00"),
        ("cost_usd", "0"),
        ("llm_calls", -1),
        ("input_tokens", 1.5),
        ("files_opened", ["a.md"]),
        ("answer", {"sql": "SELECT 1"}),
        ("answer", {"sql": "", "answer": "", "rows_total": 1, "checked": "maybe"}),
        ("question", None),
        ("surplus", 1),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    line = record_runs(tmp_path)[0]
    assert not check.is_valid(line | {name: value})
    assert not check.is_valid({key: line[key] for key in line if key != "mode"})


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    record_runs(root / "runs")
    return root


JQ = [
    "submitted\t1100\tHow many?",
    '"submitted": 1',
    '"dollars": 0.08',
    '"file": "/a.md"',
    '"question":"How many?","answer":{"sql":"SELECT 1"',
]


@pytest.mark.parametrize("number", range(5))
def test_each_jq_line_runs(workspace: Path, number: int) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed (Debian: apt-get install jq)")
    lines = examples("sh")
    assert len(lines) == 5
    words = re.fullmatch(r"jq (-\w+) '(.*)' (runs/runs\.jsonl)", lines[number], re.DOTALL)
    assert words is not None
    done = subprocess.run(["jq", *words.groups()], cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and JQ[number] in done.stdout


PANDAS = ["1000.0", "0.25", "13.5", "hubs_0", "0.6"]


@pytest.mark.parametrize("number", range(5))
def test_each_pandas_line_runs(workspace: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    setup, *lines = examples("python")
    first, _, read = setup.splitlines()
    assert len(lines) == 5 and first == "import pandas as pd"
    names: dict[str, Any] = {"pd": pytest.importorskip("pandas")}
    names["runs"] = eval(read.removeprefix("runs = "), names)
    assert PANDAS[number] in str(eval(lines[number], names))
