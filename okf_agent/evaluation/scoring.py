"""A run that is over becomes a line of scores.jsonl: the verdict, and where it is wrong the class of the miss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from okf_agent.ask import Workspace
from okf_agent.evaluation import gold, misses
from okf_agent.evaluation.case import case_of
from okf_agent.evaluation.navigation import needed_concepts
from okf_agent.evaluation.scorers import Options, score
from okf_agent.evaluation.split import holdout
from okf_agent.evaluation.store import Line
from okf_agent.evaluation.suites import Suite
from okf_agent.evaluation.worker import Job
from okf_agent.prepare import quiet
from okf_compiler.loaded import loaded


class Scoring:
    """Scores the runs of one suite; safe to use from several threads."""

    def __init__(self, suite: Suite, workspace: Workspace, judge: str | None = None, speed_repeats: int = 0) -> None:
        """`judge`: a model that is asked for its opinion too; `speed_repeats`: runs of each query for R-VES."""
        self.gold = gold.load(suite)
        self.held = holdout(suite.queries)
        self.workspace = workspace
        self.options = Options(suite.scorer, speed_repeats, workspace.model(judge) if judge else None)

    def score(self, job: Job, record: Mapping[str, Any]) -> Line:
        """The line of scores.jsonl for a run's line of runs.jsonl.

        Raises:
            UserError: the judge's model cannot be called.
        """
        task, answer = job.task, self.gold.get(job.task.id)
        ready = self.workspace.ready(task.database, quiet)
        options = replace(self.options, bundle=ready.bundle)
        verdict = score(task, answer, record, self.workspace.steady(task.database), options)
        facts, miss = verdict.to_json(), None
        if verdict.strict is False and answer:
            needed = needed_concepts(loaded(ready.bundle), answer.rules, answer.sql)
            miss = misses.classify(case_of(record, facts, answer, needed))
        return {
            "run_id": record["run_id"],
            "task_id": task.id,
            "database": task.database,
            "cell": job.cell.name,
            "repeat": job.repeat,
            "difficulty": task.difficulty,
            "holdout": task.id in self.held,
            **facts,
            "miss": miss.kind if miss else "",
            "evidence": miss.evidence if miss else "",
        }
