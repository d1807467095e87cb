"""What a person sees: steps as they happen on standard error, the answer on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.status import Status
from rich.syntax import Syntax
from rich.text import Text

from okf_agent.ask import Asked, Cell, Outcome, Workspace, ask
from okf_agent.render import inert, table
from okf_agent.run import (
    Event,
    LimitReached,
    ModelReplied,
    Notice,
    Run,
    Shortened,
    StepStarted,
    ToolFinished,
    ToolStarted,
)

ENDS = {
    "step_limit": "it used all its steps (agent.max_steps)",
    "time_limit": "its time was over (agent.max_seconds)",
    "token_limit": "it used all its tokens (agent.max_tokens)",
    "cost_limit": "it reached its cost limit (agent.max_cost_usd)",
    "no_tool_calls": "the model went on talking instead of handing in an answer",
    "interrupted": "it was interrupted",
}
"""Why a run ended without a submitted answer, after "Stopped: "."""
CHECKS = {
    "error": "The query does not run.",
    "no_rows": "The query gives no rows.",
    "lone_null": "The query gives nothing but one NULL.",
    "not_run": "This database has no content here, so the query was not run.",
}


class Progress:
    """Prints a run's events as they happen; while the model or a tool works, under a spinner. Use it in a `with`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._spinner: Status | None = None
        self._arguments: Mapping[str, Any] = {}

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spinner:
            self._spinner.stop()

    def say(self, line: str) -> None:
        """One line, about something that is being got ready or that is worth knowing."""
        self.console.print(Text(inert(line), "dim"), soft_wrap=True)

    def __call__(self, event: Event) -> None:
        match event:
            case StepStarted(step=step):
                self._wait(f"step {step}: the model is thinking")
            case ModelReplied() if event.tool_calls and event.content.strip():
                self.console.print(Text("     " + _one_line(event.content, self._room(5)), "dim italic"))
            case ToolStarted(arguments=arguments):
                self._arguments = arguments
                self._wait(f"step {event.step}: {event.name}")
            case ToolFinished():
                self.console.print(self._finished(event))
            case Notice(text=text):
                self.say(text)
            case Shortened(results=results):
                self.say(f"{results} older tool results were shortened: the conversation no longer fitted the model.")
            case LimitReached(reason=reason):
                self.say(f"Stopping: {ENDS.get(reason, reason)}. Asking for the best answer so far.")

    def _wait(self, doing: str) -> None:
        if not self.console.is_terminal:
            return
        if self._spinner is None:
            self._spinner = self.console.status("")
            self._spinner.start()
        self._spinner.update(Text(doing, "dim"))

    def _finished(self, event: ToolFinished) -> Text:
        line = Text(f"{event.step:>3}  ", "dim")
        line.append(f"{event.name:<14}", "red" if event.failed else "cyan")
        line.append(_one_line(_gist(event, self._arguments), self._room(19)), "red" if event.failed else "default")
        return line

    def _room(self, taken: int) -> int:
        return max(20, min(self.console.width, 200) - taken)


def _gist(event: ToolFinished, arguments: Mapping[str, Any]) -> str:
    """A finished tool call in a few words."""
    if event.failed:
        return event.text
    if event.files:
        return " ".join(event.files)
    said = str(arguments.get("sql") or arguments.get("answer") or "")
    return f"{event.rows} rows  {said}" if event.rows is not None else said


def show_asking(asked: Asked, cell: Cell, workspace: Workspace, out: Console, err: Console) -> Outcome:
    """Ask, with the steps on `err` as they happen, and the answer with a last line on `out`.

    Raises:
        UserError: as `ask`.
    """
    with Progress(err) as progress:
        outcome = ask(asked, cell, workspace, progress, progress.say)
    if outcome.run.stop_reason == "error":
        err.print(Text(inert(outcome.run.error), "red"), soft_wrap=True)
    if outcome.run.answer is not None:
        out.print(Group(*_answer(outcome.run)))
    err.print(Text(summary(outcome, cell.model), "dim"), soft_wrap=True)
    if outcome.unrecorded:
        err.print(Text(inert(outcome.unrecorded), "red"), soft_wrap=True)
    return outcome


def _answer(run: Run) -> Iterator[RenderableType]:
    """What was handed in, its SQL and its rows, and what to know before trusting it."""
    answer = run.answer
    assert answer is not None
    yield Text()
    if run.stop_reason in ENDS:
        yield Text(f"The best answer so far; the run was stopped: {ENDS[run.stop_reason]}.", "yellow")
    yield Text(inert(answer.answer), "bold")
    if answer.sql:
        yield Text()
        sql = "\n".join(inert(line) for line in answer.sql.splitlines())
        yield Syntax(sql, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
        if answer.checked in CHECKS:
            yield Text("\n" + CHECKS[answer.checked], "yellow")
    if run.result is not None and answer.checked == "ran":
        yield Text()
        yield table(run.result)
    if run.tally.ungrounded_numbers:
        numbers = ", ".join(run.tally.ungrounded_numbers)
        yield Text(f"Not found in any result, in a rule or in the question: {inert(numbers)}", "yellow")
    yield Text()


def summary(outcome: Outcome, model: str) -> str:
    """One line: what the run took, and where its record is."""
    run = outcome.run
    tally = run.tally
    cost = "cost unknown" if tally.cost_usd is None else f"${tally.cost_usd:.4f}"
    return " · ".join(
        [
            inert(model),
            _count(tally.llm_calls, "model call"),
            f"{tally.input_tokens + tally.output_tokens:,} tokens",
            cost,
            _count(tally.sql_errors, "SQL error"),
            f"{run.seconds:.1f} s",
            str(outcome.record),
        ]
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _one_line(text: str, width: int) -> str:
    line = " ".join(inert(text).split())
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"
