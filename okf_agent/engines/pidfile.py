"""What a data folder says of its server (postmaster.pid), and whether that is true."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from okf_agent.engines.binaries import Account

DEAD_PID = 99_999_999
"""Above every system's highest process id."""
ANSWER_SECONDS = 5
ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)
PROCESSES = Path("/proc")
PROGRAMS = ("postgres", "postmaster", "initdb")


@dataclass(frozen=True)
class PidFile:
    """What a running server says of itself."""

    pid: int
    port: int
    socket_folder: Path
    ready: bool
    memory_key: str


def read_pid_file(data: Path) -> PidFile | None:
    """postmaster.pid, or None if there is no whole one. Lines: pid, data, start, port, socket folder, …"""
    try:
        with os.fdopen(
            os.open(data / "postmaster.pid", os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8", errors="replace"
        ) as file:
            lines = [*file.read(10_000).split("\n"), *[""] * 8]
        return PidFile(
            pid=int(lines[0]),
            port=int(lines[3]),
            socket_folder=data / lines[4].strip(),
            ready=lines[7].strip() == "ready",
            memory_key=lines[6],
        )
    except (FileNotFoundError, ValueError):
        return None


def answering(data: Path) -> PidFile | None:
    """The server, if it says that it is ready and answers (about 1 ms).

    It is asked whether it speaks TLS, the shortest question there is: a server that was just killed may still
    take a connection.
    """
    found = read_pid_file(data)
    if found is None or not found.ready:
        return None
    try:
        with _dial(found) as probe:
            probe.sendall(ASK_FOR_TLS)
            return found if probe.recv(1) in (b"S", b"N") else None
    except OSError:
        return None


def _dial(found: PidFile) -> socket.socket:
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.settimeout(ANSWER_SECONDS)
        probe.connect(str(found.socket_folder / f".s.PGSQL.{found.port}"))
    except OSError:
        probe.close()
        raise
    return probe


def alive(data: Path) -> bool:
    """Whether the process in postmaster.pid is this folder's server, and not a later one of that number."""
    found = read_pid_file(data)
    if found is None:
        return False
    try:
        os.kill(found.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    if PROCESSES.is_dir():
        return found.pid in _processes(data)
    result = subprocess.run(["ps", "-o", "comm=", "-p", str(found.pid)], capture_output=True, text=True)
    return "postgres" in result.stdout


def end_orphans(data: Path, seconds: float = 0.0) -> None:
    """Ask processes of PostgreSQL that outlived who started them to end, and wait so long until they have.

    A busy backend keeps the next server from starting, and an initdb goes on writing what the next one clears away.
    """
    end = time.monotonic() + seconds
    while PROCESSES.is_dir() and (left := [*_processes(data)]):
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        if time.monotonic() >= end:
            return
        time.sleep(0.05)


def _processes(data: Path) -> Iterator[int]:
    """PostgreSQL's processes in a data folder, on Linux: their working directory is the folder."""
    data = data.resolve()
    for process in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text(encoding="utf-8").strip() in PROGRAMS and (
                process / "cwd"
            ).readlink() == data:
                yield int(process.name)


def forget_stale(data: Path, account: Account | None) -> None:
    """Point a stale postmaster.pid at a process that cannot exist, and unlock its socket.

    PostgreSQL would take any living process of that number for its server, a dead one that its parent has not
    asked after included. The line with the shared memory key is kept: with it PostgreSQL notices backends that
    outlived a killed server.
    """
    file = data / "postmaster.pid"
    found = read_pid_file(data)
    for folder in {data, found.socket_folder} if found else {data}:
        for lock in folder.glob(".s.PGSQL.*.lock"):
            lock.unlink(missing_ok=True)
    if found is None:
        file.unlink(missing_ok=True)
        return
    key = " ".join(part for part in found.memory_key.split() if part.isdecimal())
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", newline="\n") as out:
        out.write(f"{DEAD_PID}\n{data}\n0\n{found.port}\n\n\n{key}\n")
    if account:
        os.chown(fresh, account.uid, account.gid)
    fresh.replace(file)
