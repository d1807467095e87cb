"""A database's dump into the server: whole or not at all, once, and safe to ask for again."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import errors, sql

from okf_agent.engines import Server
from okf_agent.engines.connection import MissingDatabase, connect_admin, connect_agent
from okf_agent.loading.dump import DumpError, Statement, statements
from okf_compiler.errors import UserError

MARK = "okf-agent dump "
"""Begins the comment that a loaded database carries."""
RESERVED = ("postgres", "template0", "template1")
LONGEST_NAME = 63
LOCK = 0x6F6B66
"""The advisory lock that loaders hold."""
COPY_BLOCK = 1 << 18
REASONS_SHOWN = 3
FOR_ROLES = ((b"GRANT",), (b"REVOKE",), (b"ALTER", b"DEFAULT", b"PRIVILEGES"))
ON_DATABASE = ((b"CREATE",), (b"DROP",), (b"ALTER",), (b"COMMENT", b"ON"), (b"SECURITY", b"LABEL"))

Progress = Callable[[int, int], None]
"""Told the bytes read and the bytes in all."""


def quiet(_done: int, _total: int) -> None:
    """Progress for nobody."""


@dataclass(frozen=True)
class LoadState:
    """What there is of one database on the server."""

    status: Literal["loaded", "present", "no_content"]
    """Loaded just now, there already, or neither content nor a dump of it."""
    changed: bool = False
    """The dump has changed since it was loaded."""
    skipped: tuple[str, ...] = ()
    """Statements left out: an owner or a grant for a role this server lacks, a setting it does not know."""

    def passed_over(self, dump: Path | None) -> str:
        """What was left out of the dump and why, each reason once, in a line; "" where nothing was."""
        if not self.skipped:
            return ""
        first: dict[str, str] = {}
        for entry in self.skipped:
            line, _, reason = entry.partition(": ")
            first.setdefault(reason, line)
        shown = [f"{reason} (first in {line})" for reason, line in first.items()][:REASONS_SHOWN]
        more = f"; and {len(first) - REASONS_SHOWN} more" if len(first) > REASONS_SHOWN else ""
        many = "1 statement" if len(self.skipped) == 1 else f"{len(self.skipped)} statements"
        return f"Passed over {many} of {dump}: {'; '.join(shown)}{more}"


@dataclass(frozen=True)
class Mark:
    """Which file a database was loaded from; kept as the database's comment."""

    sha256: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, dump: Path) -> Mark:
        with dump.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(digest, dump.stat().st_size, dump.stat().st_mtime_ns)

    @classmethod
    def read(cls, comment: str | None) -> Mark | None:
        if not comment or not comment.startswith(MARK):
            return None
        try:
            return cls(**json.loads(comment.removeprefix(MARK)))
        except (ValueError, TypeError):
            return None

    def matches(self, dump: Path) -> bool:
        """Whether the file is the same; its content is only read if its date or size is another."""
        found = dump.stat()
        if (found.st_size, found.st_mtime_ns) == (self.size, self.mtime_ns):
            return True
        return found.st_size == self.size and Mark.of(dump).sha256 == self.sha256

    def write(self) -> str:
        return MARK + json.dumps({"sha256": self.sha256, "size": self.size, "mtime_ns": self.mtime_ns})


def load(
    server: Server,
    name: str,
    dump: Path | None,
    *,
    schema: str | None = None,
    progress: Progress = quiet,
    again: bool = False,
) -> LoadState:
    """Have the database `name` on the server, from its dump if it is not there yet.

    `schema`: one that its tables live in and that the dump does not make. `again` loads the dump anew and then puts it
    in the old database's place, ending its sessions.

    Raises:
        UserError: the dump cannot be read or does not load (then nothing of it stays), or no connection.
    """
    if name in RESERVED or len(name.encode()) > LONGEST_NAME:
        raise UserError(f"A database cannot be called {name!r}: rename its folder and files.", status=2)
    if server.admin is None:
        return LoadState("present" if _agent_sees(server, name) else "no_content")
    with connect_admin(server) as control:
        comment = _find(control, name)
        if comment is None and dump is None:
            return LoadState("no_content")
        if comment is None or again:
            control.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            comment = _find(control, name)  # another loader may have been quicker
        if comment is not None and not again:
            return LoadState("present", changed=_has_changed(control, name, comment, dump))
        if comment is not None and Mark.read(comment) is None:
            raise UserError(
                f"The database {name} was not loaded by okf-agent, so it is not replaced.\n"
                "Drop or rename it yourself, if its dump is to take its place."
            )
        if dump is None:
            raise UserError(f"There is no dump of {name} to load.", status=2)
        return _load_new(server, control, name, dump, schema, progress)


def _find(control: psycopg.Connection[Any], name: str) -> str | None:
    """The comment of a database ("" if it has none); None if there is no such database."""
    row = control.execute(
        "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = %s", [name]
    ).fetchone()
    return None if row is None else str(row[0])


def _has_changed(control: psycopg.Connection[Any], name: str, comment: str, dump: Path | None) -> bool:
    """Whether the dump is another than the one loaded. A new date of the same content is noted."""
    mark = Mark.read(comment)
    if mark is None or dump is None:
        return False
    if not mark.matches(dump):
        return True
    found = dump.stat()
    if found.st_mtime_ns != mark.mtime_ns:
        fresh = Mark(mark.sha256, found.st_size, found.st_mtime_ns).write()
        text = sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(fresh))
        with contextlib.suppress(psycopg.Error):
            control.execute(text)
    return False


def _agent_sees(server: Server, name: str) -> bool:
    with contextlib.suppress(MissingDatabase), connect_agent(server, name):
        return True
    return False


def _load_new(
    server: Server,
    control: psycopg.Connection[Any],
    name: str,
    dump: Path,
    schema: str | None,
    progress: Progress,
) -> LoadState:
    """Load under a temporary name, then take the real one. The loaders' lock is held."""
    temporary = "okf_loading_" + hashlib.sha256(name.encode()).hexdigest()[:12]
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(temporary))
    try:
        control.execute(drop.format(sql.Identifier(temporary)))  # of a loader that was killed
        control.execute(create)
        mark = Mark.of(dump)
        with connect_admin(server, temporary) as connection:
            skipped = _run_dump(connection, dump, schema, progress)
        comment = sql.SQL("COMMENT ON DATABASE {} IS {}")
        control.execute(comment.format(sql.Identifier(temporary), sql.Literal(mark.write())))
        control.execute(drop.format(sql.Identifier(name)))
        control.execute(
            sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(temporary), sql.Identifier(name))
        )
    except BaseException as error:
        with contextlib.suppress(psycopg.Error):
            control.execute(drop.format(sql.Identifier(temporary)))
        if isinstance(error, psycopg.Error):
            raise UserError(_explain(error, dump)) from None
        if isinstance(error, OSError):
            raise UserError(f"{dump} cannot be read: {error}") from None
        raise
    return LoadState("loaded", skipped=tuple(skipped))


def _run_dump(connection: psycopg.Connection[Any], dump: Path, schema: str | None, progress: Progress) -> list[str]:
    """Run every statement of a dump; the ones left out.

    Raises:
        UserError: names the file and the line.
    """
    skipped: list[str] = []
    total = dump.stat().st_size
    # A crash now loses a database that nobody has seen yet: no need to wait for the disk at every INSERT.
    connection.execute("SET synchronous_commit = off")
    if schema:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    line = 1
    try:
        with dump.open("rb") as file:
            for statement in statements(file):
                line = statement.line
                if left_out := _run(connection, statement, schema):
                    skipped.append(f"line {line}: {left_out}")
                progress(file.tell(), total)
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raise DumpError(line, "the last transaction is never committed: the file is cut off")
        connection.execute("ANALYZE")
    except DumpError as error:
        raise UserError(f"{dump}, line {error.line}: {error}.\nNothing was loaded.") from None
    except psycopg.Error as error:
        raise UserError(_explain(error, dump, line)) from None
    return skipped


def _run(connection: psycopg.Connection[Any], statement: Statement, schema: str | None) -> str | None:
    """Run one statement; why it was left out, if it was."""
    words = statement.words
    if b"DATABASE" in words[1:4] and any(words[: len(w)] == w for w in (*ON_DATABASE, *FOR_ROLES)):
        return "a statement about the database itself"
    if words[0] == b"COPY" and b"PROGRAM" in words:
        raise DumpError(statement.line, "COPY … PROGRAM would run a program: take it out of the file")
    if statement.rows is not None:
        with connection.cursor() as cursor, cursor.copy(statement.sql) as copy:
            for block in _blocks(statement.rows):
                copy.write(block)
        return None
    if words[:2] == (b"CREATE", b"SCHEMA") and schema:
        return _try(connection, statement.sql, errors.DuplicateSchema)
    if words[0] == b"SET" or (b"OWNER" in words or any(words[: len(w)] == w for w in FOR_ROLES)):
        return _try(connection, statement.sql, errors.UndefinedObject)
    connection.execute(statement.sql)
    return None


def _try(connection: psycopg.Connection[Any], statement: bytes, allowed: type[psycopg.Error]) -> str | None:
    """Run a statement that may fail in one way; that failure's text. A transaction of the dump goes on."""
    try:
        with connection.transaction():
            connection.execute(statement)
    except allowed as error:
        return str(error.diag.message_primary)
    return None


def _blocks(rows: Iterator[bytes]) -> Iterator[bytes]:
    block = bytearray()
    for row in rows:
        block += row
        if len(block) >= COPY_BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def _explain(error: psycopg.Error, dump: Path, line: int | None = None) -> str:
    where = f"{dump}, line {line}" if line else str(dump)
    message = error.diag.message_primary or str(error)
    context = f" ({error.diag.context.splitlines()[0]})" if error.diag.context else ""
    if isinstance(error, errors.DiskFull):
        remedy = "The disk is full: free some space and try again."
    elif isinstance(error, errors.InsufficientPrivilege):
        remedy = "Name a role that may create databases and everything in the dump in POSTGRES_USER."
    elif "extension" in message and "not available" in message:
        remedy = "Install that extension on a PostgreSQL of yours and set database.engine to `server`."
    elif "role" in message and "does not exist" in message:
        remedy = "Create that role first, or take it out of the dump."
    else:
        remedy = "Correct the file, or load it into a PostgreSQL of yours and set database.engine to `server`."
    return f"{where}: {message}{context}.\nNothing was loaded. {remedy}"
