"""Each request of the protocol: from whom it comes, what is done, and what is recorded of it."""

from __future__ import annotations

import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from okf_agent import prompts
from okf_agent.cell import Cell
from okf_agent.mcp_server import completions, resources, tools
from okf_agent.mcp_server import prompts as mcp_prompts
from okf_agent.mcp_server.calls import STOP_PAUSE, ClientGone, Gone, in_thread
from okf_agent.mcp_server.records import Records
from okf_agent.mcp_server.served import Served, Stop
from okf_agent.mcp_server.tokens import Meter, Tokens
from okf_agent.models.arguments import printable
from okf_agent.prompts import framing
from okf_agent.tools import ToolResult
from okf_compiler.errors import UserError
from okf_compiler.tokens import tokens

logger = logging.getLogger(__name__)
Ctx = ServerRequestContext[Any, Any]
T = TypeVar("T")
NOT_FOUND = -32002
"""The protocol's code for a resource that is not there, before 2026-07-28."""
READERS = 40
"""Calls that read files at once; queries have the connections' number."""
ASKS = 4
"""Questions of `ask` at once; each keeps a connection."""
LOOK_SECONDS = 2.0
"""Seconds between two looks at the bundles on disk and at conversations that are silent."""
TICK_SECONDS = 1.0
"""Seconds between two reports of a long call's progress."""
CLIENT_CHARS = 200
TOKEN, GONE, SESSION = "okf.token", "okf.gone", "mcp-session-id"
"""Where the HTTP door keeps, in a request's scope, whose it is and whether its client is still there."""


@dataclass(frozen=True)
class Client:
    """Who makes a request."""

    label: str
    """The record's `client`: `mcp`, the client's name and version, and the name of its token."""
    token: str
    databases: tuple[str, ...]
    conversation: str | None
    """None where each call stands alone."""
    gone: Gone | None


@dataclass(frozen=True)
class Work:
    """What a request wants done, as the record names it; `run` blocks and is stopped from outside."""

    name: str
    arguments: Mapping[str, Any]
    database: str | None
    run: Callable[[Stop, Callable[[str], None]], ToolResult]


class Service:
    """The handlers, and what they share. `server.build` gives the SDK's server for it."""

    def __init__(self, served: Served, cell: Cell | None = None, access: Tokens | None = None) -> None:
        """`cell` is how `ask` asks; without one the tool is not offered."""
        self.served = served
        self.config = served.config
        self.cell = cell
        self.access = access or Tokens()
        self.records = Records(self.config.runs, self.config.trace, served.bundle_hash)
        self.tools = tools.offered(served, cell is not None)
        self.meters = {name: Meter(self.config.mcp) for name in self.access.databases}
        self.stops: set[Stop] = set()
        self.stopping = False
        self.keeps_sessions = False
        """Whether HTTP sessions are conversations."""
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._numbers = itertools.count(1)
        most = self.config.mcp.connections
        asks = min(ASKS, most // 2) if cell else 0
        self._limits = {
            "read": anyio.CapacityLimiter(READERS),
            "query": anyio.CapacityLimiter(most - asks),
            "ask": anyio.CapacityLimiter(max(1, asks)),
        }

    async def stop_calls(self) -> None:
        """Begin no more calls and stop those that run; they end with an error that their clients still get.

        Returns when none runs any more, which a model's reply can delay.
        """
        self.stopping = True
        self.listen.close()
        while self.stops:
            for stop in [*self.stops]:
                stop()  # again and again: a query that was about to begin has to hear of it too
            await anyio.sleep(STOP_PAUSE)

    def close(self) -> None:
        """Write what is left to write, and close the connections."""
        self.records.close()
        self.served.close()

    # Who asks.

    def client(self, ctx: Ctx) -> Client:
        """The client of a request."""
        request = ctx.request
        scope: Mapping[str, Any] = request.scope if request is not None else {}
        token = scope.get(TOKEN, "")
        info = ctx.session.client_params.client_info if ctx.session.client_params else None
        name = request.headers.get("user-agent", "") if request is not None else ""
        if info:
            name = f"{info.name} {info.version}"
        label = " ".join(f"mcp {name}".split())[:CLIENT_CHARS] + (f", token {token}" if token else "")
        session = request.headers.get(SESSION) if request is not None and self.keeps_sessions else None
        # An id alone would let the holder of another token write into this record.
        own = f"{token} {session}" if session and ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else None
        databases = self.access.databases.get(token, self.served.names)
        return Client(label, token, databases, ctx.lifespan_context or own, scope.get(GONE))

    def instructions(self, databases: tuple[str, ...]) -> str:
        """What a client's model is told first, with the root indexes that fit."""
        left = self.config.mcp.instructions_tokens
        indexes = []
        for name in databases:
            text = self.served.index(name)
            index = prompts.load("mcp/index.md", database=name, index=framing.beneath(text))
            left -= tokens(index)
            if text and left >= 0:
                indexes.append(index)
        missing = "" if len(indexes) == len(databases) else "\nRead /index.md of a database with read_file first."
        return prompts.load("mcp/instructions.md", databases=", ".join(databases), indexes="".join(indexes) + missing)

    # What is asked.

    async def list_tools(self, ctx: Ctx, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools.listing(self.tools, self.client(ctx).databases))

    async def call_tool(self, ctx: Ctx, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = self.client(ctx)
        call = tools.Call(params.name, params.arguments or {}, client.databases, client.label, self.cell)

        def run(stop: Stop, progress: Callable[[str], None]) -> ToolResult:
            return tools.run_call(call, self.tools, self.served, stop, progress)

        result = await self._recorded(ctx, client, Work(call.name, call.arguments, tools.database_of(call), run))
        text = printable(framing.unmarked(result.text))
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=dict(result.data) or {"text": text},
            is_error=result.failed,
        )

    async def list_resources(self, ctx: Ctx, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await self._read(ctx, lambda names: resources.listing(self.served, names, cursor))

    async def list_templates(
        self, _ctx: Ctx, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return resources.templates()

    async def read_resource(self, ctx: Ctx, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        client = self.client(ctx)
        address = str(params.uri)
        try:
            database, _ = resources.parse(address, client.databases)
        except UserError as error:
            raise self._not_found(ctx, error) from None

        def read(_stop: Stop, _progress: Callable[[str], None]) -> ToolResult:
            try:
                found = resources.read(self.served, client.databases, address)
            except UserError as error:
                return ToolResult(str(error), failed=True, failed_reads=1)
            return ToolResult(found.text, files=(found.path,))

        result = await self._recorded(ctx, client, Work("read_resource", {"uri": address}, database, read))
        if result.failed:
            raise self._not_found(ctx, UserError(result.text))
        content = types.TextResourceContents(uri=address, mime_type=resources.MARKDOWN, text=result.text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, _ctx: Ctx, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return mcp_prompts.listing()

    async def get_prompt(self, ctx: Ctx, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        arguments = params.arguments or {}
        return await self._read(ctx, lambda names: mcp_prompts.get(self.served, names, params.name, arguments))

    async def complete(self, ctx: Ctx, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._read(ctx, lambda names: completions.complete(self.served, names, params))

    # How it is done.

    async def _read(self, ctx: Ctx, work: Callable[[tuple[str, ...]], T]) -> T:
        """What `work` finds in the bundles that the client may see; a protocol error where it finds nothing."""
        client = self.client(ctx)
        try:
            return await in_thread(lambda: work(client.databases), lambda: None, self._limits["read"], client.gone)
        except UserError as error:
            raise MCPError(types.INVALID_PARAMS, framing.inside(str(error))) from None
        except ClientGone:
            raise MCPError(types.INTERNAL_ERROR, "The client has left.") from None

    async def _recorded(self, ctx: Ctx, client: Client, work: Work) -> ToolResult:
        """Do a call in a thread, within the token's limits, and keep it in the record of its conversation."""
        if self.stopping:
            return ToolResult(prompts.say("mcp_stopping"), failed=True)
        meter = self.meters.get(client.token)
        if meter and (refusal := meter.refusal()):
            return ToolResult(refusal, failed=True)
        key = client.conversation or f"call {next(self._numbers)}"
        try:
            conversation = await self.records.begin(key, client.label, work.database)
        except UserError as error:
            return ToolResult(str(error), failed=True)
        step = self.records.started(conversation, work.name, work.arguments)
        result: ToolResult | None = None
        try:
            with meter.call() if meter else nullcontext(lambda _rows: None) as count:
                result = await self._in_thread(ctx, client, work)
                count(result.rows or 0 if result else 0)
        finally:
            self.records.finished(conversation, step, work.name, result, cut=result is None or self.stopping)
            if client.conversation is None:
                with anyio.CancelScope(shield=True):
                    await self.records.end(key)
        return result or ToolResult("The client has left.", failed=True)

    async def _in_thread(self, ctx: Ctx, client: Client, work: Work) -> ToolResult | None:
        """The call, with reports of its progress while it takes long; None where its client has left."""
        limiter = self._limits[tools.kind(work.name)]
        stop = Stop()
        self.stops.add(stop)
        said = [f"{work.name} runs"]
        result = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report, ctx.session, said)
                with suppress(ClientGone):
                    result = await in_thread(lambda: work.run(stop, said.append), stop, limiter, client.gone)
                tasks.cancel_scope.cancel()
            return result
        finally:
            self.stops.discard(stop)

    def _not_found(self, ctx: Ctx, error: UserError) -> MCPError:
        handshake = ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        return MCPError(NOT_FOUND if handshake else types.INVALID_PARAMS, framing.inside(str(error)))

    # What happens beside the requests.

    async def watch(self) -> None:
        """Tell clients when a bundle has changed on disk, and end the records of silent conversations. Never ends."""
        before = await anyio.to_thread.run_sync(self._stamps)
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.records.end_idle(self.config.mcp.session_idle_s)
            now = await anyio.to_thread.run_sync(self._stamps)
            if now != before:
                before = now
                await self._bus.publish(ResourcesListChanged())
                for session in [*self._sessions.values()]:
                    await session.send_resource_list_changed()

    def _stamps(self) -> list[int]:
        return [self.served.stamp(name) for name in self.served.names]

    async def observe(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Middleware: instructions for what this client may see, and whom to tell of changes."""
        result = await call_next(ctx)
        client = self.client(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            text = await anyio.to_thread.run_sync(self.instructions, client.databases)
            return {**result, "instructions": text}
        if client.conversation is not None and ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            self._sessions[client.conversation] = ctx.session
            self._sessions.move_to_end(client.conversation)
            if len(self._sessions) > self.config.mcp.max_sessions:
                self._sessions.popitem(last=False)
        return result

    async def end_conversation(self, key: str) -> None:
        """A session is over: forget it, and write its record."""
        self._sessions.pop(key, None)
        await self.records.end(key)


async def _report(session: ServerSession, said: list[str]) -> None:
    """Report the last of what was said, with the seconds that have passed. Never ends."""
    began = time.monotonic()
    while True:
        await anyio.sleep(TICK_SECONDS)
        await session.report_progress(round(time.monotonic() - began, 3), message=said[-1])
