"""Bytes from publishers, over http and https alone: never more of them than a file or a listing may have."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import logging
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
TIMEOUT_S = 30
HUB_TIMEOUT_S = 5
"""Seconds that Hugging Face may take to say what a file is."""

Progress = Callable[[str, int, int], None]
"""Called with what is happening, the bytes done and the bytes in all (0 where there is nothing to count)."""


class SourceError(Exception):
    """One source could not give the file."""


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
    """Return a file's size and SHA-256 in hexadecimal; `on_bytes` is told how many bytes are read."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            done += len(chunk)
            on_bytes(done)
    return done, digest.hexdigest()


def read(url: str, limit: int) -> bytes:
    """Return what is at an address.

    Raises:
        SourceError: it cannot be had, or has more bytes than `limit`.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (  # build_opener() would add those of file:, ftp: and data:
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "okf-sql-agent"})
        with opener.open(request, timeout=TIMEOUT_S) as response:
            body: bytes = response.read(limit + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(f"{url}: {getattr(error, 'reason', None) or error}") from None
    if len(body) > limit:
        raise SourceError(f"{url}: it goes on after the {limit:,} bytes that it may have")
    return body


def from_hub(
    repository: str, path: str, folder: Path, told: Callable[[int, int], None], *, size: int, **where: str
) -> Path:
    """Return a file of a repository on Hugging Face, put below `folder` by its own library.

    `told` is called with the bytes done and `size`, which it may have; `where` may name a `revision` and `repo_type`.

    Raises:
        SourceError: it cannot be had, or has more bytes than that.
        OSError: the disk.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read at its import: it would say what program calls it
    import huggingface_hub as hub

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    endpoint = os.environ.get("HF_ENDPOINT")
    try:
        # Asked first because this call does not retry: without a network a download retries for 23 s.
        address = hub.hf_hub_url(repository, path, endpoint=endpoint, **where)
        asked: dict[str, Any] = {"endpoint": endpoint, "token": False, "library_name": "okf-sql-agent"}
        hub.get_hf_file_metadata(address, timeout=HUB_TIMEOUT_S, **asked)
        arguments: dict[str, Any] = {"etag_timeout": HUB_TIMEOUT_S, **asked, **where}
        bar = _bar(f"{repository}/{path}", size, told)
        return Path(hub.hf_hub_download(repository, path, local_dir=folder, tqdm_class=bar, **arguments))
    except SourceError:
        raise
    except Exception as error:  # its HTTP library's own errors, and whatever a reply of a wrong shape sets off
        if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError | TimeoutError):
            raise
        raise SourceError(f"Hugging Face: {(str(error).strip() or type(error).__name__).splitlines()[0]}") from None


def _bar(name: str, size: int, told: Callable[[int, int], None]) -> Any:
    """Return the class of bar that huggingface_hub tells of every chunk before it writes it."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc, unused-ignore]
        def __init__(self, *_: Any, initial: float = 0, **__: Any) -> None:
            super().__init__(disable=True)
            self.done = int(initial)

        def update(self, n: float | None = 1) -> None:
            self.done += int(n or 0)
            if self.done > size:
                raise SourceError(f"{name}: it goes on after the {size:,} bytes that it may have")
            told(self.done, size)

    return Bar
