"""How a request is done: in a thread, within its token's limits, on record, and stopped when nobody waits for it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from mcp.server.session import ServerSession

from okf_agent import prompts
from okf_agent.config import McpSection
from okf_agent.mcp_server.calls import STOP_PAUSE, ClientGone, in_thread
from okf_agent.mcp_server.clients import Client
from okf_agent.mcp_server.errors import for_client
from okf_agent.mcp_server.records import Records
from okf_agent.mcp_server.served import Stop
from okf_agent.mcp_server.tokens import Meter, Tokens
from okf_agent.mcp_server.tools import Needs, Progress
from okf_agent.tools import ToolResult
from okf_compiler.errors import UserError

T = TypeVar("T")
READERS = 40
"""Calls that read files at once; queries have the connections' number."""
ASKS = 4
"""Questions of `ask` at once; each keeps a connection."""
TICK_SECONDS = 1.0
"""Seconds between two reports of a long call's progress."""


@dataclass(frozen=True)
class Work:
    """What a request wants done, as the record names it."""

    name: str
    arguments: Mapping[str, Any]
    database: str | None
    run: Callable[[Stop, Progress], ToolResult]
    """Blocks, and is stopped from outside."""
    needs: Needs = "files"


class Worker:
    """Does the work of one server's requests."""

    def __init__(self, section: McpSection, access: Tokens, records: Records, *, with_ask: bool) -> None:
        self.records = records
        self.stopping = False
        self._meters = {name: Meter(section) for name in access.databases}
        self._stops: set[Stop] = set()
        self._numbers = itertools.count(1)
        asks = min(ASKS, section.connections // 2) if with_ask else 0
        self._limits: dict[Needs, anyio.CapacityLimiter] = {
            "files": anyio.CapacityLimiter(READERS),
            "connection": anyio.CapacityLimiter(section.connections - asks),
            "ask": anyio.CapacityLimiter(max(1, asks)),
        }

    async def stop(self) -> None:
        """Begin no more calls and stop those that run; they end with an error that their clients still get.

        Returns when none runs any more, which a model's reply can delay.
        """
        self.stopping = True
        while self._stops:
            for stop in [*self._stops]:
                stop()  # again and again: a query that was about to begin has to hear of it too
            await anyio.sleep(STOP_PAUSE)

    async def look(self, client: Client, work: Callable[[], T]) -> T:
        """What `work` finds in files, off the record and outside the limits.

        Raises:
            ClientGone: the client has left.
            Exception: what `work` raised.
        """
        return await in_thread(work, lambda: None, self._limits["files"], client.gone)

    async def do(self, session: ServerSession, client: Client, work: Work) -> ToolResult:
        """Do what a client wants within its limits, and keep it in the record of its conversation."""
        if self.stopping:
            return ToolResult(prompts.say("mcp_stopping"), failed=True)
        meter = self._meters.get(client.token) or Meter(None)
        if refusal := meter.refusal():
            return ToolResult(refusal, failed=True)
        key = client.conversation or f"call {next(self._numbers)}"
        try:
            conversation = await self.records.begin(key, client.label, work.database)
        except UserError as error:
            return ToolResult(for_client(error), failed=True)
        step = self.records.started(conversation, work.name, work.arguments)
        result: ToolResult | None = None
        try:
            with meter.call() as count:
                result = await self._in_thread(session, client, work)
                count(result.rows or 0 if result else 0)
        finally:
            self.records.finished(conversation, step, work.name, result, cut=result is None or self.stopping)
            if client.conversation is None:
                with anyio.CancelScope(shield=True):
                    await self.records.end(key)
        return result or ToolResult("The client has left.", failed=True)

    async def _in_thread(self, session: ServerSession, client: Client, work: Work) -> ToolResult | None:
        """The result, with reports of its progress while it takes long; None where its client has left."""
        stop = Stop()
        self._stops.add(stop)
        said = [f"{work.name} runs"]
        result = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report, session, said)
                with suppress(ClientGone):
                    limiter = self._limits[work.needs]
                    result = await in_thread(lambda: work.run(stop, said.append), stop, limiter, client.gone)
                tasks.cancel_scope.cancel()
            return result
        finally:
            self._stops.discard(stop)


async def _report(session: ServerSession, said: list[str]) -> None:
    """Report the last of what was said, with the seconds that have passed. Never ends."""
    began = time.monotonic()
    while True:
        await anyio.sleep(TICK_SECONDS)
        await session.report_progress(round(time.monotonic() - began, 3), message=said[-1])
