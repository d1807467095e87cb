"""The door for one client that starts the server itself: standard input and output. Nothing else is written there."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterable

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from okf_agent.mcp_server.records import STOP_SECONDS
from okf_agent.mcp_server.server import Service

logger = logging.getLogger(__name__)
TAKE_SECONDS = 10.0
"""For a client that has closed its side to take the answers that wait for it; who takes none is left."""


def serve(service: Service) -> None:
    """Serve until the client closes a stream, or SIGTERM or Ctrl-C.

    While it runs, the SDK keeps descriptor 1 for itself and points it at standard error for everybody else.
    """
    try:
        anyio.run(_serve, service)
    except* BrokenPipeError:  # to leave is no error of a client's
        logger.warning("the client does not listen any more")


async def _serve(service: Service) -> None:
    server = service.build()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, service)
        async with stdio_server() as (arriving, write):
            onward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            tasks.start_soon(_hand_on, arriving, onward, service)
            try:
                await server.run(read, write, server.create_initialization_options())
            except BaseException:
                tasks.cancel_scope.cancel()
                raise
        tasks.cancel_scope.cancel()


async def _hand_on(
    arriving: AsyncIterable[SessionMessage | Exception],
    onward: MemoryObjectSendStream[SessionMessage | Exception],
    service: Service,
) -> None:
    """Hand on what arrives; after the last of it, leave a client that takes none of its answers."""
    async with onward:
        with contextlib.suppress(anyio.BrokenResourceError):  # the server has ended first
            async for message in arriving:
                await onward.send(message)
    await anyio.sleep(TAKE_SECONDS)
    await _leave(service, "left a client that takes no answers", 1)


async def _end_on_signal(service: Service) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            await _leave(service, f"stopped by signal {number}", 128 + number)


async def _leave(service: Service, why: str, status: int) -> None:
    """Stop what runs, write the record, and end the process."""
    with anyio.move_on_after(STOP_SECONDS):
        await service.stop()
    await service.calls.records.end_all()
    service.close()
    logger.warning(why)
    # A thread waits for a line of standard input, or for room in standard output; only the client can wake it.
    os._exit(status)
