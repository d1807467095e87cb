"""The server: what the SDK calls for each request, and what happens beside the requests."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from okf_agent import DISTRIBUTION, prompts
from okf_agent.cell import Cell
from okf_agent.mcp_server.calls import Calls, Ctx
from okf_agent.mcp_server.databases import Databases
from okf_agent.mcp_server.prompts import Prompts
from okf_agent.mcp_server.resources import Resources
from okf_agent.mcp_server.tokens import Tokens
from okf_agent.mcp_server.tools import Tools
from okf_agent.prompts import framing
from okf_agent.records.trace import versions
from okf_compiler.tokens import tokens as count

NAME = "okf-agent"
LOOK_SECONDS = 2.0
"""Seconds between two looks at the bundles on disk and at conversations that are silent."""


class Service:
    """What one server is made of. `build` gives the SDK's server for it."""

    def __init__(self, databases: Databases, cell: Cell | None = None, tokens: Tokens | None = None) -> None:
        """`cell` is how `ask` asks; without one the tool is not offered."""
        self.databases = databases
        self.config = databases.config
        self.calls = Calls(databases, tokens or Tokens(), self.instructions, with_ask=cell is not None)
        self.tools = Tools(databases, self.calls, cell)
        self.resources = Resources(databases, self.calls)
        self.prompts = Prompts(databases, self.calls)
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)

    def build(self, *, http: bool = False, stateful: bool = True) -> Server[str]:
        """Return the SDK's server.

        Without `http`, one run of it is one conversation, and its lifespan gives the key; over HTTP each session is
        one (`stateful`), or none.
        """

        @asynccontextmanager
        async def lifespan(_server: Server[str]) -> AsyncIterator[str]:
            key = "" if http else f"stream {time.monotonic_ns()}"
            records = self.calls.records
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch)
                try:
                    yield key
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await (records.end_all() if http else records.end(key))

        server = Server(
            NAME,
            version=versions().get(DISTRIBUTION, ""),
            title="OKF: databases with their business rules",
            lifespan=lifespan,
            on_list_tools=self.tools.list,
            on_call_tool=self.tools.call,
            on_list_resources=self.resources.list,
            on_list_resource_templates=self.resources.templates,
            on_read_resource=self.resources.read,
            on_list_prompts=self.prompts.list,
            on_get_prompt=self.prompts.get,
            on_completion=self.prompts.complete,
            on_subscriptions_listen=self._listen,
        )
        server.middleware.append(self.calls.observe)
        if http and stateful:
            server.add_request_handler("server/discover", types.RequestParams, _discover_sessions)
        return server

    def instructions(self, databases: tuple[str, ...]) -> str:
        """Return what a client's model is told first, with the root indexes that fit."""
        left = self.config.mcp.instructions_tokens
        indexes = []
        for name in databases:
            text = self.databases.index(name)
            index = prompts.load("mcp/index.md", database=name, index=framing.beneath(text))
            left -= count(index)
            if text and left >= 0:
                indexes.append(index)
        missing = "" if len(indexes) == len(databases) else "\nRead /index.md of a database with read_file first."
        return prompts.load("mcp/instructions.md", databases=", ".join(databases), indexes="".join(indexes) + missing)

    async def stop(self) -> None:
        """Begin no more calls and stop those that run, and the streams of clients that wait to be told of changes."""
        self._listen.close()
        await self.calls.stop()

    def close(self) -> None:
        """Write what is left to write, and close the connections."""
        self.calls.records.close()
        self.databases.close()

    async def _watch(self) -> None:
        """Tell clients when a bundle has changed, and end the records of silent conversations. Never ends."""
        before = await anyio.to_thread.run_sync(self._stamps)
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.calls.records.end_idle(self.config.mcp.session_idle_s)
            now = await anyio.to_thread.run_sync(self._stamps)
            if now != before:
                before = now
                await self._bus.publish(ResourcesListChanged())
                for session in [*self.calls.told.values()]:
                    await session.send_resource_list_changed()

    def _stamps(self) -> list[int]:
        return [self.databases.stamp(name) for name in self.databases.names]


async def _discover_sessions(ctx: Ctx, _params: types.RequestParams | None) -> types.DiscoverResult:
    """Say that this server keeps sessions: a client that knows both ways then opens one, and has one record."""
    del ctx
    return types.DiscoverResult(
        supported_versions=[*HANDSHAKE_PROTOCOL_VERSIONS], capabilities=types.ServerCapabilities()
    )
