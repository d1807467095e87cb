"""The interactive prompt: questions, and a few commands that begin with a slash."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from okf_agent.ask import Asked, Cell, Workspace
from okf_agent.knowledge import MODES
from okf_agent.llm import start_import
from okf_agent.terminal import show_asking
from okf_compiler.settings import UserError, did_you_mean, list_databases


class Prompt:
    """Asks one question after the other about one database at a time."""

    def __init__(self, workspace: Workspace, database: str, cell: Cell) -> None:
        self.workspace = workspace
        self.database = database
        self.cell = cell
        self.out = Console()
        self.err = Console(stderr=True)
        self.commands: dict[str, tuple[Callable[[str], None], str]] = {
            "/db": (self.use_database, "[NAME]  the databases there are, or go over to one"),
            "/raw": (self.use_raw, "paste the three documents instead of reading the bundle"),
            "/bundle": (self.use_bundle, "read the bundle, file by file"),
            "/help": (self.help, "this list"),
            "/exit": (self.leave, "leave; /quit and Ctrl-D do too"),
            "/quit": (self.leave, ""),
        }

    def run(self) -> None:
        """Until /exit or the end of the input. Ctrl-C stops a question and not the prompt."""
        self.greet()
        start_import()  # while the first question is being typed
        while True:
            try:
                line = input(f"{self.database} ({self.cell.mode})> ").strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                print(file=sys.stderr)
                continue
            try:
                self.answer(line)
            except UserError as error:
                self.err.print(Text(str(error), "red"), soft_wrap=True)
            except KeyboardInterrupt:
                self.err.print("Interrupted.", style="yellow")
            except StopIteration:
                return

    def answer(self, line: str) -> None:
        """One line of input: a command, or a question."""
        if line.startswith("/"):
            name, _, argument = line.partition(" ")
            if name not in self.commands:
                raise UserError(f"There is no command {name!r}{did_you_mean(name, self.commands)} /help lists them.")
            self.commands[name][0](argument.strip())
        elif line:
            show_asking(Asked(line, self.database), self.cell, self.workspace, self.out, self.err)

    def greet(self) -> None:
        """Where one is, and what can be done here."""
        self.err.print(Text(f"Questions about {self.database}, answered by {self.cell.model}. /help lists commands."))

    def use_database(self, name: str) -> None:
        known = list_databases(self.workspace.config.settings)
        if not name:
            self.out.print(Text("\n".join(known)))
        elif name in known or (self.workspace.config.settings.bundles / name / "index.md").is_file():
            self.database = name
        else:
            raise UserError(f"There is no database {name!r}{did_you_mean(name, known)} /db lists them.")

    def use_raw(self, _: str) -> None:
        self._use_mode("raw")

    def use_bundle(self, _: str) -> None:
        self._use_mode("bundle")

    def _use_mode(self, mode: str) -> None:
        assert mode in MODES
        self.cell = replace(self.cell, mode=mode)
        self.cell.check()

    def help(self, _: str) -> None:
        self.out.print("Type a question in plain language, or:")
        for name, (_command, text) in self.commands.items():
            if text:
                self.out.print(Text(f"  {name:<9}{text}"))

    def leave(self, _: str) -> None:
        raise StopIteration
