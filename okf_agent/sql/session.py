"""A connection to PostgreSQL that is watched while it waits: a deadline, bytes received, a stop from outside."""

from __future__ import annotations

import array
import contextlib
import fcntl
import selectors
import termios
import threading
import time
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import generators, pq, sql
from psycopg.abc import RV, PQGen
from psycopg.waiting import Ready, Wait

from okf_compiler import postgres
from okf_compiler.catalogue_queries import LIMITED

TICK_S = 0.1
CANCEL_TIMEOUT_S = 2.0


class Stopped(Exception):
    """Waiting was given up before the server was done. `reason` is time, size or cancelled."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Watch:
    """What one query may take: seconds in all, and bytes the server may send between two rows.

    The seconds run from the making of the watch and count every wait of the query together.
    """

    def __init__(self, seconds: float, max_bytes: int | None) -> None:
        self.deadline = time.monotonic() + seconds
        self.max_bytes = max_bytes
        self.cancelled = threading.Event()
        self._shortened = False

    def shorten(self, seconds: float) -> None:
        """Set the deadline to so many seconds from the first time this is called, if that is sooner."""
        if not self._shortened:
            self._shortened = True
            self.deadline = min(self.deadline, time.monotonic() + seconds)

    def wait(self, generator: PQGen[RV], fileno: int) -> RV:
        """Run a psycopg generator to its end.

        Raises:
            Stopped: the deadline, the bytes or a call of `cancelled.set()` came first.
        """
        received = 0
        try:
            state = next(generator)
            with selectors.DefaultSelector() as selector:
                selector.register(fileno, state)
                while True:
                    left = self.deadline - time.monotonic()
                    if left <= 0:
                        raise Stopped("time")
                    if self.cancelled.is_set():
                        raise Stopped("cancelled")
                    events = selector.select(min(left, TICK_S))
                    if self.max_bytes is not None and events:
                        received += _readable(fileno)
                        if received > self.max_bytes:
                            raise Stopped("size")
                    wanted = generator.send(Ready(events[0][1]) if events else Ready.NONE)
                    if wanted != state:
                        state = wanted
                        selector.modify(fileno, state)
        except StopIteration as end:
            result: RV = end.value
            return result


class Session(psycopg.Connection[Any]):
    """A connection in autocommit whose every wait obeys `watch`, while there is one."""

    watch: Watch | None = None
    opened: float = 0.0
    """When, as time.monotonic() says."""
    server_timeout_ms: int = 0
    """The role's own statement_timeout, 0 for none."""
    spent: bool = False
    """Something was called that DISCARD ALL may not undo: the session must not be used again."""
    foreign: frozenset[str] = frozenset()
    """Names of functions the role may call that are not PostgreSQL's own."""
    implied: frozenset[tuple[str, str, str]] = frozenset()
    """Names and operators that run one of them, with its owner's rights, without a call to be seen; and its schema and
    name."""
    limited: frozenset[tuple[str, str]] = frozenset()
    """Schema and name of the tables and views of which row security may keep rows from the role."""
    search_path: str = ""
    """Where names without a schema are looked up, as SET takes it; "" where the role's own path is enough."""

    def wait(self, gen: PQGen[RV], interval: float = TICK_S, timeout: float | None = None) -> RV:
        if self.watch is None:
            return super().wait(gen, interval, timeout)
        return self.watch.wait(gen, self.pgconn.socket)

    def request(self) -> list[pq.abc.PGresult]:
        """The results of what was just sent with `pgconn.send_…`.

        Raises:
            psycopg.Error: the server answered with an error.
        """
        results: list[pq.abc.PGresult] = self.wait(generators.execute(self.pgconn))
        for result in results:
            raise_error(result)
        return results

    def fetch(self) -> pq.abc.PGresult | None:
        """The next result of what was sent, None after the last.

        Raises:
            psycopg.Error: it is an error; then there is nothing more, and the session can be asked again.
        """
        result: pq.abc.PGresult | None = self.wait(generators.fetch(self.pgconn))
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            while self.wait(generators.fetch(self.pgconn)) is not None:
                pass
            raise_error(result)
        return result

    def copy_line(self) -> bytes | None:
        """The next line of a COPY TO STDOUT, None after the last.

        Raises:
            psycopg.Error: the server's error.
        """
        while True:
            size, line = self.pgconn.get_copy_data(1)
            if size > 0:
                return bytes(line)
            if size < 0:
                self.request()
                return None
            self.wait(_arrival(self.pgconn))

    def give_up(self) -> None:
        """Cancel what runs on the server, and close. Never raises, never waits long."""
        with contextlib.suppress(Exception):
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self.cancel_safe(timeout=CANCEL_TIMEOUT_S)
        with contextlib.suppress(Exception):
            self.close()


FACTS = """
WITH people AS (
    SELECT * FROM pg_catalog.pg_proc p
    WHERE pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
      AND pronamespace <> 'information_schema'::pg_catalog.regnamespace
      AND pg_catalog.has_function_privilege(oid, 'EXECUTE')
), implied AS (
    SELECT p.oid AS function, p.proname AS name FROM people p JOIN pg_catalog.pg_type t ON t.oid = p.proargtypes[0]
    WHERE p.prosecdef AND p.pronargs - p.pronargdefaults <= 1 AND t.typtype IN ('c', 'p')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attname = p.proname)
    UNION ALL SELECT oprcode, oprname FROM pg_catalog.pg_operator
    UNION ALL SELECT castfunc, typname FROM pg_catalog.pg_cast
    JOIN pg_catalog.pg_type t ON t.oid IN (castsource, casttarget)
    WHERE t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
    UNION ALL SELECT d.refobjid, t.typname FROM pg_catalog.pg_constraint c
    JOIN pg_catalog.pg_type t ON t.oid = c.contypid
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = c.oid
        AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
)
SELECT 'timeout', setting, '', '' FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'
UNION ALL
SELECT 'foreign', proname, '', '' FROM people p
WHERE prosecdef OR NOT EXISTS (SELECT FROM pg_catalog.pg_proc o
    WHERE o.proname = p.proname AND o.pronamespace = 'pg_catalog'::pg_catalog.regnamespace)
UNION ALL
SELECT 'implied', i.name, n.nspname, p.proname FROM implied i JOIN people p ON p.oid = i.function
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE EXISTS (SELECT FROM people WHERE prosecdef) AND p.prosecdef"""
"""The role's time limit; what it may call that people or extensions brought, those with the name of a function of
PostgreSQL's only where they act as their owner; and what else runs one that does: a name after a dot, an operator, a
type with a cast or a check. An implicit cast runs one unseen."""

READABLE = """
WITH reachable AS (
    SELECT n.oid, n.nspname FROM pg_catalog.pg_namespace n
    WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
      AND NOT n.nspname OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(false))
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
), named AS (
    SELECT c.relnamespace AS schema, c.relname AS name, c.relkind IN ('r', 'v', 'm', 'f', 'p')
           AND (pg_catalog.has_table_privilege(c.oid, 'SELECT')
                OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT')) AS readable
    FROM pg_catalog.pg_class c JOIN reachable r ON r.oid = c.relnamespace
    WHERE c.relkind NOT IN ('i', 'I')
), clashing AS (
    SELECT name FROM named GROUP BY name HAVING pg_catalog.count(*) > 1
)
SELECT nspname FROM reachable r
WHERE EXISTS (SELECT FROM named n WHERE n.schema = r.oid AND n.readable)
  AND NOT EXISTS (SELECT FROM named n JOIN clashing USING (name) WHERE n.schema = r.oid)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oprnamespace = r.oid)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_proc o USING (proname)
                  WHERE p.pronamespace = r.oid AND o.pronamespace = 'pg_catalog'::pg_catalog.regnamespace)
ORDER BY nspname"""
"""The schemas that may stand behind the role's own path, so that their tables need no schema before their names: the
role reads tables in them, none of their names stands in another of them (such a name would silently mean one of two),
and they bring no operator and no function that could stand for one of PostgreSQL's own."""


def open_session(params: Mapping[str, Any], dbname: str, watch: Watch | None = None) -> Session:
    """A new session, watched from its first query on, with what it has to know of its role.

    Raises:
        psycopg.OperationalError: the server cannot be reached.
    """
    session = postgres.connect(params, dbname, read_only=True, autocommit=True, factory=Session)
    session.watch = watch
    try:
        session.opened = time.monotonic()
        found = session.execute(FACTS).fetchall()
        session.server_timeout_ms = next(int(value) for kind, value, *_ in found if kind == "timeout")
        session.foreign = frozenset(name for kind, name, *_ in found if kind == "foreign")
        session.implied = frozenset((name, schema, run) for kind, name, schema, run in found if kind == "implied")
        session.limited = frozenset((str(schema), str(name)) for schema, name in session.execute(LIMITED))
        session.search_path = _search_path(session)
    except BaseException:
        session.close()
        raise
    return session


def _search_path(session: Session) -> str:
    """The role's own path with the schemas behind it that its tables lie in; "" where there are none."""
    more = [str(row[0]) for row in session.execute(READABLE)]
    if not more:
        return ""
    own = [str(row[0]) for row in session.execute("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))")]
    path = [name for name in own if not name.startswith("pg_temp")]
    # pg_temp last: a temporary table never hides a real one.
    return sql.SQL(", ").join(sql.Identifier(name) for name in (*path, *more, "pg_temp")).as_string(None)


def _arrival(pgconn: pq.abc.PGconn) -> PQGen[None]:
    """Wait until the server has sent more."""
    while not (yield Wait.R) & Ready.R:
        pass
    pgconn.consume_input()


def raise_error(result: pq.abc.PGresult) -> None:
    """Raise the error a result is, if it is one."""
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result, encoding="utf-8")


def _readable(fileno: int) -> int:
    """Return how many bytes wait in the socket's buffer."""
    count = array.array("i", [0])
    fcntl.ioctl(fileno, termios.FIONREAD, count)
    return count[0]
