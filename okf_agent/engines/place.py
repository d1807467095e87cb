"""Where one workspace's embedded server lives: its folder, its account, and the folder of its socket."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import filelock

from okf_agent.engines.binaries import Account, can_enter, server_account
from okf_compiler.errors import UserError

PORT = 5432
"""Only the name of the socket depends on it."""
LONGEST_SOCKET_PATH = 99
"""Bytes of a socket's path that every system takes."""
LOCK_SECONDS = 180
ROOT_HOMES = (Path("/var/lib/okf-agent"), Path("/var/tmp/okf-agent"))
"""Where root keeps the data if the server's account cannot enter the workspace."""


@dataclass(frozen=True)
class Place:
    """Where one workspace's server lives."""

    home: Path
    """Holds the lock and everything else; the current user's."""
    account: Account | None
    """Who runs the server; None for the current user."""

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    @property
    def lock(self) -> filelock.FileLock:
        return filelock.FileLock(self.home / "postgres.lock", timeout=LOCK_SECONDS)


def find_place(root: Path) -> Place:
    """Where the server of a workspace lives: in it, or where the server's account can enter."""
    here = root.resolve() / ".okf"
    account = server_account(here / "postgres")
    if account is None or can_enter(root.resolve(), account):
        return Place(here, account)
    name = f"{root.name}-{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:10]}"
    for parent in ROOT_HOMES:
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        found = parent.lstat()
        # In /var/tmp anyone may have made the folder first: use it only if it is root's own.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and can_enter(parent.parent, account):
            parent.chmod(0o711)
            return Place(parent / name, server_account(parent / name / "postgres"))
    raise UserError(
        f"PostgreSQL refuses to run as root, `nobody` cannot enter {root}, and no folder of "
        f"{', '.join(str(p) for p in ROOT_HOMES)} can be used.\n"
        "Move the project to a folder every user can enter, or run as an ordinary user."
    )


def socket_folder(place: Place) -> Path:
    """The data folder (as `.`), or a short folder if the socket's path is too long for the system or no UTF-8."""
    path = os.fsencode(place.data / f".s.PGSQL.{PORT}")
    text = path.decode("utf-8", "ignore")
    # libpq takes a comma for a list of hosts.
    if len(path) <= LONGEST_SOCKET_PATH and b"," not in path and text.encode() == path:
        return Path()
    temp = Path(tempfile.gettempdir())
    if len(os.fsencode(temp)) > 60 or not str(temp).replace("/", "").replace("_", "").isalnum():
        temp = Path("/tmp")
    uid = place.account.uid if place.account else os.getuid()
    folder = temp / f"okf-{uid}-{hashlib.sha256(path).hexdigest()[:10]}"
    try:
        folder.mkdir(mode=0o700)
        if place.account:
            os.chown(folder, place.account.uid, place.account.gid)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or stat.S_IMODE(found.st_mode) != 0o700:
            raise UserError(f"{folder} is not a private folder of the server. Remove it.") from None
    return folder
