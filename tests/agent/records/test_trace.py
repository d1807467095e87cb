"""Records under pressure: killed writers, full disks, runs that die, runs that live."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from okf_agent.config import TraceSection
from okf_agent.events import (
    Answer,
    Answered,
    Instructions,
    ModelReplied,
    StepStarted,
    ToolFinished,
    Usage,
)
from okf_agent.records.json_lines import append_line, read_lines
from okf_agent.records.left_behind import close_dead_runs, delete_old_steps
from okf_agent.records.trace import RUNS_FILE, Header, Recorder
from okf_agent.run import Run
from okf_compiler.errors import UserError
from okf_compiler.inert import ACTIVE

EVENTS = (
    StepStarted(1),
    ModelReplied(1, "", ({"name": "run_sql", "arguments": "{}"},), "tool_calls", Usage(100, 60, 10, 5, None, 1.5, 2.0)),
    ToolFinished(1, "run_sql", "1 row.\nsecret cell", sql_attempts=1, rows=1, database_seconds=0.25),
    ToolFinished(1, "read_file", "text", files=("/a.md",), failed_reads=1),
    Answered(Answer("SELECT 1", "One.", 1, "ran"), ("7",)),
)


def header(**fields: Any) -> Header:
    return Header(**{"database": "hubs", "model": "m", "question": "How many?", "mode": "bundle", **fields})


def lines(runs: Path) -> list[dict[str, Any]]:
    """The lines of runs.jsonl, each of which must be whole."""
    text = (runs / RUNS_FILE).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def finish(recorder: Recorder, reason: Any = "submitted") -> dict[str, Any]:
    return recorder.finish(Run(reason, recorder.tally, seconds=3.0))


def test_a_run_becomes_one_line_with_everything_counted(tmp_path: Path) -> None:
    with Recorder(tmp_path, header(task_id="hubs_1"), TraceSection()) as recorder:
        recorder.update(bundle_hash="abc", unsafe_role=True)
        for event in EVENTS:
            recorder.on_event(event)
        line = finish(recorder)
    assert lines(tmp_path) == [line]
    expected = {
        "task_id": "hubs_1",
        "bundle_hash": "abc",
        "unsafe_role": True,
        "llm_calls": 1,
        "tool_calls": {"run_sql": 1, "read_file": 1},
        "files_opened": ["/a.md"],
        "failed_reads": 1,
        "sql_attempts": 1,
        "input_tokens": 100,
        "cached_tokens": 60,
        "output_tokens": 10,
        "reasoning_tokens": 5,
        "cost_usd": None,
        "cost_known_usd": 0.0,
        "model_seconds": 1.5,
        "rate_limit_wait_seconds": 2.0,
        "database_seconds": 0.25,
        "seconds": 3.0,
        "answer": {"sql": "SELECT 1", "answer": "One.", "rows_total": 1, "checked": "ran"},
        "ungrounded_numbers": ["7"],
    }
    assert {name: line[name] for name in expected} == expected
    assert not [*(tmp_path / "steps").glob("*.lock")]


def test_records_are_for_their_owner_alone(tmp_path: Path) -> None:
    with Recorder(tmp_path / "runs", header(), TraceSection()) as recorder:
        finish(recorder)
    for file in (tmp_path / "runs" / RUNS_FILE, recorder.steps):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(recorder.steps.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("error", "reason", "said"),
    [
        (UserError("no bundle"), "error", "no bundle"),
        (KeyboardInterrupt(), "interrupted", ""),
        (ValueError("a bug"), "error", "ValueError: a bug"),
    ],
)
def test_an_exception_leaves_its_line_and_goes_on(tmp_path: Path, error: BaseException, reason: str, said: str) -> None:
    with pytest.raises(type(error)), Recorder(tmp_path, header(), TraceSection()):
        raise error
    (line,) = lines(tmp_path)
    assert (line["stop_reason"], line["error"]) == (reason, said)


@pytest.mark.parametrize(("rows", "kept"), [("full", "secret cell"), ("sample", "1 row."), ("none", "trace.rows")])
def test_query_results_are_kept_as_far_as_wanted(
    tmp_path: Path, rows: Literal["full", "sample", "none"], kept: str
) -> None:
    with Recorder(tmp_path, header(), TraceSection(rows=rows)) as recorder:
        recorder.on_event(EVENTS[2])
        finish(recorder)
    text = next(s["text"] for s in read_lines(recorder.steps) if s["event"] == "ToolFinished")
    assert kept in text and ("secret" in text) == (rows != "none")


@pytest.mark.parametrize(("rows", "kept"), [("full", True), ("sample", True), ("none", False)])
def test_rows_of_earlier_answers_are_kept_as_far_as_wanted(
    tmp_path: Path, rows: Literal["full", "sample", "none"], kept: bool
) -> None:
    said = [("system", "rules"), ("user", "And before?"), ("assistant", "1 row.\nsecret cell"), ("user", "And now?")]
    with Recorder(tmp_path, header(), TraceSection(rows=rows)) as recorder:
        recorder.on_event(Instructions(tuple({"role": role, "content": text} for role, text in said)))
        finish(recorder)
    messages = next(s["messages"] for s in read_lines(recorder.steps) if s["event"] == "Instructions")
    assert ("secret" in messages[2]["content"]) == kept
    assert [m["content"] for m in messages if m["role"] != "assistant"] == ["rules", "And before?", "And now?"]


def test_half_a_surrogate_pair_does_not_stop_the_record(tmp_path: Path) -> None:
    with Recorder(tmp_path, header(question="\ud800?"), TraceSection()) as recorder:
        finish(recorder)
    assert lines(tmp_path)[0]["question"] == "\ud800?"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("OPENAI_API_KEY", "sk-proj-abc123", False),
        ("POSTGRES_PASSWORD", 'o"ne\\two é', False),
        ("OKF_MCP_TOKENS", "alice=dG9rZW4gb2YgYWxpY2U=", False),
        ("SIGNING_KEY", "/dG9rZW4+b2Yg/YWxpY2U=", False),
        ("SIGNING_KEY", "/dG9rZW4b2YgYWxpY2UuIEtlZXAgaXQ/c2VjcmV0", False),
        ("MAX_TOKENS", "100000000", True),
        ("POSTGRES_PASSWORD", "postgres", True),
        ("SSH_KEY_FILE", "/root/.ssh/id_1", True),
    ],
)
def test_a_secret_that_a_model_writes_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, kept: bool
) -> None:
    monkeypatch.setenv(name, value)
    with Recorder(tmp_path, header(), TraceSection()) as recorder:
        recorder.on_event(Answered(Answer(f"SELECT '{value}'", f"It is {value}.", 1, "ran")))
        recorder.finish(Run("submitted", recorder.tally))
    events = [event for event in read_lines(recorder.steps) if event["event"] == "Answered"]
    for line in (*lines(tmp_path), *events):
        assert line["answer"]["answer"] == f"It is {value if kept else '***'}."
        assert line["answer"]["sql"] == f"SELECT '{value if kept else '***'}'"


@pytest.mark.parametrize("text", ["\u2028", "\x85", "\x9b2J", "\x1b[2J", "\u202e", "\U000e0041", "\ud83d"])
def test_no_line_of_a_record_holds_what_drives_a_terminal_or_ends_a_line(tmp_path: Path, text: str) -> None:
    with Recorder(tmp_path, header(), TraceSection()) as recorder:
        recorder.on_event(Answered(Answer("SELECT 1", text, 1, "ran")))
        recorder.finish(Run("submitted", recorder.tally))
    for file in (tmp_path / RUNS_FILE, recorder.steps):
        written = file.read_bytes().decode()
        assert ACTIVE.sub("", written) == written.replace("\n", "") and written.endswith("\n")
        assert all(json.loads(line) for line in written.splitlines())
    assert lines(tmp_path)[0]["answer"]["answer"] == text


@pytest.mark.parametrize("torn", ['{"run_id": "half', "x" * 200_000])
def test_a_torn_last_line_is_cut_before_the_next(tmp_path: Path, torn: str) -> None:
    (tmp_path / RUNS_FILE).write_text('{"a": 1}\n' + torn, encoding="utf-8")
    append_line(tmp_path / RUNS_FILE, {"b": 2})
    assert lines(tmp_path) == [{"a": 1}, {"b": 2}]


def test_what_could_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^The score of this run could not be written to .*: Is a directory"):
        append_line(tmp_path, {"a": 1}, "The score of this run")


WRITER = """
import sys
from pathlib import Path
from okf_agent.records.json_lines import append_line
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    append_line(Path(sys.argv[1]), {"writer": sys.argv[3], "number": number, "text": "x" * 20_000})
"""


def test_lines_stay_whole_with_eight_writers_and_a_kill(tmp_path: Path) -> None:
    file = tmp_path / RUNS_FILE
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(file), "40" if name < 6 else "100000", str(name)], stdout=subprocess.PIPE
        )
        for name in range(8)
    ]
    time.sleep(0.3)
    for writer in writers[6:]:
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        writer.communicate()
    append_line(file, {"writer": "last"})
    found = lines(tmp_path)
    for name in range(6):
        assert [e["number"] for e in found if e["writer"] == str(name)] == [*range(40)]


FULL = """
import resource, sys
from pathlib import Path
from okf_agent.config import TraceSection
from okf_agent.events import Notice
from okf_agent.run import Run
from okf_agent.records.trace import Header, Recorder
from okf_compiler.errors import UserError
header = Header(database="d", model="m", question="q", mode="raw")
try:
    with Recorder(Path(sys.argv[1]), header, TraceSection()) as recorder:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        recorder.on_event(Notice("x" * 5000))
        recorder.finish(Run("submitted", recorder.tally))
except UserError as error:
    sys.exit(f"user error: {error}")
"""


def test_a_size_limit_leaves_the_file_as_it_was_and_says_so(tmp_path: Path) -> None:
    before = '{"a": 1}\n' * 200
    (tmp_path / RUNS_FILE).write_text(before, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], check=False, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 1 and "agent.runs" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / RUNS_FILE).read_text(encoding="utf-8") == before
    # Where there is room again, the next start writes the line.
    assert len(close_dead_runs(tmp_path)) == 1
    assert len(lines(tmp_path)) == 201


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_message(tmp_path: Path) -> None:
    (tmp_path / RUNS_FILE).symlink_to("/dev/full")
    recorder = Recorder(tmp_path, header(), TraceSection())
    with pytest.raises(UserError, match="No space left"):
        finish(recorder)


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(UserError, match=r"agent\.runs"):
        Recorder(tmp_path / "runs", header(), TraceSection())


LIVING = """
import sys, time
from pathlib import Path
from okf_agent.config import TraceSection
from okf_agent.events import ModelReplied, ToolFinished, Usage
from okf_agent.records.trace import Header, Recorder
recorder = Recorder(Path(sys.argv[1]), Header(database="d", model="m", question="q", mode="raw"), TraceSection())
recorder.update(bundle_hash="abc")
recorder.on_event(ModelReplied(1, "", (), "stop", Usage(100, 0, 10, 0, 0.5, 1.0)))
recorder.on_event(ToolFinished(1, "read_file", "", files=("/a.md",)))
print(recorder.header.run_id, flush=True)
time.sleep(60)
"""


@contextmanager
def living_run(runs: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run in a process of its own, in the middle of its work, and its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIVING, str(runs)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_a_run_that_lives_is_left_alone_and_one_that_died_is_closed_once(tmp_path: Path) -> None:
    with living_run(tmp_path) as (process, run_id):
        assert close_dead_runs(tmp_path) == [] and not (tmp_path / RUNS_FILE).exists()
        process.kill()
        process.wait()
        with (tmp_path / "steps" / f"{run_id}.jsonl").open("a", encoding="utf-8") as steps:
            steps.write('{"event": "Noti')
        assert close_dead_runs(tmp_path) == [run_id]
        assert close_dead_runs(tmp_path) == []
    (line,) = lines(tmp_path)
    assert (line["run_id"], line["stop_reason"], line["answer"]) == (run_id, "interrupted", None)
    assert (line["llm_calls"], line["input_tokens"], line["cost_usd"]) == (1, 100, 0.5)
    assert (line["files_opened"], line["tool_calls"], line["bundle_hash"]) == (["/a.md"], {"read_file": 1}, "abc")
    last = [*read_lines(tmp_path / "steps" / f"{run_id}.jsonl")][-1]
    assert last["event"] == "Finished" and last["record"] == line


def test_a_run_killed_between_its_two_lines_gets_its_own_line_once(tmp_path: Path) -> None:
    with Recorder(tmp_path, header(), TraceSection()) as recorder:
        line = finish(recorder)
    lock = recorder.steps.with_suffix(".lock")
    lock.touch()
    assert close_dead_runs(tmp_path) == [] and lines(tmp_path) == [line]
    (tmp_path / RUNS_FILE).unlink()
    lock.touch()
    assert close_dead_runs(tmp_path) == [line["run_id"]] and lines(tmp_path) == [line]


@pytest.mark.parametrize(
    "damage",
    [b"garbage\n", b"\xff\xfe\n", b"\0" * 500 + b"\n", b"[1]\n", b'{"event": "StepStarted"}\n', b'{"event": "Fini'],
)
def test_a_damaged_line_does_not_stop_the_next_start(tmp_path: Path, damage: bytes) -> None:
    recorder = Recorder(tmp_path, header(question="é?"), TraceSection())
    recorder.on_event(StepStarted(1))
    os.close(recorder._file)
    recorder._lock.release()  # as a killed process leaves it
    with recorder.steps.open("ab") as steps:
        steps.write(damage)
    torn = f'{{"run_id": "{recorder.header.run_id}", "question": "é'.encode()[:-1]
    (tmp_path / RUNS_FILE).write_bytes(torn)
    assert close_dead_runs(tmp_path) == [recorder.header.run_id]
    assert [line["stop_reason"] for line in lines(tmp_path)] == ["interrupted"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_dead_run_that_cannot_be_closed_is_named_and_closed_later(tmp_path: Path) -> None:
    with living_run(tmp_path) as (process, run_id):
        process.kill()
        process.wait()
    steps = tmp_path / "steps" / f"{run_id}.jsonl"
    kept = steps.read_bytes()
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) + 10, before[1]))
    try:
        with pytest.raises(UserError, match=f"(?s)could not be written to .*{run_id}.*Make room"):
            close_dead_runs(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert steps.read_bytes() == kept
    assert close_dead_runs(tmp_path) == [run_id] and len(lines(tmp_path)) == 1


def recorded(runs: Path, *days_ago: float) -> list[Path]:
    """The steps files of runs that ended so many days before now."""
    files = []
    for days in days_ago:
        recorder = Recorder(runs, header(), TraceSection())
        finish(recorder)
        at = time.time() - days * 86_400
        os.utime(recorder.steps, (at, at))
        files.append(recorder.steps)
    return files


@pytest.mark.parametrize(
    ("days_ago", "keep_days", "kept"),
    [
        ((120, 95, 30, 2, 0), 0, (True, True, True, True, True)),
        ((120, 95, 30, 2, 0), 90, (False, False, True, True, True)),
        ((91, 90, 0.5, 0), 90, (True, True, True, True)),  # nothing of an earlier day is newer
        ((120, 0), 90, (True, True)),
        ((300, 200, 100), 90, (False, False, True)),  # used every hundred days
        ((120, 2, -3650), 90, (False, True, True)),  # of a clock that was ahead for a while
    ],
)
def test_old_steps_are_deleted_and_lines_kept(
    tmp_path: Path, days_ago: tuple[float, ...], keep_days: float, kept: tuple[bool, ...]
) -> None:
    files = recorded(tmp_path, *days_ago)
    delete_old_steps(tmp_path, keep_days)
    assert tuple(file.exists() for file in files) == kept and len(lines(tmp_path)) == len(files)


@pytest.mark.parametrize("years", [1, 11, 75])
def test_a_clock_that_jumps_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, years: int) -> None:
    files = recorded(tmp_path, 80, 10, 1, 0)
    ahead = time.time() + years * 365 * 86_400
    monkeypatch.setattr(time, "time", lambda: ahead)
    for _ in range(2):
        delete_old_steps(tmp_path, 90)
        recorder = Recorder(tmp_path, header(), TraceSection())
        finish(recorder)
        os.utime(recorder.steps, (ahead, ahead))
    monkeypatch.undo()
    delete_old_steps(tmp_path, 90)
    assert all(file.exists() for file in files)


DYING = """
import sys
from pathlib import Path
from okf_agent.config import TraceSection
from okf_agent.events import Notice
from okf_agent.run import Run
from okf_agent.records.trace import Header, Recorder
print("ready", flush=True)
while True:
    with Recorder(Path(sys.argv[1]), Header(database="d", model="m", question="q", mode="raw"), TraceSection()) as r:
        r.on_event(Notice("x" * 20_000))
        r.finish(Run("submitted", r.tally))
"""


def test_whole_runs_killed_at_any_moment_each_leave_one_whole_line(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", DYING, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(3)]
    for number, writer in enumerate(writers):
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        while not (tmp_path / RUNS_FILE).exists():
            time.sleep(0.01)
        time.sleep(0.05 * number)
        writer.kill()
        writer.communicate()
    close_dead_runs(tmp_path)
    assert close_dead_runs(tmp_path) == []
    began = [file.stem for file in (tmp_path / "steps").glob("*.jsonl") if file.read_bytes().count(b"\n")]
    assert sorted(line["run_id"] for line in lines(tmp_path)) == sorted(began)
    for lock in (tmp_path / "steps").glob("*.lock"):  # died before its first word
        assert not lock.with_suffix(".jsonl").exists()
        os.utime(lock, (1, 1))
    assert close_dead_runs(tmp_path) == [] and not [*(tmp_path / "steps").glob("*.lock")]


def test_starts_at_once_close_a_dead_run_once(tmp_path: Path) -> None:
    with living_run(tmp_path) as (process, run_id):
        process.kill()
        process.wait()
    closed: list[str] = []
    starts = [threading.Thread(target=lambda: closed.extend(close_dead_runs(tmp_path))) for _ in range(8)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert closed == [run_id] and [line["run_id"] for line in lines(tmp_path)] == [run_id]


@pytest.mark.parametrize(("rows", "kept"), [("full", 9), ("sample", 5), ("none", 0)])
def test_the_answers_rows_are_kept_as_far_as_wanted(
    tmp_path: Path, rows: Literal["full", "sample", "none"], kept: int
) -> None:
    with Recorder(tmp_path, header(), TraceSection(rows=rows)) as recorder:
        recorder.on_event(Answered(Answer("SELECT 1", "x", 9, "ran"), (), ("n",), tuple((str(n),) for n in range(9))))
        finish(recorder)
    assert len(next(s["rows"] for s in read_lines(recorder.steps) if s["event"] == "Answered")) == kept


def test_a_lock_without_steps_is_of_a_dead_run_where_nobody_else_begins_one(tmp_path: Path) -> None:
    lock = tmp_path / "steps" / "killed.lock"
    lock.parent.mkdir()
    lock.touch()
    assert close_dead_runs(tmp_path) == [] and lock.exists(), "it may be about to begin"
    assert close_dead_runs(tmp_path, alone=True) == [] and not lock.exists()
