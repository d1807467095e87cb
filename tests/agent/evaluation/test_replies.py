"""Replies kept by the exact request."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from okf_agent.evaluation.replies import Replies, key
from okf_agent.events import Usage
from okf_agent.models.reply import Reply, ToolCall

CALL = {"id": "call_a", "type": "function", "function": {"name": "run_sql", "arguments": "{}"}}
REQUEST: dict[str, Any] = {
    "model": "openai/m",
    "messages": [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_a", "content": "1"},
    ],
    "temperature": 0.0,
    "max_tokens": 100,
    "timeout": 120,
    "api_base": "http://a",
    "api_key": "secret",
    "tools": [{"type": "function", "function": {"name": "run_sql"}}],
}
REPLY = Reply("x", (ToolCall("1", "run_sql", "{"),), "stop", Usage(10, 5, 2, 1, 0.5, 3.0, 1.0), {"role": "assistant"})


def renamed(call_id: str, told: str) -> dict[str, Any]:
    """The request with other ids of its call and of what answers it."""
    user, assistant, tool = REQUEST["messages"]
    changed = [{**assistant, "tool_calls": [{**CALL, "id": call_id}]}, {**tool, "tool_call_id": told}]
    return {**REQUEST, "messages": [user, *changed]}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"timeout": 60}, True),
        ({"api_key": "other"}, True),
        (renamed("call_b", "call_b"), True),
        (renamed("call_b", "call_c"), False),
        ({"model": "openai/n"}, False),
        ({"temperature": 0.1}, False),
        ({"max_tokens": 99}, False),
        ({"api_base": "http://b"}, False),
        ({"tools": []}, False),
        ({"messages": REQUEST["messages"][:1]}, False),
    ],
)
def test_everything_that_is_sent_counts(change: dict[str, Any], same: bool) -> None:
    assert (key(REQUEST | change) == key(REQUEST)) is same


def test_each_repetition_has_a_reply_of_its_own() -> None:
    assert key(REQUEST, 1) != key(REQUEST, 2)


def test_a_kept_reply_is_marked_and_claims_no_cost_or_time(tmp_path: Path) -> None:
    replies = Replies(tmp_path)
    assert replies.get(REQUEST) is None
    replies.put(REQUEST, REPLY)
    kept = replies.get(REQUEST)
    assert kept is not None
    assert (kept.content, kept.tool_calls, kept.message) == (REPLY.content, REPLY.tool_calls, REPLY.message)
    assert kept.usage == Usage(10, 5, 2, 1, cost_usd=0.0, seconds=0.0, wait_seconds=0.0, cached=True)
    assert replies.of_repeat(2).get(REQUEST) is None


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    replies = Replies(tmp_path)
    replies.put(REQUEST, REPLY)
    (file,) = tmp_path.glob("*/*.json")
    assert "secret" not in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8")[:50], encoding="utf-8")
    assert replies.get(REQUEST) is None


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    threads = [threading.Thread(target=Replies(tmp_path).put, args=(REQUEST, REPLY)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([*tmp_path.rglob("*.*")]) == 1
    assert Replies(tmp_path).get(REQUEST) is not None
