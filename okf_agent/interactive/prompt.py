"""The interactive prompt: questions, follow-up questions, and commands that begin with a slash.

Only what the first screen needs is imported at once. The rest, a second of it, comes while a question is typed.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from okf_agent.cell import choose_cell
from okf_agent.config import Config
from okf_agent.interactive.commands import COMMANDS
from okf_agent.interactive.completions import known_names
from okf_agent.interactive.greeting import greet
from okf_agent.interactive.reader import Completions, Reader, open_reader
from okf_agent.interactive.typed import command_of, is_sql
from okf_compiler.documents import list_databases, only_database
from okf_compiler.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from okf_agent.interactive.session import Session

HISTORY_FILE = "history"


@dataclass(frozen=True)
class PromptOptions:
    """The options of `okf-agent` without a command."""

    db: str | None = None
    knowledge: str | None = None
    without: str = ""
    model: str | None = None
    bundle: Path | None = None
    unsafe_role: bool = False
    chart: bool | None = None


def start(config: Config, options: PromptOptions) -> None:
    """Ask one question after the other, until /exit or the end of the input.

    Raises:
        UserError: nothing can be asked: no such database or bundle, no key for the model.
    """
    reader = open_reader(config.settings.root / ".okf" / HISTORY_FILE, completions(config))
    database = options.db or _choose_database(config, reader)
    notices: list[str] = []
    cell = choose_cell(config, options.model, options.knowledge, notices.append, options.without)
    greet(config, database, options.bundle, cell, "".join(notices))
    imported = threading.Event()
    threading.Thread(target=_import_the_rest, args=(imported,), name="import-the-rest", daemon=True).start()

    def open_session() -> Session:
        imported.wait()  # two threads that import the same packages can wait for each other
        from okf_agent.ask import Workspace
        from okf_agent.interactive.session import Session

        workspace = stack.enter_context(Workspace(config, options.bundle, unsafe_role=options.unsafe_role))
        return Session(workspace, database, cell, reader, options.chart)

    with ExitStack() as stack:
        converse(reader, f"{database} ({cell.knowledge})> ", open_session)


def converse(reader: Reader, prompt: str, open_session: Callable[[], Session]) -> None:
    """Read and answer until there is no more. The session is opened for the first input that needs it."""
    session: Session | None = None
    while True:
        try:
            line = reader.read(prompt).strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
            continue
        line = command_of(line) or line
        if line in ("/exit", "/quit"):
            return
        if line:
            session = session or open_session()
            answer(session, line)
            prompt = f"{session.database} ({session.mode})> "


def answer(session: Session, line: str) -> None:
    """Do what one input says: a command, SQL or a question. Ctrl-C stops it, and not the prompt."""
    try:
        if line.startswith(("/", "\\")):
            session.do(line)
        elif is_sql(line, session.tables()):
            session.err.say("Run as a query of your own, as /sql does; no model was asked.", "dim")
            session.edit_sql(line)
        else:
            session.ask(line)
    except UserError as error:
        session.err.say(str(error), "red")
    except KeyboardInterrupt:
        session.err.say("Interrupted.", "magenta")


def completions(config: Config) -> dict[str, Completions]:
    """Every command with what may follow it."""

    def none(_: str) -> Iterable[str]:
        return ()

    following: dict[str, Completions] = {
        "/db": lambda _: known_names("databases", config),
        "/model": lambda _: known_names("models", config),
        "/knowledge": lambda _: known_names("knowledge", config),
        "/compare": lambda _: known_names("knowledge", config),
    }
    return {name: following.get(name, none) for name in COMMANDS}


def _choose_database(config: Config, reader: Reader) -> str:
    """The only database, or the one that is typed.

    Raises:
        UserError: there is none; or there are several, and nobody to choose.
    """
    known = list_databases(config.settings)
    if len(known) < 2 or not sys.stdin.isatty():
        return only_database(config.settings)
    print(f"Databases: {', '.join(known)}", file=sys.stderr)
    while True:
        try:
            name = reader.read("Which database? ").strip()
        except (EOFError, KeyboardInterrupt):
            return only_database(config.settings)
        if name in known:
            return name
        if command_of(name) == "/exit":
            sys.exit(0)
        print(f"There is no database {name!r}{did_you_mean(name, known)}", file=sys.stderr)


def _import_the_rest(imported: threading.Event) -> None:
    try:
        importlib.import_module("okf_agent.interactive.session")
    finally:
        imported.set()
    importlib.import_module("okf_agent.llm").start_import()
