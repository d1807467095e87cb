"""Records read back: lists and filters, one run step by step, two side by side, figures, feedback, 100,000 lines."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.command import SCRIPTS, run

from okf_agent.config import TraceSection
from okf_agent.events import (
    Answer,
    Answered,
    ModelReplied,
    Notice,
    StepStarted,
    Told,
    ToolFinished,
    Usage,
)
from okf_agent.records import json_lines, runs
from okf_agent.records.json_lines import BLOCK, append_line
from okf_agent.records.runs import RunFilter
from okf_agent.records.trace import RUNS_FILE, Header, Recorder
from okf_agent.records.view import statistics_view
from okf_agent.run import Run
from okf_compiler.errors import UserError

ROWS = (("north", "4"), ("south", None), ("south", None))


def a_run(folder: Path, *, rows: tuple[tuple[str | None, ...], ...] = ROWS, trace: str = "full", **fields: Any) -> str:
    """Record a run as the loop would; gives its id."""
    reason = fields.pop("stop_reason", "submitted")
    known: dict[str, Any] = {"database": "hubs", "model": "openai/m-1", "question": "How many?", "mode": "bundle"}
    with Recorder(folder, Header(**{**known, **fields}), TraceSection.model_validate({"rows": trace})) as recorder:
        calls = ({"name": "run_sql", "arguments": '{"sql": "SELECT 1"}'},)
        for event in (
            StepStarted(1),
            ModelReplied(1, "I look.", calls, "tool_calls", Usage(100, 60, 10, 5, 0.002, 1.5), "Hm, hubs."),
            ToolFinished(1, "read_file", "=== /a.md ===\ntext", files=(f"/{fields.get('mode', 'bundle')}.md", "/a.md")),
            ToolFinished(1, "run_sql", "2 rows\n\x1b[31mred", sql_attempts=1, rows=2),
            Told(1, "Call a tool."),
            Notice("waiting 5 s"),
        ):
            recorder.on_event(event)
        if reason == "submitted":
            answer = Answer("SELECT region, hubs", "North has 4.", len(rows), "ran")
            recorder.on_event(Answered(answer, (), ("region", "hubs"), rows))
        recorder.finish(Run(reason, recorder.tally, seconds=3.0))
    return recorder.header.run_id


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("{}\n", encoding="utf-8")
    return tmp_path


def told(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("okf-agent", "runs", *arguments, cwd=workspace)


@pytest.mark.parametrize(
    ("wanted", "models"),
    [
        (RunFilter(), ["openai/m-1", "groq/M-2", "local"]),
        (RunFilter(database="shop"), ["groq/M-2"]),
        (RunFilter(mode="pack"), ["local"]),
        (RunFilter(model="m-"), ["openai/m-1", "groq/M-2"]),
        (RunFilter(stop_reason="step_limit"), ["groq/M-2"]),
        (RunFilter(task="hubs_1"), ["openai/m-1"]),
        (RunFilter(since=datetime.now(UTC) - timedelta(hours=1)), ["groq/M-2", "local"]),
        (RunFilter(database="hubs", mode="raw"), []),
    ],
)
def test_filters(tmp_path: Path, wanted: RunFilter, models: list[str]) -> None:
    a_run(tmp_path, task_id="hubs_1", started_at="2001-02-03T04:05:06+00:00")
    a_run(tmp_path, model="groq/M-2", database="shop", stop_reason="step_limit")
    a_run(tmp_path, model="local", mode="pack")
    assert [record["model"] for record in runs.read_runs(tmp_path, wanted).records] == models
    assert [record["model"] for record in runs.read_runs(tmp_path, wanted, last=1).records] == models[-1:]


@pytest.mark.parametrize(
    "line",
    [
        '{"run_id": "half',
        "not json",
        "[]",
        "3",
        '{"a": 1}',
        '{"run_id": 7, "database": "d"}',
        "[" * 100_000,
        "\x00\x00\x00",
        "",
    ],
)
@pytest.mark.parametrize("last", [None, 5])
def test_a_foreign_line_is_left_out_and_counted(tmp_path: Path, line: str, last: int | None) -> None:
    first = a_run(tmp_path)
    with (tmp_path / RUNS_FILE).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    second = a_run(tmp_path)
    found = runs.read_runs(tmp_path, last=last)
    assert [record["run_id"] for record in found.records] == [first, second] and found.skipped == 1
    assert found.example == line[:60].strip()


@pytest.mark.parametrize("torn", ['{"run_id": "half', "x" * 600_000, '{"é": "' + "é" * 300_000])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: str) -> None:
    run_id = a_run(tmp_path)
    with (tmp_path / RUNS_FILE).open("a", encoding="utf-8") as file:
        file.write(torn)
    for last in (None, 3):
        found = runs.read_runs(tmp_path, last=last)
        assert [r["run_id"] for r in found.records] == [run_id] and found.skipped == 1


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_lines_backwards_are_the_lines(tmp_path: Path, size: int) -> None:
    text = b"a\r\n\n" + b"b" * size + b"\nc\xc3\xa9\n" + b"d" * size
    (tmp_path / "file").write_bytes(text)
    found = [*json_lines.lines_backwards(tmp_path / "file")]
    assert b"".join(reversed(found)) == text and all(line.count(b"\n") <= 1 for line in found)


def test_a_list_shows_what_people_said_and_what_was_left_out(workspace: Path) -> None:
    run_id = a_run(workspace / "runs", question="Wie viele \x1b[31mHubs?")
    runs.add_feedback(workspace / "runs", run_id, "wrong", "counts twice")
    with (workspace / "runs" / RUNS_FILE).open("a", encoding="utf-8") as file:
        file.write("foreign\n")
    done = told(workspace)
    assert done.returncode == 0 and "1 line is no record and left out: 'foreign'" in done.stderr
    for word in (run_id, "hubs (bundle)", "submitted", r"Wie viele \x1b[31mHubs?", "110 tokens", "wrong: counts twice"):
        assert word in done.stdout
    (line,) = told(workspace, "--json").stdout.splitlines()
    data = json.loads(line)
    assert data["run_id"] == run_id and data["feedback"][0]["note"] == "counts twice"
    assert told(workspace, "--db", "none").stdout == "" and "No such runs" in told(workspace, "--db", "none").stderr


def test_one_run_is_shown_step_by_step(workspace: Path) -> None:
    run_id = a_run(workspace / "runs")
    done = told(workspace, "show", run_id[-6:])
    words = (
        "thinks: Hm, hubs.",
        "says: I look.",
        "calls run_sql",
        r"\x1b[31mred",
        "told: Call a tool.",
        "North has 4.",
    )
    places = [done.stdout.find(word) for word in words]
    assert done.returncode == 0 and -1 not in places and places == sorted(places)
    data = json.loads(told(workspace, "show", "last", "--json").stdout)
    assert data["record"]["run_id"] == run_id and data["steps"][0]["event"] == "Started"
    (workspace / "runs" / "steps" / f"{run_id}.jsonl").unlink()
    done = told(workspace, "show", run_id)
    assert done.returncode == 0 and "not kept" in done.stderr and "North has 4." in done.stdout


def test_an_unknown_or_ambiguous_id_is_told(workspace: Path) -> None:
    for _ in range(2):
        a_run(workspace / "runs")
    for wanted, said in (("nothing", "There is no run 'nothing'"), ("20", "part of 2 runs")):
        with pytest.raises(UserError, match=said):
            runs.find_run(workspace / "runs", wanted)
    done = told(workspace, "show", "nothing")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "okf-agent runs" in done.stderr
    assert "`okf-agent eval show TASK` shows those of an evaluation" in done.stderr
    for wanted in ("20261130-041506-1533a5", "last"):
        done = told(workspace, wanted)
        assert done.returncode == 2 and f"To show that run: okf-agent runs show {wanted}" in done.stderr
    with pytest.raises(UserError, match="no runs in"):
        runs.find_run(workspace / "empty", "last")


def test_two_runs_side_by_side(workspace: Path) -> None:
    a = a_run(workspace / "runs")
    b = a_run(workspace / "runs", mode="raw", rows=(("north", "4"), ("south", None), ("west", "1")))
    done = told(workspace, "compare", a, b)
    assert done.returncode == 0
    for word in ("/bundle.md", "/raw.md", "/a.md", "$0.0020", "west | 1", "south | NULL", "Rows: 2"):
        assert word in done.stdout
    data = json.loads(told(workspace, "compare", a, b, "--json").stdout)
    assert data["rows_only"] == [[["south", None]], [["west", "1"]]] and data["rows_in_both"] == 2
    assert data["files_only"] == [["/bundle.md"], ["/raw.md"]] and data["files_in_both"] == ["/a.md"]
    assert data["same_question"]


def test_what_cannot_be_compared_is_said(workspace: Path) -> None:
    a, b = a_run(workspace / "runs", trace="none"), a_run(workspace / "runs", question="Which?")
    said = told(workspace, "compare", a, b).stdout
    assert "different questions" in said and "were not kept" in said
    assert "secret" not in (workspace / "runs" / "steps" / f"{a}.jsonl").read_text(encoding="utf-8")


def test_texts_of_several_lines_keep_them_and_nothing_in_them_is_obeyed(workspace: Path) -> None:
    both = [
        {"run_id": f"2026-{n}", "question": "q", "error": "one\n\x1b[31mtwo", "files_opened": ["/a.md", "/b.md"],
         "answer": {"sql": "SELECT 1\nFROM t", "answer": "It is 1."}, "stop_reason": "error"}
        for n in (1, 2)
    ]  # fmt: skip
    base = {"started_at": "2026-11-29T12:00:00+00:00", "database": "shop", "model": "m", "mode": "bundle"}
    (workspace / "runs").mkdir(exist_ok=True)
    lines = "".join(json.dumps(base | each) + "\n" for each in both)
    (workspace / "runs" / "runs.jsonl").write_text(lines, encoding="utf-8")
    compared, shown = told(workspace, "compare", "2026-1", "2026-2").stdout, told(workspace, "show", "2026-1").stdout
    assert "\\n" not in compared + shown and "\x1b" not in compared + shown
    assert "/b.md" in compared and "one\n\\x1b[31mtwo" in shown


def test_figures_by_mode_and_model(workspace: Path) -> None:
    ids = [a_run(workspace / "runs") for _ in range(3)]
    a_run(workspace / "runs", stop_reason="step_limit")
    a_run(workspace / "runs", mode="raw")
    runs.add_feedback(workspace / "runs", ids[0], "wrong")
    runs.add_feedback(workspace / "runs", ids[0], "right")
    bundle, raw = map(json.loads, told(workspace, "--stats", "--json").stdout.splitlines())
    assert bundle == {
        "mode": "bundle",
        "model": "openai/m-1",
        "runs": 4,
        "success": 3,
        "steps": 1,
        "tokens": 110,
        "cost_usd": 0.002,
        "cost_unknown": 0,
        "seconds": 3.0,
        "right": 1,
        "wrong": 0,
    }
    assert (raw["mode"], raw["runs"]) == ("raw", 1)
    table = told(workspace, "--stats").stdout
    assert "3 (75%)" in table and "medians" in table
    narrow = run("okf-agent", "runs", "--stats", cwd=workspace, env={"COLUMNS": "80"}).stdout
    assert "…" not in narrow and max(map(len, narrow.splitlines())) <= 80


def test_records_of_other_versions_do_not_stop_a_list(workspace: Path) -> None:
    old = dict.fromkeys(runs.TEXTS, "x") | {"input_tokens": "many", "cost_usd": None, "answer": 7}
    append_line(workspace / "runs" / RUNS_FILE, old)
    for arguments in ((), ("--stats",), ("show", "x"), ("compare", "x", "x"), ("--since", "1d")):
        done = told(workspace, *arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(("text", "hours"), [("2h", 2), ("90m", 1.5), ("7d", 168), ("1w", 168)])
def test_since_may_say_how_long_ago(text: str, hours: float) -> None:
    ago = datetime.now(UTC) - runs.parse_since(text)
    assert abs(ago - timedelta(hours=hours)) < timedelta(minutes=1)


def test_since_that_is_no_time_is_told(workspace: Path) -> None:
    done = told(workspace, "--since", "yesterday")
    assert done.returncode == 2 and "--since yesterday" in done.stderr


def test_lines_are_followed_as_they_come_and_only_whole(tmp_path: Path) -> None:
    path = tmp_path / RUNS_FILE
    path.write_text('{"old": 1}\n{"half": ', encoding="utf-8")
    lines = json_lines.follow(path, start=len('{"old": 1}\n'), pause=0.01)
    late = threading.Timer(0.1, lambda: append_line(path, {"new": 2}))  # it cuts the torn line
    late.start()
    assert next(lines) == {"new": 2}
    path.unlink()
    append_line(path, {"n": 3})
    assert next(lines) == {"n": 3}, "a new file under the same name"


def test_tail_shows_a_run_that_ends_and_the_steps_of_one_that_lives(workspace: Path) -> None:
    folder = workspace / "runs"
    first = a_run(folder)
    done = told(workspace, "tail", first)
    assert done.returncode == 0 and "calls run_sql" in done.stdout
    with following(workspace) as process:
        assert process.stdout is not None
        ids = []
        stop = threading.Event()

        def record() -> None:
            while not stop.wait(0.3):
                ids.append(a_run(folder))

        writer = threading.Thread(target=record)
        writer.start()
        try:
            seen = json.loads(process.stdout.readline())["run_id"]
        finally:
            stop.set()
            writer.join()
    assert seen in ids and seen != first


class following:
    """`okf-agent runs tail --json` in a process of its own, ended at the end."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def __enter__(self) -> subprocess.Popen[str]:
        command = [str(SCRIPTS / "okf-agent"), "runs", "tail", "--json"]
        self.process = subprocess.Popen(
            command, cwd=self.workspace, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def many_lines(count: int) -> Iterator[str]:
    header = Header(database="hubs", model="openai/m", question="How many hubs are there? " * 4, mode="bundle")
    line = {**vars(header), "stop_reason": "submitted", "input_tokens": 30_000, "output_tokens": 900, "llm_calls": 4}
    line |= {"cost_usd": 0.01, "seconds": 9.5, "files_opened": ["/tables/hubs.md"] * 6, "error": ""}
    line |= {"answer": {"sql": "SELECT 1 " * 30, "answer": "x" * 200, "rows_total": 1, "checked": "ran"}}
    for number in range(count):
        yield json.dumps(line | {"run_id": f"run-{number:06}", "mode": ("bundle", "raw")[number % 2]}) + "\n"


def test_conversations_of_other_agents_neither_succeed_nor_fail() -> None:
    theirs, ours = (json.loads(line) for line in many_lines(2))
    theirs |= {"mode": "mcp", "model": "", "stop_reason": "no_tool_calls", "answer": None}
    figures = runs.statistics([theirs, ours], {})
    assert [(one["mode"], one["success"]) for one in figures] == [("mcp", None), ("raw", 1)]
    assert [*statistics_view(figures).columns[3].cells] == ["-", "1 (100%)"]


@pytest.mark.slow
def test_a_hundred_thousand_lines(tmp_path: Path) -> None:
    with (tmp_path / RUNS_FILE).open("w", encoding="utf-8") as file:
        file.writelines(many_lines(100_000))
    begin = time.process_time()
    assert [r["run_id"] for r in runs.read_runs(tmp_path, last=2).records] == ["run-099998", "run-099999"]
    assert runs.find_run(tmp_path, "run-099000")["run_id"] == "run-099000"
    assert time.process_time() - begin < 0.5, "the latest are read from the end"
    figures = runs.statistics(runs.read_runs(tmp_path).records, {})
    assert [one["runs"] for one in figures] == [50_000, 50_000] and figures[0]["tokens"] == 30_900
    assert time.process_time() - begin < 15


def test_the_command_imports_nothing_heavy_before_it_runs() -> None:
    code = (
        "import sys, okf_agent.commands.runs; sys.exit(any(m in sys.modules for m in ('rich', 'litellm', 'psycopg')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
