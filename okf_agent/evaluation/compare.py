"""Two cells over the same tasks: what the difference may be, which tasks flipped, and `okf-agent eval compare`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from okf_agent.evaluation import figures
from okf_agent.evaluation.figures import CellFigures
from okf_agent.evaluation.split import seen_in_words
from okf_agent.evaluation.statistics import Interval, mcnemar, paired_difference
from okf_agent.evaluation.store import Evaluation
from okf_agent.evaluation.wording import interval, p_value, points
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert, inert_lines


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


@dataclass(frozen=True)
class Side:
    """What is compared: an evaluation's folder and one of its cells, "" for all."""

    folder: Path
    cell: str = ""


def compare(a: Side, b: Side) -> str:
    """Both sides in words, b against a.

    Without a cell, the cells of the same name are compared; where none is in both, each must have only one.

    Raises:
        UserError: no such evaluation or cell, or nothing that both have verdicts for.
    """
    texts = [_words(*pair) for pair in _pairs(_cells(a), _cells(b), a.cell, b.cell)]
    loaded = {side.folder: Evaluation.load(side.folder) for side in (a, b)}
    texts += [
        f"In {each.name}, a model could read answers (--despite-leaks)." for each in loaded.values() if each.leaks
    ]
    texts += [f"{each.name}: {line}" for each in loaded.values() for line in seen_in_words(each.facts)]
    if len({each.facts.get("suite_hash") for each in loaded.values()}) > 1:
        texts.append("The two were asked from different files: a task of one id may be another question in each.")
    return "\n\n".join(map(inert_lines, texts))


def _cells(side: Side) -> dict[str, CellFigures]:
    """The evaluation's cells by their names in it; each is called `NAME:CELL`."""
    evaluation = Evaluation.load(side.folder)
    cells = {cell.name: cell for cell in figures.read(evaluation)}
    if side.cell and side.cell not in cells:
        near = did_you_mean(side.cell, cells)
        raise UserError(f"{evaluation.name} has no cell {side.cell!r}{near}\nIt has {', '.join(cells)}.", status=2)
    return {name: replace(cell, name=f"{evaluation.name}:{name}") for name, cell in cells.items()}


def _pairs(
    cells_a: dict[str, CellFigures], cells_b: dict[str, CellFigures], a: str, b: str
) -> list[tuple[CellFigures, CellFigures]]:
    """Which cells stand against which.

    Raises:
        UserError: it is not clear.
    """
    if a or b:
        a, b = a or b, b or a
        if a in cells_a and b in cells_b:
            return [(cells_a[a], cells_b[b])]
    elif both := [name for name in cells_a if name in cells_b]:
        return [(cells_a[name], cells_b[name]) for name in both]
    elif len(cells_a) == len(cells_b) == 1:
        return [*zip(cells_a.values(), cells_b.values(), strict=True)]
    known = " or ".join(", ".join(cell.name for cell in cells.values()) for cells in (cells_a, cells_b))
    raise UserError(f"Which cells? Name one of {known}", status=2)


def _words(a: CellFigures, b: CellFigures) -> str:
    """One comparison, on a few lines."""
    found = paired(a, b)
    if not found.difference.n:
        raise UserError(f"{a.name} and {b.name} have no task with a verdict in common.")
    rough = " (few databases: a rough interval)" if 1 < found.databases < 10 else ""
    drawn = f"{found.databases} databases{rough}" if found.databases > 1 else "tasks"
    of = [f", {len(cell.verdicts)} tasks" if found.alone else "" for cell in (a, b)]
    lines = [
        f"{b.name} against {a.name}, {found.difference.n} tasks",
        f"  {a.name}: {interval(a.accuracy)}{of[0]}",
        f"  {b.name}: {interval(b.accuracy)}{of[1]}",
        f"  difference: {points(found.difference)} points, bootstrap over {drawn}",
        f"  right in both {found.both}, only in {a.name} {len(found.only_a)}, only in {b.name} {len(found.only_b)}, "
        f"in neither {found.neither}: p {p_value(found.p)} by McNemar's test",
    ]
    if found.alone:
        lines.append(f"  left out: {found.alone} tasks that only one of them has a verdict for")
    flipped = ((a, found.only_a), (b, found.only_b))
    lines += [f"  only in {cell.name}: {' '.join(tasks)}" for cell, tasks in flipped if tasks]
    return "\n".join(map(inert, lines))
