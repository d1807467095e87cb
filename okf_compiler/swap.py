"""Put a new folder in another one's place: whole or not at all, also under kill -9 and with two at once.

The new content is built beside the folder, in `.<name>.new`, and swapped in: on Linux in one step, elsewhere by way of
`.<name>.old`, which exists only between the two renames and so is the journal. Whoever comes next finishes or undoes
what a killed process left. A folder that is a symbolic link stays one: what it leads to is replaced.

Against a loss of power the files that a save puts into a bundle that exists are forced to the disk before the swap. A
new bundle is not: its sources give it again, and forcing thousands of files one by one takes minutes.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from okf_compiler.errors import UserError

_LOCK_SECONDS = 60
_FORCED_AT_ONCE = 200
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Alone among the processes that save beside `folder`; may be taken again inside itself.

    Raises:
        UserError: the place cannot be written, or another process holds it for a minute.
    """
    folder = real(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(folder.parent / ".lock", timeout=_LOCK_SECONDS, is_singleton=True)
        held.acquire()
    except Timeout:
        raise UserError(f"Another compiler has been writing to {folder.parent} for a minute. Try again.") from None
    except OSError as error:
        raise UserError(f"{folder.parent} cannot be written: {_reason(error)}.") from None
    try:
        _finish(folder)
        yield
    finally:
        held.release()


@contextmanager
def lock_to_compare(folder: Path, *, create: bool) -> Iterator[None]:
    """Lock as `lock` does, but not in a place that this process may not write, nor, without `create`, in a new one."""
    place = real(folder).parent
    if not is_writable(folder) or not (create or place.is_dir()):
        yield
        return
    with lock(folder):
        yield


def is_writable(folder: Path) -> bool:
    """Return whether this process may write beside the folder, or make the place where it lies."""
    place = real(folder).parent
    while not place.exists() and place != place.parent:
        place = place.parent
    return os.access(place, os.W_OK)


def real(folder: Path) -> Path:
    """The folder itself, where a symbolic link stands for it."""
    return folder.resolve() if folder.is_symlink() else folder


def unfinished(folder: Path) -> bool:
    """Whether a swap was stopped between its two renames."""
    folder = real(folder)
    return not folder.exists() and _old(folder).exists()


def repair(folder: Path) -> None:
    """Finish what a killed process left half-done; a no-op, without a lock, where nothing is."""
    if unfinished(folder):
        with lock(folder):
            pass


def replace(folder: Path, changed: Mapping[str, bytes], removed: frozenset[str]) -> None:
    """Swap in a copy of the folder with these files written and those removed. Call it under `lock`.

    Raises:
        UserError: a file could not be written; the folder is what it was.
    """
    folder = real(folder)
    new = _new(folder)
    try:
        _build(folder, new, {*changed, *removed})
        for parent in {(new / path).parent for path in changed}:
            parent.mkdir(parents=True, exist_ok=True)
        for path, content in changed.items():
            (new / path).write_bytes(content)
        if folder.is_dir():
            force(new / path for path in changed)
        _swap(new, folder)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise UserError(f"{folder} cannot be written, and is left as it was: {_reason(error)}.") from None
    _clear(folder)


def force(files: Iterable[Path]) -> None:
    """Have the disk hold what was written to these files; of very many, whatever the system has not written yet."""
    files = list(files)
    if len(files) > _FORCED_AT_ONCE:
        os.sync()
        return
    for file in files:
        with file.open("rb+") as handle:
            os.fsync(handle.fileno())


def _build(folder: Path, new: Path, without: set[str]) -> None:
    """A copy of the folder by hard links, where the file system has them; nothing is ever edited in place."""
    new.mkdir()
    if not folder.is_dir():
        return
    for place, folders, names in os.walk(folder):
        base = Path(place).relative_to(folder)
        for name in names + [f for f in folders if (Path(place) / f).is_symlink()]:
            relative = base / name
            if relative.as_posix() not in without:
                (new / base).mkdir(parents=True, exist_ok=True)
                _copy(folder / relative, new / relative)


def _copy(source: Path, target: Path) -> None:
    if not source.is_symlink():
        with suppress(OSError, NotImplementedError):
            os.link(source, target)
            return
    shutil.copy2(source, target, follow_symlinks=False)


def _swap(new: Path, folder: Path) -> None:
    if not folder.exists():
        new.rename(folder)
    elif not _exchange(new, folder):
        old = _old(folder)
        folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            old.rename(folder)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _finish(folder: Path) -> None:
    """Bring the folder back after a killed swap, new if it was complete, and clear away the rest."""
    with suppress(OSError):
        if unfinished(folder):
            (_new(folder) if _new(folder).exists() else _old(folder)).rename(folder)
    _clear(folder)


def _clear(folder: Path) -> None:
    if folder.exists() or not _old(folder).exists():
        shutil.rmtree(_new(folder), ignore_errors=True)
        shutil.rmtree(_old(folder), ignore_errors=True)


def _new(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.new")


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
