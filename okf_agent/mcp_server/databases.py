"""What is served: databases by name, the bundle of each, and each database once a query needs it.

All of it blocks, and is safe to call from several threads.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from okf_agent import llm, prompts
from okf_agent.ask import Supplies, Workspace, context_of, sources_of
from okf_agent.bundles import reading
from okf_agent.cell import Cell
from okf_agent.config import Config
from okf_agent.models.arguments import QUOTED_CHARS, quote
from okf_agent.models.errors import redact
from okf_agent.prepare import Ready, Say, find_bundle
from okf_agent.sql.database import Database, QueryResult
from okf_agent.sql.query_error import QueryError
from okf_agent.tools import Context
from okf_compiler import bundle as bundles
from okf_compiler.documents import list_databases, only_database
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.loaded import derived, loaded, stamp

logger = logging.getLogger(__name__)
SHOWN = Cell(model="")
"""How the tools show things to a model that is not ours: as they do by default."""
BUSY = "53300"
"""PostgreSQL's own code for too many connections: the same query may work in a moment."""
LEND_SECONDS = 10.0
"""For a connection to be given back, where those who hold one are as many as there are."""


@dataclass(eq=False)
class Stop:
    """Stops one call from outside: what it runs on the server, and what it would do next."""

    event: threading.Event = field(default_factory=threading.Event)
    _database: Database | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def stopped(self) -> bool:
        return self.event.is_set()

    @contextmanager
    def using(self, database: Database) -> Iterator[None]:
        """Say what the call runs queries on; once this ends it may be another call's, and is left alone."""
        with self._lock:
            self._database = database
        try:
            yield
        finally:
            with self._lock:
                self._database = None

    def __call__(self) -> None:
        self.event.set()
        with self._lock:
            if self._database is not None:
                self._database.cancel()


class ClientError(UserError):
    """A client asked for what it cannot have. The text is for it, and says nothing of the server's machine."""


def for_client(error: UserError) -> str:
    """Return what a client is told of an error.

    Any but a ClientError is for whoever runs the server: its text may name folders, hosts and users there.
    """
    if isinstance(error, ClientError):
        return str(error)
    logger.error("%s", redact(str(error)))
    return prompts.say("mcp_unable")


class Pool:
    """Connections to PostgreSQL that all clients share: never more at once than `most`.

    Each `Database` is lent to one call at a time, which runs one query after the other and can be cancelled without
    the others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made = 0
        self._idle: OrderedDict[str, list[Database]] = OrderedDict()
        """By database, the one used longest ago first."""
        self._changed = threading.Condition()

    @contextmanager
    def lend(self, name: str, make: Callable[[], Database], seconds: float = LEND_SECONDS) -> Iterator[Database]:
        """Lend a `Database` of the database `name`; `make` makes a further one.

        Raises:
            QueryError: none was free within `seconds`.
        """
        database = self._take(name, seconds)
        if database is None:
            try:
                database = make()
            except BaseException:
                with self._changed:
                    self._made -= 1
                    self._changed.notify()
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
            for databases in self._idle.values():
                for database in databases:
                    database.close()
                self._made -= len(databases)
            self._idle.clear()

    def _take(self, name: str, seconds: float) -> Database | None:
        """Return an idle one; None is the right to make one, in the place of another database's where all are made."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._made < self._most or any(self._idle.values()), seconds):
                raise QueryError(f"All {self._most} connections are busy. Try again in a moment.", sqlstate=BUSY)
            if own := self._idle.get(name):
                return own.pop()
            if self._made < self._most:
                self._made += 1
            else:
                next(idle for idle in self._idle.values() if idle).pop().close()
            return None


class Databases:
    """The databases of one server."""

    def __init__(self, workspace: Workspace, names: Sequence[str], say: Say) -> None:
        """Find the bundle of each database, compiled now where there is none.

        Raises:
            UserError: a bundle cannot be had.
        """
        self.workspace = workspace
        self.config = workspace.config
        self.names = tuple(names)
        self.pool = Pool(self.config.mcp.connections)
        self.say = say
        self.bundles = {name: find_bundle(self.config, name, workspace.bundle, say)[0] for name in names}
        self._locks = {name: threading.Lock() for name in names}
        self._said: set[str] = set()

    def close(self) -> None:
        self.pool.close()

    def _say_once(self, line: str) -> None:
        """Tell what each call would tell again."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    def ready(self, name: str) -> Ready:
        """Return the database `name`, ready for queries: started, loaded, its role hardened. The first call takes long.

        Raises:
            UserError: something it needs cannot be had.
        """
        with self._locks[name]:
            return self.workspace.ready(name, self.say)

    def is_reachable(self) -> bool:
        """Return whether the first database can be asked; True also where it has no content and nothing is ever run."""
        name = self.names[0]
        try:
            database = self.ready(name).database
            if database is None:
                return True
            with self.pool.lend(name, database.another, 1.0) as own:
                own.run("SELECT 1")
        except UserError:
            return False
        except QueryError as error:
            return error.sqlstate == BUSY
        return True

    @contextmanager
    def context(self, name: str, stop: Stop, *, with_database: bool) -> Iterator[Context]:
        """Give what one call of a tool works on: nothing in it is kept from an earlier call.

        A client may have dropped from its conversation what it was sent before, and nobody tells the server; so a
        file is sent again and a query run again whenever it is asked for.

        Raises:
            UserError: the database cannot be reached.
            QueryError: all connections are busy.
        """
        empty = context_of(
            self.config, sources_of(self.config, name, None, self.bundles[name], SHOWN, self._say_once), None
        )
        template = self.ready(name).database if with_database else None
        if template is None:
            yield empty
            return
        with self._lent(template, stop) as database:
            yield replace(empty, database=_Stoppable(database, stop))

    @contextmanager
    def one_question(self, name: str, stop: Stop) -> Iterator[Supplies]:
        """Give what one question of our own loop needs, with a connection that only it uses.

        Raises:
            UserError: the database cannot be reached.
            QueryError: all connections are busy.
        """
        ready = self.ready(name)
        if ready.database is None:
            yield _OneQuestion(self.workspace, ready, stop)
            return
        with self._lent(ready.database, stop) as database:
            yield _OneQuestion(self.workspace, replace(ready, database=database), stop)

    @contextmanager
    def _lent(self, template: Database, stop: Stop) -> Iterator[Database]:
        """Lend a `Database` like `template` that nobody else uses meanwhile; `stop` stops its queries."""
        with self.pool.lend(template.name, template.another) as database, stop.using(database):
            yield database

    def concepts(self, name: str) -> dict[str, bundles.Concept]:
        """Return the concepts of a bundle by id, sorted; read again when the bundle has changed on disk.

        Raises:
            UserError: the bundle cannot be read.
        """
        return dict(loaded(self.bundles[name]).concepts)

    def bundle_hash(self, name: str) -> str:
        """Return the hash of a bundle as the record has it.

        Raises:
            UserError: the bundle cannot be read.
        """
        return derived(self.bundles[name], _hash)

    def stamp(self, name: str) -> int:
        """Return a number that changes when a file of the bundle is written, added or removed."""
        return stamp(self.bundles[name])

    def index(self, name: str) -> str:
        """Return the root index of a bundle, as `read_file` gives it; "" where it cannot be read."""
        found = reading.read(self.bundles[name], "/")
        return "" if found.failed else found.text


def _hash(bundle: bundles.Bundle) -> str:
    return bundles.bundle_hash(bundle.root)


@dataclass(frozen=True)
class _Stoppable:
    """A database for the tools: it runs nothing any more once its call was stopped, and names nothing of its server."""

    database: Database
    stop: Stop

    def run(self, sql: str, *, max_rows: int | None = None) -> QueryResult:
        if self.stop.stopped:
            raise QueryError("The call was cancelled.")
        try:
            return self.database.run(sql, max_rows=max_rows)
        except QueryError as error:
            if not error.lost:
                raise
            logger.error("%s", error)  # it names the server's host, and what its system says of it
            raise QueryError(prompts.say("mcp_lost"), sqlstate=error.sqlstate, lost=True) from None


@dataclass(frozen=True)
class _OneQuestion:
    """What one question of our loop needs: the database of its call, and models that are stopped with it."""

    shared: Workspace
    own: Ready
    stop: Stop

    @property
    def config(self) -> Config:
        return self.shared.config

    def ready(self, name: str, _say: Say) -> Ready:
        assert name == self.own.name
        return self.own

    def model(self, name: str, repeat: int | None = None) -> llm.Model:
        model = self.shared.model(name, repeat)
        model.cancelled = self.stop.event
        return model


def one_of(asked: Any, databases: Sequence[str]) -> str:
    """Return the database that a client means, by its name or because there is only one.

    Raises:
        ClientError: the client may not see it.
    """
    if asked is None and len(databases) == 1:
        return databases[0]
    known = ", ".join(databases)
    if asked is None:
        raise ClientError(prompts.say("mcp_no_database", databases=known))
    if not isinstance(asked, str) or asked not in databases:
        near = did_you_mean(str(asked)[:QUOTED_CHARS], databases)
        raise ClientError(prompts.say("mcp_unknown_database", name=quote(repr(asked)), near=near, databases=known))
    return asked


def choose(config: Config, asked: Sequence[str]) -> list[str]:
    """Return what to serve: the databases asked for, else `mcp.databases`, else all with a bundle, else the only one.

    Raises:
        UserError: one is not known, or there is none to choose.
    """
    names = list(dict.fromkeys(asked or config.mcp.databases))
    known = _known(config)
    for name in names:
        if name not in known:
            raise UserError(f"There is no database {name!r}{did_you_mean(name, known)}", status=2)
    if names:
        return names
    with_bundle = [name for name in known if (config.settings.bundles / name / "index.md").is_file()]
    return with_bundle or [only_database(config.settings)]


def _known(config: Config) -> list[str]:
    """Databases with documents, and bundles without, sorted."""
    settings = config.settings
    names = set(list_databases(settings))
    for folder in (settings.bundles, settings.bundles.parent):
        names |= {index.parent.name for index in folder.glob("*/index.md")}
    return sorted(names)
