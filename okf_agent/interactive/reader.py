"""What is typed at the prompt: an editor with history and completion at a terminal, plain lines in a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

Completions = Callable[[str], Iterable[str]]
"""What may follow a command: gets the text typed after it."""


class Reader(Protocol):
    def read(self, prompt: str, default: str = "") -> str:
        """One input, of one line or several; `default` is there to be edited.

        Raises:
            EOFError: the input has ended (Ctrl-D).
            KeyboardInterrupt: Ctrl-C; what was typed is gone.
        """


def open_reader(history: Path, commands: Mapping[str, Completions]) -> Reader:
    """An editor where both ends are a terminal, else plain lines. `commands` are completed, with what follows them."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Plain()
    from okf_agent.interactive.line_editor import Editor

    return Editor(_private(history), commands)


class Plain:
    """Lines as they come. One that ends in a backslash goes on in the next."""

    def read(self, prompt: str, default: str = "") -> str:
        del default  # there is nothing to edit it with
        line = self._line(prompt)
        while line.endswith("\\"):
            line = line[:-1] + "\n" + self._line("... ")
        return line

    def _line(self, prompt: str) -> str:
        """A line; who types it sees the prompt, and standard output holds answers alone."""
        if sys.stdin.isatty():
            print(prompt, end="", file=sys.stderr, flush=True)
        return input()


def _private(history: Path) -> Path | None:
    """The history file, made for its owner alone; None where it cannot be written."""
    with contextlib.suppress(OSError):
        history.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(history, os.O_RDWR | os.O_CREAT, 0o600))
        return history
    return None
