"""The record of a run: its events as they happen, and one whole line in runs.jsonl, whatever happens.

`runs/steps/<run_id>.jsonl` holds every event. While a run lives it holds the lock of `<run_id>.lock`; a lock file
that nobody holds is of a run that died, and the next start writes its line, as `interrupted` (left_behind.py). The line
of a run is written to its steps file first and to runs.jsonl after, so that none is lost and none comes twice.
"""

from __future__ import annotations

import functools
import os
import platform
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from okf_agent import DISTRIBUTION
from okf_agent.config import TraceSection
from okf_agent.events import (
    Answered,
    Event,
    Instructions,
    StopReason,
    ToolFinished,
    Writing,
    event_to_json,
)
from okf_agent.models.errors import redact
from okf_agent.records.json_lines import (
    RECORD,
    append_line,
    open_private,
    unwritten,
    write_line,
)
from okf_agent.run import Run, Tally
from okf_compiler.errors import UserError

RUNS_FILE = "runs.jsonl"
SAMPLE_CHARS = 500
"""Of a tool result that `trace.rows: sample` keeps."""
SAMPLE_ROWS = 5
"""Of the answer's rows that it keeps."""


def _new_id() -> str:
    """An id that sorts by time: 20261129-204512-3fa2c1."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def versions() -> dict[str, str]:
    """The versions of what made a run, as far as they are known."""
    return dict(_versions())


@functools.cache  # finding them out takes as long as a query does
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for name in (DISTRIBUTION, "litellm", "psycopg"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class Header:
    """What is known of a run before its first model call. The field names are those of the record."""

    database: str
    model: str
    question: str
    mode: str
    task_id: str | None = None
    repeat: int | None = None
    """Which time an evaluation asks this, from 1; None outside of one."""
    follows: str | None = None
    bundle_hash: str | None = None
    unsafe_role: bool = False
    today: str = ""
    """The date that the model was told, in `time_zone`, that of the database's session; "" before it is known."""
    time_zone: str = ""
    cell: Mapping[str, Any] | None = None
    """The settings of its cell; in an evaluation with the cell's name."""
    client: str = "cli"
    run_id: str = field(default_factory=_new_id)
    started_at: str = field(default_factory=lambda: datetime.now().astimezone().isoformat(timespec="milliseconds"))
    versions: Mapping[str, str] = field(default_factory=versions)


class Recorder:
    """Writes one run. Use it in a `with`: the line is written at the end, also after an exception.

    Raises:
        UserError: the folder of the records cannot be written to. At the start nothing has been spent; at the end
            the answer may have been shown already.
    """

    def __init__(self, runs: Path, header: Header, settings: TraceSection) -> None:
        self.header = header
        self.runs = runs
        self.settings = settings
        self.tally = Tally()
        self.steps = runs / "steps" / f"{header.run_id}.jsonl"
        self.lost: OSError | None = None
        """The first error of the steps file; the run goes on without it."""
        self._began = time.monotonic()
        self._done = False
        try:
            self.steps.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = FileLock(self.steps.with_suffix(".lock"), timeout=5, mode=0o600)
            self._lock.acquire()
            self._file = open_private(self.steps)
            write_event(self._file, {"event": "Started", **asdict(header)})
        except (OSError, Timeout) as error:
            raise unwritten(RECORD, self.steps, error) from None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._done:
            return
        reason: StopReason = "error"
        text = f"{kind.__name__}: {error}" if kind else ""
        if isinstance(error, KeyboardInterrupt):
            reason, text = "interrupted", ""
        elif isinstance(error, UserError):
            text = str(error)
        run = Run(reason, self.tally, redact(text), time.monotonic() - self._began)
        try:
            self.finish(run)
        except UserError:
            # The exception on its way out says more than that there is no record of it.
            if error is None:
                raise

    def update(self, **changes: Any) -> None:
        """Set fields of the header that preparing the run has found out."""
        self.header = replace(self.header, **changes)
        self._try_write({"event": "Prepared", **changes})

    def on_event(self, event: Event) -> None:
        """Keep an event. A full disk does not stop the run."""
        if isinstance(event, Writing):
            return  # its whole text follows
        self.tally.add(event)
        self._try_write(event_to_json(self._without_rows(event)))

    def finish(self, run: Run) -> dict[str, Any]:
        """Write the line of the run, and give it.

        Raises:
            UserError: it could not be written; runs.jsonl is as it was.
        """
        line = record(self.header, run)
        self._done = True
        try:
            self._try_write({"event": "Finished", "record": line})
            append_line(self.runs / RUNS_FILE, line)
        finally:
            os.close(self._file)
            self._lock.release()
            # After a failure the lock file stays, and the next start writes the line.
        self.steps.with_suffix(".lock").unlink(missing_ok=True)
        return line

    def _try_write(self, data: Mapping[str, Any]) -> None:
        if self.lost is None:
            try:
                write_event(self._file, data)
            except OSError as error:
                self.lost = error

    def _without_rows(self, event: Event) -> Event:
        """The event with as much of query results as `trace.rows` keeps."""
        if self.settings.rows == "full":
            return event
        if isinstance(event, Answered):
            return replace(event, rows=event.rows[:SAMPLE_ROWS] if self.settings.rows == "sample" else ())
        if isinstance(event, Instructions):  # earlier answers of the conversation stand there with their first rows
            said = [
                {**m, "content": self._sample(str(m["content"]))} if m["role"] == "assistant" else m
                for m in event.messages
            ]
            return replace(event, messages=tuple(said))
        if isinstance(event, ToolFinished) and event.name != "read_file":
            return replace(event, text=self._sample(event.text))
        return event

    def _sample(self, text: str) -> str:
        """As much of a text with rows as `trace.rows` keeps, which is not all."""
        kept = text[:SAMPLE_CHARS] if self.settings.rows == "sample" else ""
        note = f"({len(text)} characters, trace.rows: {self.settings.rows})"
        return f"{kept}\n{note}" if kept else note


def write_event(file: int, event: Mapping[str, Any]) -> None:
    """Write a line of a steps file, with the time of now; raises as `write_line`."""
    write_line(file, {"at": round(time.time(), 3), **event})


def record(header: Header, run: Run) -> dict[str, Any]:
    """A run's line of runs.jsonl."""
    counted = asdict(run.tally)
    answer = counted.pop("answer")
    return {
        **asdict(header),
        "stop_reason": run.stop_reason,
        "error": run.error,
        **{name: round(value, 6) if isinstance(value, float) else value for name, value in counted.items()},
        "seconds": round(run.seconds, 6),
        "answer": answer,
    }
