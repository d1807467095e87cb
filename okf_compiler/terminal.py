"""The console that draws on standard output and standard error. Importing it takes as long as rich does."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TextIO

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from okf_compiler.console import raw_stream
from okf_compiler.inert import ACTIVE, inert_lines

PIPE_WIDTH = 200
"""Columns where no terminal says how many: what reads a pipe breaks lines itself."""


class Console(rich.console.Console):
    """Draws tables, colours and spinners, and keeps every text a text, whoever wrote it.

    Only rich's own controls reach the terminal: a control character, a direction mark or a hyperlink in what is drawn
    does not. Markup, emoji codes and highlighting are off.
    """

    def __init__(self, stream: TextIO) -> None:
        wide = not stream.isatty() and not os.environ.get("COLUMNS", "").isdigit()
        width = PIPE_WIDTH if wide else None
        super().__init__(file=raw_stream(stream), width=width, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control is None and text != "\n" and ACTIVE.search(text):
                text = inert_lines(text)
            if style is not None and style.link:
                style = style.update_link(None)
            yield segment if text is segment.text and style is segment.style else Segment(text, style, control)

    def say(self, text: str | Text, style: str = "") -> None:
        """Print lines of text: wrapped at words at a terminal, whole in a pipe."""
        self.print(Text(inert_lines(text), style) if isinstance(text, str) else text, soft_wrap=not self.is_terminal)
