"""Files from the network: fetched once, resumed where they stopped, checked by size and hash, whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
TIMEOUT_S = 30
TRIES = 5
"""Tries in a row that bring nothing new, before a source is given up."""
PAUSE_S = 1.0
"""Before the second try, doubled for each one after it."""
AGENT = {"User-Agent": "okf-sql-agent"}

Progress = Callable[[str, int, int], None]
"""Called with what is happening, the bytes done and the bytes in all (0 where there is nothing to count)."""


class SourceError(Exception):
    """One source could not give the file."""


@dataclass(frozen=True)
class Expected:
    """What is known of a file before it is there; None where it is not known."""

    size: int | None = None
    """Bytes."""
    sha256: str | None = None
    git: str | None = None
    """Its id as a git blob: the SHA-1 of `blob <size>\\0` and its content."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


@contextlib.contextmanager
def progress_bar(label: str = "Local model") -> Iterator[Progress]:
    """A bar on standard error where that is a terminal, else nothing."""
    from rich import progress as bars

    from okf_compiler.terminal import Console

    console = Console(sys.stderr)
    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.DownloadColumn())
    with bars.Progress(
        *columns, bars.TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(label, total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total or None)


def sha256_of(path: Path, on_bytes: Callable[[int], None] = lambda _done: None) -> tuple[int, str]:
    """A file's size and SHA-256 in hexadecimal; `on_bytes` is told how many bytes are read."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            done += len(chunk)
            on_bytes(done)
    return done, digest.hexdigest()


def git_id(path: Path) -> str:
    """A file's id as a git blob, in hexadecimal."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def problem_of(path: Path, expected: Expected) -> str:
    """How a file differs from what is expected; "" if it does not."""
    size, sha256 = sha256_of(path)
    if expected.size is not None and size != expected.size:
        return f"it has {size} bytes, not {expected.size}"
    if expected.sha256 is not None and sha256 != expected.sha256:
        return f"its SHA-256 is {sha256}, not {expected.sha256}"
    if expected.git is not None and expected.git != git_id(path):
        return "its content is not the published one"
    return ""


def download(url: str, target: Path, expected: Expected, progress: Progress = silent) -> None:
    """Fetch a file to `target`, which has its name only once it is whole and checked.

    What a connection that broke has brought is kept in `<name>.partial`, also by a process that was killed, and the
    next try asks for the rest (HTTP Range).

    Raises:
        SourceError: it cannot be had, or what arrived is not what is expected.
        OSError: the disk.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    failed = 0
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        try:
            _fetch_rest(url, partial, lambda done, total: progress(target.name, done, total))
            break
        except urllib.error.HTTPError as error:
            if error.code not in (408, 425, 429, 500, 502, 503, 504):
                raise SourceError(f"{url}: HTTP status {error.code}") from None
            problem: Exception = error
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            problem = error
        failed = 0 if partial.exists() and partial.stat().st_size > before else failed + 1
        if failed >= TRIES or offline(problem):
            raise SourceError(f"{url}: {getattr(problem, 'reason', None) or problem}") from None
        time.sleep(PAUSE_S * 2 ** max(0, failed - 1) if failed else 0)
    if problem_text := problem_of(partial, expected):
        partial.unlink()
        raise SourceError(f"what arrived from {url} is not the published file: {problem_text}")
    partial.replace(target)


def read_json(url: str) -> Any:
    """The JSON at an address.

    Raises:
        SourceError: it cannot be had.
    """
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=AGENT), timeout=TIMEOUT_S) as response:
            return json.load(response)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(f"{url}: {getattr(error, 'reason', None) or error}") from None


def offline(error: Exception) -> bool:
    """Whether there is no network or no such server: trying again at once does not help."""
    reason = getattr(error, "reason", None)
    return isinstance(reason, OSError) and not isinstance(reason, TimeoutError | ConnectionResetError)


def _fetch_rest(url: str, partial: Path, on_bytes: Callable[[int, int], None]) -> None:
    """Append what `partial` does not have yet.

    Raises:
        http.client.IncompleteRead: the connection ended early.
    """
    have = partial.stat().st_size if partial.exists() else 0
    headers = AGENT | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is left: it is whole, or not this file, which the hash says
            return
        raise
    with response, partial.open("ab") as file:
        if response.status != 206:
            have = 0
            file.truncate(0)
        promised = response.headers.get("Content-Length")
        total = have + int(promised) if promised is not None else 0
        while chunk := response.read(CHUNK):
            file.write(chunk)
            have += len(chunk)
            on_bytes(have, total)
    if total and have < total:
        raise http.client.IncompleteRead(b"", total - have)
