"""A database profiled: table by table, each kept when it is finished, then the value index and the profile."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from filelock import FileLock, Timeout

from okf_compiler.catalogue_queries import LIMITED
from okf_compiler.errors import UserError
from okf_compiler.profiling import facts, foreign_keys, measure, store, values
from okf_compiler.profiling.facts import ForeignKeyProfile, Profile, TableProfile
from okf_compiler.profiling.limits import Request
from okf_compiler.profiling.measure import TableMeasured
from okf_compiler.profiling.targets import Relation, relations
from okf_compiler.readers import catalogue

GOES_ON_FOR = timedelta(days=1)
"""How long a profile that was broken off can be taken up again: after that its tables would be of different times."""

Progress = Callable[[int, int, str], None]
"""Told how many steps are done, how many there are, and what was just done."""


def quiet(_done: int, _steps: int, _what: str) -> None:
    """Progress for nobody."""


@dataclass(frozen=True)
class Done:
    """What a profile came to."""

    profile: Profile
    values: int
    """Entries of the value index."""
    taken_up: int
    """Tables that an earlier, interrupted run had measured already."""
    left_out: tuple[str, ...]
    """What the catalogue's reader says that the role may not read, or that is hidden."""


def profile(
    connection: psycopg.Connection[Any],
    name: str,
    folder: Path,
    request: Request = Request(),  # noqa: B008 (frozen)
    *,
    again: bool = False,
    progress: Progress = quiet,
) -> Done:
    """Measure the database that `connection` leads to, and put what was found into `folder`.

    A run that was killed is taken up where it was, unless `again`.

    Raises:
        UserError: another process is profiling into the same folder, or the folder cannot be written.
        psycopg.Error: the connection breaks, or the catalogue cannot be read.
    """
    try:
        store.prepare(folder)
        with FileLock(folder / ".lock", timeout=0, mode=0o600):
            run = _Run(connection, folder, request, progress)
            if again:
                run.parts.clear()
            return run.profile(name)
    except Timeout:
        raise UserError(f"{name} is being profiled by another process.") from None
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}.") from None
    except sqlite3.Error as error:  # of the value index: a full disk among them
        raise UserError(f"{folder} cannot be written: {error}.") from None


class _Run:
    """The state of one run."""

    def __init__(self, connection: psycopg.Connection[Any], folder: Path, request: Request, progress: Progress) -> None:
        self.connection = connection
        self.folder = folder
        self.request = request
        self.progress = progress
        self.parts = store.Parts(folder)
        self.started = _now()
        self.taken_up = 0
        self.limited: Set[tuple[str, str]] = frozenset()
        """Schema and name of what row security may keep rows of from the role."""

    def profile(self, name: str) -> Done:
        live = catalogue.read(self.connection, name, hide=self.request.hide)
        found = relations(self.connection, live)
        keys = foreign_keys.keys_of(live, self.request.documented)
        self.limited = {(str(schema), str(name)) for schema, name in self.connection.execute(LIMITED.encode())}
        self.connection.rollback()
        stamps = {relation.name: self._stamp(relation) for relation in found}
        tables: dict[str, TableProfile] = {}
        unmeasured: dict[str, str] = {}
        times: list[str] = []
        for done, relation in enumerate(found):
            part = self._table(relation, stamps[relation.name])
            times.append(part["at"])
            unmeasured |= part["unmeasured"]
            if part["table"]:
                tables[relation.name] = facts.table_from_json(part["table"])
            self.progress(done + 1, len(found) + 1, relation.name)
        measured_keys = self._foreign_keys(found, keys, tables, unmeasured)
        amount = values.write(self.folder, self._indexed(stamps, tables))
        profile = Profile(name, min(times, default=self.started), tables, measured_keys, unmeasured)
        store.write_profile(self.folder, profile)
        self.parts.clear()
        self.progress(len(found) + 1, len(found) + 1, "foreign keys and values")
        return Done(profile, amount, self.taken_up, tuple(problem.message for problem in live.problems))

    def _table(self, relation: Relation, stamp: str) -> Mapping[str, Any]:
        """What was measured of one table, now or in a run that was broken off."""
        part = self.parts.read(relation.name, stamp)
        if part is not None and datetime.fromisoformat(part["at"]) > datetime.now().astimezone() - GOES_ON_FOR:
            self.taken_up += 1
            return part
        at = _now()
        part = _as_part(measure.measure(self.connection, relation, self.request), at)
        if part["table"]:
            part["table"]["row_security"] = (relation.table.schema, relation.table.name) in self.limited
        self.parts.write(relation.name, stamp, part)
        return part

    def _foreign_keys(
        self,
        found: Sequence[Relation],
        keys: Mapping[str, list[Any]],
        tables: Mapping[str, TableProfile],
        unmeasured: dict[str, str],
    ) -> tuple[ForeignKeyProfile, ...]:
        by_name = {relation.name: relation for relation in found}
        measured: list[ForeignKeyProfile] = []
        for name, of_table in keys.items():
            if name not in tables:
                continue
            reachable = [(key, target) for key, target in of_table if target.qualified_name in tables]
            profiles, failed = foreign_keys.measure(
                self.connection, by_name[name], by_name, reachable, self.request.limits, tables[name].rows
            )
            measured += profiles
            unmeasured |= failed
        return tuple(measured)

    def _indexed(self, stamps: Mapping[str, str], tables: Mapping[str, TableProfile]) -> Iterator[values.IndexedColumn]:
        """The columns of the value index, one table's in memory at a time."""
        for name, table in tables.items():
            part = self.parts.read(name, stamps[name]) or {"values": {}}
            for column, found in part["values"].items():
                yield values.IndexedColumn(name, column, table.columns[column].sampled, found)

    def _stamp(self, relation: Relation) -> str:
        """What a finished part of a table depends on: the database, the table's form, and what was asked."""
        oid = self.connection.execute(
            "SELECT oid::text FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()"
        ).fetchall()
        self.connection.rollback()
        documented = self.request.documented
        table = documented.table(relation.table.name, relation.table.schema) if documented else None
        fields = [[c.name, [f.path for f in c.fields]] for c in table.columns if c.fields] if table else []
        columns = [[c.name, c.type] for c in relation.table.columns]
        asked = [facts.VERSION, oid, relation.name, columns, fields, list(self.request.hide), repr(self.request.limits)]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _as_part(found: TableMeasured, at: str) -> dict[str, Any]:
    table = facts.table_as_json(found.profile) if found.profile else None
    return {"at": at, "table": table, "values": found.values, "unmeasured": found.unmeasured}


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
