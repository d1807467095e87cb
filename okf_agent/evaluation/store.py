"""An evaluation on disk: `runs/evals/<name>/` with eval.json, runs.jsonl, steps/ and scores.jsonl.

Lines are appended whole or not at all, so a process that is killed loses nothing that was finished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from filelock import FileLock, Timeout

from okf_agent.config import Config
from okf_agent.records.json_lines import append_line, parse_line, read_lines
from okf_agent.records.trace import RUNS_FILE
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.whole_file import write_whole

FACTS_FILE = "eval.json"
SCORES_FILE = "scores.jsonl"
LOCK_FILE = "runner.lock"
FOLDER = "evals"
NAME = re.compile(r"\w[\w.+ -]{0,119}(?<![. ])")
"""What every file system takes as a folder, and no `NAME:CELL` is misread by."""
RESERVED = ("last",)
"""What stands for the latest one."""

Key: TypeAlias = tuple[str, str, int]
"""A run's place in an evaluation: task id, cell name, repeat (from 1)."""
Line: TypeAlias = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Evaluation:
    """One evaluation; `facts` is its eval.json."""

    folder: Path
    facts: Mapping[str, Any]

    @classmethod
    def load(cls, folder: Path) -> Evaluation:
        """The evaluation in a folder.

        Raises:
            UserError: there is none, or its eval.json cannot be read.
        """
        try:
            facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{folder} holds no evaluation that can be read: {error}", status=2) from None
        if not isinstance(facts, dict):
            raise UserError(f"{folder / FACTS_FILE} is not an object.", status=2)
        return cls(folder, facts)

    @classmethod
    def create(cls, folder: Path, facts: Mapping[str, Any]) -> Evaluation:
        """A new evaluation; eval.json is there whole or not at all.

        Raises:
            UserError: the folder cannot be written to.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
            write_whole(folder / FACTS_FILE, text, durable=True)
        except OSError as error:
            raise _not_kept(folder, error) from None
        return cls(folder, facts)

    @property
    def name(self) -> str:
        return self.folder.name

    def runs(self) -> list[Line]:
        """The line of every run that counts, in the order they ended.

        An interrupted run does not count; of two runs in one place, the later one does.
        """
        return self._of_runs(lambda line: line)

    def scores(self) -> list[Line]:
        """The score of every run that counts and has one; scored twice, the later one."""
        found = {line["run_id"]: line for line in _lines(self.folder / SCORES_FILE)}
        counted = self._of_runs(lambda line: str(line["run_id"]))
        return [found[run_id] for run_id in counted if run_id in found]

    def _of_runs(self, kept: Callable[[Line], T]) -> list[T]:
        """What is to be kept of the line of every run that counts."""
        last: dict[Key, T] = {}
        for line in _lines(self.folder / RUNS_FILE):
            if line.get("stop_reason") != "interrupted":
                last.pop(key_of(line), None)  # so that the later one stands where it ended
                last[key_of(line)] = kept(line)
        return [*last.values()]

    @property
    def leaks(self) -> bool:
        """Whether models could read answers, and `--despite-leaks` went on."""
        return bool(self.facts.get("leaks"))

    @property
    def suite(self) -> str:
        """What names its suite to `suites.load`: as it was given, where that was kept."""
        return str(self.facts.get("suite_argument") or self.facts.get("suite") or "")

    def steps(self, run_id: str) -> list[Line]:
        """The events of one run; [] if they are not kept any more."""
        try:
            return [*read_lines(self.folder / "steps" / f"{run_id}.jsonl")]
        except OSError:
            return []

    def spent(self) -> tuple[float, bool]:
        """Dollars spent on all runs and judgements, interrupted ones too, and whether every price is known."""
        known, whole = 0.0, True
        for line in _lines(self.folder / RUNS_FILE):
            known += line.get("cost_known_usd") or 0.0
            whole = whole and line.get("cost_usd") is not None
        for line in _lines(self.folder / SCORES_FILE):
            known += line.get("judge_cost_usd") or 0.0
        return known, whole

    def add_run(self, line: Mapping[str, Any], steps: str) -> None:
        """Keep a run that was recorded elsewhere: its line and the text of its steps file.

        Raises:
            UserError: it cannot be written.
        """
        file = self.folder / "steps" / f"{line['run_id']}.jsonl"
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(file, steps, private=True)
        except OSError as error:
            raise UserError(f"{file} cannot be written: {error.strerror or error}. Make room for it.") from None
        append_line(self.folder / RUNS_FILE, line)

    def add_score(self, line: Mapping[str, Any]) -> None:
        """Keep a score.

        Raises:
            UserError: it cannot be written.
        """
        append_line(self.folder / SCORES_FILE, line, "The score of this run")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runners out of an evaluation's folder, which is made, for as long as the block.

    Raises:
        UserError: one is at work, or the folder cannot be written to.
    """
    lock = FileLock(folder / LOCK_FILE, timeout=0, mode=0o600)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock.acquire()
    except Timeout:
        raise UserError(f"Another process is running the evaluation {folder.name}; wait for it or stop it.") from None
    except OSError as error:
        raise _not_kept(folder, error) from None
    try:
        yield
    finally:
        lock.release()


def _not_kept(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"The evaluation cannot be kept in {folder}: {error.strerror or error}. "
        "Make room, or point agent.runs in config.yaml to a folder that you can write to."
    )


def key_of(line: Mapping[str, Any]) -> Key:
    """The place of a run's line in its evaluation."""
    return str(line.get("task_id")), cell_of(line), int(line.get("repeat") or 1)


def cell_of(line: Mapping[str, Any]) -> str:
    """The name of the cell of a run's line."""
    cell = line.get("cell")
    return str(cell.get("name", "") if isinstance(cell, Mapping) else cell)


def folder_of(config: Config, name: str) -> Path:
    """Where the evaluation `name` lies, or would.

    Raises:
        UserError: the name is no plain file name.
    """
    if not NAME.fullmatch(name) or name in RESERVED:
        raise UserError(f"{name!r} cannot be the name of an evaluation: use letters, digits and dashes.", status=2)
    return config.runs / FOLDER / name


def names(config: Config) -> list[str]:
    """Every evaluation of the workspace, oldest first."""
    files = [*(config.runs / FOLDER).glob(f"*/{FACTS_FILE}")]
    return [file.parent.name for file in sorted(files, key=lambda file: (file.stat().st_mtime, file))]


def all_in(evals: Path) -> list[Evaluation]:
    """Return every evaluation in a folder that can be read, oldest first."""
    found = []
    for file in evals.glob(f"*/{FACTS_FILE}"):
        with suppress(UserError):
            found.append(Evaluation.load(file.parent))
    return sorted(found, key=lambda each: str(each.facts.get("started_at")))


def find(config: Config, name: str) -> Evaluation:
    """The evaluation `name`, or `last`, or one in a folder that is named by its path.

    Raises:
        UserError: there is none; the nearest name is suggested.
    """
    known = names(config)
    if name == "last" and known:
        name = known[-1]
    if name in known:
        return Evaluation.load(folder_of(config, name))
    if (Path(name) / FACTS_FILE).is_file():
        return Evaluation.load(Path(name))
    where = config.runs / FOLDER
    latest = f"\n`last` stands for the latest, {known[-1]}; `okf-agent eval list` has all." if known else ""
    raise UserError(f"There is no evaluation {name!r} in {where}{did_you_mean(name, known)}{latest}", status=2)


def _lines(path: Path) -> Iterator[Line]:
    """Each whole line of a file of JSON lines about runs; none if there is no file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for raw in file:
            line = parse_line(raw)
            if line is not None and "run_id" in line:
                yield line
