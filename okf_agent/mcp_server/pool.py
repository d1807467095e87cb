"""Connections to PostgreSQL that all clients share: never more at once than the role may have."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError

BUSY = "53300"
"""PostgreSQL's own code for too many connections: the same query may work in a moment."""
GLANCE = 0.1
"""Seconds between two looks at whether the one who waits has given up."""


class Pool:
    """Lends `Database` objects, each to one call at a time, so that a call can be cancelled without the others.

    One that is lent out runs one query after the other and so holds one connection: at most `most` of them exist.
    Safe to use from several threads.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._made = 0
        self._idle: OrderedDict[str, list[Database]] = OrderedDict()
        """By database, the one used longest ago first."""
        self._changed = threading.Condition()

    @contextmanager
    def lend(
        self, name: str, make: Callable[[], Database], gave_up: Callable[[], bool], seconds: float
    ) -> Iterator[Database]:
        """A `Database` of the database `name`; `make` makes a further one.

        Raises:
            QueryError: none was free within `seconds`, or `gave_up()` came true first.
        """
        found, instead = self._take(name, gave_up, time.monotonic() + seconds)
        try:
            if instead is not None:
                instead.close()
            database = found or make()
        except BaseException:
            self._forget()
            raise
        try:
            yield database
        finally:
            with self._changed:
                self._idle.setdefault(name, []).append(database)
                self._idle.move_to_end(name)
                self._changed.notify()

    def close(self) -> None:
        """Close every connection that nobody uses."""
        with self._changed:
            idle = [database for databases in self._idle.values() for database in databases]
            self._idle.clear()
            self._made -= len(idle)
        for database in idle:
            database.close()

    def _take(self, name: str, gave_up: Callable[[], bool], end: float) -> tuple[Database | None, Database | None]:
        """One that is idle, or the right to make one: in the place of another database's where there are enough."""
        with self._changed:
            while True:
                if own := self._idle.get(name):
                    return own.pop(), None
                if self._made < self.most:
                    self._made += 1
                    return None, None
                if other := next((idle for idle in self._idle.values() if idle), None):
                    return None, other.pop()
                if gave_up():
                    raise QueryError("The query was cancelled before it began.")
                if time.monotonic() > end:
                    raise QueryError(f"All {self.most} connections are busy. Try again in a moment.", sqlstate=BUSY)
                self._changed.wait(GLANCE)

    def _forget(self) -> None:
        with self._changed:
            self._made -= 1
            self._changed.notify()
