"""At a real terminal: Ctrl-C, Ctrl-D, editing, history, a whole session in tmux. POSIX only: a pseudo-terminal."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import SCRIPTS, run_inside
from support.endpoint import Endpoint, calls, submit
from support.tmux import Terminal, missing
from support.workspace import ACTIVE, QUESTION, SQL, Workspace
from support.workspace import workspace as make

pexpect = pytest.importorskip("pexpect", reason="a pseudo-terminal needs POSIX and pexpect")

AGENT = SCRIPTS / "okf-agent"
LONG = "SELECT count(*) FROM generate_series(1, 1e12) AS g"
BY_STATE = "SELECT order_state, count(*) AS orders FROM orders GROUP BY 1 ORDER BY 1"
READY = "shop (bundle)>"
SECONDS = 180
"""Enough for LiteLLM's import on a machine that does much else."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(tmp_path_factory.mktemp("workspace")) as made:
        yield made


def idle(workspace: Workspace) -> bool:
    """Whether the server runs no query of the agent's, within a second."""
    end = time.monotonic() + 1
    while workspace.queries():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_ctrl_c_ends_ask_with_130_a_record_and_no_query_left(workspace: Workspace) -> None:
    shutil.rmtree(workspace.root / "runs", ignore_errors=True)
    with Endpoint([calls(("run_sql", {"sql": LONG}))]) as endpoint:
        workspace.configure(endpoint.url)
        env = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
        child = pexpect.spawn(str(AGENT), ["ask", QUESTION], cwd=str(workspace.root), env=env, timeout=SECONDS,
                              encoding="utf-8", dimensions=(40, 80))  # fmt: skip
        child.expect("step 1: run_sql")
        end = time.monotonic() + SECONDS
        while not workspace.queries():
            assert time.monotonic() < end, child.before
            child.expect([pexpect.TIMEOUT], timeout=0.1)  # reads on, so that the terminal does not fill up
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
    assert child.exitstatus == 130
    assert idle(workspace)
    (record,) = workspace.records()
    assert (record["stop_reason"], record["tool_calls"], record["answer"]) == ("interrupted", {}, None)
    assert "\x1b[3" not in (child.before or ""), "NO_COLOR: no colours"


HOSTILE = "\\x1b[31mred\\u202e\\u009b2J"
"""As an E'' string of PostgreSQL writes escape sequences and a direction mark."""
OBEYED = ("\x1b[31m", "\u202e", "\x9b")


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "shop", f"SELECT E'{HOSTILE}' AS a"],
        ["sql", "shop", f"SELECT E'{HOSTILE}'::int"],
        ["read", "shop", "/tables/hostile.md"],
        ["read", "shop", "/tables/\x1b[31mred\u202e\u009b2J.md"],
        ["sql", "\x1b[31mred\u202e\u009b2J", "SELECT 1"],
        ["runs", "show", "\x1b[31mred\u202e\u009b2J"],
    ],
)
def test_no_command_lets_a_terminal_obey_what_others_wrote(workspace: Workspace, arguments: list[str]) -> None:
    workspace.configure("http://127.0.0.1:9/v1")
    folder = workspace.root / "by-hand" / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hostile.md").write_text("---\ntype: x\n---\n\x1b[31mred\u202e\x9b2J\n", encoding="utf-8")
    if arguments[0] == "read":
        arguments = [*arguments, "--bundle", str(folder.parent)]
    child = pexpect.spawn(str(AGENT), arguments, cwd=str(workspace.root), env={**os.environ, "LC_ALL": "C.UTF-8"},
                          timeout=SECONDS, encoding="utf-8")  # fmt: skip
    child.expect(pexpect.EOF)
    shown = child.before or ""
    assert "[31m" in shown
    assert [found for found in OBEYED if found in shown] == []


def test_the_prompt_lets_no_error_be_obeyed(workspace: Workspace) -> None:
    workspace.configure("http://127.0.0.1:9/v1")
    result = run_inside("--db", "shop", cwd=workspace.root, text=f"/sql SELECT E'{HOSTILE}'::int\n")
    assert "invalid input syntax" in result.stderr and "\nLINE 1" in result.stderr
    assert [found for found in OBEYED if found in result.stderr] == []


@pytest.mark.slow
@pytest.mark.skipif(missing(), reason="tmux is not installed (Debian: apt-get install tmux)")
def test_a_session(workspace: Workspace) -> None:
    """Start, ask, follow up, Ctrl-C in a long query, edit the query, save, leave; then the history is there."""
    shutil.rmtree(workspace.root / "runs", ignore_errors=True)
    script = [*ACTIVE, submit(BY_STATE, "By state."), calls(("run_sql", {"sql": LONG})), submit(SQL, "Still 52.")]
    with Endpoint(script) as endpoint:
        workspace.configure(endpoint.url)
        with Terminal([AGENT], workspace.root, width=80) as terminal:
            terminal.wait_for(READY, seconds=SECONDS)
            terminal.type(QUESTION)
            screen = terminal.wait_for(READY, times=2, seconds=SECONDS)
            assert "52 customers are active." in screen and "Active Customer  /knowledge/active-customer.md" in screen
            terminal.type("And by state?")
            assert "█" in terminal.wait_for(READY, times=3, seconds=SECONDS)
            assert "\x1b[" in terminal.screen(styles=True)

            terminal.type("A long one?")
            terminal.wait_for("step 1: run_sql", seconds=SECONDS)
            time.sleep(0.5)
            terminal.press("C-c")
            terminal.wait_for("it was interrupted", seconds=SECONDS)
            terminal.wait_for(READY, times=4)
            assert idle(workspace)
            terminal.type("half a question", enter=False)
            terminal.press("C-c")  # at the prompt: the line is gone, the prompt is not

            terminal.type("/sql")
            terminal.wait_for("sql> SELECT order_state")
            terminal.press("C-a", "C-k")
            terminal.type("SELECT 4711 AS mine")
            assert "4711" in terminal.wait_for("1 row,", seconds=SECONDS)
            terminal.type("/save mine.csv")
            terminal.wait_for("1 row written to mine.csv")
            terminal.type("Two lines,", enter=False)
            terminal.press("M-Enter")
            terminal.type("one question?")
            terminal.wait_for("Still 52.", seconds=SECONDS)
            terminal.press("C-d")
            end = time.monotonic() + SECONDS
            while terminal.alive():
                assert time.monotonic() < end
                time.sleep(0.1)
        assert max(map(len, screen.splitlines())) <= 80
        with Terminal([AGENT], workspace.root, width=200) as again:
            again.wait_for(READY, seconds=SECONDS)
            again.press("Up")
            again.wait_for("... one question?", seconds=20)
            again.press("C-c")
            again.type("/knowledge schema")
            again.wait_for("shop (schema)>", seconds=20)
    assert (workspace.root / "mine.csv").read_text(encoding="utf-8") == "mine\n4711\n"
    history = workspace.root / ".okf" / "history"
    assert QUESTION in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o077 == 0
    records = workspace.records()
    assert [r["stop_reason"] for r in records] == ["submitted", "submitted", "interrupted", "submitted"]
    assert records[-1]["question"] == "Two lines,\none question?"
    assert records[-1]["follows"] == records[1]["run_id"]


def test_the_driver_sees_a_program_that_ends(tmp_path: Path) -> None:
    if missing():
        pytest.skip("tmux is not installed (Debian: apt-get install tmux)")
    with Terminal(["sh", "-c", "echo over; sleep 1"], tmp_path) as terminal:
        terminal.wait_for("over")
        end = time.monotonic() + 10
        while terminal.alive():
            assert time.monotonic() < end
            time.sleep(0.05)
