"""Blocking work in threads, for a server that serves many clients: stopped when its client does not wait any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio

T = TypeVar("T")
STOP_SECONDS = 5.0
"""How long the end of stopped work is waited for; what goes on after that (a model's reply) ends on its own."""
STOP_PAUSE = 0.05


class ClientGone(Exception):
    """Nobody waits for the result any more."""


class Gone:
    """Whether the client of one request has left; over stdio nobody leaves without the server's noticing."""

    def __init__(self) -> None:
        self._left = anyio.Event()

    def leave(self) -> None:
        self._left.set()

    async def wait(self) -> None:
        await self._left.wait()


async def in_thread(
    work: Callable[[], T], stop: Callable[[], None], limiter: anyio.CapacityLimiter, gone: Gone | None = None
) -> T:
    """What `work()` gives, from a worker thread.

    When the request is cancelled, or its client is gone, `stop` is called until the work has ended.

    Raises:
        ClientGone: the client has left.
        Exception: what `work` raised.
    """
    outcome: list[T | Exception] = []
    async with limiter, anyio.create_task_group() as tasks:
        if gone is not None:
            tasks.start_soon(_cancel_when_gone, gone, tasks.cancel_scope)
        outcome.append(await _run(work, stop))
        tasks.cancel_scope.cancel()
    if not outcome:
        raise ClientGone
    if isinstance(outcome[0], Exception):  # raised here, since a task group would wrap it
        raise outcome[0]
    return outcome[0]


async def _run(work: Callable[[], T], stop: Callable[[], None]) -> T | Exception:
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


async def _cancel_when_gone(gone: Gone, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()
