"""Files of JSON lines: a line is appended whole or not at all, and what is torn or damaged is left out on reading."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from okf_agent.secrets import without_secrets
from okf_compiler.errors import UserError
from okf_compiler.inert import inert_json

RECORD = "The record of this run"
LOCK_SECONDS = 30
"""How long another writer of a file is waited for; a line takes it milliseconds."""
BLOCK = 1 << 18
"""Bytes read at once from the end of a file."""


def append_line(path: Path, data: Mapping[str, Any], what: str = RECORD) -> None:
    """Append one line to a file of JSON lines: whole, or not at all.

    One process at a time; a torn last line, of a writer that was killed, is cut first. `what` names the line where it
    cannot be written.

    Raises:
        UserError: it cannot be written; the file is as long as before.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(path.name + ".lock"), timeout=LOCK_SECONDS, mode=0o600):
            file = open_private(path)
            try:
                cut_torn_line(file)
                write_line(file, data)
            finally:
                os.close(file)
    except (OSError, Timeout) as error:
        raise unwritten(what, path, error) from None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file; none of one that is not there. A line that is torn or damaged is left out."""
    for line in raw_lines(path):
        data = parse_line(line)
        if data is not None:
            yield data


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None if it is torn, still being written, damaged, or no object."""
    if not line.endswith(b"\n"):
        return None
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file as they stand, each with its line end if it has one; none of a file that is not there."""
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        return


def lines_backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file from its last to its first, each with its line end if it has one."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        position = file.seek(0, 2)
        rest = b""
        while position > 0:
            start = max(0, position - BLOCK)
            file.seek(start)
            lines = BytesIO(file.read(position - start) + rest).readlines()
            rest = lines.pop(0) if start else b""
            yield from reversed(lines)
            position = start


def follow(path: Path, *, start: int, pause: float = 0.3) -> Iterator[dict[str, Any]]:
    """The objects that are appended to a file of JSON lines after byte `start`, as they come; never ends.

    Only whole lines: one that is being written is waited for.
    """
    position = start
    while True:
        size = path.stat().st_size if path.exists() else 0
        position = position if position <= size else 0  # another file under the same name
        if size > position:
            with path.open("rb") as file:
                file.seek(position)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    position += len(line)
                    if (data := parse_line(line)) is not None:
                        yield data
        time.sleep(pause)


def open_private(path: Path) -> int:
    """A descriptor that reads and appends; the file is made for its owner alone."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def write_line(file: int, data: Mapping[str, Any]) -> None:
    """Write one line, without secrets of the environment, or leave the file as it was.

    Raises:
        OSError: a full disk, a size limit, …
    """
    text = without_secrets(json.dumps(data, ensure_ascii=False, default=str))
    line = inert_json(text).encode() + b"\n"
    size = os.lseek(file, 0, os.SEEK_END)
    try:
        written = 0
        while written < len(line):
            written += os.write(file, line[written:])
    except OSError:
        with contextlib.suppress(OSError):  # not a regular file; the next writer cuts what is torn
            os.ftruncate(file, size)
        raise


def cut_torn_line(file: int) -> None:
    """Cut what stands after the last line end."""
    size = end = os.lseek(file, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65_536)
        os.lseek(file, start, os.SEEK_SET)
        newline = os.read(file, end - start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)


def unwritten(what: str, path: Path, error: Exception) -> UserError:
    """That a line could not be written, and what to do."""
    problem = getattr(error, "strerror", None) or str(error)
    return UserError(
        f"{what} could not be written to {path}: {problem}.\n"
        f"Make room, or point agent.runs in config.yaml to a folder that you can write to."
    )
