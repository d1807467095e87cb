"""What earlier processes left in the folder of the records: runs that died without a line, and steps that are old."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from okf_agent.events import event_from_json
from okf_agent.records.json_lines import (
    RECORD,
    append_line,
    cut_torn_line,
    open_private,
    parse_line,
    raw_lines,
    read_lines,
    unwritten,
)
from okf_agent.records.trace import RUNS_FILE, Header, record, write_event
from okf_agent.run import Run, Tally

DAY = 86_400
"""Seconds."""
BEGINNING_SECONDS = 60
"""How old a lock without a steps file may be; an older one is of a run that died before its first word."""


def close_dead_runs(runs: Path, *, alone: bool = False) -> list[str]:
    """Write the line of every run that died without one, and return their ids. Runs that live are left alone.

    With `alone` no other process can be about to begin a run there: a lock without a steps file is of a dead one.
    """
    closed = []
    for lock_file in sorted((runs / "steps").glob("*.lock")):
        lock = FileLock(lock_file, timeout=0, mode=0o600)
        try:
            touched = lock_file.stat().st_mtime  # taking the lock touches it
            lock.acquire()
        except (Timeout, OSError):
            continue
        steps = lock_file.with_suffix(".jsonl")
        try:
            if not alone and not steps.exists() and time.time() - touched < BEGINNING_SECONDS:
                continue  # a run that is just about to begin
            if steps.exists() and _close_dead(runs, steps):
                closed.append(lock_file.stem)
        finally:
            lock.release()
        lock_file.unlink(missing_ok=True)
    return closed


def delete_old_steps(runs: Path, days: float) -> None:
    """Delete the steps files that are `days` older than the newest one of an earlier day; 0 keeps all.

    The clock alone is not believed: one that stands at 2037 for an hour would make every file look old. A day later
    its word counts, because then there may be a file that it has dated.
    """
    dated: dict[Path, float] = {}
    for file in (runs / "steps").glob("*.jsonl") if days else ():
        with contextlib.suppress(OSError):  # gone meanwhile
            dated[file] = file.stat().st_mtime
    yesterday = time.time() - DAY
    newest = max((at for at in dated.values() if at < yesterday), default=0.0)
    for file, at in dated.items():
        if at < newest - days * DAY and not file.with_suffix(".lock").exists():
            with contextlib.suppress(OSError):  # not ours to delete
                file.unlink()


def _close_dead(runs: Path, steps: Path) -> bool:
    """Write the line of the dead run of a steps file, unless it has one; whether it had none.

    Raises:
        UserError: it cannot be written; the next start tries again.
    """
    entries = [*read_lines(steps)]
    ends = (e.get("record") for e in entries if e.get("event") == "Finished")
    finished = next((end for end in ends if isinstance(end, dict) and "run_id" in end), None)
    line = finished or _record_of_dead(entries)
    if line is None or _has_line(runs / RUNS_FILE, line["run_id"]):
        return False
    if finished is None:
        try:
            file = open_private(steps)
            try:
                cut_torn_line(file)
                write_event(file, {"event": "Finished", "record": line})
            finally:
                os.close(file)
        except OSError as error:
            raise unwritten(RECORD, steps, error) from None
    append_line(runs / RUNS_FILE, line)
    return True


def _record_of_dead(entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The record of a run from what its steps file has; None if it died before its first line was whole."""
    if not entries or entries[0].get("event") != "Started":
        return None
    values = {name: value for name, value in entries[0].items() if name in Header.__dataclass_fields__}
    tally = Tally()
    for entry in entries[1:]:
        if entry.get("event") == "Prepared":
            values |= {name: value for name, value in entry.items() if name in values}
        elif event := event_from_json(entry):
            tally.add(event)
    at = [float(entry["at"]) for entry in entries if isinstance(entry.get("at"), int | float)] or [0.0]
    try:
        header = Header(**values)
    except TypeError:  # of a version that kept less
        return None
    return record(header, Run("interrupted", tally, seconds=max(0.0, at[-1] - at[0])))


def _has_line(path: Path, run_id: str) -> bool:
    found = (parse_line(line) for line in raw_lines(path) if run_id.encode() in line)
    return any(data is not None and data.get("run_id") == run_id for data in found)
