"""A model that plays a script: a real HTTP server that speaks `/v1/chat/completions`.

    with Endpoint([calls(("run_sql", {"sql": "SELECT 1"})), text("done")]) as endpoint:
        Model(ModelSection(name="openai/scripted", api_base=endpoint.url))

Each request takes the next reply of the script and is kept in `endpoint.requests`. A request too many gets
status 500 and fails the test that looks at `endpoint.missing`.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Scripted:
    """One HTTP response: a JSON body, or bytes as they are."""

    body: Mapping[str, Any] | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before it is sent."""
    trickle: float = 0.0
    """Seconds between two bytes of the body."""
    missing: int = 0
    """Bytes that are promised and never sent: the connection ends before."""


def reply(
    content: str | None = None,
    tool_calls: Sequence[Mapping[str, Any]] = (),
    *,
    finish_reason: str | None = None,
    usage: Mapping[str, Any] | None = None,
    delay: float = 0.0,
    **fields: Any,
) -> Scripted:
    """A chat completion; `fields` go into the message as they are (reasoning_content, thinking_blocks, …)."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **fields}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    reason = finish_reason or ("tool_calls" if tool_calls else "stop")
    body = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "scripted",
        "service_tier": "default",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage or {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
    return Scripted(body, delay=delay)


def text(content: str, **options: Any) -> Scripted:
    """A reply in prose."""
    return reply(content, **options)


def calls(*pairs: tuple[str, Any], **options: Any) -> Scripted:
    """A reply with tool calls, each `(name, arguments)`; arguments that are a str are sent as they are."""
    return reply(
        options.pop("content", None),
        [tool_call(name, arguments, f"call_{number}") for number, (name, arguments) in enumerate(pairs, start=1)],
        **options,
    )


def tool_call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    """One tool call of a message."""
    raw = arguments if isinstance(arguments, str | None) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": raw}}


def submit(sql: str, answer: str) -> Scripted:
    """A reply that hands in an answer."""
    return calls(("submit_answer", {"sql": sql, "answer": answer}))


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Scripted:
    """An error in the provider's form; `headers` with `_` for `-`."""
    body = {"error": {"message": message, "type": "error", "code": code}}
    return Scripted(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def _events(body: Mapping[str, Any]) -> bytes:
    """A chat completion as the server-sent events of a stream, texts and arguments in two pieces each."""
    choice = body["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for name, value in message.items():
        if isinstance(value, str) and name != "role":
            deltas += [{name: value[: len(value) // 2]}, {name: value[len(value) // 2 :]}]
    for index, call in enumerate(message.get("tool_calls", ())):
        written = call["function"]["arguments"] or ""
        start = {**call["function"], "arguments": written[:3]}
        deltas.append({"tool_calls": [{**call, "index": index, "function": start}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": written[3:]}}]})
    frame = {name: body[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks = [frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append(frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append(frame | {"choices": [], "usage": body["usage"]})
    return b"".join(b"data: %s\n\n" % json.dumps(c).encode() for c in chunks) + b"data: [DONE]\n\n"


class Endpoint:
    """The server. `requests` holds the body of every request, `headers` its headers."""

    def __init__(
        self,
        script: Iterable[Scripted] = (),
        *,
        forever: bool = False,
        answer: Callable[[dict[str, Any]], Scripted] | None = None,
    ) -> None:
        """`forever`: the last reply answers every further request too. `answer` gives the reply to a request instead,
        and then no request is kept."""
        self.script = list(script)
        self.forever = forever
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.missing = 0
        """Requests that the script had no reply for."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The api_base to call."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def told(self, request: int = -1) -> list[str]:
        """The contents of the tool messages of a request."""
        return [m["content"] for m in self.requests[request]["messages"] if m["role"] == "tool"]

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, body: dict[str, Any], headers: dict[str, str]) -> Scripted:
        if self.answer is not None:
            return self.answer(body)
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append(headers)
            if number < len(self.script):
                return self.script[number]
            if self.forever:
                return self.script[-1]
            self.missing += 1
        return Scripted({"error": {"message": f"the script has no reply {number + 1}"}}, 400)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                scripted = endpoint._next(body, dict(self.headers))
                time.sleep(scripted.delay)
                kind = "application/json"
                if isinstance(scripted.body, bytes):
                    data = scripted.body
                elif body.get("stream") and scripted.status == 200:
                    kind, data = "text/event-stream", _events(scripted.body)
                else:
                    data = json.dumps(scripted.body).encode()
                self.send_response(scripted.status)
                for name, value in {"Content-Type": kind, **scripted.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data) + scripted.missing))
                self.end_headers()
                self.close_connection = bool(scripted.missing)
                with contextlib.suppress(ConnectionError):  # the client gave up waiting
                    for piece in [data[i : i + 1] for i in range(len(data))] if scripted.trickle else [data]:
                        self.wfile.write(piece)
                        self.wfile.flush()
                        time.sleep(scripted.trickle)

            def log_message(self, *_: object) -> None:
                """Keep standard error for pytest."""

        return Handler
