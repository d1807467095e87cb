"""The server: what the SDK calls, and how long a conversation lasts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from okf_agent import DISTRIBUTION
from okf_agent.mcp_server.clients import Ctx
from okf_agent.mcp_server.service import Service
from okf_agent.records.trace import versions

NAME = "okf-agent"


class _Server(Server[str]):
    """The SDK's server, which also says that its resources may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def build(service: Service, *, http: bool = False, stateful: bool = True) -> Server[str]:
    """The SDK's server for a service. Without `http`, one run of it is one conversation.

    Its lifespan gives the key of that conversation, "" for HTTP, where each session is one (`stateful`) or none.
    """

    @asynccontextmanager
    async def lifespan(_server: Server[str]) -> AsyncIterator[str]:
        key = "" if http else f"stream {time.monotonic_ns()}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.changes.watch)
            try:
                yield key
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await (service.records.end_all() if http else service.end_conversation(key))

    server = _Server(
        NAME,
        version=versions().get(DISTRIBUTION, ""),
        title="OKF: databases with their business rules",
        lifespan=lifespan,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
        on_list_resources=service.list_resources,
        on_list_resource_templates=service.list_templates,
        on_read_resource=service.read_resource,
        on_list_prompts=service.list_prompts,
        on_get_prompt=service.get_prompt,
        on_completion=service.complete,
        on_subscriptions_listen=service.changes.listen,
    )
    server.middleware.append(service.observe)
    service.clients.keeps_sessions = http and stateful
    if service.clients.keeps_sessions:
        server.add_request_handler("server/discover", types.RequestParams, _discover_sessions)
    return server


async def _discover_sessions(ctx: Ctx, _params: types.RequestParams | None) -> types.DiscoverResult:
    """Says that this server keeps sessions: a client that knows both ways then opens one, and has one record."""
    del ctx
    return types.DiscoverResult(
        supported_versions=[*HANDSHAKE_PROTOCOL_VERSIONS], capabilities=types.ServerCapabilities()
    )
