"""A model's reply as the loop uses it: read from LiteLLM's response, and as the next request must carry it."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from okf_agent.config import Price
from okf_agent.events import Message, Usage
from okf_agent.models.arguments import printable
from okf_compiler.inert import ACTIVE, inert

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
COUNTED = re.compile(rb'"(?:usage\w*|prompt_eval_count)"\s*:\s*[{\d]')
"""Where a server counted tokens. In what a model wrote, these quotes stand behind a backslash."""
THOUGHT = re.compile(r"<(/?)(think|thinking|thought|reasoning|seed:think)>|\[(/?)(THINK)\]|\u25c1(/?)(think)\u25b7")
"""The marks of models that write their thoughts into the text."""
UNSENDABLE = re.compile(r"[^\w-]", re.ASCII)
"""What no provider takes in the name of a tool, also of one that the model invented."""
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

    refusal: str = ""
    """The model's own words for what it will not answer, where its API keeps them apart."""

    @property
    def cut(self) -> bool:
        return self.finish_reason == "length"

    @property
    def unread(self) -> bool:
        """Whether the server could not read the call that the model wrote."""
        return self.finish_reason in ("tool_use_failed", "malformed_function_call")

    @property
    def empty(self) -> bool:
        return not (self.content.strip() or self.tool_calls)

    @property
    def stopped(self) -> str:
        """Why there is no answer in this reply and will be none, in words for a person; "" for any other reply."""
        if self.refusal and not self.tool_calls:
            return f"The model refused: {self.refusal}\nWord the question differently, or choose another model."
        if self.finish_reason == "content_filter" and self.empty:
            return (
                "The provider's content filter stopped the reply.\n"
                "Word the question differently, or choose another model with --model."
            )
        return ""


def unread_call(written: str) -> Reply:
    """The reply of a model whose call its server could not read: what it wrote, as text."""
    content = printable(written)
    return Reply(
        content,
        (),
        "tool_use_failed",
        Usage(input_tokens=None, output_tokens=None),
        {"role": "assistant", "content": content},
    )


def read_reply(response: Any, model: str, price: Price | None, sent: bytes = b"") -> Reply:
    """The reply of the model of that name; `price` comes before LiteLLM's own, `sent` is what its server sent.

    Raises:
        UpstreamError: the reply is the error of a provider behind the server.
    """
    # Some providers give no choice at all, for a blocked reply: that is an empty one.
    choice = next(iter(getattr(response, "choices", None) or ()), None)
    data = _sendable(choice.message.model_dump()) if choice else {}
    objects = sent_objects(sent)
    if any(_error_of(part) for part in objects):
        raise UpstreamError
    calls = tuple(_tool_calls(data))
    content, thoughts = without_thoughts(data.get("content") or "")
    return Reply(
        content=content,
        tool_calls=calls,
        finish_reason=inert(_finish_reason(choice)),
        usage=_usage(response, price, counted=not objects or bool(COUNTED.search(sent))),
        message=_sent_back(data | {"content": content}, calls, model.partition("/")[0]),
        reasoning="\n".join(filter(None, (data.get("reasoning_content"), thoughts))),
        refusal=printable("".join(map(_refusal_of, objects))).strip(),
    )


class UpstreamError(Exception):
    """The error of a provider behind the server, which came with status 200."""


def sent_objects(body: bytes) -> list[dict[str, Any]]:
    """The JSON objects that a server sent: its reply, or the parts of a stream."""
    found = []
    for text in (body, *(line[5:] for line in body.splitlines() if line.startswith(b"data:"))):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def sent_error(body: bytes) -> Mapping[str, Any] | None:
    """The error in what a server sent, of a reply, a stream or one choice of it."""
    return next(filter(None, map(_error_of, sent_objects(body))), None)


def _error_of(sent: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = next((holder["error"] for holder in (sent, *_choices(sent)) if holder.get("error")), None)
    return found if found is None or isinstance(found, dict) else {"message": found}


def _refusal_of(sent: Mapping[str, Any]) -> str:
    """What the model says, apart from its text, that it will not do: in a message, or a piece of it."""
    parts = [choice.get(name) for choice in _choices(sent) for name in ("message", "delta")]
    said = [part.get("refusal") for part in parts if isinstance(part, dict)]
    return "".join(text for text in said if isinstance(text, str))


def _choices(sent: Mapping[str, Any]) -> list[dict[str, Any]]:
    choices = sent.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def _finish_reason(choice: Any) -> str:
    """Why the reply ended. LiteLLM calls a call that the server could not read a good end, and keeps its name aside."""
    fields = getattr(choice, "provider_specific_fields", None) or {}
    native = str(fields.get("native_finish_reason") or "").lower()
    return native if "malformed" in native else str((choice and choice.finish_reason) or "")


def _usage(response: Any, price: Price | None, *, counted: bool) -> Usage:
    """The counts of the reply; unknown where the provider sent none, for LiteLLM makes some of its own for a stream."""
    usage = getattr(response, "usage", None) if counted else None
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    sent = _count(usage, "prompt_tokens")
    if not sent and not _count(usage, "completion_tokens"):
        return Usage(input_tokens=None, output_tokens=None)
    counts = Usage(
        input_tokens=sent,
        cached_tokens=min(sent, _count(prompt, "cached_tokens")),
        output_tokens=_count(usage, "completion_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
    )
    return replace(counts, cost_usd=_cost(sent, counts, response, price))


def _count(usage: Any, name: str) -> int:
    """A provider's count of tokens. One that cannot be true would make a budget or a sum of many runs untrue."""
    return min(max(0, getattr(usage, name, None) or 0), MOST_TOKENS)


def _cost(sent: int, usage: Usage, response: Any, price: Price | None) -> float | None:
    """Dollars: by the configured price, else by LiteLLM's; None where neither knows the model."""
    if price is None:
        # LiteLLM says 0.0 for some models it has no price of. Its sum is of counts that may not be true.
        dollars = (getattr(response, "_hidden_params", None) or {}).get("response_cost") or 0.0
        return dollars if 0 < dollars < math.inf else None
    cached_price = price.input if price.cached is None else price.cached
    written = (usage.output_tokens or 0) * price.output
    dollars = (sent - usage.cached_tokens) * price.input + usage.cached_tokens * cached_price + written
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
        "function": {
            "name": UNSENDABLE.sub("_", call.name)[:64] or "unknown",
            "arguments": call.arguments if whole else "{}",
        },
    }
    fields = (original or {}).get("provider_specific_fields")
    return sent | ({"provider_specific_fields": fields} if fields else {})


def without_thoughts(text: str) -> tuple[str, str]:
    """The text of a reply, and the thoughts that were in it: what stands between their marks, before the last closing
    one whose opening is missing, or behind an opening one that is never closed.

    >>> without_thoughts("<think>Or SELECT 2?</think>SELECT 1")
    ('SELECT 1', 'Or SELECT 2?')
    >>> without_thoughts("Or SELECT 2?</think>SELECT 1<think>Or 3")
    ('SELECT 1', 'Or SELECT 2?\\nOr 3')
    """
    said: list[str] = []
    thoughts: list[str] = []
    place, inside = 0, False
    for mark in THOUGHT.finditer(text):
        closing = bool(mark[1] or mark[3] or mark[5])
        piece = text[place : mark.start()]
        if closing and not inside:  # all so far was thought
            thoughts += [*said, piece]
            said.clear()
        else:
            (thoughts if inside else said).append(piece)
        place, inside = mark.end(), not closing
    (thoughts if inside else said).append(text[place:])
    return ("".join(said) if place else text), "\n".join(filter(None, map(str.strip, thoughts)))


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
        yield ToolCall(call_id, inert(function.get("name") or ""), "" if arguments is None else _written(arguments))


def _written(arguments: Any) -> str:
    """Arguments as text that moves no terminal; in JSON, what is written out still means what it meant."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ACTIVE.sub(lambda found: found.group() if found.group() in "\t\r\n" else _in_json(found.group()), text)


def _in_json(character: str) -> str:
    return json.dumps(character)[1:-1]
