"""The only way in: a question and a cell go in, a recorded run comes out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from okf_agent import agent, knowledge, llm
from okf_agent.bundles import measured
from okf_agent.cell import KNOWLEDGE, Cell
from okf_agent.clock import today
from okf_agent.config import Config, Price
from okf_agent.downloads.fetch import progress_bar
from okf_agent.events import Event, Message
from okf_agent.models import local_model
from okf_agent.models.providers import LOCAL
from okf_agent.prepare import Ready, Say, get_ready, quiet, too_much
from okf_agent.records import left_behind, trace
from okf_agent.run import Limits, Question, Run
from okf_agent.sql.database import Database
from okf_agent.tools import Context, Queries
from okf_compiler.bundle import bundle_hash
from okf_compiler.documents import Documents
from okf_compiler.errors import UserError
from okf_compiler.profiling.store import PROFILE

LOCAL_NAME = "openai/local"
"""How its server is called, as one that speaks OpenAI's protocol; it costs nothing."""


@dataclass(frozen=True)
class Asked:
    """A question as a person or a task puts it."""

    text: str
    database: str
    task_id: str | None = None
    follows: str | None = None
    """The run whose conversation it continues."""
    conversation: tuple[Message, ...] = ()
    read_before: tuple[str, ...] = ()
    """Bundle paths that the runs of the conversation read."""
    client: str = "cli"
    """What asks, as the record names it."""
    hint: str = ""
    """What a benchmark says beside the question; only a cell with `hints` shows it."""
    repeat: int | None = None
    """Which time an evaluation asks this, from 1."""
    despite_leaks: bool = False
    """Whether an evaluation asks although the model may read the answers; the record's cell says so."""


@dataclass(frozen=True)
class Outcome:
    """A run that is over, and its record."""

    run: Run
    run_id: str
    record: Path
    """The file that has the run's line."""
    unrecorded: str = ""
    """Why the line could not be written; "" if it was."""
    line: Mapping[str, Any] = field(default_factory=dict)
    """The run's line of runs.jsonl."""

    @property
    def exit_status(self) -> int:
        """0 for a run that succeeded and is on record, 130 for an interrupted one, else 1."""
        if self.run.stop_reason == "interrupted":
            return 130
        return 0 if self.run.succeeded and not self.unrecorded else 1


class Supplies(Protocol):
    """What a question is supplied with: by a Workspace, or by a server that lends it one connection."""

    @property
    def config(self) -> Config: ...
    def ready(self, name: str, say: Say, /) -> Ready: ...
    def model(self, name: str, repeat: int | None = None) -> llm.Model: ...


class Workspace:
    """What questions share: the configuration, databases that are ready, the local model. Use it in a `with`.

    Safe to use from several threads: what is shared is made once, and each query has a connection to itself.
    """

    def __init__(
        self,
        config: Config,
        bundle: Path | None = None,
        *,
        unsafe_role: bool = False,
        replies: llm.Replies | None = None,
    ) -> None:
        """`bundle` is read instead of the compiled one; `unsafe_role` asks as a role that can do more too; replies of
        models are taken from `replies`, and kept there."""
        self.config = config
        self.bundle = bundle
        self.unsafe_role = unsafe_role
        self.replies = replies
        self.cancelled = threading.Event()
        """Once set, every run ends as interrupted."""
        self._lock = threading.RLock()
        self._ready: dict[str, Ready] = {}
        self._steady: dict[str, Database] = {}
        self._open = ExitStack()
        self._local_base: str | None = None

    def __enter__(self) -> Workspace:
        left_behind.close_dead_runs(self.config.runs)
        left_behind.delete_old_steps(self.config.runs, self.config.trace.keep_days)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def ready(self, name: str, say: Say) -> Ready:
        """The database `name`, ready for questions.

        Raises:
            UserError: something it needs cannot be had.
        """
        with self._lock:
            if name not in self._ready:
                self._ready[name] = self._get_ready(name, say)
            return self._ready[name]

    def steady(self, name: str) -> Database | None:
        """Return the database `name` for queries that give the same each time; None where it has no content.

        Raises:
            UserError: something it needs cannot be had.
        """
        with self._lock:
            ready = self.ready(name, quiet)
            if ready.database and name not in self._steady:
                self._steady[name] = ready.database.steady()
                self._open.callback(self._steady[name].close)
            return self._steady.get(name)

    def _get_ready(self, name: str, say: Say) -> Ready:
        ready = get_ready(self.config, name, self.bundle, say)
        if ready.database:
            self._open.callback(ready.database.close)
        if ready.unsafe and not self.unsafe_role:
            raise UserError(
                f"{too_much(self.config, name, ready.unsafe)} --unsafe-role asks anyway, and the record says so."
            )
        return ready

    def cancel(self) -> None:
        """End every run and every query of this workspace; the runs are recorded as interrupted."""
        self.cancelled.set()
        for database in (*(ready.database for ready in [*self._ready.values()]), *[*self._steady.values()]):
            if database:
                database.cancel()

    def model(self, name: str, repeat: int | None = None) -> llm.Model:
        """The model behind a name; the embedded one is fetched and started first.

        `repeat`: which time the same is asked; replies are kept for each time apart.

        Raises:
            UserError: the embedded model cannot be had.
        """
        section = self.config.model.model_copy(update={"name": name})
        if name == LOCAL:
            with self._lock:
                if self._local_base is None:
                    with progress_bar() as progress:
                        self._local_base = self._open.enter_context(local_model.serve(progress=progress))
            section = section.model_copy(
                update={
                    "name": LOCAL_NAME,
                    "api_base": self._local_base,
                    "prices": {**section.prices, LOCAL_NAME: Price(input=0, output=0)},
                    "max_tokens": min(section.max_tokens, local_model.REPLY_TOKENS),
                    "timeout_s": max(section.timeout_s, local_model.REPLY_SECONDS),
                }
            )
        replies = self.replies and self.replies.of_repeat(repeat or 1)
        return llm.Model(section, replies, self.cancelled)


def ask(asked: Asked, cell: Cell, workspace: Supplies, on_event: Callable[[Event], None], say: Say) -> Outcome:
    """Get ready, give the question its knowledge, run the loop, leave a record.

    Raises:
        UserError: the question is empty, or something it needs cannot be had. Only an empty question leaves no record.
    """
    if not asked.text.strip():
        raise UserError("The question is empty.", status=2)
    cell.check()
    config = workspace.config
    header = _header(asked, cell)
    record = config.runs / trace.RUNS_FILE
    text = f"{asked.text}\n\n{asked.hint}" if cell.hints and asked.hint else asked.text
    with trace.Recorder(config.runs, header, config.trace) as recorder:

        def both(event: Event) -> None:
            recorder.on_event(event)
            on_event(event)

        llm.start_import()  # takes seconds, so it goes on while the database gets ready
        ready, known, context = _prepared(asked, cell, workspace, say)
        read = bundle_hash(ready.bundle) if KNOWLEDGE[cell.knowledge].reads_bundle else None
        day = today(ready.database, config.agent.today)
        told = {"today": day.date.isoformat(), "time_zone": day.time_zone}
        recorder.update(bundle_hash=read, unsafe_role=bool(ready.unsafe), **told)
        run = agent.run(
            Question(text, asked.database, day, asked.conversation),
            known,
            workspace.model(cell.model, asked.repeat),
            context,
            _limits(config),
            both,
        )
        try:
            line = recorder.finish(run)
        except UserError as error:
            line = trace.record(recorder.header, run)
            return Outcome(run, header.run_id, record, unrecorded=str(error), line=line)
    return Outcome(run, header.run_id, record, line=line)


def _header(asked: Asked, cell: Cell) -> trace.Header:
    """Return what a record says of a run before it begins."""
    settings = cell.settings()
    if cell.name:
        settings["name"] = cell.name
    if asked.despite_leaks:
        settings["despite_leaks"] = True
    return trace.Header(
        database=asked.database,
        model=cell.model,
        question=asked.text,
        mode=cell.knowledge,
        cell=settings,
        task_id=asked.task_id,
        repeat=asked.repeat,
        follows=asked.follows,
        client=asked.client,
    )


def _limits(config: Config) -> Limits:
    """Return how far a question may go, by `agent:` of config.yaml."""
    section = config.agent
    return Limits(
        max_steps=section.max_steps,
        max_seconds=section.max_seconds,
        max_tokens=section.max_tokens,
        max_cost_usd=section.max_cost_usd,
    )


def check(asked: Asked, cell: Cell, workspace: Supplies, say: Say) -> None:
    """Raise what asking a question with a cell would raise before its first model call.

    Raises:
        UserError: the cell cannot work, or the database lacks what its knowledge is made from.
    """
    cell.check()
    _prepared(asked, cell, workspace, say)


def _prepared(asked: Asked, cell: Cell, workspace: Supplies, say: Say) -> tuple[Ready, knowledge.Knowledge, Context]:
    """The database ready for questions, the cell's knowledge for this one, and what its tools work on."""
    ready = workspace.ready(asked.database, say)
    sources = sources_of(workspace.config, asked.database, ready.documents, ready.bundle, cell, say)
    known = knowledge.prepare(cell.knowledge, asked.text, sources)
    return ready, known, context_of(workspace.config, sources, ready.database)


def sources_of(
    config: Config, database: str, documents: Documents | None, bundle: Path, cell: Cell, say: Say
) -> knowledge.Sources:
    """Where a cell finds its knowledge of a database; the profile only where it is shown.

    A profile that cannot be read, or is of another database, is as good as none: `say` is told.
    """
    profiles = config.settings.profiles / database
    if problem := measured.problem(profiles, database, config.settings.hidden(database)):
        say(problem)
    found = profiles if (profiles / PROFILE).is_file() and not problem else None
    return knowledge.Sources(
        database,
        documents,
        bundle,
        found if cell.profiles else None,
        cell,
        values=found,
        hide=config.settings.hidden(database),
        pack_tokens=config.agent.pack_tokens,
    )


def context_of(config: Config, sources: knowledge.Sources, database: Queries | None) -> Context:
    """What the tools of a run work on, at its beginning."""
    return Context(
        sources.bundle,
        database,
        config.settings.database.max_rows,
        sources.profiles,
        values=sources.values,
        hide=sources.hide,
    )
