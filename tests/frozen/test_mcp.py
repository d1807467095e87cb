"""What a client is told over standard input and output: every request, tool, resource and prompt, and the errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import run_inside
from support.endpoint import Endpoint
from support.frozen import hold
from support.mcp_lines import started
from support.workspace import ACTIVE, QUESTION, SQL
from support.workspace import workspace as make

VOLATILE = {"run_id", "follows", "started_at", "versions", "version", "bundle_hash", "at", "time", "pid"}
RULE: dict[str, Any] = {"type": "ref/prompt", "name": "explain_rule"}
FILE: dict[str, Any] = {"type": "ref/resource", "uri": "okf://{database}/tables/{table}.md"}


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ping": ("ping", {}),
    "tools": ("tools/list", {}),
    "resources": ("resources/list", {}),
    "templates": ("resources/templates/list", {}),
    "prompts": ("prompts/list", {}),
    "list_databases": call("list_databases"),
    "read_file": call("read_file", paths=["/index.md", "/knowledge/active-customer"]),
    "search": call("search", query="active customer"),
    "find_value": call("find_value", values=["shipped"]),
    "run_sql": call("run_sql", sql=SQL),
    "run_sql cut": call("run_sql", sql="SELECT n, repeat('x', 3000) FROM generate_series(1, 30) AS n ORDER BY n"),
    "ask": call("ask", question=QUESTION),
    "resource": ("resources/read", {"uri": "okf://shop/knowledge/active-customer.md"}),
    "answer_question": ("prompts/get", {"name": "answer_question", "arguments": {"question": QUESTION}}),
    "explain_rule": ("prompts/get", {"name": "explain_rule", "arguments": {"rule": "Active Customer"}}),
    "compare_definitions": (
        "prompts/get",
        {"name": "compare_definitions", "arguments": {"first": "Active Customer", "second": "Valid Order"}},
    ),
    "complete a rule": ("completion/complete", {"ref": RULE, "argument": {"name": "rule", "value": "act"}}),
    "complete a table": ("completion/complete", {"ref": FILE, "argument": {"name": "table", "value": "o"}}),
    "error, unknown method": ("tools/none", {}),
    "error, wrong params": ("tools/call", {"nothing": 1}),
    "error, unknown tool": call("run_sq"),
    "error, wrong argument": call("run_sql", query_text="SELECT 1"),
    "error, missing argument": call("ask"),
    "error, wrong kind of argument": call("read_file", paths={"a": 1}),
    "error, unknown database": call("run_sql", database="shp", sql="SELECT 1"),
    "error, missing file": call("read_file", paths=["/knowledge/active-custmer"]),
    "error, query refused": call("run_sql", sql="DELETE FROM orders"),
    "error, query fails": call("run_sql", sql="SELECT nothing FROM orders"),
    "error, no resource of ours": ("resources/read", {"uri": "file:///etc/passwd"}),
    "error, unknown resource": ("resources/read", {"uri": "okf://shop/knowledge/none.md"}),
    "error, unknown cursor": ("resources/list", {"cursor": "x"}),
    "error, unknown prompt": ("prompts/get", {"name": "explain_rul"}),
    "error, missing argument of a prompt": ("prompts/get", {"name": "explain_rule"}),
    "error, unknown rule": ("prompts/get", {"name": "explain_rule", "arguments": {"rule": "Activ Customer"}}),
}


def test_transcript(tmp_path: Path) -> None:
    with make(tmp_path) as shop, Endpoint(ACTIVE) as endpoint:
        shop.configure(endpoint.url)
        assert run_inside("prepare", "shop", cwd=shop.root).returncode == 0
        with started(shop) as client:
            texts = {"initialize": shown(client.hello())}
            for number, (name, (method, params)) in enumerate(REQUESTS.items(), start=1):
                client.send(method, params, number)
                texts[name] = shown(client.answer(number))
            assert client.process.stdin
            client.process.stdin.close()
            assert client.process.wait(30) == 0
        assert not endpoint.missing
        asked, conversation = shop.records()
        assert asked["question"] == QUESTION
        texts["record"] = shown(conversation)
        steps = shop.root / "runs" / "steps" / f"{conversation['run_id']}.jsonl"
        texts["steps"] = "\n".join(map(shown_step, steps.read_text(encoding="utf-8").splitlines()))
    hold("mcp", texts)


@pytest.mark.parametrize("way", ["server/discover", "tools/list"])
def test_without_a_handshake(tmp_path: Path, way: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with make(tmp_path) as shop:
        shop.configure("http://127.0.0.1:1/v1")
        with started(shop, "--no-ask") as client:
            client.send(way, {"_meta": meta}, 1)
            hold(f"mcp_{way.replace('/', '_')}", {way: shown(client.answer(1))})


def shown_step(line: str) -> str:
    """Return a step without the text of its result, which the transcript has."""
    step = json.loads(line)
    return json.dumps({key: settled(step[key], key) for key in sorted(step) if key not in ("text", "data")})


def shown(value: dict[str, Any]) -> str:
    return json.dumps(settled(value), indent=1, ensure_ascii=False, sort_keys=True)


def settled(value: Any, key: str = "") -> Any:
    """Return the value without what differs from run to run."""
    if key in VOLATILE or "seconds" in key:
        return "…"
    if isinstance(value, dict):
        return {k: settled(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [settled(each) for each in value]
    return value
