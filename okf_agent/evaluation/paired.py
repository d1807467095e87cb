"""Two cells over the same tasks: what the difference may be, and which tasks flipped."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from okf_agent.evaluation.figures import CellFigures
from okf_agent.evaluation.statistics import Interval, mcnemar, paired_difference


@dataclass(frozen=True)
class Paired:
    """Two cells over the tasks that both have verdicts for."""

    a: str
    b: str
    difference: Interval
    """Of b - a, in shares of tasks."""
    databases: int
    p: float
    """McNemar's; each task counts once, as right if at least half of its runs are."""
    only_a: tuple[str, ...]
    """Tasks that only a has right."""
    only_b: tuple[str, ...]
    both: int
    neither: int
    alone: int
    """Tasks that only one of the two has verdicts for; they do not count."""


def paired(a: CellFigures, b: CellFigures) -> Paired:
    """b against a, paired by task."""
    tasks = [task for task in a.verdicts if task in b.verdicts]
    before, after = ([fmean(cell.verdicts[task]) for task in tasks] for cell in (a, b))
    database = {run.task_id: str(run.run.get("database")) for run in a.scored}
    clusters = [database[task] for task in tasks]
    won = [(x >= 0.5, y >= 0.5) for x, y in zip(before, after, strict=True)]
    only_a = tuple(task for task, pair in zip(tasks, won, strict=True) if pair == (True, False))
    only_b = tuple(task for task, pair in zip(tasks, won, strict=True) if pair == (False, True))
    return Paired(
        a=a.name,
        b=b.name,
        difference=paired_difference(before, after, clusters),
        databases=len(set(clusters)),
        p=mcnemar(len(only_a), len(only_b)),
        only_a=only_a,
        only_b=only_b,
        both=won.count((True, True)),
        neither=won.count((False, False)),
        alone=len(a.verdicts.keys() ^ b.verdicts.keys()),
    )
