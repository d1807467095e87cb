"""What a database's bundle is compiled from, on the agent's side: compile it, and see that it has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from okf_agent.config import Config
from okf_agent.engines import reach
from okf_agent.engines.connection import connect_agent
from okf_compiler.whole_file import write_whole

if TYPE_CHECKING:
    from okf_compiler.report import Report


def compile(
    config: Config,
    name: str,
    out: Path,
    reached: Callable[[], Mapping[str, Any]] | None = None,
    *,
    check: bool = False,
) -> Report:
    """Compile the database `name` from all its sources into the folder `out`; with `check` only look what would change.

    `reached` gives connect parameters for the catalogue, in place of those that config.yaml leads to.

    Raises:
        UserError: a source cannot be read, or the server that has the tables cannot be reached.
    """
    from okf_compiler.compile import compile as compile_bundle  # brings a SQL parser: 0.3 s, once a bundle

    return compile_bundle(config.settings, name, out, reach=reached or (lambda: _reached(config, name)), check=check)


def _reached(config: Config, name: str) -> Mapping[str, Any]:
    """Connect parameters that were tried once: the agent knows what to do where they fail, the compiler does not."""
    server = reach(config)
    with connect_agent(server, name):
        return server.agent


def are_newer(config: Config, name: str) -> bool:
    """Whether a file that config.yaml records as a source has changed since the agent last compiled it."""
    now, kept = stamp(config, name), _file(config, name)
    return bool(now) and (not kept.is_file() or kept.read_text(encoding="utf-8") != now)


def stamp(config: Config, name: str) -> str:
    """Return names, dates and sizes of the recorded files, wherever the workspace lies; "" if none is recorded."""
    override = config.settings.databases.get(name)
    lines = []
    for recorded in override.files if override else ():
        path = config.settings.root / recorded
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            facts = file.stat() if file.is_file() else None
            state = f"{facts.st_mtime_ns} {facts.st_size}" if facts else "0 0"
            lines.append(f"{recorded} {file.relative_to(path)} {state}")
    return "\n".join(lines)


def keep(config: Config, name: str, compiled: str) -> None:
    """Remember the stamp of what was compiled; without it the next question only compiles again."""
    file = _file(config, name)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, compiled)


def _file(config: Config, name: str) -> Path:
    return config.settings.root / ".okf" / "sources" / hashlib.sha256(name.encode()).hexdigest()[:16]
