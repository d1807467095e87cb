"""What a question needs before it can be asked: documents or a bundle, a reachable server, content, the role.

Every step looks first and does only what is missing, so that it is safe to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from okf_agent.access import role
from okf_agent.access.rights import unsafe_role
from okf_agent.bundles import freshness
from okf_agent.config import Config, load_config
from okf_agent.engines import Server, reach
from okf_agent.engines.connection import where_of
from okf_agent.loading import load
from okf_agent.sql.database import Database
from okf_compiler.bundle import index_file
from okf_compiler.documents import Documents, find_documents, list_databases
from okf_compiler.errors import UserError, near_names
from okf_compiler.given import bundle_folder

Say = Callable[[str], None]
"""Told one line about each thing that is done, and nothing about what was there already."""


def quiet(_line: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class Ready:
    """A database that questions can be asked of."""

    name: str
    bundle: Path
    documents: Documents | None
    """None for a bundle that people wrote, without documents to paste."""
    database: Database | None
    """None where the database has no content: then nothing is run."""
    unsafe: tuple[str, ...] = ()
    """What the role can do beyond reading; questions are then refused unless the user insists."""


def find_bundle(config: Config, name: str, given: Path | None, say: Say) -> tuple[Path, Documents | None]:
    """The bundle of a database and its documents: the one given, else the compiled one, else compiled now.

    It is compiled again when a dictionary or glossary that config.yaml records for it has changed.

    Raises:
        UserError: no such bundle or database, or its documents do not compile.
    """
    settings = config.settings
    documents = list_databases(settings).get(name)
    if given is not None:
        return bundle_folder(settings, given), documents
    compiled = settings.bundles / name
    by_hand = settings.bundles.parent / name
    if Path(name).name == name:
        for folder in (compiled, by_hand):
            if index_file(folder) and not (folder == compiled and freshness.are_newer(config, name)):
                return folder, documents
    documents = find_documents(settings, name)
    stamp = freshness.stamp(config, name)
    say(f"Compiling {name} from {'the catalogue of its server' if documents.live else documents.folder}")
    report = freshness.compile(config, name, compiled)
    if report.problems:
        say(f"Problems in its sources: {len(report.problems)}. `okf-compiler compile {name}` lists them")
    freshness.keep(config, name, stamp)
    return compiled, documents


def get_ready(config: Config, name: str, bundle: Path | None = None, say: Say = quiet) -> Ready:
    """Everything that questions about `name` need.

    Raises:
        UserError: one of the steps failed; says which and what to do.
    """
    folder, documents = find_bundle(config, name, bundle, say)
    server = reach(config, say)
    if not load_content(config, server, name, documents, say):
        return Ready(name, folder, documents, None)
    database = Database(server.agent, name, config.settings.database, revive=server.revive)
    return Ready(name, folder, documents, database, unsafe_role(server, name, config))


def too_much(config: Config, name: str, unsafe: Sequence[str]) -> str:
    """Say why the role may not be used in a database, and what mends it."""
    return (
        f"{name} is not safe to ask as {config.settings.database.agent_user}: {' '.join(unsafe)}\n"
        f"`okf-agent doctor {name}` shows it all. `okf-agent prepare {name}` takes rights back where the server is "
        "started here or .env names a POSTGRES_USER who may; with --print-sql it prints what a DBA runs."
    )


def load_content(
    config: Config, server: Server, name: str, documents: Documents | None, say: Say, again: bool = False
) -> bool:
    """Load a database's dump if it is not there (`again`: also if it is) and give the role its rights.

    Returns whether there is content; where there is none, says which server was asked, and what to do.
    """
    dump = documents.dump if documents else None  # without documents, people wrote a bundle of what is there already
    override = config.settings.databases.get(name)
    schema = override.schema_name if override else None
    state = load.load(server, name, dump, schema=schema, progress=_announce(name, dump, say), again=again)
    if state.changed:
        say(f"{dump} has changed since it was loaded: `okf-agent prepare {name} --reload` loads it again")
    if passed_over := state.passed_over(dump):
        say(passed_over)
    if state.status == "no_content":
        say(_no_content(server, name, dump))
        return False
    for missed in role.ensure_role(server, name, config):
        say(f"Not done for {config.settings.database.agent_user}: {missed}")
    return True


def configured_parameters(name: str, file: Path | None = None, changes: Sequence[str] = ()) -> Mapping[str, Any]:
    """Connect parameters of the role that can only read, with the content of the database `name` loaded: what
    okf-compiler reads as `--from configured`, by the entry point in pyproject.toml. The others: see `load_config`.

    Raises:
        UserError: config.yaml is broken, its server cannot be reached, or it has no such content.
    """
    config = load_config(file=file, changes=changes)
    server = reach(config)
    told: list[str] = []
    known = list_databases(config.settings)
    if not load_content(config, server, name, known.get(name), told.append):
        near = [] if name in known else near_names(name, known, 1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UserError(f"{told[-1]}\n{meant}Or name a database with --from postgresql://…")
    return server.agent


def _no_content(server: Server, name: str, dump: Path | None) -> str:
    """Why no query can be run in a database, and what to do."""
    there = f"There is no content of {name} on the server that was asked ({server.engine}, "
    there += f"{where_of(server.agent)}/{name})"
    if server.ours:
        return (
            f"{there}, and no dump of it. Put one beside its documents ({name}.sql), or name the server that has it: "
            "database.engine, database.host and database.port in config.yaml."
        )
    loads = f"; {dump} is loaded where .env names a POSTGRES_USER who may create databases" if dump else ""
    return (
        f"{there}{loads}. Name the server that has it (database.host and database.port in config.yaml, or PGHOST and "
        "PGPORT), or ask of another database with --db."
    )


def _announce(name: str, dump: Path | None, say: Say) -> load.Progress:
    """Says once, at the first bytes, that a dump is being loaded."""
    told: list[bool] = []

    def progress(_done: int, total: int) -> None:
        if not told:
            told.append(True)
            say(f"Loading {name} from {dump} ({total / 1e6:.1f} MB)")

    return progress
