"""`okf-agent eval compare`: two cells over the same tasks, with what the difference may be and which tasks flipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from okf_agent.evaluation import figures
from okf_agent.evaluation.figures import CellFigures
from okf_agent.evaluation.report import interval, p_value, points
from okf_agent.evaluation.store import Evaluation
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert


def compare(a: str, b: str) -> str:
    """Both sides in words, each the folder of an evaluation, or `FOLDER:CELL`.

    Without a cell, the cells of the same name are compared; where none is in both, each must have only one.

    Raises:
        UserError: no such evaluation or cell, or nothing that both have verdicts for.
    """
    sides = _side(a), _side(b)
    pairs = _pairs(*sides)
    names = [side[0] for side in sides]
    shown = [_words(_named(one, names[0]), _named(other, names[1])) for one, other in pairs]
    return "\n\n".join(shown)


def _side(text: str) -> tuple[str, dict[str, CellFigures], str]:
    """The evaluation's name, its cells by name, and the cell that is asked for, "" for all."""
    folder, _, cell = text.rpartition(":") if not Path(text).is_dir() else (text, "", "")
    evaluation = Evaluation.load(Path(folder or text))
    cells = {found.name: found for found in figures.read(evaluation)}
    if cell and cell not in cells:
        known = ", ".join(cells)
        raise UserError(f"{evaluation.name} has no cell {cell!r}{did_you_mean(cell, cells)}\nIt has {known}.", status=2)
    return evaluation.name, cells, cell


def _pairs(
    a: tuple[str, dict[str, CellFigures], str], b: tuple[str, dict[str, CellFigures], str]
) -> list[tuple[CellFigures, CellFigures]]:
    """Which cells stand against which.

    Raises:
        UserError: it is not clear.
    """
    (_, before, one), (_, after, other) = a, b
    if one or other:
        wanted = one or other, other or one
        if wanted[0] in before and wanted[1] in after:
            return [(before[wanted[0]], after[wanted[1]])]
    elif both := [name for name in before if name in after]:
        return [(before[name], after[name]) for name in both]
    elif len(before) == len(after) == 1:
        return [*zip(before.values(), after.values(), strict=True)]
    raise UserError(
        f"Which cells? {a[0]} has {', '.join(before)}; {b[0]} has {', '.join(after)}. Name them: NAME:CELL", status=2
    )


def _named(cell: CellFigures, evaluation: str) -> CellFigures:
    return replace(cell, name=f"{evaluation}:{cell.name}")


def _words(a: CellFigures, b: CellFigures) -> str:
    """One comparison, on a few lines."""
    found = figures.compare(a, b)
    if not found.difference.n:
        raise UserError(f"{a.name} and {b.name} have no task with a verdict in common.")
    rough = " (few databases: a rough interval)" if 1 < found.databases < 10 else ""
    drawn = f"{found.databases} databases{rough}" if found.databases > 1 else "tasks"
    lines = [
        f"{b.name} against {a.name}, {found.difference.n} tasks",
        f"  first        {interval(a.accuracy)}",
        f"  second       {interval(b.accuracy)}",
        f"  difference   {points(found.difference)} points, bootstrap over {drawn}",
        f"  McNemar      p {p_value(found.p)}: only the second right {len(found.gained)}, only the first "
        f"{len(found.lost)}, both {found.both}, neither {found.neither}",
    ]
    if found.alone:
        lines.append(f"  left out     {found.alone} tasks that only one of them has a verdict for")
    flipped = {"gained": found.gained, "lost": found.lost}
    lines += [f"  {what:<12} {' '.join(tasks)}" for what, tasks in flipped.items() if tasks]
    lines += [f"  {cell.name} is {cell.mark}" for cell in (a, b) if cell.mark]
    return "\n".join(map(inert, lines))
