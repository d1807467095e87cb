"""Records read back: the lines of runs.jsonl, the steps of a run, two runs side by side, figures by mode and model.

A line that is no record (torn, or of another program) is left out and counted; nothing here writes to runs.jsonl.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from okf_agent import run
from okf_agent.events import Answered, event_from_json
from okf_agent.records.json_lines import append_line, lines_backwards, parse_line, raw_lines, read_lines
from okf_agent.records.trace import RUNS_FILE
from okf_compiler.errors import UserError

FEEDBACK_FILE = "feedback.jsonl"
TEXTS = ("run_id", "started_at", "database", "model", "question", "mode", "stop_reason")
"""What a line must have as texts to be a record."""
AGO = re.compile(r"(\d+)\s*([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Record: TypeAlias = dict[str, Any]
"""A line of runs.jsonl."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs are asked for; "" and None leave a field open."""

    database: str = ""
    mode: str = ""
    model: str = ""
    """A part of the model's name, in any case."""
    stop_reason: str = ""
    task: str = ""
    since: datetime | None = None

    def has(self, record: Record) -> bool:
        exact = {
            "database": self.database,
            "mode": self.mode,
            "stop_reason": self.stop_reason,
            "task_id": self.task,
        }
        if any(value and record.get(name) != value for name, value in exact.items()):
            return False
        if self.model.lower() not in record["model"].lower():
            return False
        return self.since is None or _started(record) >= self.since


@dataclass
class Found:
    """Records, oldest first, and how many lines were none."""

    records: list[Record] = field(default_factory=list)
    skipped: int = 0
    example: str = ""
    """The beginning of a line that was left out."""

    def skip(self, line: bytes) -> None:
        self.skipped += 1
        self.example = line[:60].decode("utf-8", "replace").strip()


@dataclass(frozen=True)
class Feedback:
    """What a person said of a run."""

    run_id: str
    verdict: str
    """`right` or `wrong`; "" for a note alone."""
    note: str = ""
    at: str = ""


@dataclass(frozen=True)
class Rows:
    """Rows of a run's answer, as far as they are known."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool
    """The result had more, or longer cells."""


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side."""

    records: tuple[Record, Record]
    same_question: bool
    files_in_both: tuple[str, ...]
    files_only: tuple[tuple[str, ...], tuple[str, ...]]
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    rows_only: tuple[tuple[Any, ...], tuple[Any, ...]] | None
    """Rows of the answer that the other run has not, as often as it has them less; None if rows were not kept."""
    rows_in_both: int = 0
    rows_cut: bool = False
    """A result was longer than what was kept of it."""


def read_runs(runs: Path, wanted: RunFilter | None = None, last: int | None = None) -> Found:
    """The records in `runs`, oldest first; with `last`, only so many of the latest, read from the end of the file."""
    wanted = wanted or RunFilter()
    found = Found()
    lines: Iterable[bytes] = raw_lines(runs / RUNS_FILE) if last is None else lines_backwards(runs / RUNS_FILE)
    for line in lines:
        if last is not None and len(found.records) >= last:
            break
        record = _record(line)
        if record is None:
            found.skip(line)
        elif wanted.has(record):
            found.records.append(record)
    if last is not None:
        found.records.reverse()
    return found


def find_run(runs: Path, run_id: str) -> Record:
    """The record of a run by its id, a part of it that no other has, or `last`.

    Raises:
        UserError: there is none, or several.
    """
    if run_id == "last":
        latest = read_runs(runs, last=1).records
        if latest:
            return latest[0]
        raise UserError(f"There are no runs in {runs} yet.")
    found: dict[str, Record] = {}
    part = run_id.encode()
    for line in lines_backwards(runs / RUNS_FILE):
        record = _record(line) if part in line else None
        if record and run_id == record["run_id"]:
            return record
        if record and run_id in record["run_id"]:
            found.setdefault(record["run_id"], record)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise UserError(f"{run_id!r} is part of {len(found)} runs: {', '.join([*found][:5])}. Give more of the id.")
    raise UserError(
        f"There is no run {run_id!r} in {runs}. `okf-agent runs` lists them; `okf-agent runs tail ID` follows one that "
        "is still going; `okf-agent eval show TASK` shows those of an evaluation."
    )


def steps_of(runs: Path, run_id: str) -> list[dict[str, Any]]:
    """The events of a run, in order; empty if its steps file is gone. Lines that are torn or foreign are left out."""
    return [event for event in read_lines(runs / "steps" / f"{run_id}.jsonl") if "event" in event]


def read_feedback(runs: Path) -> dict[str, list[Feedback]]:
    """What people said, by run_id, oldest first."""
    said: dict[str, list[Feedback]] = {}
    for data in read_lines(runs / FEEDBACK_FILE):
        if isinstance(data.get("run_id"), str):
            values = {name: str(data.get(name) or "") for name in ("verdict", "note", "at")}
            said.setdefault(data["run_id"], []).append(Feedback(data["run_id"], **values))
    return said


def add_feedback(runs: Path, run_id: str, verdict: str, note: str = "") -> Feedback:
    """Keep what a person says of a run.

    Raises:
        UserError: it cannot be written.
    """
    said = Feedback(run_id, verdict, note, datetime.now().astimezone().isoformat(timespec="seconds"))
    append_line(runs / FEEDBACK_FILE, asdict(said), "Your feedback")
    return said


def statistics(records: Iterable[Record], feedback: Mapping[str, Sequence[Feedback]]) -> list[dict[str, Any]]:
    """One object a mode and model, sorted by both: counts, and medians of steps, tokens, dollars and seconds.

    `cost_usd` is the median of the runs whose whole cost is known, null if there are none. `success` is null where no
    model of ours answered: a client of the MCP server keeps its answer.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["mode"], record["model"]), []).append(record)
    return [_figures(mode, model, group, feedback) for (mode, model), group in sorted(groups.items())]


def succeeded(record: Record) -> bool:
    """Whether the run of a record ended well, as `okf_agent.run.succeeded` says."""
    answer = record.get("answer")
    return run.succeeded(record["stop_reason"], str(answer.get("checked")) if isinstance(answer, dict) else None)


def number(record: Mapping[str, Any], name: str) -> float:
    """A figure of a record; 0 where it is missing or no number."""
    value = record.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def tokens(record: Mapping[str, Any]) -> int | None:
    """Tokens in and out of a record; None where its provider did not count them all."""
    counts = (record.get("input_tokens", 0), record.get("output_tokens", 0))
    return None if None in counts else int(number(record, "input_tokens") + number(record, "output_tokens"))


def compare(a: Record, b: Record, rows_a: Rows | None, rows_b: Rows | None) -> Comparison:
    """Two runs side by side: what each read, what it took, and which rows of the answers differ.

    Rows are those of the answers as far as they are known; their order and the names of columns do not count.
    """
    read = [[*dict.fromkeys(map(str, record.get("files_opened") or ()))] for record in (a, b)]
    counts = [Counter(found.rows) if found else Counter() for found in (rows_a, rows_b)]
    known = rows_a is not None and rows_b is not None
    return Comparison(
        records=(a, b),
        same_question=a["question"] == b["question"] and a["database"] == b["database"],
        files_in_both=tuple(path for path in read[0] if path in read[1]),
        files_only=(
            tuple(path for path in read[0] if path not in read[1]),
            tuple(path for path in read[1] if path not in read[0]),
        ),
        columns=(rows_a.columns if rows_a else (), rows_b.columns if rows_b else ()),
        rows_only=((*(counts[0] - counts[1]).elements(),), (*(counts[1] - counts[0]).elements(),)) if known else None,
        rows_in_both=(counts[0] & counts[1]).total(),
        rows_cut=any(found.cut for found in (rows_a, rows_b) if found),
    )


def kept_rows(runs: Path, record: Record) -> Rows | None:
    """The rows of a run's answer, as far as its steps kept them; None if they did not."""
    found = None
    for data in steps_of(runs, record["run_id"]):
        event = event_from_json(data)
        if isinstance(event, Answered) and (event.rows or event.answer.rows_total == 0):
            found = tuple(event.columns), tuple(map(tuple, event.rows))
    if found is None:
        return None
    answer = record.get("answer")
    total = answer.get("rows_total") if isinstance(answer, dict) else None
    return Rows(*found, cut=bool(found[1]) and (total is None or total > len(found[1])))


def is_record(data: Mapping[str, Any]) -> bool:
    return all(isinstance(data.get(name), str) for name in TEXTS)


def parse_since(text: str) -> datetime:
    """`2026-11-01`, `2026-11-01T12:00` (local time unless it has an offset), or how long ago: `90m`, `2h`, `7d`, `1w`.

    Raises:
        UserError: it is none of these.
    """
    if match := AGO.fullmatch(text.strip()):
        return datetime.now().astimezone() - timedelta(**{UNITS[match[2]]: int(match[1])})
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except ValueError:
        raise UserError(f"--since {text}: write a date (2026-11-01) or how long ago (2h, 7d).", status=2) from None


def _record(line: bytes) -> Record | None:
    data = parse_line(line)
    return data if data is not None and is_record(data) else None


def _started(record: Record) -> datetime:
    try:
        return datetime.fromisoformat(record["started_at"]).astimezone()
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0).astimezone()


def _figures(
    mode: str, model: str, group: Sequence[Record], feedback: Mapping[str, Sequence[Feedback]]
) -> dict[str, Any]:
    costs = [number(record, "cost_usd") for record in group if record.get("cost_usd") is not None]
    counted = [took for record in group if (took := tokens(record)) is not None]
    verdicts = Counter(said[-1].verdict for record in group if (said := feedback.get(record["run_id"])))
    return {
        "mode": mode,
        "model": model,
        "runs": len(group),
        "success": sum(map(succeeded, group)) if model else None,
        "steps": median(number(record, "llm_calls") for record in group),
        "tokens": median(counted) if counted else None,
        "cost_usd": median(costs) if costs else None,
        "cost_unknown": len(group) - len(costs),
        "seconds": round(median(number(record, "seconds") for record in group), 3),
        "right": verdicts["right"],
        "wrong": verdicts["wrong"],
    }
