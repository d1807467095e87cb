"""The door for teams: streamable HTTP, with tokens, limits, health and a graceful stop."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from okf_agent.config import McpSection
from okf_agent.mcp_server.address import EVERYWHERE, LOOPBACK, PATH, VARIABLE, is_loopback, url
from okf_agent.mcp_server.limits import Connections, FairShare, Patience
from okf_agent.mcp_server.server import Service
from okf_agent.mcp_server.tokens import Tokens
from okf_compiler.errors import UserError

logger = logging.getLogger(__name__)
BACKLOG = 2048
"""Connections that may wait to be accepted."""
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
    if not tokens.databases and not is_loopback(host):
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
    anyio.run(HttpServer(service, host, stateless=stateless).run, listener)


class HttpServer:
    """uvicorn with a service's application, and with an accept of our own."""

    def __init__(self, service: Service, host: str, *, stateless: bool) -> None:
        """`host` is the address listened on."""
        section = service.config.mcp
        self._service = service
        self._connections = Connections(section.max_clients, section.request_timeout_s)
        app = self._connections.watch(application(service, host, stateless=stateless))
        self.uvicorn = uvicorn.Server(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    async def run(self, listener: socket.socket) -> None:
        """Serve what comes to `listener`, which is closed at the end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._accept, listener)
            with listener:
                await self.uvicorn.serve(sockets=[])
            tasks.cancel_scope.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        """Accept connections; on the order to stop, stop the calls first, so that their clients still hear of it."""
        server = self.uvicorn
        while not server.started:
            await anyio.sleep(0.01)
        make = cast(Callable[..., asyncio.Protocol], server.config.http_protocol_class)
        protocol = functools.partial(make, server.config, server.server_state, server.lifespan.state)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._connections.accept, listener, protocol)
            logger.warning("Serving at %s", url(*listener.getsockname()[:2]))
            while not server.should_exit:
                await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
        await self._service.stop()


def application(service: Service, host: str, *, stateless: bool) -> Starlette:
    """Return the ASGI application for a server that listens on `host`."""
    section, tokens = service.config.mcp, service.calls.tokens
    manager = StreamableHTTPSessionManager(
        service.build(http=True, stateful=not stateless),
        stateless=stateless,
        security_settings=security(host, section),
        session_idle_timeout=section.session_idle_s,
        max_sessions=section.max_sessions,
        max_request_body_size=section.max_request_bytes,
    )
    layers = [Middleware(Patience, seconds=section.request_timeout_s)]
    if tokens.databases:
        layers += [
            Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(tokens)),
            Middleware(RequireAuthMiddleware, required_scopes=[]),
        ]
    layers.append(
        Middleware(
            FairShare, section=section, sessions=service.calls.sessions, several=tokens.several, stateful=not stateless
        )
    )
    protocol = StreamableHTTPASGIApp(manager)
    ready = _Readiness(service)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    routes = [
        Route("/healthz", alive),
        Route("/readyz", ready.answer),
        *(Route(path, protocol, middleware=layers) for path in (PATH, f"{PATH}/")),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def security(bound: str, section: McpSection) -> TransportSecuritySettings:
    """Return the Host and Origin headers that a server bound to an address answers to."""
    own = () if bound in EVERYWHERE else (bound,)
    names = [_in_header(name) for name in (*LOOPBACK, *own, *section.allowed_hosts)]
    local = [f"{scheme}://{_in_header(name)}" for scheme in ("http", "https") for name in LOOPBACK]
    pages = [origin.lower().rstrip("/") for origin in section.allowed_origins]
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*local, *(f"{origin}:*" for origin in local), *pages],
    )


def _in_header(name: str) -> str:
    """Return a configured name as a Host header has it.

    >>> _in_header("::1"), _in_header("[::1]:80"), _in_header("Shop.Example:443")
    ('[::1]', '[::1]', 'shop.example')
    """
    name = name.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return f"[{name}]" if name.count(":") > 1 else name.partition(":")[0]


async def alive(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "alive"})


class _Readiness:
    """Whether a query could be run now: the server of the first database answers, and nobody stops this one.

    Everybody may ask, so the database is asked once at a time, and once a second at most.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = anyio.Lock()
        self._known = False
        self._until = 0.0

    async def answer(self, _request: Request) -> JSONResponse:
        async with self._lock:
            if anyio.current_time() >= self._until:
                self._known = await self._look()
                self._until = anyio.current_time() + READY_FOR_SECONDS
        ready = self._known and not self._service.calls.stopping
        return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)

    async def _look(self) -> bool:
        with anyio.move_on_after(READY_SECONDS):
            return await anyio.to_thread.run_sync(self._service.databases.is_reachable, abandon_on_cancel=True)
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address; port 0 for any that is free.

    Raises:
        UserError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol has to be named: asyncio sends small pieces at once only on sockets that know theirs.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, UnicodeError) as error:  # a name that no name server could be asked for is a UnicodeError
        listener.close()
        problem = getattr(error, "strerror", None) or error
        raise UserError(f"--http {host}:{port} cannot be listened on: {problem}.") from None
    return listener
