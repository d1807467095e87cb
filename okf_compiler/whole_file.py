"""Files that are there whole or not at all, whoever reads or writes them at the same time."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path, *, private: bool = False, durable: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end; on any exception what was there before stays. A link stays one.

    It keeps the mode of the file that it replaces; a new one is for its owner alone if `private`, from the first byte
    on. `durable`: the disk has it before the name points to it.
    """
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.is_file() else None
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private or mode is not None else 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        draft.replace(target)
    except OSError as error:
        if str(error.filename) == str(draft):  # a name that nobody knows
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, data: str | bytes, *, private: bool = False, durable: bool = False) -> None:
    """Write a `whole_file`. Text is written as UTF-8, its line ends as they are."""
    with whole_file(path, private=private, durable=durable) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)
