"""What `ask` gives to scripts: the whole result in a format, to a file or a pipe, and everything as one JSON object."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from rich.progress import Progress, TextColumn, TimeElapsedColumn

from okf_agent.ask import Outcome
from okf_agent.results import export
from okf_agent.results.formats import Format, Written, format_of
from okf_agent.results.grounds import Grounds
from okf_agent.results.one_object import INTERRUPTED, OneObject
from okf_agent.sql.database import Database, QueryResult
from okf_agent.sql.query_error import QueryError
from okf_compiler.console import InertStream
from okf_compiler.errors import UserError
from okf_compiler.inert import inert_json
from okf_compiler.terminal import Console
from okf_compiler.whole_file import whole_file

FULL = Path("/dev/full")


@dataclass(frozen=True)
class Query:
    """A query that ran, as much of its result as was shown, and where the rest is to be had."""

    sql: str
    result: QueryResult | None
    database: Database | None


def write_rows(query: Query, how: Written, file: BinaryIO, on_rows: Callable[[int], None] = lambda _: None) -> int:
    """Write the whole result, the number of rows; what was shown itself where nothing of it was cut.

    Raises:
        UserError: there is no database, or the query fails now.
        OSError: the file cannot be written.
    """
    result, database = query.result, query.database
    if result is not None and not result.cut:
        for text in export.pieces_of(how, result.columns, result.types, [list(result.rows)]):
            file.write(text.encode())
        return len(result.rows)
    if database is None:
        raise UserError("There are no rows to write: this database has no content here.")
    try:
        return export.write(database, query.sql, how, file, seconds=database.limits.export_timeout_s, on_rows=on_rows)
    except QueryError as error:
        raise UserError(f"The result could not be written: {error}") from None


@contextlib.contextmanager
def target_file(path: Path) -> Iterator[BinaryIO]:
    """What `path` names, to write to: a file appears whole at the end or not at all, a device or pipe gets each piece.

    Raises:
        UserError: it cannot be written.
    """
    try:
        if stream := _standard_stream(path):
            stream.flush()
            yield stream.buffer
            stream.flush()
        elif not is_device(path):
            with whole_file(path) as file:
                yield file
        else:
            with path.open("w", encoding="utf-8") as device:
                yield cast(BinaryIO, InertStream(device).buffer if device.isatty() else device.buffer)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}.") from None


def is_device(path: Path) -> bool:
    """Whether a path names a device, a pipe or a standard stream: what is written there replaces nothing."""
    return (path.exists() and not path.is_file() and not path.is_dir()) or _standard_stream(path) is not None


def format_for(path: Path) -> Format:
    """The format that a file's name asks for; a device's asks for none and gets CSV.

    Raises:
        UserError: the name of a file says no format.
    """
    return "csv" if not path.suffix and is_device(path) else format_of(path)


def check_target(path: Path) -> None:
    """Refuse what could not be written, before anything is spent on its content.

    Raises:
        UserError: says why.
    """
    try:
        if not is_device(path):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            if not path.resolve().parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, f"there is no folder {path.resolve().parent}")
            with tempfile.TemporaryFile(dir=path.resolve().parent) as trial:
                trial.write(b"\0")
        elif path.is_socket():
            raise OSError(errno.ENXIO, "it is a socket")
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "you may not write to it")
        elif FULL.exists() and path.stat().st_rdev == FULL.stat().st_rdev:
            raise OSError(errno.ENOSPC, "it is always full")
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise UserError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}.", status=2) from None


def _standard_stream(path: Path) -> TextIO | None:
    """Standard output or standard error, if a path such as /dev/stdout names what it goes to."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # no such path; a stream without a descriptor
            if os.path.samestat(path.stat(), os.fstat(stream.fileno())):
                return stream
    return None


@contextlib.contextmanager
def row_counter(err: Console, what: str) -> Iterator[Callable[[int], None]]:
    """Shows how many rows were written so far, where a terminal watches."""
    columns = TextColumn("{task.description} {task.completed:,} rows"), TimeElapsedColumn()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda rows: progress.update(task, completed=rows)


def save(query: Query, path: Path, how: Written, err: Console) -> int:
    """Write the whole result to a file, under a counter on `err`; the number of rows.

    Raises:
        UserError: there is nothing to write, the query fails now, or the file cannot be written; the file is as before.
    """
    with row_counter(err, f"Writing {path}:") as on_rows, target_file(path) as file:
        return write_rows(query, how, file, on_rows)


def standard_output() -> BinaryIO:
    """Standard output as a file that rows are written to; a terminal shows them and obeys nothing in them."""
    sys.stdout.flush()
    return sys.stdout.buffer


def everything(outcome: Outcome, grounds: Grounds) -> dict[str, Any]:
    """A run's record with the rules it rests on, its columns and where its record is; rows come apart."""
    result = outcome.run.result
    return {
        **outcome.line,
        "exit_status": outcome.exit_status,
        "record": str(outcome.record),
        "unrecorded": outcome.unrecorded,
        "rules": [asdict(rule) for rule in grounds.rules],
        "columns": None if result is None else list(result.columns),
        "types": None if result is None else list(result.types),
    }


def write_json(
    facts: dict[str, Any], outcome: Outcome, database: Database | None, file: BinaryIO, one: OneObject
) -> int:
    """One JSON object with everything, `rows` last: objects by column, all of them, or null where no query ran.

    Rows are written once the query has ended well: until then nothing is. `rows_error` says why they are missing.
    Gives the exit status, which the object names too.
    """
    answer = outcome.run.answer
    with tempfile.TemporaryFile() as spool:
        rows = answer is not None and outcome.run.result is not None
        if answer is not None and rows:
            try:
                whole = Query(answer.sql, outcome.run.result, database)
                write_rows(whole, Written("json"), cast(BinaryIO, spool))
            except UserError as error:
                facts |= {"rows_error": str(error), "exit_status": facts["exit_status"] or 1}
                rows = False
            except KeyboardInterrupt:
                facts |= {"rows_error": "interrupted", "exit_status": INTERRUPTED}
                rows = False
        head = inert_json(json.dumps(facts, ensure_ascii=False, default=str)).encode()
        one.begin()
        file.write(head[:-1] + b', "rows": ')
        if rows:
            spool.seek(0)
            _copy(spool, file)
        else:
            file.write(b"null")
    file.write(b"}\n")
    return int(facts["exit_status"])


def _copy(source: IO[bytes], target: BinaryIO) -> None:
    """Copy the JSON array without the line end after it, piece by piece."""
    held = b""
    while piece := source.read(1 << 16):
        target.write(held)
        held = piece
    target.write(held.rstrip(b"\n"))
