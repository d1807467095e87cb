"""PostgreSQL servers that belong to a test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from okf_agent.engines import Server, embedded
from okf_agent.engines.connection import connect_admin


@contextmanager
def own_server(programs: Path | None = None) -> Iterator[Server]:
    root = Path(tempfile.mkdtemp(prefix="okf-tests-"))
    root.chmod(0o755)  # run by root, the server's account must enter it
    try:
        server = embedded.start(root, "agent_ro", programs)
        with connect_admin(server) as connection:  # nobody needs these databases after a power cut
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        embedded.stop(root)
        shutil.rmtree(root)


def debian15() -> Path:
    """The programs of Debian's PostgreSQL 15; skips the test where they are not installed."""
    programs = Path("/usr/lib/postgresql/15/bin")
    if not (programs / "initdb").is_file():
        pytest.skip("no PostgreSQL 15 server in /usr/lib/postgresql (Debian: apt-get install postgresql-15)")
    return programs
