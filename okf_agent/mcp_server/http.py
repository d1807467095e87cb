"""The door for teams: streamable HTTP, with tokens, limits, health and a graceful stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount
from uvicorn.protocols.http.h11_impl import H11Protocol

from okf_agent.mcp_server.address import hosts, is_loopback, url
from okf_agent.mcp_server.guard import Guard, Rules
from okf_agent.mcp_server.server import build
from okf_agent.mcp_server.service import Service
from okf_agent.mcp_server.tokens import VARIABLE, Tokens
from okf_compiler.errors import UserError

logger = logging.getLogger(__name__)
GRACE_SECONDS = 5
"""Between the order to stop and the end of connections that are still open."""
READY_SECONDS = 10.0
"""For the database to answer whether it is ready."""
READY_FOR_SECONDS = 1.0
"""How long its answer holds."""


def check_address(host: str, tokens: Tokens) -> None:
    """Refuse to serve other machines without tokens.

    Raises:
        UserError: the address is not this machine's own, and there is no token.
    """
    if not tokens and not is_loopback(host):
        raise UserError(
            f"{host} can be reached from other machines, and no token is set: name at least one in {VARIABLE} "
            "(name=token) or in the file of --tokens, or listen on 127.0.0.1.",
            status=2,
        )


def serve(service: Service, host: str, port: int, *, stateless: bool) -> None:
    """Serve until SIGTERM or Ctrl-C. Then queries are stopped on the database, and records written.

    Raises:
        UserError: the address cannot be listened on.
    """
    listener = listen(host, port)
    server(service, host, stateless=stateless).run([listener])


def server(service: Service, host: str, *, stateless: bool) -> uvicorn.Server:
    """The HTTP server for a service that is bound to `host`; run it with a socket from `listen`."""
    return _Server(_config(application(service, host, stateless=stateless), service), service)


def application(service: Service, host: str, *, stateless: bool) -> Starlette:
    """The ASGI application for a server bound to `host`."""
    section = service.config.mcp
    manager = StreamableHTTPSessionManager(
        build(service, http=True, stateful=not stateless),
        stateless=stateless,
        session_idle_timeout=section.session_idle_s,
        max_sessions=section.max_sessions,
        max_request_body_size=section.max_request_bytes,
    )
    rules = Rules(
        tokens=service.access,
        hosts=hosts(host, section.allowed_hosts),
        origins=frozenset(origin.lower().rstrip("/") for origin in section.allowed_origins),
        max_bytes=section.max_request_bytes,
        seconds=section.request_timeout_s,
    )

    async def ended(token: str, session: str) -> None:
        await service.end_conversation(f"{token} {session}")

    guard = Guard(StreamableHTTPASGIApp(manager), rules, _Readiness(service), ended)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Mount("/", guard)], lifespan=lifespan)


class _Readiness:
    """Whether a query could be run now: the server of the first database answers, and nobody stops this one.

    Everybody may ask, so the database is asked once at a time, and once a second at most.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = anyio.Lock()
        self._known = False
        self._until = 0.0

    async def __call__(self) -> bool:
        async with self._lock:
            if anyio.current_time() >= self._until:
                self._known = await self._look()
                self._until = anyio.current_time() + READY_FOR_SECONDS
        return self._known and not self._service.worker.stopping

    async def _look(self) -> bool:
        try:
            with anyio.fail_after(READY_SECONDS):
                return await anyio.to_thread.run_sync(self._service.served.is_reachable, abandon_on_cancel=True)
        except TimeoutError:
            return False


def _config(app: Any, service: Service) -> uvicorn.Config:
    section = service.config.mcp

    class Patient(_PatientProtocol):
        seconds = section.request_timeout_s

    return uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=section.max_clients,
        timeout_keep_alive=max(5, round(min(section.request_timeout_s, 75))),
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=2048,
    )


class _Server(uvicorn.Server):
    """Tells the service first when it has to stop, so that queries end and their clients still hear of it."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or []:
            logger.warning("Serving at %s", url(*each.getsockname()[:2]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        stopping = asyncio.create_task(self._service.stop_calls())
        try:
            await super().shutdown(sockets)
        finally:
            stopping.cancel()


class _PatientProtocol(H11Protocol):
    """Closes a connection whose request line and headers do not arrive in `seconds`; uvicorn would wait for ever."""

    seconds: float = 30.0
    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._clock = self.loop.call_later(self.seconds, self._close_if_silent, None)

    def data_received(self, data: bytes) -> None:
        waits = self.cycle is not None and self.cycle.response_complete and self._clock is None
        if waits:  # a further request on a connection that was kept
            self._clock = self.loop.call_later(self.seconds, self._close_if_silent, self.cycle)
        super().data_received(data)
        if self._clock is not None and self.cycle is not None and not self.cycle.response_complete:
            self._clock.cancel()
            self._clock = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._clock is not None:
            self._clock.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self, cycle: Any) -> None:
        self._clock = None
        if self.cycle is cycle and self.transport is not None:
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 for any that is free.

    Raises:
        UserError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol has to be named: asyncio sends small pieces at once only on sockets that know theirs.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # on Windows it would let another program take the address over
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:  # a name that no name server could be asked for is a UnicodeError
        listener.close()
        problem = getattr(error, "strerror", None) or error
        raise UserError(f"--http {host}:{port} cannot be listened on: {problem}.") from None
    listener.set_inheritable(True)
    return listener
