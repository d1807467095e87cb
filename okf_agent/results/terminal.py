"""What a person sees of a run: its steps as they happen, and at the end what it took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from okf_agent.ask import Outcome
from okf_agent.events import (
    Event,
    LimitReached,
    ModelReplied,
    Notice,
    Shortened,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from okf_agent.prompts import framing
from okf_agent.results.answers import ENDS
from okf_agent.wording import count, dollars
from okf_compiler.inert import inert
from okf_compiler.terminal import Console

SIGN_OF_LIFE_S = 20.0
"""Seconds without a line after which one says, where no terminal shows a spinner, what is still going on."""


class Progress:
    """Prints a run's events as they happen; while the model or a tool works, under a spinner at a terminal, else with
    a line now and then. Use it in a `with`.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        """`quiet` prints nothing."""
        self.console = console
        self.quiet = quiet
        self._spinner: _Spinner | None = None
        self._signs: _SignsOfLife | None = None
        self._arguments: Mapping[str, Any] = {}

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spinner:
            self._spinner.stop()
        if self._signs:
            self._signs.stop()

    def say(self, line: str) -> None:
        """One line, about something that is being got ready or that is worth knowing."""
        if not self.quiet:
            self.console.say(line, "dim")

    def __call__(self, event: Event) -> None:
        if self.quiet:
            return
        match event:
            case StepStarted(step=step):
                self.wait(f"step {step}: the model is thinking")
            case ModelReplied() if event.tool_calls and event.content.strip():
                self.console.print(Text("     " + _one_line(event.content, self._room(5)), "dim italic"))
            case ToolStarted(arguments=arguments):
                self._arguments = arguments
                self.wait(f"step {event.step}: {event.name}")
            case ToolFinished():
                self.console.print(self._finished(event))
            case Notice(text=text):
                self.say(text)
            case Shortened(results=results):
                self.say(f"{count(results, 'older tool result')} shortened, for the conversation to fit the model.")
            case LimitReached(reason=reason, why=why):
                self.say(f"Stopping: {ENDS.get(why or reason, reason)}. Asking for the best answer so far.")

    def wait(self, doing: str) -> None:
        """Say that something goes on, until the next thing does."""
        if not self.console.is_terminal:
            if self._signs is None:
                self._signs = _SignsOfLife(self.say)
            self._signs.begin(doing)
            return
        if self._spinner is None:
            self._spinner = _Spinner(self.console)
        self._spinner.begin(doing)

    def _finished(self, event: ToolFinished) -> Text:
        line = Text(f"{event.step:>3}  ", "dim")
        line.append(f"{event.name:<13} ", "red" if event.failed else "cyan")
        line.append(_one_line(_gist(event, self._arguments), self._room(19)), "red" if event.failed else "default")
        return line

    def _room(self, taken: int) -> int:
        return max(20, min(self.console.width, 200) - taken)


class _Spinner:
    """Turns at a terminal beside what is going on and how many seconds it has taken so far."""

    def __init__(self, console: Console) -> None:
        self._spinner = Spinner("line" if console.options.ascii_only else "dots")
        self._began = ("", time.monotonic())
        self._live = Live(
            get_renderable=self._view, console=console, transient=True, refresh_per_second=10,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._live.start()

    def begin(self, doing: str) -> None:
        self._began = (doing, time.monotonic())

    def stop(self) -> None:
        self._live.stop()

    def _view(self) -> Spinner:
        doing, since = self._began
        self._spinner.update(text=Text(f"{doing} ({time.monotonic() - since:.0f} s)", "dim", no_wrap=True))
        return self._spinner


class _SignsOfLife:
    """Says every SIGN_OF_LIFE_S what is going on, and since when, from a thread of its own."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._began = ("", 0.0)
        self._moved = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._watch, name="signs-of-life", daemon=True)

    def begin(self, doing: str) -> None:
        self._began = (doing, time.monotonic())
        self._moved.set()
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        self._over = True
        self._moved.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over:
            if self._moved.wait(SIGN_OF_LIFE_S):
                self._moved.clear()
                continue
            doing, since = self._began
            self._say(f"{doing} ({time.monotonic() - since:.0f} s so far)")


def _gist(event: ToolFinished, arguments: Mapping[str, Any]) -> str:
    """A finished tool call in a few words."""
    if event.failed:
        return framing.without_frames(event.text)
    if event.files:
        return " ".join(event.files)
    said = str(arguments.get("sql") or arguments.get("answer") or "")
    return f"{count(event.rows, 'row')}  {said}" if event.rows is not None else said


def summary(outcome: Outcome, model: str) -> str:
    """One line: what the run took, and its id, which `okf-agent runs show` takes."""
    run = outcome.run
    tally = run.tally
    return " · ".join(
        [
            inert(model),
            count(tally.llm_calls, "model call"),
            "unknown tokens" if tally.tokens is None else f"{tally.tokens:,} tokens",
            dollars(tally.cost_usd),
            count(tally.sql_errors, "SQL error"),
            f"{run.seconds:.1f} s",
            f"run {outcome.run_id}",
        ]
    )


def _one_line(text: str, width: int) -> str:
    line = inert(" ".join(text.split()))
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"
