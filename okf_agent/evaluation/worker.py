"""One question of an evaluation, asked by a thread of the runner or by a Dask worker that hands its record back."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from okf_agent.ask import Asked, Outcome, Workspace, ask
from okf_agent.cell import Cell
from okf_agent.config import Config, load_env
from okf_agent.evaluation.replies import Replies
from okf_agent.evaluation.store import Key
from okf_agent.events import Event
from okf_agent.prepare import quiet
from okf_agent.tasks import Task
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


@dataclass(frozen=True)
class Job:
    """One task in one cell, once."""

    task: Task
    cell: Cell
    repeat: int = 1
    despite_leaks: bool = False
    """Whether the model may read answers: the record says so."""

    @property
    def key(self) -> Key:
        return self.task.id, self.cell.name, self.repeat


@dataclass(frozen=True)
class Done:
    """A run that is over."""

    line: Mapping[str, Any]
    """Its line of runs.jsonl."""
    steps: str | None = None
    """The text of its steps file, where that was written elsewhere; None: both lie in the evaluation already."""


def configured(config: Config, runs: Path) -> Config:
    """The same configuration, with its records in another folder."""
    return replace(config, agent=config.agent.model_copy(update={"runs": runs.resolve()}))


def perform(job: Job, workspace: Workspace) -> Done:
    """Ask here; the record goes to the folder of the workspace's runs.

    Raises:
        UserError: something the question needs cannot be had, or the record cannot be kept.
    """
    return Done(_ask(job, workspace).line)


class Remote:
    """What a worker on another machine, or in another process, does; it can be pickled.

    The worker must see the workspace's folder under the same path, and reach its database. Keys are read from its
    own environment and `.env`; none is sent.
    """

    def __init__(self, config: Config, replies: Path | None, unsafe_role: bool = False) -> None:
        self.config = configured(config, config.settings.root / "worker")  # its own folder is chosen over there
        self.replies = replies
        self.unsafe_role = unsafe_role

    def __call__(self, job: Job) -> Done:
        """Ask, and hand the record back.

        Raises:
            UserError: as `perform`.
        """
        workspace = _workspace(self)
        outcome = _ask(job, workspace)
        file = workspace.config.runs / "steps" / f"{outcome.run_id}.jsonl"
        steps = file.read_text(encoding="utf-8")
        file.unlink()
        return Done(outcome.line, steps)


def _ask(job: Job, workspace: Workspace) -> Outcome:
    task = job.task
    asked = Asked(
        task.question,
        task.database,
        task.id,
        hint=task.hint,
        repeat=job.repeat,
        despite_leaks=job.despite_leaks,
    )
    outcome = ask(asked, job.cell, workspace, _ignore, quiet)
    if outcome.unrecorded:
        raise UserError(outcome.unrecorded)
    return outcome


def _ignore(_event: Event) -> None:
    """Nobody watches one run of many."""


_workspaces: dict[str, Workspace] = {}
_opening = threading.Lock()


def _workspace(remote: Remote) -> Workspace:
    """This process's workspace for that configuration, made once; its records lie in a scratch folder."""
    key = repr(vars(remote))
    with _opening:
        if key not in _workspaces:
            load_env(remote.config.settings.root / ".env")
            scratch = Path(tempfile.mkdtemp(prefix="okf-worker-"))
            atexit.register(shutil.rmtree, scratch, ignore_errors=True)
            replies = Replies(remote.replies) if remote.replies else None
            config = configured(remote.config, scratch)
            workspace = Workspace(config, unsafe_role=remote.unsafe_role, replies=replies)
            atexit.register(workspace.__exit__)
            _workspaces[key] = workspace
        return _workspaces[key]
