"""`okf-agent eval score`: predictions that were made elsewhere, held against a suite's gold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from okf_agent.ask import Workspace
from okf_agent.cell import Cell
from okf_agent.config import Config
from okf_agent.evaluation import suites
from okf_agent.evaluation.scorers import predictions
from okf_agent.evaluation.scoring import Scoring
from okf_agent.evaluation.suites import databases
from okf_agent.evaluation.worker import Job
from okf_agent.prepare import quiet
from okf_compiler.errors import UserError


def score_file(
    config: Config,
    file: Path,
    say: Callable[[str], None],
    *,
    suite: str,
    judge: str | None = None,
    speed: int | None = None,
    output: Path | None = None,
) -> None:
    """Score every prediction in a file; one line for each that is not right, and the figures at the end.

    Raises:
        UserError: no such suite, a suite without gold, a line that is no prediction, a database that cannot be had.
    """
    known = suites.load(suite, config)
    config = databases.configured(known, config)
    tasks = {task.id: task for task in known.tasks}
    given = [*predictions(file, known)]
    counts: Counter[str] = Counter()
    lines = []
    with Workspace(config) as workspace:
        scoring = Scoring(known, workspace, judge, speed or 0)
        if not scoring.gold:
            raise UserError(f"The suite {known.name} has no gold here, so nothing can be scored.")
        for name in dict.fromkeys(tasks[each.task_id].database for each in given):
            workspace.ready(name, quiet)
        for each in given:
            record = {"run_id": "", "mode": "", "stop_reason": "submitted", **each.record()}
            line = scoring.score(Job(tasks[each.task_id], Cell("", name=file.stem)), record)
            lines.append(json.dumps(line, ensure_ascii=False) + "\n")
            verdict = "unscored" if line["strict"] is None else "right" if line["strict"] else "wrong"
            counts[verdict] += 1
            counts["lenient"] += bool(line["lenient"])
            if verdict != "right":
                forgiven = f" (lenient: right but for {', '.join(line['differences'])})" if line["lenient"] else ""
                say(f"{each.task_id}: {verdict}: {line['gold_error'] or line['reason']}{forgiven}")
    if output:
        output.write_text("".join(lines), encoding="utf-8", newline="\n")
    scored = counts["right"] + counts["wrong"]
    missing = len(known.queries) - len({each.task_id for each in given})
    say(
        f"{known.name}: {counts['right']} of {scored} right, {counts['lenient']} by the lenient rule; "
        f"{counts['unscored']} unscored, {missing} questions without a prediction."
    )
