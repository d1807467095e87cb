"""Every model call goes through here: one request, its tokens, cost and seconds, and tries again where that helps.

The only file that knows LiteLLM, but for the form of its responses (models/reply.py). Importing it takes seconds, so
that happens inside functions; `start_import` begins it in the background.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from okf_agent.config import ModelSection
from okf_agent.events import Message
from okf_agent.models import errors as model_errors
from okf_agent.models.bounded import Cancelled, Timeout, bounded
from okf_agent.models.providers import provider_of
from okf_agent.models.reply import Reply, read_reply, unread_call

GRACE = 0.5
"""Seconds that a call may take over its time limit."""
MARKS_CACHE = ("anthropic", "bedrock")
"""Providers that cache a prefix only where the request marks its end; the others do it by themselves."""


class ContextOverflow(Exception):
    """The conversation is longer than the model takes."""


class OutOfTime(Exception):
    """The seconds given are used up, or would be before the provider takes another request."""


def start_import() -> None:
    """Import LiteLLM in the background, so that it is there when the first call needs it."""
    if "litellm" not in sys.modules:
        threading.Thread(target=litellm_module, name="import-litellm", daemon=True).start()


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
        self.limit_name = "max_tokens"
        """The parameter that bounds a reply: some servers take another one, which they say."""

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
        request = partial(self._request, messages, tools)
        if self.replies and (kept := self.replies.get(request(seconds))):
            return kept
        litellm_module(self.section.callbacks)  # before the clock starts: the import takes seconds
        reply, working, waiting = self._tried(request, time.monotonic() + seconds, on_wait, on_text)
        if self.replies:
            self.replies.put(request(seconds), reply)
        return replace(reply, usage=replace(reply.usage, seconds=working, wait_seconds=waiting))

    def _tried(
        self,
        request: Callable[[float], dict[str, Any]],
        end: float,
        on_wait: Callable[[float, str], None],
        on_text: Callable[[str], None],
    ) -> tuple[Reply, float, float]:
        """The reply to the first try that gets one, and the seconds spent on tries and on pauses between them.

        `request` is given the seconds that are left until `end`, a time of time.monotonic.
        """
        from okf_agent.models.wire import Heard, hearing

        working = waiting = 0.0
        attempt = 0
        while True:
            begin = time.monotonic()
            heard = Heard()
            hearing.set(heard)
            try:
                response = self._call(request(end - begin), end, on_text)
                reply = read_reply(response, self.name, self.section.prices.get(self.name), bytes(heard.body))
            except (OutOfTime, Cancelled):
                raise
            except Exception as error:
                working += time.monotonic() - begin
                written = model_errors.failed_call(heard)
                if written is not None:
                    return unread_call(written), working, waiting
                failed = model_errors.failure(error, heard)
                if model_errors.wants_other_limit(failed) and self.limit_name == "max_tokens":
                    self.limit_name = "max_completion_tokens"
                    continue
                pause = self._pause(failed, attempt)
                attempt += 1
                if time.monotonic() + pause >= end:
                    raise OutOfTime(failed.said) from None
                on_wait(pause, failed.said)
                if self.cancelled.wait(pause):
                    raise Cancelled from None
                waiting += pause
            else:
                working += time.monotonic() - begin
                return reply, working, waiting

    def _request(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], seconds: float
    ) -> dict[str, Any]:
        """The arguments of litellm.completion."""
        request: dict[str, Any] = {
            "model": self.name,
            "messages": list(messages),
            "temperature": self.section.temperature,
            self.limit_name: self.section.max_tokens,
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
        litellm = litellm_module()

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

    def _pause(self, failed: model_errors.Failure, attempt: int) -> float:
        """Return the seconds to wait before the next try.

        Raises:
            UserError, ContextOverflow: another try would not help, or was the last.
        """
        if model_errors.too_long(failed):
            raise ContextOverflow(
                f"The conversation does not fit the model {self.name}: {failed.said}\n"
                "Choose a model with a larger context with --model, or give less knowledge at once with --knowledge."
            ) from None
        if attempt == self.section.retries or not model_errors.passes(failed):
            raise model_errors.explain(failed, self.name, self.section.api_base) from None
        return model_errors.retry_after(failed.error) or self.section.retry_wait_s * 2**attempt


def litellm_module(callbacks: Sequence[str] = ()) -> Any:
    """The module, quiet, and with its own list of prices."""
    from okf_agent.models import wire

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    # Reading a stream makes pydantic complain of LiteLLM's types.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pydantic\.")
    wire.install(litellm)
    for name in callbacks:
        if name not in litellm.callbacks:
            litellm.callbacks.append(name)
    return litellm


def _text_of(chunk: Any) -> str:
    """The piece of the reply's text that a chunk of a stream brings."""
    choices = getattr(chunk, "choices", None)
    return (choices[0].delta.content or "") if choices else ""


def _timeout(most: float, seconds: float) -> float:
    """`most`, or the half, quarter, … of it that is nearest above `seconds`.

    LiteLLM keeps a client with its open connections for every limit it was ever given: they must not all differ.

    >>> _timeout(120, 600), _timeout(120, 119.5), _timeout(120, 44)
    (120, 120, 60.0)
    """
    while most / 2 >= max(seconds, 0.1):
        most /= 2
    return most
