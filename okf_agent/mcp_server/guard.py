"""What an HTTP request has to pass before the protocol sees it: Host, Origin, token, size, and time.

A page in a browser can call a server on the reader's own machine; Host and Origin say that it tries. A client that
sends or takes a byte a minute would hold a connection for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from okf_agent.mcp_server.address import LOOPBACK, PATH, hostname, origin_hostname
from okf_agent.mcp_server.calls import Gone
from okf_agent.mcp_server.clients import GONE, SESSION, TOKEN
from okf_agent.mcp_server.tokens import Tokens

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rules:
    """What is let through."""

    tokens: Tokens
    hosts: frozenset[str]
    """Names in the Host header, lower case, without a port."""
    origins: frozenset[str]
    """Origins as a browser writes them, beside those of this machine."""
    max_bytes: int
    seconds: float
    """For a request to arrive, and for each piece of the answer to be taken."""


@dataclass
class Guard:
    """An ASGI application before the protocol's own. `ended` is told of a session that its client ended."""

    app: ASGIApp
    rules: Rules
    ready: Callable[[], Awaitable[bool]]
    ended: Callable[[str, str], Awaitable[None]]
    requests: set[Gone] = field(default_factory=set)
    """Those under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"] == "/healthz":
            await JSONResponse({"status": "alive"})(scope, receive, send)
        elif scope["path"] == "/readyz":
            ready = await self.ready()
            text = {"status": "ready" if ready else "not ready"}
            await JSONResponse(text, 200 if ready else 503)(scope, receive, send)
        elif refusal := self._refusal(scope):
            await refusal(scope, receive, send)
        else:
            await self._pass(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request goes no further, by its headers alone."""
        headers = Headers(scope=scope)
        if scope["path"].rstrip("/") != PATH:
            return _refused(404, f"The protocol is spoken at {PATH}.")
        if hostname(headers.get("host", "")) not in self.rules.hosts:
            return _refused(421, "This Host is not served here (mcp.allowed_hosts).")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin):
            return _refused(403, "Pages of this Origin may not call (mcp.allowed_origins).")
        token = ""
        if self.rules.tokens:
            name = self.rules.tokens.name_of(headers.get("authorization", ""))
            if name is None:
                challenge = 'Bearer realm="okf-agent"'
                return _refused(401, "A bearer token is needed, and this is none.", {"www-authenticate": challenge})
            token = name
            # The SDK keeps who opened a session, and answers 404 to everybody else who names it.
            user = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
            scope["user"] = user
        scope[TOKEN] = token
        if _length(headers) > self.rules.max_bytes:
            return _refused(413, f"A request may have {self.rules.max_bytes:,} bytes (mcp.max_request_bytes).")
        return None

    def _is_ours(self, origin: str) -> bool:
        return origin.lower() in self.rules.origins or origin_hostname(origin) in LOOPBACK

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, with a clock beside what the client sends and takes."""
        gone = scope[GONE] = Gone()
        self.requests.add(gone)
        status: list[int] = []
        body = _Body(receive, self.rules.seconds)

        async def slowly(message: Message) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])
            with anyio.fail_after(self.rules.seconds):
                await send(message)

        try:
            await self.app(scope, body.receive, slowly)
        except ClientDisconnect:
            logger.info("a client left before its request was whole")
        except TimeoutError:
            logger.warning("a client was too slow, and is cut off")
            if not status:
                await _refused(408, f"The request did not arrive in {self.rules.seconds:g} s.")(scope, receive, send)
        finally:
            gone.leave()
            self.requests.discard(gone)
        session = Headers(scope=scope).get(SESSION)
        if scope["method"] == "DELETE" and session and status and status[0] < 300:
            await self.ended(scope[TOKEN], session)


class _Body:
    """The request's body, which has to be there in so many seconds; what comes after it may take any time."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._end = anyio.current_time() + seconds
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        with anyio.fail_at(self._end):
            message = await self._receive()
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _refused(status: int, text: str, headers: dict[str, Any] | None = None) -> Response:
    # The connection ends with it: what else the client has to send is not read.
    return JSONResponse({"error": text}, status, {"connection": "close", **(headers or {})})
