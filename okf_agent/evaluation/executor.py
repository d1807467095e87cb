"""Where the questions of an evaluation are asked: threads of this process, or an engine that has an Executor.

A further engine is one more branch in `opened`: anything that gives a concurrent.futures.Executor.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from okf_compiler.errors import UserError

WAIT_SECONDS = 30
"""How long a scheduler and its first worker are waited for."""


@dataclass(frozen=True)
class Workers:
    """An executor and how many questions it takes at once."""

    executor: Executor
    slots: int
    remote: bool
    """They cannot write into the evaluation's folder: records come back as values."""


@contextmanager
def opened(address: str | None, workers: int) -> Iterator[Workers]:
    """The executor at an address, None for threads, for as long as the block.

    Raises:
        UserError: an address of a kind that is not known, an engine that is not installed or does not answer.
    """
    if address is None:
        threads = ThreadPoolExecutor(workers, thread_name_prefix="eval")
        try:
            yield Workers(threads, workers, remote=False)
        finally:
            threads.shutdown(cancel_futures=True)
        return
    kind, found, place = address.partition("://")
    if kind != "dask" or not found or not place:
        raise UserError(f"--executor {address}: write dask://host:port, or leave it out for threads.", status=2)
    with _dask(place, workers) as opened_workers:
        yield opened_workers


@contextmanager
def _dask(place: str, workers: int) -> Iterator[Workers]:
    try:
        from distributed import Client
    except ImportError:
        raise UserError(
            "--executor dask://… needs the extra `dask`: pip install 'okf-sql-agent[dask]'", status=2
        ) from None
    try:
        client: Any = Client(f"tcp://{place}", timeout=WAIT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(
            f"No Dask scheduler answers at {place}: {error}. Start one with `dask scheduler`, and its workers with "
            f"`dask worker {place}`."
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=WAIT_SECONDS)
        except TimeoutError:
            raise UserError(f"The Dask scheduler at {place} has no worker. Start one: `dask worker {place}`.") from None
        threads = sum(client.nthreads().values())
        yield Workers(client.get_executor(), max(workers, threads), remote=True)
    finally:
        client.close()
