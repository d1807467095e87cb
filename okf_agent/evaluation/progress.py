"""What a person sees while an evaluation runs: bars on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from okf_compiler.terminal import Console

PLAIN_SECONDS = 15
"""Between two plain lines."""
BAR_SECONDS = 0.25
"""Between two pictures of the bars."""


@dataclass
class Count:
    """How far one cell is."""

    total: int
    done: int = 0
    scored: int = 0
    right: int = 0


@dataclass
class State:
    """How far an evaluation is."""

    cells: dict[str, Count]
    spent: float = 0.0
    """Dollars, as far as prices are known, earlier sessions included."""
    unknown_cost: bool = False
    cached_calls: int = 0
    here: int = 0
    """Runs that this process has finished."""
    began: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        return sum(count.done for count in self.cells.values())

    @property
    def total(self) -> int:
        return sum(count.total for count in self.cells.values())

    def left(self) -> float | None:
        """Seconds that the rest takes at the speed so far; None before there is one."""
        if not self.here:
            return None
        return (time.monotonic() - self.began) / self.here * (self.total - self.done)

    def line(self) -> str:
        """All of it in one line."""
        right = sum(count.right for count in self.cells.values())
        scored = sum(count.scored for count in self.cells.values())
        parts = [f"{self.done} of {self.total} done"]
        parts.append(f"{right} of {scored} right" if scored else "none scored")
        parts.append(f"${self.spent:.4f}" + (" and calls of unknown price" if self.unknown_cost else ""))
        if self.cached_calls:
            parts.append(f"{self.cached_calls} cached replies")
        left = self.left()
        if left is not None and self.done < self.total:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def by_cell(self) -> str:
        """What the line sums up, cell by cell; "" where there is nothing to tell apart."""
        parts = [f"{name} {count.right} of {count.scored}" for name, count in self.cells.items() if count.scored]
        return f"Right by cell: {', '.join(parts)}" if len(parts) > 1 else ""


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Display:
    """Shows a State. `update` is cheap and may be called often."""

    def __init__(self, state: State, console: Console, live: Live | None) -> None:
        self.state = state
        self._console = console
        self._live = live
        self._last = time.monotonic()
        self._so_far = ""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[right]}"),
        )
        self._bars = Progress(*columns, console=console, auto_refresh=False)
        self._tasks = {name: self._bars.add_task(name, total=c.total, right="") for name, c in state.cells.items()}

    def update(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._last < (PLAIN_SECONDS if self._live is None else BAR_SECONDS):
            return
        self._last = now
        if self._live is None:
            self.say_line()
            return
        for name, count in self.state.cells.items():
            right = f"{count.right} of {count.scored} right" if count.scored else ""
            self._bars.update(self._tasks[name], completed=count.done, right=right)
        self._live.update(Group(self._bars, Text(self.state.line())), refresh=True)

    def say_line(self) -> None:
        """The state as a line of its own, unless nothing has come since the last one but time."""
        line = self.state.line()
        so_far, _, _ = line.partition(", about ")
        if so_far != self._so_far:
            self._so_far = so_far
            self.say(line)

    def say(self, text: str) -> None:
        """A line of its own."""
        self._console.say(text)


@contextmanager
def shown(state: State, console: Console) -> Iterator[Display]:
    """The display, for as long as the block; last lines say how it ended."""
    if console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            display = Display(state, console, live)
            display.update(force=True)
            yield display
    else:
        display = Display(state, console, None)
        yield display
    display.say_line()
    if by_cell := state.by_cell():
        display.say(by_cell)
