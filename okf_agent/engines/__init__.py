"""Engines: each gives a reachable PostgreSQL. Adding one means adding a file and a line in `reach`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from okf_agent.config import Config

Progress = Callable[[str], None]


def quiet(_text: str) -> None:
    """Progress for nobody."""


@dataclass(frozen=True)
class Server:
    """A PostgreSQL that answers. The two mappings are psycopg connect parameters without `dbname`."""

    engine: str
    """embedded, docker or server."""
    admin: dict[str, Any] | None = field(repr=False)
    """As a role that may create databases and roles; None where we may not administer."""
    agent: dict[str, Any] = field(repr=False)
    """As the role that runs the model's SQL."""
    revive: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Starts it again, at the same place, if it does not run; None for a server that is not ours to start."""

    @property
    def ours(self) -> bool:
        """Whether nobody else works on this server, so that it may be hardened as a whole."""
        return self.engine != "server"


def reach(config: Config, progress: Progress = quiet) -> Server:
    """The PostgreSQL that `database.engine` names, started if it is ours to start.

    `progress` is told, in words, what a long wait is for.

    Raises:
        UserError: it cannot be started or reached; says what to do.
    """
    from okf_agent.engines import docker, embedded, server

    settings = config.settings
    match settings.database.engine:
        case "embedded":
            return embedded.start(settings.root, settings.database.agent_user)
        case "docker":
            return docker.start(settings, progress)
        case "server":
            return server.start(settings.database)
