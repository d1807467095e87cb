"""The connections of one database that its queries take turns with, each query in a transaction of its own.

The transaction is fresh, READ ONLY and always rolled back; the session is emptied before it is used again, and thrown
away where that cannot be known.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
from psycopg import pq

from okf_agent.sql.query_error import QueryError
from okf_agent.sql.session import Session, Stopped, Watch, open_session
from okf_compiler import postgres
from okf_compiler.errors import UserError

SESSION_SECONDS = 300.0
"""How long a session is used: what it knows of functions and schemas is from its beginning."""
RECONNECT_SECONDS = 5.0
"""How long a server that is starting, or just restarting, is waited for."""


class Sessions:
    """The sessions of one database. Safe to use from several threads."""

    def __init__(
        self,
        params: Mapping[str, Any],
        dbname: str,
        usual_s: float,
        *,
        revive: Callable[[], None] | None = None,
        steady: bool = False,
    ) -> None:
        """`params` are psycopg's connect parameters without `dbname`; `usual_s` is what a query may take as a rule.

        `revive` and `steady`: see `Database`. Nothing is connected yet.
        """
        self._steady = steady
        self._revive = revive
        self._params = params
        self._dbname = dbname
        self._usual_s = usual_s
        self._idle: list[Session] = []
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()
        self._reached = False

    def cancel(self) -> None:
        """Stop every query that runs, from another thread; they raise Stopped."""
        with self._lock:
            for watch in self._watches:
                watch.cancelled.set()

    def close(self) -> None:
        """Close the connections that nobody uses; the next query connects again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    @contextlib.contextmanager
    def transaction(self, seconds: float, max_bytes: int | None) -> Iterator[Session]:
        """A session in a fresh read-only transaction, rolled back and emptied at the end, or thrown away."""
        watch = Watch(seconds, max_bytes)
        with self._lock:
            self._watches.add(watch)
        try:
            session = self._begin(watch, seconds)
            try:
                yield session
                self._end(session)
            except (psycopg.Error, QueryError):
                self._end(session)
                raise
            except BaseException:
                session.give_up()
                raise
        finally:
            with self._lock:
                self._watches.discard(watch)

    def _begin(self, watch: Watch, seconds: float) -> Session:
        """A session whose transaction has begun; a connection lost since the last query is replaced."""
        while True:
            with self._lock:
                session = self._idle.pop() if self._idle else None
            if session and time.monotonic() - session.opened > SESSION_SECONDS:
                session.close()
                session = None
            fresh = session is None
            session = session or self._connect(watch)
            session.watch = watch
            try:
                session.execute(self._opening(session, seconds))
                return session
            except psycopg.OperationalError:
                session.give_up()
                if fresh:
                    raise
            except BaseException:
                session.give_up()
                raise

    def _opening(self, session: Session, seconds: float) -> str:
        """The statements that begin a transaction which may take so many seconds."""
        begin = "BEGIN READ ONLY; SET LOCAL standard_conforming_strings = on"
        timeout = round(seconds * 1000) + 1000  # ours comes first, and says so; this one outlives us
        # The server's may be shorter, never longer; the one that the role has for queries is not for exports.
        lifted = seconds > self._usual_s and session.server_timeout_ms == round(self._usual_s * 1000)
        if lifted or not 0 < session.server_timeout_ms <= timeout:
            begin += f"; SET LOCAL statement_timeout = {timeout}"
        if self._steady:
            begin += "; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL synchronize_seqscans = off"
        if session.search_path:
            begin += f"; SET LOCAL search_path = {session.search_path}"
        return begin

    def _connect(self, watch: Watch) -> Session:
        """A new session. One of ours that does not run is started again; one that answered before, or is starting, is
        waited for a little.
        """
        deadline = min(time.monotonic() + RECONNECT_SECONDS, watch.deadline)
        revived = False
        while True:
            try:
                session = open_session(self._params, self._dbname, watch)
                self._reached = True
                return session
            except psycopg.OperationalError as error:
                if self._revive is not None and not revived and postgres.is_gone(error):
                    revived = True
                    try:
                        self._revive()
                    except UserError:
                        raise error from None
                    continue
                passing = self._reached or postgres.is_starting(error)
                if not passing or time.monotonic() > deadline or watch.cancelled.wait(0.2):
                    raise

    def _end(self, session: Session) -> None:
        """Roll back and empty the session for the next query; whatever is not plainly so is closed."""
        status = session.pgconn.transaction_status
        if not session.spent and status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
            with contextlib.suppress(psycopg.Error, Stopped):
                session.execute("ROLLBACK")
                session.execute("DISCARD ALL")
                session.watch = None
                with self._lock:
                    self._idle.append(session)
                return
        session.give_up()
