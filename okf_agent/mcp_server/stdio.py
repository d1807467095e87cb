"""The door for one client that starts the server itself: standard input and output. Nothing else is written there."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator

import anyio
from mcp.server.stdio import stdio_server

from okf_agent.mcp_server.calls import STOP_SECONDS
from okf_agent.mcp_server.server import build
from okf_agent.mcp_server.service import Service

logger = logging.getLogger(__name__)


def serve(service: Service) -> None:
    """Serve until the client closes the stream, or SIGTERM or Ctrl-C.

    While it runs, the SDK keeps descriptor 1 for itself and points it at standard error for everybody else.
    """
    anyio.run(_serve, service)


async def _serve(service: Service) -> None:
    server = build(service)
    async with anyio.create_task_group() as tasks, stdio_server() as (read, write):
        tasks.start_soon(_end_on_signal, service)
        await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _end_on_signal(service: Service) -> None:
    """Stop what runs, write the record, and leave."""
    if sys.platform == "win32":  # signals end a process there at once; the next start closes its record
        return
    async with _signals() as signals:
        async for number in signals:
            with anyio.move_on_after(STOP_SECONDS):
                await service.stop_calls()
            await service.records.end_all()
            service.close()
            logger.warning("stopped by signal %d", number)
            # A thread waits for a line of standard input, and nothing but the client can wake it.
            os._exit(128 + number)


@contextlib.asynccontextmanager
async def _signals() -> AsyncIterator[AsyncIterator[signal.Signals]]:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        yield signals
