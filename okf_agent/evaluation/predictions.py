"""`okf-agent eval score`: predictions that were made elsewhere, held against a suite's gold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from okf_agent.ask import Workspace
from okf_agent.cell import Cell
from okf_agent.config import Config
from okf_agent.entries import read_entries
from okf_agent.evaluation import suites
from okf_agent.evaluation.scoring import Scoring
from okf_agent.evaluation.suites import Suite, databases
from okf_agent.evaluation.worker import Job
from okf_agent.prepare import quiet
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.whole_file import write_whole


@dataclass(frozen=True)
class ScoreOptions:
    """The arguments of `eval score`."""

    file: Path
    suite: str
    judge: str | None = None
    speed: int | None = None
    output: Path | None = None


@dataclass(frozen=True)
class Prediction:
    """A query made elsewhere, as a line `{"task_id": …, "sql": …}`; "" for a question that was declined."""

    task_id: str
    sql: str

    def record(self) -> dict[str, Any]:
        """What scorers read of a run."""
        answer = {"sql": self.sql, "answer": ""}
        return {"run_id": "", "task_id": self.task_id, "mode": "", "stop_reason": "submitted", "answer": answer}


def score_file(config: Config, options: ScoreOptions, say: Callable[[str], None]) -> None:
    """Score every prediction in a file; one line for each that is not right, and the figures at the end.

    Raises:
        UserError: no such suite, a suite without gold, a line that is no prediction, a database that cannot be had.
    """
    suite = suites.load(options.suite, config)
    suites.hold_pins(suite, say)
    config = databases.configured(suite, config)
    tasks = {task.id: task for task in suite.tasks}
    given = [*predictions(options.file, suite)]
    with Workspace(config) as workspace:
        scoring = Scoring(suite, workspace, options.judge, options.speed or 0)
        if not scoring.gold:
            raise UserError(f"The suite {suite.name} has no gold here, so nothing can be scored.")
        for name in dict.fromkeys(tasks[each.task_id].database for each in given):
            workspace.ready(name, quiet)
        cell = Cell("", name=options.file.stem)
        lines = []
        for each in given:
            lines.append(scoring.score(Job(tasks[each.task_id], cell), each.record()))
            if not lines[-1]["strict"]:
                say(_why(lines[-1]))
    if options.output:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        try:
            write_whole(options.output, text)
        except OSError as error:
            raise UserError(f"{options.output} cannot be written: {error.strerror or error}.") from None
    counts = Counter(line["strict"] for line in lines)
    lenient = sum(bool(line["lenient"]) for line in lines)
    missing = len(suite.queries) - len({each.task_id for each in given})
    say(
        f"{suite.name}: {counts[True]} of {counts[True] + counts[False]} right, {lenient} by the lenient rule; "
        f"{counts[None]} unscored, {missing} questions without a prediction."
    )


def predictions(file: Path, suite: Suite) -> Iterator[Prediction]:
    """The predictions in a file, for the suite's tasks.

    Raises:
        UserError: a line without task_id or sql, or of a task that the suite does not have; names the line.
    """
    known = {task.id for task in suite.tasks}
    for entry in read_entries(file):
        task_id, sql = entry.text("task_id", "instance_id", "question_id"), entry.text("sql", "SQL", "predicted_sql")
        if task_id not in known:
            near = did_you_mean(task_id, known)
            raise UserError(f"{entry.where}: {suite.name} has no task {task_id!r}{near}", status=2)
        yield Prediction(task_id, sql)


def _why(line: Mapping[str, Any]) -> str:
    verdict = "unscored" if line["strict"] is None else "wrong"
    forgiven = f" (lenient: right but for {', '.join(line['differences'])})" if line["lenient"] else ""
    return f"{line['task_id']}: {verdict}: {line['gold_error'] or line['reason']}{forgiven}"
