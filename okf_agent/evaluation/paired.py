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
    gained: tuple[str, ...]
    """Tasks that only b has right."""
    lost: tuple[str, ...]
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
    gained = tuple(task for task, pair in zip(tasks, won, strict=True) if pair == (False, True))
    lost = tuple(task for task, pair in zip(tasks, won, strict=True) if pair == (True, False))
    return Paired(
        a=a.name,
        b=b.name,
        difference=paired_difference(before, after, clusters),
        databases=len(set(clusters)),
        p=mcnemar(len(lost), len(gained)),
        gained=gained,
        lost=lost,
        both=won.count((True, True)),
        neither=won.count((False, False)),
        alone=len(a.verdicts.keys() ^ b.verdicts.keys()),
    )
