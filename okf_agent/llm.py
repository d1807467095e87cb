"""Every model call goes through here: one request, its tokens, cost and seconds, and tries again where that helps.

The only file that knows LiteLLM. Importing it takes seconds, so that happens inside functions;
`start_import` begins it in the background.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from okf_agent.config import ModelSection
from okf_agent.providers import provider_of
from okf_agent.run import Message, Usage
from okf_compiler.settings import UserError

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
MARKS_CACHE = ("anthropic", "bedrock")
"""Providers that cache a prefix only where the request marks its end; the others do it by themselves."""
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
SECRET_TEXT = re.compile(r"\b(sk-|nvapi-|gsk_|AIza|Bearer )[\w.-]{8,}")
NO_TOOLS = re.compile(
    r"not support (tool|function)|support tool use|tool.choice|(tool|function)s? (calling |use )?(is|are) not",
    re.IGNORECASE,
)
OVERFLOW = re.compile(
    r"context.?(length|window|size)|(prompt|input|request) (is )?too (long|large)|exceeds? the .{0,30}context",
    re.IGNORECASE,
)


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
    threading.Thread(target=_litellm, name="import-litellm", daemon=True).start()


class Model:
    """A model behind LiteLLM. Nothing is remembered between calls."""

    def __init__(self, section: ModelSection) -> None:
        self.section = section
        self.name = section.name
        self.provider = section.name.partition("/")[0]

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        seconds: float = float("inf"),
        on_wait: Callable[[float, str], None] = lambda _seconds, _reason: None,
    ) -> Reply:
        """The model's reply; `tools` are in the shape of OpenAI's function tools.

        `on_wait(seconds, reason)` is called before each pause. `seconds` bounds calls and pauses together.

        Raises:
            UserError: a wrong key, an unknown model, no such server, …; says what to do.
            ContextOverflow: the messages are too long for the model.
            OutOfTime: `seconds` are over.
        """
        litellm = _litellm(self.section.callbacks)
        end = time.monotonic() + seconds
        working = waiting = 0.0
        for attempt in range(self.section.retries + 1):
            begin = time.monotonic()
            try:
                response = litellm.completion(**self._request(messages, tools, end - begin))
            except Exception as error:
                working += time.monotonic() - begin
                pause = self._pause(error, attempt)
                if time.monotonic() + pause >= end:
                    raise OutOfTime(_first_line(error)) from None
                on_wait(pause, redact(_first_line(error)))
                time.sleep(pause)
                waiting += pause
            else:
                working += time.monotonic() - begin
                reply = self._reply(response)
                usage = replace(reply.usage, seconds=working, wait_seconds=waiting)
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
            "timeout": max(0.1, min(self.section.timeout_s, seconds)),
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

    def _pause(self, error: Exception, attempt: int) -> float:
        """Seconds to wait before the next try.

        Raises:
            UserError, ContextOverflow: another try would not help, or was the last.
        """
        if _too_long(error):
            raise ContextOverflow(redact(_first_line(error))) from None
        if not _passes(error) or attempt == self.section.retries:
            raise self._explain(error) from None
        return _retry_after(error) or self.section.retry_wait_s * 2**attempt

    def _explain(self, error: Exception) -> UserError:
        """The error for a person, with the remedy."""
        litellm = _litellm()
        said = redact(_first_line(error))
        provider = provider_of(self.name)
        key = (provider and provider.key) or f"the key of {self.provider}"
        status = getattr(error, "status_code", None)
        if isinstance(error, litellm.AuthenticationError | litellm.PermissionDeniedError):
            remedy = f"The provider does not accept the key. Check {key} in .env, see PROVIDERS.md."
        elif NO_TOOLS.search(said) and status in (400, 404, 422):
            remedy = "This model cannot call tools. Choose one that can with --model, see PROVIDERS.md."
        elif _refused(error):
            where = self.section.api_base or "the provider"
            remedy = f"Nothing answers at {where}. Start the server, or correct model.api_base in config.yaml."
        elif "LLM Provider NOT provided" in said:
            said = "the name has no known provider"
            remedy = "Write it as provider/model, for example openai/gpt-5-mini, see PROVIDERS.md."
        elif status == 404:
            remedy = "There is no such model there. Check model.name in config.yaml, or --model."
        elif _quota_spent(error):
            remedy = "The account's quota or credit is used up: waiting does not help. Look at its billing."
        elif status == 429:
            remedy = "The provider's rate limit did not clear. Try again later, or raise model.retries."
        elif isinstance(error, litellm.Timeout):
            remedy = "Raise model.timeout_s in config.yaml, or choose a faster model."
        else:
            remedy = "Try again, or choose another model with --model; PROVIDERS.md says what to expect."
        return UserError(f"The model {self.name} could not be called: {said}\n{remedy}")

    def _reply(self, response: Any) -> Reply:
        choice = response.choices[0]
        message = choice.message
        data = message.model_dump()
        calls = tuple(_tool_calls(data))
        finish_reason = str(choice.finish_reason or "")
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
        # "" and not null beside tool calls: some providers reject the one that is absent, none this.
        sent: Message = {"role": "assistant", "content": data.get("content") or ""}
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


def redact(text: str) -> str:
    """`text` without the secrets of the environment, nor anything that looks like a key."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= 6:
            text = text.replace(value, "***")
    return SECRET_TEXT.sub(r"\1***", text)


def _litellm(callbacks: Sequence[str] = ()) -> Any:
    """The module, quiet, and with its own list of prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    for name in callbacks:
        if name not in litellm.callbacks:
            litellm.callbacks.append(name)
    return litellm


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


def _passes(error: Exception) -> bool:
    """Whether another try may succeed."""
    litellm = _litellm()
    # LiteLLM dresses mistakes of its own as connection errors.
    if _refused(error) or _quota_spent(error) or _caused_by(error, AttributeError, TypeError):
        return False
    status = getattr(error, "status_code", None) or 0
    passing = isinstance(error, litellm.Timeout | litellm.APIConnectionError)
    return passing or status in (408, 429) or status >= 500


def _too_long(error: Exception) -> bool:
    """Whether the conversation does not fit the model; LiteLLM knows the words of some servers only.

    "Request too large" becomes a rate limit (429) there, though no waiting helps.
    """
    if isinstance(error, _litellm().ContextWindowExceededError):
        return True
    text = f"{error} {getattr(error, 'body', '')}"
    return (getattr(error, "status_code", None) or 500) < 500 and bool(OVERFLOW.search(text))


def _quota_spent(error: Exception) -> bool:
    """Whether a 402 or 429 means that the account has nothing left."""
    text = f"{error} {getattr(error, 'body', '')}"
    return getattr(error, "status_code", None) == 402 or "insufficient_quota" in text or "credit balance" in text


def _refused(error: Exception) -> bool:
    """Whether no server was reached at all: connection refused, or no such host."""
    import httpx

    return _caused_by(error, httpx.ConnectError, ConnectionRefusedError)


def _caused_by(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Whether the error, or one that led to it, is of one of these kinds."""
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def _retry_after(error: Exception) -> float | None:
    """Seconds the provider asks to wait, from either form of the header; None if it names none."""
    response = getattr(error, "response", None)
    for headers in (getattr(response, "headers", None), getattr(error, "litellm_response_headers", None)):
        value = (headers or {}).get("retry-after")
        if value:
            try:
                return max(0.0, float(value))
            except ValueError:
                pass
            try:
                return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
            except (TypeError, ValueError):
                continue
    return None


def _first_line(error: Exception) -> str:
    """The error in one line of at most 500 characters, without LiteLLM's own prefixes."""
    text = " ".join(str(error).split())
    text = re.sub(r"^(litellm\.)?(\w+: )?(litellm\.)?\w+Error: |^litellm\.\w+: ", "", text)
    return re.sub(r"^\w+Exception - ", "", text)[:500]
