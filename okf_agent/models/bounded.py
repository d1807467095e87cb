"""Work that may never end, held to a wall clock.

The time limit of an HTTP client is one of silence: a server that sends a byte a second never breaks it.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
GLANCE = 0.2
"""Seconds between two looks at the clock."""


class Timeout(Exception):
    """The time is over. The work goes on in its thread until it hands on its next part."""


class Cancelled(Exception):
    """Somebody stopped the work from outside."""


class _LeftAlone(Exception):
    """Nobody waits for the work any more."""


def bounded(
    work: Callable[[Callable[[str], None]], Result],
    seconds: float,
    end: float,
    on_part: Callable[[str], None],
    cancelled: threading.Event | None = None,
) -> Result:
    """What `work(hand_on)` gives or raises, from a thread of its own.

    Each text that it hands on reaches `on_part` in the caller's thread, and starts the `seconds` again; `end` is a
    time of time.monotonic that nothing moves.

    Raises:
        Timeout: `seconds` without a part, or `end`, have passed.
        Cancelled: `cancelled` was set.
    """
    if cancelled is not None and cancelled.is_set():
        raise Cancelled
    said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    left = threading.Event()

    def hand_on(part: str) -> None:
        if left.is_set():
            raise _LeftAlone
        said.put(("part", part))

    def run() -> None:
        try:
            said.put(("result", work(hand_on)))
        except BaseException as error:
            said.put(("error", error))

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="bounded", daemon=True).start()
    try:
        result: Result = _wait(said, seconds, end, on_part, cancelled)
        return result
    finally:
        left.set()


def _wait(
    said: queue.SimpleQueue[tuple[str, Any]],
    seconds: float,
    end: float,
    on_part: Callable[[str], None],
    cancelled: threading.Event | None,
) -> Any:
    limit = time.monotonic() + seconds
    while True:
        if cancelled is not None and cancelled.is_set():
            raise Cancelled
        pause = min(limit, end) - time.monotonic()
        if pause <= 0:
            raise Timeout(f"no whole reply in {seconds:.0f} seconds")
        try:
            kind, value = said.get(timeout=min(pause, GLANCE))
        except queue.Empty:
            continue
        if kind == "result":
            return value
        if kind == "error":
            raise value
        limit = time.monotonic() + seconds
        on_part(value)
