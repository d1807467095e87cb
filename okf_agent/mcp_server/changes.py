"""What happens beside the requests: bundles change on disk and clients are told, silent conversations end."""

from __future__ import annotations

from collections import OrderedDict

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged

from okf_agent.config import McpSection
from okf_agent.mcp_server.records import Records
from okf_agent.mcp_server.served import Served

LOOK_SECONDS = 2.0
"""Seconds between two looks at the bundles on disk and at conversations that are silent."""


class Changes:
    """Watches for one server. `listen` answers clients of 2026-07-28 that ask to be told."""

    def __init__(self, served: Served, records: Records, section: McpSection) -> None:
        self._served = served
        self._records = records
        self._section = section
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        """Of clients that are told in their conversation: by its key, the one heard of longest ago first."""

    def tell(self, conversation: str, session: ServerSession) -> None:
        """Tell this client too, from now on."""
        self._sessions[conversation] = session
        self._sessions.move_to_end(conversation)
        if len(self._sessions) > self._section.max_sessions:
            self._sessions.popitem(last=False)

    def forget(self, conversation: str) -> None:
        self._sessions.pop(conversation, None)

    async def watch(self) -> None:
        """Tell clients when a bundle has changed, and end the records of silent conversations. Never ends."""
        before = await anyio.to_thread.run_sync(self._stamps)
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self._records.end_idle(self._section.session_idle_s)
            now = await anyio.to_thread.run_sync(self._stamps)
            if now != before:
                before = now
                await self._bus.publish(ResourcesListChanged())
                for session in [*self._sessions.values()]:
                    await session.send_resource_list_changed()

    def _stamps(self) -> list[int]:
        return [self._served.stamp(name) for name in self._served.names]
