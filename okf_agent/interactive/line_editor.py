"""The editor at a terminal, on prompt_toolkit. Imported only there: it takes a tenth of a second."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import completion_is_selected, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import create_output

from okf_agent.interactive.reader import Completions
from okf_compiler.console import raw_stream
from okf_compiler.inert import DIRECTION_MARKS, inert


class Editor:
    """Enter sends; Alt-Enter, or Enter after a backslash, begins a new line; what is pasted stays as it is."""

    def __init__(self, history: Path | None, commands: Mapping[str, Completions]) -> None:
        kept: History = FileHistory(history) if history else InMemoryHistory()
        # It shows control characters as ^[ by itself, and would let direction marks of a query work.
        Char.display_mappings.update({mark: inert(mark) for mark in DIRECTION_MARKS})
        self._session: PromptSession[str] = PromptSession(
            output=create_output(stdout=raw_stream(sys.stdout)),
            history=kept,
            completer=_Commands(commands),
            complete_while_typing=True,
            multiline=True,
            key_bindings=_keys(),
            editing_mode=EditingMode.EMACS,
            prompt_continuation="... ",
            enable_open_in_editor=True,
            reserve_space_for_menu=4,
        )

    def read(self, prompt: str, default: str = "") -> str:
        return self._session.prompt([("bold", inert(prompt))], default=default)


class _Commands(Completer):
    """Commands at the start of the input, and what may follow each."""

    def __init__(self, commands: Mapping[str, Completions]) -> None:
        self.commands = commands
        self.paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        command, space, rest = text.partition(" ")
        if not space:
            yield from (Completion(name, -len(text)) for name in self.commands if name.startswith(text))
        elif command == "/save":
            yield from self.paths.get_completions(Document(rest), complete_event)
        elif command in self.commands:
            names = self.commands[command](rest)
            yield from (Completion(name, -len(rest)) for name in names if name.startswith(rest))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected & ~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("enter", filter=completion_is_selected)
    def take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
