"""A run that is over becomes a line of scores.jsonl: the verdict, and where it is wrong the class of the miss."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from okf_agent.ask import Workspace
from okf_agent.evaluation import gold, misses
from okf_agent.evaluation.navigation import needed_concepts
from okf_agent.evaluation.scorers import Options, score
from okf_agent.evaluation.split import holdout
from okf_agent.evaluation.store import Line
from okf_agent.evaluation.suites import Suite
from okf_agent.evaluation.verdict import Verdict
from okf_agent.evaluation.worker import Job
from okf_agent.prepare import quiet
from okf_compiler import bundle as bundles


class Scoring:
    """Scores the runs of one suite; safe to use from several threads."""

    def __init__(self, suite: Suite, workspace: Workspace, judge: str | None = None, speed_repeats: int = 0) -> None:
        """`judge`: a model that is asked for its opinion too; `speed_repeats`: runs of each query for R-VES."""
        self.gold = gold.load(suite)
        self.held = holdout(suite.queries)
        self.workspace = workspace
        self.options = Options(suite.scorer, speed_repeats, workspace.model(judge) if judge else None)
        self._lock = threading.Lock()

    def score(self, job: Job, record: Mapping[str, Any]) -> Line:
        """The line of scores.jsonl for a run's line of runs.jsonl.

        Raises:
            UserError: the judge's model cannot be called.
        """
        task, answer = job.task, self.gold.get(job.task.id)
        ready = self.workspace.ready(task.database, quiet)
        options = replace(self.options, bundle=ready.bundle)
        verdict = score(task, answer, record, ready.database, options)
        miss = self._miss(answer, record, verdict, ready.bundle) if verdict.strict is False and answer else None
        return {
            "run_id": record["run_id"],
            "task_id": task.id,
            "database": task.database,
            "cell": job.cell.name,
            "repeat": job.repeat,
            "difficulty": task.difficulty,
            "holdout": task.id in self.held,
            **verdict.to_json(),
            "miss": miss.kind if miss else "",
            "evidence": miss.evidence if miss else "",
        }

    def _miss(self, answer: gold.Gold, record: Mapping[str, Any], verdict: Verdict, folder: Path) -> misses.Miss:
        with self._lock:  # the first one loads the bundle, the others have it then
            content = _bundle(folder, _stamp(folder))
        needed = needed_concepts(content, answer.rules, answer.sql)
        case = misses.Case(
            record=record,
            gold=answer.sql,
            answerable=answer.answerable,
            rules=needed.rules,
            lenient=verdict.lenient,
            differences=verdict.differences,
            reason=verdict.reason,
        )
        return misses.classify(case)


@functools.lru_cache(maxsize=32)
def _bundle(folder: Path, _stamp: int) -> bundles.Bundle:
    return bundles.load(folder)


def _stamp(folder: Path) -> int:
    """Changes when the bundle is replaced."""
    index = folder / "index.md"
    return index.stat().st_mtime_ns if index.is_file() else 0
