"""A model's reply as the loop uses it: read from LiteLLM's response, and as the next request must carry it."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from okf_agent.config import Price
from okf_agent.events import Message, Usage
from okf_agent.models.arguments import printable

SENT_BACK = {
    "anthropic": ("thinking_blocks",),
    "bedrock": ("thinking_blocks", "reasoning_content"),
    "deepseek": ("reasoning_content",),
    "gemini": ("thinking_blocks", "provider_specific_fields"),
    "moonshot": ("reasoning_content",),
    "openrouter": ("reasoning_content", "reasoning_details"),
    "vertex_ai": ("thinking_blocks", "provider_specific_fields"),
}
"""Fields beside content and calls that must come back in the next turn, by provider; others reject them."""
NULL_CONTENT = ("gemini", "vertex_ai")
"""Providers for whom an empty text beside tool calls must be absent; for the others it is ""."""
MOST_TOKENS = 10**9
"""Of one reply; no model takes so many."""


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it. `arguments` may be anything, broken JSON included."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    content: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    """`stop`, `tool_calls`, `length` (cut off by max_tokens), `content_filter`, …"""
    usage: Usage
    message: Message
    """The reply as the next request must carry it."""
    reasoning: str = ""

    @property
    def cut(self) -> bool:
        return self.finish_reason == "length"


def read_reply(response: Any, model: str, price: Price | None) -> Reply:
    """The reply of the model of that name; `price` comes before LiteLLM's own."""
    # Some providers give no choice at all, for a blocked reply: that is an empty one.
    choice = next(iter(getattr(response, "choices", None) or ()), None)
    data = _sendable(choice.message.model_dump()) if choice else {}
    calls = tuple(_tool_calls(data))
    finish_reason = str((choice and choice.finish_reason) or "")
    return Reply(
        content=data.get("content") or "",
        tool_calls=calls,
        finish_reason=finish_reason,
        usage=_usage(response, price),
        message=_sent_back(data, calls, model.partition("/")[0]),
        reasoning=data.get("reasoning_content") or "",
    )


def _usage(response: Any, price: Price | None) -> Usage:
    usage = getattr(response, "usage", None)
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    sent = _count(usage, "prompt_tokens")
    counts = Usage(
        input_tokens=sent,
        cached_tokens=min(sent, _count(prompt, "cached_tokens")),
        output_tokens=_count(usage, "completion_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
    )
    return replace(counts, cost_usd=_cost(counts, response, price))


def _count(usage: Any, name: str) -> int:
    """A provider's count of tokens. One that cannot be true would make a budget or a sum of many runs untrue."""
    return min(max(0, getattr(usage, name, None) or 0), MOST_TOKENS)


def _cost(usage: Usage, response: Any, price: Price | None) -> float | None:
    """Dollars: by the configured price, else by LiteLLM's; None where neither knows the model."""
    if price is None:
        # LiteLLM says 0.0 for some models it has no price of. Its sum is of counts that may not be true.
        dollars = (getattr(response, "_hidden_params", None) or {}).get("response_cost") or 0.0
        return dollars if 0 < dollars < math.inf else None
    cached_price = price.input if price.cached is None else price.cached
    fresh = usage.input_tokens - usage.cached_tokens
    dollars = fresh * price.input + usage.cached_tokens * cached_price + usage.output_tokens * price.output
    return dollars / 1_000_000


def _sent_back(data: Mapping[str, Any], calls: Sequence[ToolCall], provider: str) -> Message:
    """The assistant message of the next request: what every provider takes, and what this one needs."""
    kept = SENT_BACK.get(provider, ())
    empty = None if calls and provider in NULL_CONTENT else ""
    sent: Message = {"role": "assistant", "content": data.get("content") or empty}
    if calls:
        sent["tool_calls"] = [
            sent_call(call, original if "provider_specific_fields" in kept else {})
            for call, original in zip(calls, data["tool_calls"], strict=True)
        ]
    return sent | {name: data[name] for name in kept if data.get(name)}


def sent_call(call: ToolCall, original: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A tool call as a request carries it; broken arguments become `{}`, for providers refuse those."""
    try:
        whole = isinstance(json.loads(call.arguments), dict)
    except (ValueError, RecursionError):
        whole = False
    sent = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments if whole else "{}"},
    }
    fields = (original or {}).get("provider_specific_fields")
    return sent | ({"provider_specific_fields": fields} if fields else {})


def _sendable(value: Any) -> Any:
    """A message whose texts a request can carry."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _sendable(inner) for name, inner in value.items()}
    return [_sendable(inner) for inner in value] if isinstance(value, list) else value


def _tool_calls(data: Mapping[str, Any]) -> Iterator[ToolCall]:
    """The calls of a message; an absent or repeated id gets one of ours, for results are matched by it."""
    seen: set[str] = set()
    for call in data.get("tool_calls") or ():
        function = call.get("function") or {}
        call_id = call.get("id") or ""
        if not call_id or call_id in seen:
            call_id = f"call_{uuid.uuid4().hex[:12]}"
        seen.add(call_id)
        arguments = function.get("arguments")
        yield ToolCall(call_id, function.get("name") or "", "" if arguments is None else str(arguments))
