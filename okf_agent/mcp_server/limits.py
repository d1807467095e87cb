"""What the SDK does not limit: the share of each token, and the connections of slow clients."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import resource
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from okf_agent.config import McpSection
from okf_agent.mcp_server.tokens import holder

logger = logging.getLogger(__name__)
GONE, KEPT = "okf.gone", "okf.kept"
"""Keys of a request's scope: an event that its client has left, and whether it opened a session that goes on."""
HOST = rb"(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?"
ORIGIN = re.compile(rb"[a-z][a-z0-9+.-]*://" + HOST)
ONE_HOST = re.compile(HOST)
RESERVE = 16
"""Connections beyond `mcp.max_clients`: for health checks, and for those who are told that there are too many."""
PAUSE = 0.1
"""Seconds before another look for room."""


class Shares:
    """Slots that the holders of tokens share: with several tokens, nobody gets more than are left for the others."""

    def __init__(self, most: int, *, several: bool) -> None:
        self._free = most
        self._several = several
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[str, anyio.Event]] = []

    def take(self, holder: str) -> bool:
        """Take a slot; return whether there was one."""
        if self._free < 1 or (self._several and self._held[holder] >= self._free):
            return False
        self._free -= 1
        self._held[holder] += 1
        return True

    def give_back(self, holder: str) -> None:
        """Free a slot, for whoever waits and holds the fewest."""
        self._free += 1
        self._held[holder] -= 1
        for waiter in sorted(self._waiting, key=lambda each: self._held[each[0]]):
            if self.take(waiter[0]):
                self._waiting.remove(waiter)
                waiter[1].set()
                return

    @asynccontextmanager
    async def turn(self, holder: str) -> AsyncIterator[None]:
        """Hold a slot, after waiting for it."""
        if not self.take(holder):
            waiter = (holder, anyio.Event())
            self._waiting.append(waiter)
            try:
                await waiter[1].wait()
            except BaseException:
                if waiter[1].is_set():
                    self.give_back(holder)
                else:
                    self._waiting.remove(waiter)
                raise
        try:
            yield
        finally:
            self.give_back(holder)


class FairShare:
    """ASGI middleware: bounds the requests under way, and the sessions, and shares both by token."""

    def __init__(self, app: ASGIApp, section: McpSection, sessions: Shares, *, several: bool, stateful: bool) -> None:
        self._app = app
        self._requests = Shares(section.max_clients, several=several)
        self._sessions = sessions
        self._stateful = stateful

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = holder(scope)
        if not self._requests.take(token):
            await _busy("requests are under way (mcp.max_clients)")(scope, receive, send)
            return
        opens = self._stateful and _opens_session(scope)
        try:
            if opens and not self._sessions.take(token):
                await _busy("sessions are open (mcp.max_sessions)")(scope, receive, send)
                return
            try:
                await self._app(scope, receive, send)
            finally:
                if opens and not scope.get(KEPT):
                    self._sessions.give_back(token)
        finally:
            self._requests.give_back(token)


def _opens_session(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    version = headers.get("mcp-protocol-version")
    return "mcp-session-id" not in headers and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS)


def _busy(what: str) -> PlainTextResponse:
    return PlainTextResponse(f"Too many {what}. Try again later.", 503, {"retry-after": "1"})


class Patience:
    """ASGI middleware: a clock beside what a client sends and takes, and one well-formed Host and Origin.

    A refusal ends its connection: what else the client has to send is not read.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        end = anyio.current_time() + self._seconds
        arrived, started = False, False
        gone = scope[GONE] = anyio.Event()

        async def in_time() -> Message:
            nonlocal arrived
            with anyio.fail_at(math.inf if arrived else end):
                message = await receive()
            arrived = arrived or message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def slowly(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if message["status"] >= 400:
                    message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            with anyio.fail_after(self._seconds):
                await send(message)

        try:
            await (_malformed(scope) or self._app)(scope, in_time, slowly)
        except ClientDisconnect:
            logger.info("a client left before its request was whole")
        except TimeoutError:
            logger.warning("a client was too slow, and is cut off")
            if not started:
                text = f"The request did not arrive in {self._seconds:g} s."
                await PlainTextResponse(text, 408)(scope, receive, slowly)
        finally:
            gone.set()


def _malformed(scope: Scope) -> ASGIApp | None:
    """Put Host and Origin into lower case; return the refusal of a request that has several, or what is none."""
    scope["headers"] = [(k, v.lower() if k in (b"host", b"origin") else v) for k, v in scope["headers"]]
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    origins = [value for name, value in scope["headers"] if name == b"origin"]
    if len(hosts) != 1 or not ONE_HOST.fullmatch(hosts[0]):
        return PlainTextResponse("This Host is none.", 421)
    if len(origins) > 1 or not all(map(ORIGIN.fullmatch, origins)):
        return PlainTextResponse("This Origin is none.", 403)
    return None


class Connections:
    """Accepts the connections of a server: never more than there are descriptors, and none that stays silent.

    uvicorn accepts whatever comes, and waits for a request's first line for ever. Here the connection that has been
    silent longest gives way to a new one.
    """

    def __init__(self, max_clients: int, seconds: float) -> None:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        descriptors = max_clients if soft == resource.RLIM_INFINITY else soft * 3 // 4
        self._most = min(max_clients + RESERVE, max(descriptors, RESERVE))
        if self._most < max_clients:
            logger.warning("At most %d clients at once, not %d: see `ulimit -n`.", self._most - RESERVE, max_clients)
        self._seconds = seconds
        self._silent: dict[tuple[str, int], tuple[float, asyncio.Transport]] = {}
        """By the client's address, since when; the one silent longest first."""
        self._busy: dict[tuple[str, int], asyncio.Transport] = {}

    def watch(self, app: ASGIApp) -> ASGIApp:
        """Return `app`, which now tells when a connection has a request under way."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            client = tuple(scope.get("client") or ())
            _, transport = self._silent.pop(client, (0.0, None))
            if transport is None:
                await app(scope, receive, send)
                return
            self._busy[client] = transport
            try:
                await app(scope, receive, send)
            finally:
                self._silent[client] = (anyio.current_time(), self._busy.pop(client))

        return watched

    async def accept(self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_silent)
            while True:
                await self._make_room()
                try:
                    accepted, address = await loop.sock_accept(listener)
                    transport, _ = await loop.connect_accepted_socket(protocol, accepted)
                except OSError as error:
                    logger.warning("No connection can be accepted for a moment: %s", error.strerror)
                    await anyio.sleep(PAUSE)
                    continue
                self._silent[address[:2]] = (loop.time(), transport)

    async def _make_room(self) -> None:
        while len(self._silent) + len(self._busy) >= self._most:
            self._forget_closed()
            if len(self._silent) + len(self._busy) < self._most:
                return
            if self._silent:
                oldest = next(iter(self._silent))
                self._silent.pop(oldest)[1].abort()
                await anyio.sleep(0)  # its descriptor is closed in the next turn of the loop
            else:
                await anyio.sleep(PAUSE)

    async def _close_silent(self) -> None:
        while True:
            await anyio.sleep(min(1.0, self._seconds / 4))
            self._forget_closed()
            oldest = anyio.current_time() - self._seconds
            for since, transport in [*self._silent.values()]:
                if since < oldest:
                    transport.abort()

    def _forget_closed(self) -> None:
        for client, (_, transport) in [*self._silent.items()]:
            if transport.is_closing():
                del self._silent[client]
