"""The embedded engine: a PostgreSQL of this workspace's own, started on first use and left running.

The data folder is `<workspace>/.okf/postgres`. The server listens on a Unix socket only, in a folder of mode
700: whoever can enter that folder is a superuser of the database without a password, and nobody else can
connect. Run by root, the server runs as `nobody` (PostgreSQL refuses root), so every process that runs as
`nobody` on the machine can reach it too; and if `nobody` cannot enter the workspace, the data lie in
/var/lib/okf-agent or /var/tmp instead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import filelock

from okf_agent.engines import Server
from okf_agent.engines.binaries import (
    can_enter,
    clean_environment,
    enterable_programs,
    find_programs,
    major_version,
    running_as_root,
)
from okf_agent.engines.pidfile import PidFile, alive, answering, end_orphans, forget_stale, read_pid_file
from okf_agent.engines.place import LOCK_SECONDS, PORT, Place, find_place, socket_folder
from okf_compiler.errors import UserError

ADMIN = "postgres"
START_SECONDS = 60
ORPHAN_SECONDS = 10
"""For an initdb whose starter was killed to end."""
LOG_BYTES = 10_000_000
MEMORY_BYTES = 2 << 30
"""Private memory that one backend may have, on Linux; less on a small machine. A query too large to plan then ends with
an error of its own, where the system would have ended the whole server."""
PROBLEM = re.compile(r"\b(FATAL|PANIC|ERROR|error|could not)\b")
"""In the line of PostgreSQL's programs that says what went wrong."""
IGNORED_VARIABLES = {"hostaddr": "", "options": "", "sslmode": "disable", "channel_binding": "disable"}
"""PG* variables that are meant for another server and would keep us from ours."""


def start(root: Path, agent_user: str, programs: Path | None = None) -> Server:
    """The server of the workspace `root`: found running (a few ms), started, or made (under 1 s).

    `programs` is the folder of PostgreSQL's programs; by default the wheel's, else the system's.

    Raises:
        UserError: it cannot be made or started; says what to do.
    """
    try:
        place = find_place(root)
        if running := answering(place.data):
            return _server(root, running, agent_user)
        place.home.mkdir(parents=True, exist_ok=True)
        if place.account and not can_enter(place.home, place.account):
            place.home.chmod(0o711)
        with place.lock:
            running = answering(place.data) or _start(place, programs or find_programs())
        return _server(root, running, agent_user)
    except filelock.Timeout:
        raise UserError(
            f"Another program has been starting or stopping the server in {root} for {LOCK_SECONDS} s.\n"
            "Wait for it, or end it, and try again."
        ) from None
    except OSError as error:
        raise UserError(_explain(str(error), root)) from None


def stop(root: Path) -> bool:
    """Stop the workspace's server; whether one was running. Its data stay."""
    place = find_place(root)
    if not place.data.is_dir():
        return False
    with place.lock:
        if not answering(place.data) and not alive(place.data):
            return False
        _stop(place, enterable_programs(find_programs(), place.account, place.home))
        return True


def _start(place: Place, programs: Path) -> PidFile:
    if "\n" in str(place.data.resolve()):  # pg_ctl would read the lines of postmaster.pid wrong, and wait in vain
        raise UserError(f"PostgreSQL cannot run in {place.data}: its path has a line break. Rename that folder.")
    version = major_version(programs)
    programs = enterable_programs(programs, place.account, place.home)
    if not (place.data / "PG_VERSION").exists():
        _initialise(place, programs, int(version))
    found = (place.data / "PG_VERSION").read_text(encoding="ascii").strip()
    if found != version:
        raise UserError(
            f"{place.data} was made by PostgreSQL {found}, and this is PostgreSQL {version}.\n"
            f"Move that folder away: the next start makes a new one and loads the dumps again."
        )
    if alive(place.data):
        if running := _wait(place, START_SECONDS):
            return running
        _stop(place, programs)  # it does not answer: its socket was removed, or it is stuck
    else:
        forget_stale(place.data, place.account)
        end_orphans(place.data)
    _rotate_log(place.data / "server.log")
    options = f"-p {PORT} -k {socket_folder(place)} -c listen_addresses="
    # The text of a failed statement may hold people's data: it does not belong in a log.
    options += " -c log_min_error_statement=panic"
    _start_server(place, programs, options)
    running = answering(place.data)
    if running is None:
        raise UserError(_explain(_tail(place.data / "server.log"), place.data))
    return running


def _start_server(place: Place, programs: Path, options: str, tries: int = 20) -> None:
    """pg_ctl start; again while backends of a killed server are still ending."""
    for left in reversed(range(tries)):
        try:
            _run(place, programs, "pg_ctl", "-D", ".", "-w", "-t", START_SECONDS, "-l", "server.log",
                 "-o", options, "start")  # fmt: skip
            return
        except UserError as error:
            if "shared memory block" not in str(error) or not left:
                raise
            end_orphans(place.data)
            time.sleep(0.5)


def _wait(place: Place, seconds: float) -> PidFile | None:
    """The server once it has started or recovered; None if it is ready and yet does not answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if running := answering(place.data):
            return running
        found = read_pid_file(place.data)
        if found is None or found.ready:
            return None
        time.sleep(0.1)
    return None


def _initialise(place: Place, programs: Path, version: int) -> None:
    """Make the data folder, whole or not at all."""
    fresh = place.home / "postgres.new"
    end_orphans(fresh, ORPHAN_SECONDS)
    for leftover in (fresh, place.data):
        if leftover.is_dir() and (leftover == fresh or not any(leftover.iterdir())):
            shutil.rmtree(leftover)
    if place.data.exists():
        raise UserError(f"{place.data} holds something that is not a PostgreSQL data folder. Move it away.")
    fresh.mkdir(mode=0o700)
    if place.account:
        os.chown(fresh, place.account.uid, place.account.gid)
    try:
        _run(place, programs, "initdb", "-D", ".", "-U", ADMIN,
             "-E", "UTF8", *_locale(version), "--auth=trust", folder=fresh)  # fmt: skip
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    fresh.rename(place.data)


def _locale(version: int) -> list[str]:
    """Unicode's letters in the order of their code points, the same on every system; C.UTF-8 itself is not."""
    if version < 17:
        return ["--locale=C.UTF-8"]
    return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]


def _run(place: Place, programs: Path, name: str, *arguments: object, folder: Path | None = None) -> None:
    """Run one of PostgreSQL's programs as the server's account, in its data folder.

    Paths are passed as `.`: pg_ctl hands them to a shell. A file, not a pipe, takes the output: a server
    that is started inherits it, and a pipe would never end.
    """
    folder = folder or place.data
    account = place.account
    who: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    program = str(programs / name)
    command = [*_memory_bound(), program, *map(str, arguments)]
    try:
        with tempfile.TemporaryFile() as output:
            status = subprocess.run(
                command, cwd=folder, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True, umask=0o077, **who,
            ).returncode  # fmt: skip
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
    except (PermissionError, subprocess.SubprocessError) as error:
        raise UserError(
            f"{program} cannot be run{f' as user {account.uid}' if account else ''}: {error}\n"
            "Run as an ordinary user, or set database.engine to `server` in config.yaml."
        ) from None
    if status:
        raise UserError(_explain(f"{text.strip()}\n{_tail(folder / 'server.log')}", folder))


def _memory_bound() -> list[str]:
    """What stands before a command so that it and its children have at most MEMORY_BYTES of private memory each.

    A shell's own limit, since root in a container may not lower that of another user's process.
    """
    if sys.platform != "linux":
        return []
    limit = min(MEMORY_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)
    return ["/bin/sh", "-c", 'ulimit -d "$0" 2>/dev/null; exec "$@"', str(limit // 1024)]


def _stop(place: Place, programs: Path) -> None:
    _run(place, programs, "pg_ctl", "-D", ".", "-m", "fast", "-w", "-t", START_SECONDS, "stop")


def _server(root: Path, running: PidFile, agent_user: str) -> Server:
    def revive() -> None:
        start(root, agent_user)

    where = {"host": str(running.socket_folder), "port": running.port, **IGNORED_VARIABLES}
    return Server("embedded", {**where, "user": ADMIN}, {**where, "user": agent_user}, revive)


def _rotate_log(log: Path) -> None:
    if log.is_file() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".log.old"))


def _tail(log: Path, lines: int = 5) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4_000))
            return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
    except OSError:
        return ""


def _explain(text: str, where: Path) -> str:
    """What went wrong and the remedy, from what PostgreSQL or the system said."""
    remedies = {
        "No space left on device": "The disk is full: free some space and try again.",
        "File too large": "A limit on the size of files (`ulimit -f`) is too low for a database: raise it.",
        "Disk quota exceeded": "Your disk quota is used up: free some space and try again.",
        "Read-only file system": "The disk is read-only: move the project to one that can be written.",
        "Permission denied": (
            "If root made the folder, run as root or remove it; else move the project to a folder you can write."
            if not running_as_root() else "Move the project to a folder that every user can enter."
        ),
    }  # fmt: skip
    remedy = next((advice for sign, advice in remedies.items() if sign in text), None)
    remedy = remedy or "Or set database.engine to `server` in config.yaml to use a PostgreSQL of yours."
    lines = text.strip().splitlines()
    first = next((number for number, line in enumerate(lines) if PROBLEM.search(line)), 0)  # after what went well
    said = "\n".join(lines[first:])
    return f"The embedded PostgreSQL in {where} does not start: {said}\n{remedy}"
