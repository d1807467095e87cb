"""How a request is done: whose it is, in a thread, within its token's limits, on record, stopped when nobody waits."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from okf_agent import prompts
from okf_agent.mcp_server.databases import ClientError, Databases, Stop, for_client
from okf_agent.mcp_server.limits import GONE, KEPT, Shares
from okf_agent.mcp_server.records import STOP_PAUSE, STOP_SECONDS, Records
from okf_agent.mcp_server.tokens import Meter, Tokens, holder
from okf_agent.prompts import framing
from okf_agent.tools import ToolResult
from okf_compiler.errors import UserError

T = TypeVar("T")
Ctx = ServerRequestContext[Any, Any]
Needs = Literal["files", "connection", "ask"]
"""What a call takes of what all calls share: files of the bundle and what was measured, a connection to PostgreSQL,
or a connection for minutes."""
Progress = Callable[[str], None]
"""Told, in words, what a long call is doing; called from the call's thread."""
READERS = 40
"""Calls that read files at once; queries have the connections' number."""
ASKS = 4
"""Questions of `ask` at once; each keeps a connection."""
TICK_SECONDS = 1.0
"""Seconds between two reports of a long call's progress."""
LABEL_CHARS = 200
OPENED = "okf.opened"
"""Key of a connection's state: it has been initialized, which a client may do again."""


@dataclass(frozen=True)
class Client:
    """Who makes a request."""

    label: str
    """The record's `client`: `mcp`, the client's name and version, and the name of its token."""
    token: str
    databases: tuple[str, ...]
    """Those it may see; the rest does not exist for it."""
    conversation: str | None
    """None where each call stands alone."""
    gone: anyio.Event | None
    """Set when the client has left; over stdio nobody leaves without the server's noticing."""


@dataclass(frozen=True)
class Call:
    """What a request wants done, as the record names it."""

    name: str
    arguments: Mapping[str, Any]
    database: str | None
    needs: Needs = "files"


class Calls:
    """The calls of one server. Used from its event loop."""

    def __init__(
        self, databases: Databases, tokens: Tokens, instructions: Callable[[tuple[str, ...]], str], *, with_ask: bool
    ) -> None:
        """`instructions` gives those for a client that may see some databases."""
        section = databases.config.mcp
        self.tokens = tokens
        self.records = Records(databases.config.runs, databases.config.trace, databases.bundle_hash)
        self.stopping = False
        self.told: dict[str, ServerSession] = {}
        """Sessions of clients that are told of changes, by conversation."""
        self._instructions = instructions
        self.sessions = Shares(section.max_sessions, several=tokens.several)
        self._served = databases.names
        self._meters = {name: Meter(section) for name in tokens.databases}
        self._running: set[Stop] = set()
        self._numbers = itertools.count(1)
        asks = min(ASKS, section.connections // 2) if with_ask else 0
        most: dict[Needs, int] = {"files": READERS, "connection": section.connections - asks, "ask": asks}
        self._shares = {needs: Shares(number, several=tokens.several) for needs, number in most.items()}

    def client(self, ctx: Ctx) -> Client:
        """Return who makes a request."""
        scope: Mapping[str, Any] = ctx.request.scope if ctx.request is not None else {}
        token = holder(scope)
        session = connection_of(ctx).session_id
        databases = self.tokens.databases.get(token, ()) if self.tokens.databases else self._served
        conversation = ctx.lifespan_context or (f"{token} {session}" if session else None)
        return Client(_label(ctx, token), token, databases, conversation, scope.get(GONE))

    async def observe(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Middleware: count what opens a session, and give each client instructions for what it may see."""
        if ctx.method not in ("initialize", "server/discover"):
            return await call_next(ctx)
        client = self.client(ctx)
        if ctx.method == "initialize":
            self._open(ctx, client)
        result = await call_next(ctx)
        if isinstance(result, dict):
            result |= {"instructions": await anyio.to_thread.run_sync(self._instructions, client.databases)}
            if "resources" in result["capabilities"]:
                result["capabilities"]["resources"]["listChanged"] = True
        return result

    def _open(self, ctx: Ctx, client: Client) -> None:
        """Remember a session until it ends.

        Raises:
            MCPError: its token has used up a limit.
        """
        connection, key = connection_of(ctx), client.conversation
        if key and OPENED not in connection.state:
            connection.state[OPENED] = True
            self.told[key] = ctx.session
            connection.exit_stack.callback(self.told.pop, key, None)
            if ctx.request is not None:
                ctx.request.scope[KEPT] = True
                connection.exit_stack.callback(self.sessions.give_back, client.token)
                connection.exit_stack.push_async_callback(self.records.end, key)
        meter = self._meter(client.token)
        if refusal := meter.refusal():
            raise MCPError(types.INVALID_REQUEST, refusal)
        with meter.call():
            pass

    async def look(self, ctx: Ctx, work: Callable[[Client], T]) -> T:
        """Return what `work` finds in files, off the record and outside the limits.

        Raises:
            MCPError: it found nothing, or the client has left.
        """
        client = self.client(ctx)
        found = await self._run(ctx, client, "files", "", lambda _stop, _progress: work(client))
        if found is None:
            raise MCPError(types.INTERNAL_ERROR, "The client has left.")
        if isinstance(found, UserError):
            code = types.INVALID_PARAMS if isinstance(found, ClientError) else types.INTERNAL_ERROR
            raise MCPError(code, framing.inside(for_client(found)))
        if isinstance(found, Exception):
            raise found
        return found

    async def do(self, ctx: Ctx, call: Call, work: Callable[[Stop, Progress], ToolResult]) -> ToolResult:
        """Do what a client wants within its limits, and keep it in the record of its conversation.

        `work` blocks, and is stopped from outside.
        """
        client = self.client(ctx)
        meter = self._meter(client.token)
        if refusal := prompts.say("mcp_stopping") if self.stopping else meter.refusal():
            return ToolResult(refusal, failed=True)
        key = client.conversation or f"call {next(self._numbers)}"
        try:
            conversation = await self.records.begin(key, client.label, call.database)
        except UserError as error:
            return ToolResult(for_client(error), failed=True)
        step = self.records.started(conversation, call.name, call.arguments)
        result: ToolResult | None = None
        try:
            with meter.call() as count:
                found = await self._run(ctx, client, call.needs, call.name, work)
                if isinstance(found, Exception):
                    raise found
                result = found
                count(result.rows or 0 if result else 0)
        finally:
            self.records.finished(conversation, step, call.name, result, cut=result is None or self.stopping)
            if client.conversation is None:
                await self.records.end(key)
        return result or ToolResult("The client has left.", failed=True)

    async def stop(self) -> None:
        """Begin no more calls and stop those that run; they end with an error that their clients still get.

        Returns when none runs any more, which a model's reply can delay.
        """
        self.stopping = True
        while self._running:
            for stop in [*self._running]:
                stop()  # again and again: a query that was about to begin has to hear of it too
            await anyio.sleep(STOP_PAUSE)

    def _meter(self, token: str) -> Meter:
        return self._meters.get(token) or Meter(None)

    async def _run(
        self, ctx: Ctx, client: Client, needs: Needs, name: str, work: Callable[[Stop, Progress], T]
    ) -> T | Exception | None:
        """Return what `work` gives or raises, with reports of its progress; None where its client has left."""
        stop = Stop()
        self._running.add(stop)
        said = [f"{name} runs"]
        result: T | Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report, ctx, said)
                if client.gone is not None:
                    tasks.start_soon(_cancel_when_gone, client.gone, tasks)
                async with self._shares[needs].turn(client.token):
                    result = await _in_thread(lambda: work(stop, said.append), stop)
                tasks.cancel_scope.cancel()
        finally:
            self._running.discard(stop)
        return result


def has_handshake(ctx: Ctx) -> bool:
    """Return whether the request is of the protocol before 2026-07-28, which knows sessions."""
    return ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS


def connection_of(ctx: Ctx) -> Any:
    """Return the SDK's connection, whose `exit_stack` is unwound when a session ends; the context has no other way."""
    return ctx.session._connection


def _label(ctx: Ctx, token: str) -> str:
    info = ctx.session.client_params.client_info if ctx.session.client_params else None
    if info:
        name = f"{info.name} {info.version}"
    else:
        name = ctx.request.headers.get("user-agent", "") if ctx.request is not None else ""
    # A comma sets the token off, so a client's own name has none.
    label = " ".join(f"mcp {name}".replace(",", " ").split())[:LABEL_CHARS]
    return f"{label}, token {token}" if token else label


async def _in_thread(work: Callable[[], T], stop: Callable[[], None]) -> T | Exception:
    """Return what `work()` gives or raises, from a thread of its own; when cancelled, `stop` it until it has ended."""
    ended = threading.Event()

    def run() -> T | Exception:
        try:
            return work()
        except Exception as error:
            return error
        finally:
            ended.set()

    try:
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(STOP_SECONDS, shield=True):
            while not ended.is_set():
                stop()  # again and again: a query that was about to begin has to hear of it too
                await anyio.sleep(STOP_PAUSE)
        raise


async def _cancel_when_gone(gone: anyio.Event, tasks: TaskGroup) -> None:
    await gone.wait()
    tasks.cancel_scope.cancel()


async def _report(ctx: Ctx, said: list[str]) -> None:
    """Report the last of what was said, with the seconds that have passed. Never ends."""
    began = time.monotonic()
    while True:
        await anyio.sleep(TICK_SECONDS)
        await ctx.session.report_progress(round(time.monotonic() - began, 3), message=said[-1])
