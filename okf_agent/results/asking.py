"""What is said of a question that was asked: its answer on standard output, what it took on standard error."""

from __future__ import annotations

from rich.console import Group

from okf_agent.ask import Asked, Outcome, Workspace
from okf_agent.cell import Cell
from okf_agent.results import answers, terminal
from okf_agent.results.answers import ended
from okf_compiler.terminal import Console


def show_answer(asked: Asked, outcome: Outcome, workspace: Workspace, out: Console, chart: bool | None) -> None:
    """Print the answer of a run that has one."""
    grounds = answers.grounds_of(asked, outcome, workspace)
    max_rows = workspace.config.settings.database.max_rows
    out.print(Group(*answers.show(outcome.run, grounds, chart, out, max_rows)))


def close(outcome: Outcome, cell: Cell, err: Console, *, quiet: bool = False) -> None:
    """Say what went wrong, what the run took, and its id."""
    if outcome.run.stop_reason == "error":
        err.say(outcome.run.error, "red")
    elif outcome.run.answer is None:
        err.say(f"There is no answer: {ended(outcome.run)}.", "magenta")
    if not quiet:
        err.say(terminal.summary(outcome, cell.model), "dim")
    if outcome.unrecorded:
        err.say(outcome.unrecorded, "red")
