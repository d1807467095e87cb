"""The interactive prompt: questions, follow-up questions, and commands that begin with a slash.

Only what the first screen needs is imported at once. The rest, a second of it, comes while a question is typed.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from okf_agent.cell import Cell, choose_cell
from okf_agent.config import Config
from okf_agent.interactive.completions import known_names
from okf_agent.interactive.reader import Completions, Reader, open_reader
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert_lines
from okf_compiler.settings import list_databases, no_database

if TYPE_CHECKING:
    from okf_agent.interactive.session_commands import Session

COMMANDS: Mapping[str, tuple[str, str]] = {
    "/db": ("use_database", "[NAME]  the databases there are, or go over to one"),
    "/knowledge": ("use_knowledge", "[NAME]  the ways of giving a model knowledge, or go over to one"),
    "/raw": ("use_raw", "the same as /knowledge raw"),
    "/bundle": ("use_bundle", "the same as /knowledge bundle"),
    "/model": ("use_model", "[NAME]  the model that answers, or another one"),
    "/compare": ("compare", "[NAME]  the last question again with other knowledge (raw, or bundle), side by side"),
    "/sql": ("edit_sql", "[SQL]  the last query, to edit and run yourself; or one of your own"),
    "/rows": ("show_rows", "[N]  the rows of the last query again, or its first N"),
    "/save": ("save", "FILE  write all rows of the last query: .csv, .json, .md, .txt; -f writes over a file"),
    "/why": ("explain", "the rules the answer rests on, whole, and what else was read"),
    "/right": ("say_right", "[NOTE]  keep that the answer is right"),
    "/wrong": ("say_wrong", "[NOTE]  keep that the answer is wrong, and why"),
    "/cost": ("show_cost", "what this session took"),
    "/runs": ("show_runs", "[N]  the last runs on record"),
    "/new": ("start_afresh", "forget the conversation: the next question stands alone"),
    "/help": ("help", "this list"),
    "/exit": ("", "leave; /quit and Ctrl-D do too"),
    "/quit": ("", ""),
}
"""Each command: the method of Session that does it ("": it leaves), and what /help says of it."""
HISTORY_FILE = "history"


def start(
    config: Config,
    *,
    db: str | None = None,
    knowledge: str | None = None,
    without: str = "",
    model: str | None = None,
    bundle: Path | None = None,
    unsafe_role: bool = False,
    chart: bool | None = None,
) -> None:
    """Ask one question after the other, until /exit or the end of the input.

    Raises:
        UserError: nothing can be asked: no such database or bundle, no key for the model.
    """
    reader = open_reader(config.settings.root / ".okf" / HISTORY_FILE, completions(config))
    database = db or _choose_database(config, reader)
    notices: list[str] = []
    cell = choose_cell(config, model, knowledge, notices.append, without)
    greet(config, database, bundle, cell, "".join(notices))
    imported = threading.Event()
    threading.Thread(target=_import_the_rest, args=(imported,), name="import-the-rest", daemon=True).start()

    def open_session() -> Session:
        imported.wait()  # two threads that import the same packages can wait for each other
        from okf_agent.ask import Workspace
        from okf_agent.interactive.session_commands import Session
        from okf_agent.results.answers import View

        workspace = stack.enter_context(Workspace(config, bundle, unsafe_role=unsafe_role))
        return Session(workspace, database, cell, reader, View(chart))

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
        if line in ("/exit", "/quit"):
            return
        if line:
            session = session or open_session()
            answer(session, line)
            prompt = f"{session.database} ({session.mode})> "


def answer(session: Session, line: str) -> None:
    """Do what one input says, a command or a question. Ctrl-C stops it, and not the prompt."""
    try:
        if not line.startswith("/"):
            session.ask(line)
            return
        name, _, argument = line.partition(" ")
        if name not in COMMANDS:
            raise UserError(f"There is no command {name!r}{did_you_mean(name, COMMANDS)} /help lists them.")
        getattr(session, COMMANDS[name][0])(argument.strip())
    except UserError as error:
        session.err.print(Text(inert_lines(str(error)), "red"), soft_wrap=True)
    except KeyboardInterrupt:
        session.err.print("Interrupted.", style="magenta")


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


def greet(config: Config, database: str, bundle: Path | None, cell: Cell, notice: str = "") -> None:
    """The first screen, on standard error.

    Raises:
        UserError: there is no such database or bundle.
    """
    from rich.console import Console

    from okf_agent.interactive.greeting import greeting

    err = Console(stderr=True, highlight=False)
    if notice:
        err.print(Text(notice, "magenta"), soft_wrap=True)
    folder = bundle or config.settings.bundles / database
    if not (folder / "index.md").is_file():
        from okf_agent.prepare import find_bundle  # brings the database side: a second, the first time only

        folder, _ = find_bundle(config, database, bundle, lambda line: err.print(Text(line, "dim"), soft_wrap=True))
    first, second, *questions = greeting(config, database, folder, cell.knowledge, cell.model, err.width)
    err.print(Text(first, "bold"))
    err.print(Text(second))
    for question in questions:
        err.print(Text(question, "cyan"))


def _choose_database(config: Config, reader: Reader) -> str:
    """The only database, or the one that is typed.

    Raises:
        UserError: there is none; or there are several, and nobody to choose.
    """
    known = list_databases(config.settings)
    if len(known) == 1:
        return next(iter(known))
    if not known:
        raise no_database(config.settings)
    names = ", ".join(known)
    if not sys.stdin.isatty():
        raise UserError(f"Which database? Choose one with --db: {names}.", status=2)
    print(f"Databases: {names}", file=sys.stderr)
    while True:
        try:
            name = reader.read("Which database? ").strip()
        except (EOFError, KeyboardInterrupt):
            raise UserError(f"Choose a database with --db: {names}.", status=2) from None
        if name in known:
            return name
        print(f"There is no database {name!r}{did_you_mean(name, known)}", file=sys.stderr)


def _import_the_rest(imported: threading.Event) -> None:
    try:
        importlib.import_module("okf_agent.interactive.session_commands")
    finally:
        imported.set()
    importlib.import_module("okf_agent.llm").start_import()
