"""Every model call goes through here: one request, its tokens, cost and seconds, and tries again where that helps.

The only file that knows LiteLLM. Importing it takes seconds, so that happens inside functions;
`start_import` begins it in the background.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from okf_agent.config import ModelSection
from okf_agent.models import errors as model_errors
from okf_agent.models.arguments import printable
from okf_agent.models.bounded import Cancelled, Timeout, bounded
from okf_agent.models.providers import provider_of
from okf_agent.run import Message, Usage

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
GRACE = 0.5
"""Seconds that a call may take over its time limit."""
MARKS_CACHE = ("anthropic", "bedrock")
"""Providers that cache a prefix only where the request marks its end; the others do it by themselves."""


class ContextOverflow(Exception):
    """The conversation is longer than the model takes."""


class OutOfTime(Exception):
    """The seconds given are used up, or would be before the provider takes another request."""


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


def start_import() -> None:
    """Import LiteLLM in the background, so that it is there when the first call needs it."""
    if "litellm" not in sys.modules:
        threading.Thread(target=_litellm, name="import-litellm", daemon=True).start()


class Replies(Protocol):
    """Replies that are kept by the exact request: the arguments of litellm.completion."""

    def get(self, request: Mapping[str, Any]) -> Reply | None: ...
    def put(self, request: Mapping[str, Any], reply: Reply) -> None: ...
    def of_repeat(self, repeat: int) -> Replies: ...


class Model:
    """A model behind LiteLLM. Nothing is remembered between calls, unless in `replies`."""

    def __init__(
        self, section: ModelSection, replies: Replies | None = None, cancelled: threading.Event | None = None
    ) -> None:
        """Once `cancelled` is set, every call raises Cancelled."""
        self.section = section
        self.replies = replies
        self.cancelled = cancelled or threading.Event()
        self.name = section.name
        self.provider = section.name.partition("/")[0]

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        seconds: float = float("inf"),
        on_wait: Callable[[float, str], None] = lambda _seconds, _reason: None,
        on_text: Callable[[str], None] = lambda _text: None,
    ) -> Reply:
        """The model's reply; `tools` are in the shape of OpenAI's function tools.

        `on_wait(seconds, reason)` is called before each pause, `on_text(piece)` for each piece of a text that comes
        as a stream. `seconds` bounds calls and pauses together.

        Raises:
            UserError: a wrong key, an unknown model, no such server, …; says what to do.
            ContextOverflow: the messages are too long for the model.
            OutOfTime: `seconds` are over.
            Cancelled: `cancelled` was set.
        """
        if self.replies and (kept := self.replies.get(self._request(messages, tools, seconds))):
            return kept
        _litellm(self.section.callbacks)  # before the clock starts: the import takes seconds
        end = time.monotonic() + seconds
        working = waiting = 0.0
        for attempt in range(self.section.retries + 1):
            begin = time.monotonic()
            try:
                response = self._call(self._request(messages, tools, end - begin), end, on_text)
            except (OutOfTime, Cancelled):
                raise
            except Exception as error:
                working += time.monotonic() - begin
                pause = self._pause(error, attempt)
                if time.monotonic() + pause >= end:
                    raise OutOfTime(model_errors.one_line(error)) from None
                on_wait(pause, model_errors.one_line(error))
                if self.cancelled.wait(pause):
                    raise Cancelled from None
                waiting += pause
            else:
                working += time.monotonic() - begin
                reply = self._reply(response)
                usage = replace(reply.usage, seconds=working, wait_seconds=waiting)
                if self.replies:
                    self.replies.put(self._request(messages, tools, seconds), reply)
                return replace(reply, usage=usage)
        raise AssertionError("the last attempt returns or raises")

    def _request(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], seconds: float
    ) -> dict[str, Any]:
        """The arguments of litellm.completion."""
        request: dict[str, Any] = {
            "model": self.name,
            "messages": list(messages),
            "temperature": self.section.temperature,
            "max_tokens": self.section.max_tokens,
            "timeout": _timeout(self.section.timeout_s, seconds),
            "max_retries": 0,
            "drop_params": True,
        }
        if tools:
            request["tools"] = list(tools)
        if self.section.api_base:
            provider = provider_of(self.name)
            request["api_base"] = self.section.api_base
            # The client library wants a key even where the server does not.
            request["api_key"] = (provider and provider.key and os.environ.get(provider.key)) or "none"
        if self.provider in MARKS_CACHE:
            request["cache_control_injection_points"] = [
                {"location": "message", "role": "system"},
                {"location": "message", "index": -1},
            ]
        return request

    def _call(self, request: dict[str, Any], end: float, on_text: Callable[[str], None]) -> Any:
        """The response, whole, also where it comes as a stream.

        Raises:
            OutOfTime: it has not come by `end` (a time of time.monotonic).
            Timeout: it, or the next piece of a stream, has not come within the section's `timeout_s`.
        """
        litellm = _litellm()

        def work(hand_on: Callable[[str], None]) -> Any:
            if not self.section.stream:
                return litellm.completion(**request)
            chunks = []
            for chunk in litellm.completion(**request, stream=True, stream_options={"include_usage": True}):
                chunks.append(chunk)
                hand_on(_text_of(chunk))
            return litellm.stream_chunk_builder(chunks, messages=request["messages"])

        try:
            # A little longer than the client library's own limit, whose error says more.
            shown = lambda text: on_text(text) if text else None  # noqa: E731
            return bounded(work, request["timeout"] + GRACE, end, shown, self.cancelled)
        except Timeout as error:
            if time.monotonic() >= end:
                raise OutOfTime("the reply was still being written") from None
            raise error

    def _pause(self, error: Exception, attempt: int) -> float:
        """Seconds to wait before the next try.

        Raises:
            UserError, ContextOverflow: another try would not help, or was the last.
        """
        if model_errors.too_long(error):
            raise ContextOverflow(model_errors.one_line(error)) from None
        if attempt == self.section.retries or not model_errors.passes(error):
            raise model_errors.explain(error, self.name, self.section.api_base) from None
        return model_errors.retry_after(error) or self.section.retry_wait_s * 2**attempt

    def _reply(self, response: Any) -> Reply:
        # Some providers give no choice at all, for a blocked reply: that is an empty one.
        choice = next(iter(getattr(response, "choices", None) or ()), None)
        data = _sendable(choice.message.model_dump()) if choice else {}
        calls = tuple(_tool_calls(data))
        finish_reason = str((choice and choice.finish_reason) or "")
        return Reply(
            content=data.get("content") or "",
            tool_calls=calls,
            finish_reason=finish_reason,
            usage=self._usage(response),
            message=self._sent_back(data, calls),
            reasoning=data.get("reasoning_content") or "",
        )

    def _usage(self, response: Any) -> Usage:
        usage = getattr(response, "usage", None)
        prompt = getattr(usage, "prompt_tokens_details", None)
        completion = getattr(usage, "completion_tokens_details", None)
        counts = Usage(
            input_tokens=getattr(usage, "prompt_tokens", None) or 0,
            cached_tokens=getattr(prompt, "cached_tokens", None) or 0,
            output_tokens=getattr(usage, "completion_tokens", None) or 0,
            reasoning_tokens=getattr(completion, "reasoning_tokens", None) or 0,
        )
        return replace(counts, cost_usd=self._cost(counts, response))

    def _cost(self, usage: Usage, response: Any) -> float | None:
        """Dollars: by the configured price, else by LiteLLM's; None where neither knows the model."""
        price = self.section.prices.get(self.name)
        if price is None:
            # LiteLLM says 0.0 for some models it has no price of.
            return (getattr(response, "_hidden_params", None) or {}).get("response_cost") or None
        cached_price = price.input if price.cached is None else price.cached
        fresh = usage.input_tokens - usage.cached_tokens
        dollars = fresh * price.input + usage.cached_tokens * cached_price + usage.output_tokens * price.output
        return dollars / 1_000_000

    def _sent_back(self, data: Mapping[str, Any], calls: Sequence[ToolCall]) -> Message:
        """The assistant message of the next request: what every provider takes, and what this one needs."""
        kept = SENT_BACK.get(self.provider, ())
        empty = None if calls and self.provider in NULL_CONTENT else ""
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
    except ValueError:
        whole = False
    sent = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments if whole else "{}"},
    }
    fields = (original or {}).get("provider_specific_fields")
    return sent | ({"provider_specific_fields": fields} if fields else {})


def _litellm(callbacks: Sequence[str] = ()) -> Any:
    """The module, quiet, and with its own list of prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    # Reading a stream makes pydantic complain of LiteLLM's types.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pydantic\.")
    for name in callbacks:
        if name not in litellm.callbacks:
            litellm.callbacks.append(name)
    return litellm


def _sendable(value: Any) -> Any:
    """A message whose texts a request can carry."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _sendable(inner) for name, inner in value.items()}
    return [_sendable(inner) for inner in value] if isinstance(value, list) else value


def _text_of(chunk: Any) -> str:
    """The piece of the reply's text that a chunk of a stream brings."""
    choices = getattr(chunk, "choices", None)
    return (choices[0].delta.content or "") if choices else ""


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


if __name__ == "__main__":
    from okf_agent.models.check import main

    raise SystemExit(main())


def _timeout(most: float, seconds: float) -> float:
    """`most`, or the half, quarter, … of it that is nearest above `seconds`.

    LiteLLM keeps a client with its open connections for every limit it was ever given: they must not all differ.

    >>> _timeout(120, 600), _timeout(120, 119.5), _timeout(120, 44)
    (120, 120, 60.0)
    """
    while most / 2 >= max(seconds, 0.1):
        most /= 2
    return most
