"""An evaluation in figures: what its report and `show` say, worked out from its records alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Any, Protocol

from okf_agent.evaluation.misses import KINDS, Miss
from okf_agent.evaluation.navigation import Navigation
from okf_agent.evaluation.statistics import (
    Interval,
    Stability,
    mean_pass_at_k,
    stability,
    wilson,
)
from okf_agent.evaluation.store import Evaluation, cell_of
from okf_agent.records.runs import tokens

UNKNOWN_MISS = Miss("not classified", "")


class Explains(Protocol):
    """What knows gold: `explain.Explainer`. Figures can be had without."""

    def miss(self, run: Mapping[str, Any], score: Mapping[str, Any]) -> Miss | None: ...
    def navigation(self, run: Mapping[str, Any]) -> Navigation | None: ...


@dataclass(frozen=True)
class Scored:
    """One run with its score; a run that was not scored has an empty one."""

    run: Mapping[str, Any]
    score: Mapping[str, Any]
    miss: Miss | None = None
    navigation: Navigation | None = None

    @property
    def task_id(self) -> str:
        return str(self.run["task_id"])

    @property
    def cell(self) -> str:
        return cell_of(self.run)

    @property
    def repeat(self) -> int:
        return int(self.run.get("repeat") or 1)

    @property
    def strict(self) -> bool | None:
        """None: it is not known whether the answer is right."""
        value = self.score.get("strict")
        return value if isinstance(value, bool) else None

    @property
    def tokens(self) -> int | None:
        return tokens(self.run)


@dataclass(frozen=True)
class CellFigures:
    """What one cell did, over all its runs."""

    name: str
    settings: Mapping[str, Any]
    runs: Sequence[Scored]

    @cached_property
    def scored(self) -> list[Scored]:
        return [run for run in self.runs if run.strict is not None]

    @cached_property
    def accuracy(self) -> Interval:
        return share(self.scored, "strict")

    @cached_property
    def lenient(self) -> Interval:
        return share(self.scored, "lenient")

    @cached_property
    def holdout(self) -> Interval:
        return share([run for run in self.scored if run.score.get("holdout")], "strict")

    @property
    def gold_errors(self) -> int:
        return sum(bool(run.score.get("gold_error")) for run in self.runs)

    @cached_property
    def cost(self) -> float | None:
        """Mean dollars of the runs whose whole cost is known; None if there is none."""
        known = [float(c) for run in self.runs if (c := run.run.get("cost_usd")) is not None]
        return fmean(known) if known else None

    @property
    def cost_unknown(self) -> int:
        return sum(run.run.get("cost_usd") is None for run in self.runs)

    @cached_property
    def seconds(self) -> float | None:
        return _median(run.run.get("seconds") for run in self.runs)

    @cached_property
    def tokens(self) -> float | None:
        return _median(run.tokens for run in self.runs)

    @property
    def tokens_unknown(self) -> int:
        return sum(run.tokens is None for run in self.runs)

    @cached_property
    def calls(self) -> float | None:
        return _median(run.run.get("llm_calls") for run in self.runs)

    @property
    def cached_calls(self) -> int:
        return sum(int(run.run.get("cached_calls") or 0) for run in self.runs)

    @cached_property
    def stability(self) -> Stability:
        return stability(self.verdicts.values())

    def pass_at(self, k: int) -> float | None:
        return mean_pass_at_k(self.verdicts, k)

    @cached_property
    def verdicts(self) -> dict[str, list[bool]]:
        """The strict verdicts of each task."""
        found: dict[str, list[bool]] = defaultdict(list)
        for run in self.scored:
            found[run.task_id].append(bool(run.strict))
        return dict(found)

    @cached_property
    def misses(self) -> Counter[str]:
        return Counter(run.miss.kind for run in self.runs if run.miss)

    def mean(self, name: str) -> float | None:
        """The mean of a figure of the scores that have it, such as knowledge_recall."""
        known = [float(value) for run in self.runs if (value := run.score.get(name)) is not None]
        return fmean(known) if known else None

    @property
    def judged(self) -> float | None:
        """The share of judged runs that the judge calls a MATCH; None without a judge."""
        said = [run.score["judge"] == "MATCH" for run in self.runs if run.score.get("judge")]
        return fmean(said) if said else None

    @property
    def judge_agrees(self) -> float | None:
        """The share of judged runs with a verdict where the judge says the same as the strict rule."""
        same = [(run.score["judge"] == "MATCH") is run.strict for run in self.scored if run.score.get("judge")]
        return fmean(same) if same else None

    @property
    def judge_cost(self) -> float:
        """Known dollars of all judgements."""
        return sum(float(run.score.get("judge_cost_usd") or 0) for run in self.runs)

    @cached_property
    def reads(self) -> float | None:
        """Mean files a run opened, indexes included."""
        return fmean(len(run.run.get("files_opened") or ()) for run in self.runs) if self.runs else None

    @cached_property
    def failed_reads(self) -> float | None:
        return fmean(int(run.run.get("failed_reads") or 0) for run in self.runs) if self.runs else None

    @cached_property
    def detours(self) -> float | None:
        """Mean concepts that a run read and did not need."""
        found = [len(run.navigation.detours) for run in self.runs if run.navigation]
        return fmean(found) if found else None

    @cached_property
    def reads_per_needed(self) -> float | None:
        found = [run.navigation.reads_per_needed for run in self.runs if run.navigation]
        known = [value for value in found if value is not None]
        return fmean(known) if known else None

    def by(self, field: str) -> dict[str, Interval]:
        """Accuracy by a field of the scores: difficulty, database."""
        groups: dict[str, list[Scored]] = defaultdict(list)
        for run in self.scored:
            groups[str(run.score.get(field) or "")].append(run)
        return {name: share(group, "strict") for name, group in groups.items()}


def read(evaluation: Evaluation, explain: Explains | None = None) -> list[CellFigures]:
    """Return the figures of every cell, in the order of eval.json."""
    scores = {score["run_id"]: score for score in evaluation.scores()}
    grouped: dict[str, list[Scored]] = defaultdict(list)
    for run in evaluation.runs():
        score = scores.get(run["run_id"], {})
        grouped[cell_of(run)].append(
            Scored(run, score, _miss(run, score, explain), explain.navigation(run) if explain else None)
        )
    settings = {str(cell["name"]): cell for cell in evaluation.facts.get("cells", ())}
    names = [*dict.fromkeys((*settings, *grouped))]
    return [CellFigures(name, settings.get(name, {}), grouped[name]) for name in names]


def share(runs: Iterable[Scored], verdict: str) -> Interval:
    """The share of tasks that are right, with Wilson's interval; a task's repeats are averaged first."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        by_task[run.task_id].append(float(bool(run.score.get(verdict))))
    return wilson(sum(fmean(values) for values in by_task.values()), len(by_task))


def miss_kinds(cells: Iterable[CellFigures]) -> list[str]:
    """The classes that occur, in the order of the rules."""
    found = {kind for cell in cells for kind in cell.misses}
    return [kind for kind in (*KINDS, UNKNOWN_MISS.kind) if kind in found] + sorted(found - {*KINDS, UNKNOWN_MISS.kind})


def _miss(run: Mapping[str, Any], score: Mapping[str, Any], explain: Explains | None) -> Miss | None:
    if score.get("strict") is not False:
        return None
    if score.get("miss"):
        return Miss(str(score["miss"]), str(score.get("evidence") or ""))
    return (explain.miss(run, score) if explain else None) or UNKNOWN_MISS


def _median(values: Iterable[Any]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return median(known) if known else None
