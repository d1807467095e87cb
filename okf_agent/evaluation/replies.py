"""Replies of models kept on disk by the exact request, so that asking the same again costs nothing.

One file a reply, under the SHA-256 of everything that is sent. Files are made beside their place and renamed, so
that several processes can share the folder. They hold rows of the database: only their owner can read them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from okf_agent.events import Usage
from okf_agent.models.reply import Reply, ToolCall
from okf_compiler.whole_file import write_whole

UNSENT = ("timeout", "max_retries", "drop_params", "api_key")
"""Arguments of a request that say how it is sent, or by whom, and not what is asked."""


class Replies:
    """The replies in a folder. `repeat` sets the questions of one repetition apart: each wants a reply of its own."""

    def __init__(self, folder: Path, repeat: int = 1) -> None:
        self.folder = folder
        self.repeat = repeat

    def of_repeat(self, repeat: int) -> Replies:
        """The same folder, for another repetition."""
        return Replies(self.folder, repeat)

    def get(self, request: Mapping[str, Any]) -> Reply | None:
        """The kept reply, marked as cached, with its tokens and without cost or seconds; None if there is none."""
        try:
            kept = json.loads(self._file(request).read_text(encoding="utf-8"))
            usage = Usage(**kept["usage"])
            calls = tuple(ToolCall(**call) for call in kept["tool_calls"])
            reply = Reply(**{**kept, "usage": usage, "tool_calls": calls})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return replace(reply, usage=replace(usage, cost_usd=0.0, seconds=0.0, wait_seconds=0.0, cached=True))

    def put(self, request: Mapping[str, Any], reply: Reply) -> None:
        """Keep a reply. Where that fails the next one is asked for again: no run stops for it."""
        file = self._file(request)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(file, json.dumps(asdict(reply), default=str), private=True)

    def _file(self, request: Mapping[str, Any]) -> Path:
        digest = key(request, self.repeat)
        return self.folder / digest[:2] / f"{digest}.json"


def key(request: Mapping[str, Any], repeat: int = 1) -> str:
    """What a request is kept under.

    Ids of tool calls are ours where a provider gives none, new each time: they count by their order only.
    """
    sent = {name: value for name, value in request.items() if name not in UNSENT}
    names: dict[str, str] = {}
    sent["messages"] = [_numbered(message, names) for message in sent.get("messages", ())]
    text = json.dumps([repeat, sent], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _numbered(message: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    numbered = dict(message)
    if "tool_calls" in numbered:
        calls = [dict(call) for call in numbered["tool_calls"]]
        for call in calls:
            call["id"] = names.setdefault(str(call.get("id")), f"call {len(names)}")
        numbered["tool_calls"] = calls
    if "tool_call_id" in numbered:
        wanted = str(numbered["tool_call_id"])
        numbered["tool_call_id"] = names.setdefault(wanted, f"call {len(names)}")
    return numbered
