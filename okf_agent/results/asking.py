"""Ask under a person's eyes: steps as they happen on standard error, the answer on standard output."""

from __future__ import annotations

from rich.console import Console, Group
from rich.text import Text

from okf_agent.ask import Asked, Outcome, Workspace, ask
from okf_agent.cell import Cell
from okf_agent.results import answers, terminal
from okf_agent.results.answers import ENDS, inert_text


def show_asking(
    asked: Asked,
    cell: Cell,
    workspace: Workspace,
    out: Console,
    err: Console,
    chart: bool | None = None,
) -> Outcome:
    """Ask, with the steps on `err` as they happen, and the answer with a last line on `out`.

    Raises:
        UserError: as `ask`.
    """
    outcome = watch(asked, cell, workspace, err)
    if outcome.run.answer is not None:
        grounds = answers.grounds_of(asked, outcome, workspace)
        out.print(Group(*answers.show(outcome.run, grounds, chart, out)))
    close(outcome, cell, err)
    return outcome


def watch(asked: Asked, cell: Cell, workspace: Workspace, err: Console, *, quiet: bool = False) -> Outcome:
    """Ask, with the steps on `err` as they happen.

    Raises:
        UserError: as `ask`.
    """
    with terminal.Progress(err, quiet=quiet) as progress:
        return ask(asked, cell, workspace, progress, progress.say)


def close(outcome: Outcome, cell: Cell, err: Console, *, quiet: bool = False) -> None:
    """What there is to say after an answer: what went wrong, what it took, where its record is."""
    if outcome.run.stop_reason == "error":
        err.print(inert_text(outcome.run.error, "red"), soft_wrap=True)
    elif outcome.run.answer is None:
        err.print(Text(f"There is no answer: {ENDS.get(outcome.run.stop_reason, outcome.run.stop_reason)}.", "magenta"))
    if not quiet:
        err.print(Text(terminal.summary(outcome, cell.model), "dim"), soft_wrap=not err.is_terminal)
    if outcome.unrecorded:
        err.print(inert_text(outcome.unrecorded, "red"), soft_wrap=True)
