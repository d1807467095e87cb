"""What `ask` gives to scripts: the whole result in a format, to a file or a pipe, and everything as one JSON object."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from okf_agent.ask import Outcome
from okf_agent.results import export
from okf_agent.results.formats import Written
from okf_agent.results.grounds import Grounds
from okf_agent.results.one_object import INTERRUPTED, OneObject
from okf_agent.sql.database import Database, QueryResult
from okf_agent.sql.query_error import QueryError
from okf_compiler.errors import UserError
from okf_compiler.inert import inert


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
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears whole at the end, or not at all: on any exception what was there before stays.

    Raises:
        UserError: it cannot be written.
    """
    target = path.resolve()
    try:
        if target.exists() and not target.is_file() and not target.is_dir():  # a pipe, a device: nothing to replace
            with target.open("wb") as device:
                yield device
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            _same_mode(name, target)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}.") from None


def check_target(path: Path) -> None:
    """Refuse a file that could not be written, before anything is spent on its content.

    Raises:
        UserError: its folder is not there or not ours to write to, or it is a folder itself.
    """
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        problem = "it is a folder" if path.is_dir() else f"{folder} is no folder that you can write to"
        raise UserError(f"{path} cannot be written: {problem}.", status=2)


def _same_mode(name: str, target: Path) -> None:
    """The mode of the file that is replaced, else that of any new file."""
    if target.exists():
        shutil.copymode(target, name)
    elif os.name == "posix":
        mask = os.umask(0o077)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)


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
    with row_counter(err, f"Writing {path}:") as on_rows, whole_file(path) as file:
        return write_rows(query, how, file, on_rows)


class StandardOutput:
    """Standard output for bytes of UTF-8; a terminal gets text that it shows and does not obey."""

    def write(self, piece: bytes) -> int:
        if sys.stdout.isatty():
            lines = piece.decode("utf-8", "replace").split("\n")
            sys.stdout.write("\n".join(map(inert, lines)))
        else:
            sys.stdout.buffer.write(piece)
        return len(piece)


def standard_output() -> BinaryIO:
    """Standard output as a file that rows are written to."""
    sys.stdout.flush()
    return cast(BinaryIO, StandardOutput())


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
        head = json.dumps(facts, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
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
