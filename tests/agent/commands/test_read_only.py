"""Questions to a workspace in which nobody may write: a mount, an image, another user's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import run
from support.databases import made
from support.documents import write_documents
from support.endpoint import Endpoint, calls, submit
from support.mcp_lines import started
from support.read_only import read_only

from okf_agent.engines import Server

COUNT = "SELECT count(*) FROM orders"
SCRIPT = [calls(("read_file", {"paths": ["/tables/orders.md"]})), submit(COUNT, "There are 3 orders.")]


@pytest.fixture
def workspace(postgres: Server, tmp_path: Path) -> Iterator[Path]:
    """A compiled workspace whose database is on a server, moved and then mounted read-only."""
    script = "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders SELECT generate_series(1, 3);"
    script += "GRANT SELECT ON orders TO PUBLIC"
    with made(postgres, "x", script, "x_reader") as params:
        first, root = tmp_path / "first", tmp_path / "second"
        write_documents(first / "data")
        place = {"host": str(params["host"]), "port": params["port"], "agent_user": "x_reader"}
        config = {"database": {"engine": "server", **place}, "model": {"name": "openai/scripted", "retries": 0}}
        (first / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        assert run("okf-compiler", "compile", "x", cwd=first).returncode == 0
        first.rename(root)
        with read_only(root):
            yield root


def test_a_question_is_answered_where_its_record_may_be_kept(workspace: Path, tmp_path: Path) -> None:
    with Endpoint(SCRIPT) as endpoint:
        given = ("--set", f"agent.runs={tmp_path / 'runs'}", "--set", f"model.api_base={endpoint.url}", "--unsafe-role")
        done = run("okf-agent", "ask", "How many orders?", "--db", "x", *given, cwd=workspace)
    assert done.returncode == 0, done.stderr
    assert "There are 3 orders." in done.stdout
    assert (tmp_path / "runs" / "runs.jsonl").is_file()


def test_what_keeps_a_record_from_being_written_is_said_before_anything_is_spent(workspace: Path) -> None:
    with Endpoint([]) as endpoint:
        given = ("--set", f"model.api_base={endpoint.url}", "--unsafe-role")
        done = run("okf-agent", "ask", "How many orders?", "--db", "x", *given, cwd=workspace)
        assert endpoint.requests == []
    assert done.returncode == 1
    assert "runs" in done.stderr and "agent.runs" in done.stderr and "Traceback" not in done.stderr


def test_the_tools_by_hand(workspace: Path) -> None:
    done = run("okf-agent", "sql", "x", COUNT, "--unsafe-role", cwd=workspace)
    assert (done.returncode, "3" in done.stdout) == (0, True), done.stderr
    assert run("okf-agent", "read", "x", "/tables/orders.md", cwd=workspace).returncode == 0


def test_another_agent_is_served_over_mcp(workspace: Path, tmp_path: Path) -> None:
    called = [("read_file", {"paths": ["/tables/orders.md"]}), ("run_sql", {"sql": COUNT})]
    given = ("--set", f"agent.runs={tmp_path / 'runs'}")
    with started(workspace, *given, db="x") as lines:
        lines.hello()
        for number, (name, arguments) in enumerate(called, 1):
            lines.call(name, arguments, number)
        answers = [json.dumps(lines.answer(number)["result"]) for number in (1, 2)]
    assert "customer_id" in answers[0] and "3" in answers[1]
