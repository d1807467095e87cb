"""The docker engine: the LiveSQLBench image, which brings its 18 databases.

docker-compose.yml in the workspace says which image; POSTGRES_USER has to be `root` for it. Its first start
loads every database twice, as a template and as the plain copy that is used, and takes up to half an hour.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection

import psycopg

from okf_agent.engines import Progress, Server
from okf_agent.engines.connection import ADMIN_PASSWORD, ADMIN_USER, AGENT_PASSWORD, explain
from okf_agent.engines.server import describe
from okf_compiler.errors import UserError
from okf_compiler.postgres import CONNECT_TIMEOUT_S
from okf_compiler.settings import Settings

DATABASES = (
    "alien", "archeology", "credit", "cross_db", "crypto", "cybermarket", "disaster", "fake", "gaming", "insider",
    "mental", "museum", "news", "polar", "robot", "solar", "vaccine", "virtual",
)  # fmt: skip
WAIT_SECONDS = 30 * 60
COMPOSE = ("docker", "compose", "up", "--detach")
SECRETS = (ADMIN_USER, ADMIN_PASSWORD, AGENT_PASSWORD)
KEPT = "A docker volume keeps the password of its first start: `docker compose down --volumes` forgets it."


def start(settings: Settings, progress: Progress) -> Server:
    """The container's server, once it has every database.

    Raises:
        UserError: a secret is missing, docker does not run, or the databases do not appear in time.
    """
    if missing := [name for name in SECRETS if not os.environ.get(name)]:
        raise UserError(
            f"The docker engine needs {' and '.join(missing)}: add {'it' if len(missing) == 1 else 'them'} "
            "to .env (see .env.example; POSTGRES_USER must be root)."
        )
    section = settings.database
    server = describe("docker", {"host": section.host, "port": section.port}, section.agent_user)
    try:
        environment = {**os.environ, "OKF_DOCKER_PORT": str(section.port)}
        result = subprocess.run(COMPOSE, cwd=settings.root, env=environment, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError(
            "Docker is not installed.\nInstall it, or set database.engine in config.yaml to `embedded`."
        ) from None
    if result.returncode:
        raise UserError(
            f"`{' '.join(COMPOSE)}` failed: {result.stderr.strip()[-1_000:]}\n"
            "Start Docker, or set database.engine in config.yaml to `embedded`."
        )
    wait_for(server, DATABASES, progress)
    return server


def wait_for(
    server: Server, names: Collection[str], progress: Progress, seconds: float = WAIT_SECONDS, pause: float = 2
) -> None:
    """Wait until every database exists. A plain copy appears whole: it is made from its template.

    Raises:
        UserError: the password is rejected (at once), or the time is over.
    """
    end = time.monotonic() + seconds
    assert server.admin is not None
    while True:
        missing, said = set(names), "it does not take connections yet"
        try:
            with psycopg.connect(**server.admin, dbname="postgres", connect_timeout=CONNECT_TIMEOUT_S) as found:
                missing -= {name for (name,) in found.execute("SELECT datname FROM pg_database")}
            said = f"{len(names) - len(missing)} of {len(names)} databases are loaded"
        except psycopg.OperationalError as error:
            if "authentication failed" in str(error):
                raise UserError(f"{explain(str(error), server.admin, 'postgres', ADMIN_PASSWORD)}\n{KEPT}") from None
        if not missing:
            return
        if time.monotonic() > end:
            raise UserError(
                f"The container is not ready after {seconds / 60:.0f} minutes: {said}. "
                f"Missing: {', '.join(sorted(missing))}.\nLook at `docker logs livesqlbench_postgresql`."
            )
        progress(f"Waiting for the container: {said}")
        time.sleep(pause)
