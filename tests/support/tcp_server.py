"""A PostgreSQL on 127.0.0.1 with a password and TLS: what a server of somebody else is like."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from okf_agent.engines.binaries import clean_environment, server_account

USER = "dba"
PASSWORD = "p@ss#w%rd/:x'\"\\ $HOME é"


@dataclass(frozen=True)
class TcpServer:
    port: int
    root_certificate: Path
    """Certifies `localhost`."""


@contextmanager
def tcp_server(programs: Path) -> Iterator[TcpServer]:
    """Started on a free port, its superuser USER with PASSWORD; gone at the end. `programs` are PostgreSQL's."""
    parent = Path(tempfile.mkdtemp(prefix="okf-tcp-"))
    parent.chmod(0o755)
    data = parent / "data"
    data.mkdir(mode=0o700)
    account = server_account(data)
    who: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}

    def own(path: Path) -> Path:
        if account:
            os.chown(path, account.uid, account.gid)
        return path

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [programs / program, "-D", data, *arguments], check=True, cwd=parent, env=clean_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **who,
        )  # fmt: skip

    own(data)
    secret = parent / "secret"
    secret.write_text(PASSWORD + "\n", encoding="utf-8")
    own(secret)
    try:
        run("initdb", "-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C.UTF-8",
            "--no-sync")  # fmt: skip
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", f"port={port}", "fsync=off", "ssl=on"]
        subprocess.run(
            ["openssl", "req", "-new", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", data / "server.key", "-out", data / "server.crt"],
            check=True, capture_output=True,
        )  # fmt: skip
        own(data / "server.crt")
        own(data / "server.key").chmod(0o600)
        shutil.copy(data / "server.crt", parent / "root.crt")
        run("pg_ctl", "-w", "-l", str(data / "log"), "-o", " ".join(f"-c {s}" for s in settings), "start")
        try:
            yield TcpServer(port, parent / "root.crt")
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(parent)
