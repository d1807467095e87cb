"""`okf-agent` as people use it: the real command, a real PostgreSQL, a model that plays a script over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run
from support.endpoint import Endpoint, Scripted, calls, error, submit, text
from support.workspace import ACTIVE, QUESTION, SHOP, SQL, Workspace


def test_first_use_gets_everything_ready_and_answers(workspace: Workspace) -> None:
    result = workspace.agent("ask", QUESTION, "--db", "shop", script=ACTIVE, process=True)
    assert result.returncode == 0, result.stderr
    assert "52 customers are active." in result.stdout
    assert "count(DISTINCT customer_id)" in result.stdout
    assert "52" in result.stdout.split("count")[-1], "the rows of the answer are shown"
    for said in ("/knowledge/active-customer.md", "/tables/orders.md", "4 model calls", "440 tokens", "0 SQL errors"):
        assert said in result.stderr
    assert result.stderr.endswith(f" · run {workspace.records()[0]['run_id']}\n")
    assert (workspace.root / "bundles/compiled/shop/knowledge/active-customer.md").is_file()

    again = workspace.agent("ask", QUESTION, script=ACTIVE)
    assert (again.returncode, "Compiling" in again.stderr, "Loading" in again.stderr) == (0, False, False)
    first, second = workspace.records()
    assert first["answer"] == {"sql": SQL, "answer": "52 customers are active.", "rows_total": 1, "checked": "ran"}
    assert (first["mode"], first["stop_reason"], first["sql_attempts"]) == ("bundle", "submitted", 1)
    assert first["bundle_hash"] == second["bundle_hash"]
    assert first["run_id"] != second["run_id"]


def test_raw_mode_differs_in_how_knowledge_arrives(workspace: Workspace) -> None:
    result = workspace.agent("ask", QUESTION, "--raw", script=ACTIVE[2:])
    assert result.returncode == 0, result.stderr
    request = workspace.endpoint.requests[0]
    assert [t["function"]["name"] for t in request["tools"]] == ["run_sql", "submit_answer"]
    assert (SHOP / "shop_kb.jsonl").read_text(encoding="utf-8").strip() in request["messages"][0]["content"]
    (record,) = workspace.records()
    assert (record["mode"], record["bundle_hash"], record["answer"]["checked"]) == ("raw", None, "ran")


def test_a_task_of_a_database_without_content(workspace: Workspace, test_data: Path) -> None:
    workspace.roots = [test_data / "livesqlbench-base-lite", test_data / "livesqlbench-base-full-v1"]
    sql = "SELECT hubregistry FROM distributionhubs"
    result = workspace.agent("ask", "--task", "disaster_1", script=[submit(sql, "All hubs.")])
    assert result.returncode == 0, result.stderr
    assert "was not run" in result.stdout
    (record,) = workspace.records()
    assert (record["task_id"], record["database"], record["answer"]["checked"]) == ("disaster_1", "disaster", "not_run")
    assert record["question"].startswith("I need to analyze all distribution hubs")


def test_a_real_dump_is_loaded_and_asked(workspace: Workspace, test_data: Path) -> None:
    workspace.roots = [test_data / "livesqlbench-base-lite", test_data / "livesqlbench-base-full-v1"]
    sql = "SELECT count(*) FROM disasterevents"
    script = [calls(("run_sql", {"sql": sql})), submit(sql, "That many disasters.")]
    result = workspace.agent("ask", "How many disasters?", "--db", "disaster_relief", script=script)
    assert result.returncode == 0, result.stderr
    assert "Loading disaster_relief" in result.stderr
    (record,) = workspace.records()
    assert (record["answer"]["checked"], record["answer"]["rows_total"]) == ("ran", 1)


def test_a_declined_question_is_a_success(workspace: Workspace) -> None:
    result = workspace.agent("ask", "Hello!", script=[submit("", "Hello. Ask me about the shop.")])
    assert (result.returncode, "Ask me about the shop." in result.stdout) == (0, True)
    assert workspace.records()[0]["stop_reason"] == "declined"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["ask", ""], 2, "The question is empty"),
        (["ask", "  \n"], 2, "The question is empty"),
        (["ask"], 2, "Give a question or --task ID"),
        (["ask", "x", "--task", "shop_1"], 2, "Give a question or --task ID"),
        (["ask", "x", "--db", "shpo"], 2, "did you mean 'shop'?"),
        (["ask", "--task", "shop1"], 2, "did you mean 'shop_1'?"),
        (["ask", "x", "--bundle", "nowhere"], 2, "There is no bundle 'nowhere'"),
        (["ask", "x", "--model", "openai/gpt-5-mini"], 0, ""),
        (["ask", "x", "--raw", "--model", "local"], 2, "needs a model that calls tools"),
        (["read", "shpo", "/index.md"], 2, "did you mean 'shop'?"),
        (["sqll"], 2, "No such command"),
    ],
)
def test_calls_that_cannot_work(workspace: Workspace, arguments: list[str], status: int, said: str) -> None:
    result = workspace.agent(*arguments, script=[submit("", "No.")])
    assert result.returncode == status, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("scripted", "said"),
    [
        (error(401, "Incorrect API key provided"), "does not accept the key"),
        (error(400, "This model does not support tool use"), "cannot call tools"),
        (error(404, "The model `scripted` does not exist"), "no such model"),
    ],
)
def test_a_model_that_cannot_answer(workspace: Workspace, scripted: Scripted, said: str) -> None:
    result = workspace.agent("ask", QUESTION, script=[scripted])
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    (record,) = workspace.records()
    assert record["stop_reason"] == "error"
    assert said in record["error"]


def test_the_tools_by_hand(workspace: Workspace) -> None:
    read = workspace.agent("read", "shop", "knowledge/valid-order", "/tables/oders.md", script=[])
    assert "# Definition" in read.stdout
    assert "orders.md" in read.stdout
    query = workspace.agent("sql", "shop", "SELECT 1 AS one, NULL AS nothing", script=[])
    assert query.returncode == 0
    assert '"one"' in query.stdout and "null" in query.stdout
    refused = workspace.agent("sql", "shop", "DELETE FROM orders", script=[])
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)


def test_a_prompt(workspace: Workspace) -> None:
    typed = f"/help\n\n{QUESTION}\n/raw\n{QUESTION}\n/bnudle\n/bundle\n/db nowhere\n/db\n/exit\n"
    result = workspace.agent(script=[*ACTIVE, *ACTIVE[2:]], typed=typed, process=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("52 customers are active.") == 2
    assert ")> " not in result.stdout  # what is asked for input is no result
    assert "did you mean '/bundle'?" in result.stderr
    assert "There is no database 'nowhere'" in result.stderr
    assert [r["mode"] for r in workspace.records()] == ["bundle", "raw"]


def test_a_record_that_cannot_be_written_costs_no_answer(workspace: Workspace) -> None:
    with Endpoint([submit("", "An answer.")]) as endpoint:
        (workspace.root / "blocked").write_text("", encoding="utf-8")
        workspace.configure(endpoint.url, runs="blocked/runs")
        result = run("okf-agent", "ask", "x", cwd=workspace.root)
    assert result.returncode == 1
    assert "could not be written" in result.stderr
    assert "agent.runs" in result.stderr
    assert endpoint.requests == [], "nothing was spent on a run that leaves no record"


def test_without_a_key_the_embedded_model_is_announced(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "config.yaml").write_text("", encoding="utf-8")
    env = {"OKF_MODEL_CACHE": str(tmp_path), "PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    result = run("okf-agent", "ask", QUESTION, "--db", "shop", cwd=workspace.root, env=env)
    assert result.returncode == 1
    assert "No model key is set" in result.stderr
    assert "NVIDIA_NIM_API_KEY" in result.stderr
    assert "Traceback" not in result.stderr


def test_prose_only_ends(workspace: Workspace) -> None:
    result = workspace.agent("ask", QUESTION, script=[text("I think 12.")] * 3 + [submit(SQL, "52 are active.")])
    assert result.returncode == 1
    assert "The best answer so far" in result.stdout
    assert workspace.records()[0]["stop_reason"] == "no_tool_calls"
