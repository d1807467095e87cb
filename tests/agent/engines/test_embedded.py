"""The embedded engine starts whatever it finds, keeps what was written, and lets nobody else in."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.folders import let_enter

from okf_agent.engines import Server, embedded
from okf_agent.engines.connection import connect_admin
from okf_agent.engines.pidfile import read_pid_file
from okf_agent.engines.place import ROOT_HOMES, find_place
from okf_agent.sql.database import Database
from okf_compiler.errors import UserError
from okf_compiler.settings import DatabaseSection

IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root may act as another user")


@pytest.fixture(scope="module")
def kept() -> Iterator[Path]:
    """A workspace whose server has a table `t` with one row."""
    with workspace() as root, connect_admin(embedded.start(root, "agent_ro")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS a")
        connection.close()
        yield root


class workspace:
    """A folder that every user can enter, gone with its server at the end."""

    def __init__(self, name: str = "") -> None:
        self.parent = Path(tempfile.mkdtemp(prefix="okf-engine-"))
        self.root = self.parent / name

    def __enter__(self) -> Path:
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.root, *self.root.parents):
            if folder.is_relative_to(self.parent):
                folder.chmod(0o755)
        return self.root

    def __exit__(self, *_: object) -> None:
        try:
            embedded.stop(self.root)
        finally:
            shutil.rmtree(self.parent)


def start(root: Path) -> Server:
    return embedded.start(root, "agent_ro")


def content(server: Server) -> Any:
    with connect_admin(server) as connection:
        return connection.execute("SELECT a FROM t").fetchall()


def data(root: Path) -> Path:
    return find_place(root).data


def pid(root: Path) -> int:
    found = read_pid_file(data(root))
    assert found is not None
    return found.pid


def test_started_once_and_left_running(kept: Path) -> None:
    first, number = start(kept), pid(kept)
    begin = time.perf_counter()
    assert start(kept) == first
    assert time.perf_counter() - begin < 0.1
    assert pid(kept) == number
    assert content(first) == [(42,)]


def test_stopped_and_started_again(kept: Path) -> None:
    start(kept)
    assert embedded.stop(kept) is True
    assert embedded.stop(kept) is False
    assert content(start(kept)) == [(42,)]


def test_encoding_is_utf8_and_names_sort_alike_everywhere(kept: Path) -> None:
    with connect_admin(start(kept)) as connection:
        row = connection.execute("SELECT current_setting('server_encoding'), 'é' < 'z', upper('é')").fetchone()
    assert row == ("UTF8", False, "É")


def test_killed_three_times(kept: Path) -> None:
    for _ in range(3):
        start(kept)
        os.kill(pid(kept), signal.SIGKILL)
        assert content(start(kept)) == [(42,)]


def test_killed_while_a_backend_is_busy(kept: Path) -> None:
    server = start(kept)
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="postgres") as busy, ThreadPoolExecutor() as threads:
        work = threads.submit(busy.execute, "SELECT count(*) FROM generate_series(1, 1000000000)")
        time.sleep(0.5)
        os.kill(pid(kept), signal.SIGKILL)
        assert content(start(kept)) == [(42,)]
        assert isinstance(work.exception(timeout=30), psycopg.OperationalError)


def test_number_of_a_dead_server_taken_by_another_process(kept: Path) -> None:
    start(kept)
    os.kill(pid(kept), signal.SIGKILL)
    who: dict[str, Any] = {"user": data(kept).stat().st_uid} if IS_ROOT else {}
    with subprocess.Popen(["sleep", "100"], **who) as other:
        try:
            file = data(kept) / "postmaster.pid"
            _, *rest = file.read_text().splitlines(keepends=True)
            file.write_text(f"{other.pid}\n{''.join(rest)}")
            assert content(start(kept)) == [(42,)]
            assert other.poll() is None, "the other process is none of our business"
        finally:
            other.kill()


def test_removed_socket(kept: Path) -> None:
    start(kept)
    (data(kept) / ".s.PGSQL.5432").unlink()
    assert content(start(kept)) == [(42,)]


def test_broken_pid_file(kept: Path) -> None:
    start(kept)
    embedded.stop(kept)
    (data(kept) / "postmaster.pid").write_bytes(b"\x00nonsense")
    assert content(start(kept)) == [(42,)]


START = textwrap.dedent("""
    import sys
    from pathlib import Path
    from okf_agent.engines import embedded
    print(embedded.start(Path(sys.argv[1]), "agent_ro").admin)
""")


@pytest.mark.slow
def test_three_starters_get_one_server() -> None:
    with workspace() as root:
        starters = [
            subprocess.Popen([sys.executable, "-c", START, root], stdout=subprocess.PIPE, text=True) for _ in range(3)
        ]
        outputs = {starter.communicate(timeout=120)[0] for starter in starters}
        assert [starter.returncode for starter in starters] == [0, 0, 0]
        assert len(outputs) == 1
        assert "postgres" in outputs.pop()


@pytest.mark.parametrize("name", ["with, comma 'and' \"quotes\" $HOME é", "n" * 100])
def test_odd_and_long_paths(name: str) -> None:
    with workspace(name) as root, connect_admin(start(root)) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        connection.close()
        assert row == (str(root.resolve() / ".okf" / "postgres"),)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such names")
def test_a_path_of_two_lines_is_refused_at_once() -> None:
    with workspace("two\nlines") as root, pytest.raises(UserError, match="its path has a line break"):
        start(root)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such names")
def test_a_path_that_is_no_text() -> None:
    with workspace("no utf-8 \udcff\udcfe") as root:
        first, number = start(root), pid(root)
        assert start(root) == first and pid(root) == number, "it is found again"
        with connect_admin(first) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="orphans are found where there is a /proc")
def test_an_initdb_whose_starter_was_killed_does_not_stop_the_next_one() -> None:
    with workspace() as root:
        starter = subprocess.Popen([sys.executable, "-c", START, root], stdout=subprocess.DEVNULL)
        fresh = find_place(root).home / "postgres.new"
        end = time.monotonic() + 60
        while not (fresh / "global").exists() and time.monotonic() < end:
            time.sleep(0.002)
        starter.kill()
        starter.wait()
        assert start(root).admin
        assert not fresh.exists()


def test_variables_of_another_server_do_not_matter(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOST": "nowhere.invalid", "PGHOSTADDR": "192.0.2.1", "PGPORT": "1", "PGUSER": "x", "PGDATABASE": "x",
        "PGOPTIONS": "-c no.such=1 -c nonsense", "PGSSLMODE": "verify-full", "PGCHANNELBINDING": "require",
        "PGCLIENTENCODING": "LATIN1", "PGDATA": "/nowhere", "PGPASSWORD": "x",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    embedded.stop(kept)
    assert content(start(kept)) == [(42,)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_key_reaches_the_server(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_NIM_API_KEY", "secret-key")
    embedded.stop(kept)
    start(kept)
    environment = Path(f"/proc/{pid(kept)}/environ").read_bytes()
    assert b"PATH=" in environment
    assert b"secret-key" not in environment


CONNECT = textwrap.dedent("""
    import socket, sys
    try:
        socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    except OSError as error:
        sys.exit(f"refused: {error}")
""")


@pytest.mark.skipif(sys.platform != "linux", reason="no other system bounds what a process maps")
def test_a_query_too_large_to_plan_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MEMORY_BYTES", 256 << 20)
    query = "SELECT relpages AS a FROM pg_class"
    for _ in range(19):
        query = f"SELECT a + a AS a FROM ({query}) q"  # the planner writes each sum out: twice as long at each level
    with workspace() as root:
        server = start(root)
        with connect_admin(server) as beside, connect_admin(server) as connection:
            with pytest.raises(psycopg.errors.OutOfMemory):
                connection.execute(query)
            assert beside.execute("SELECT 42").fetchone() == (42,)  # ended with the server, if that was ended


@as_root
def test_another_user_cannot_connect_or_read(kept: Path) -> None:
    socket_path = str(data(kept) / ".s.PGSQL.5432")
    start(kept)
    own = subprocess.run(["/usr/bin/python3", "-c", CONNECT, socket_path], capture_output=True, text=True)
    assert own.returncode == 0, own.stderr
    other = subprocess.run(
        ["/usr/bin/python3", "-c", CONNECT, socket_path], user="daemon", group="daemon", extra_groups=[],
        capture_output=True, text=True,
    )  # fmt: skip
    assert "Permission denied" in other.stderr
    listed = subprocess.run(["ls", data(kept)], user="daemon", group="daemon", extra_groups=[], capture_output=True)
    assert b"Permission denied" in listed.stderr


@as_root
def test_a_workspace_nobody_can_enter(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    try:
        start(tmp_path)
        assert find_place(tmp_path).home.parent in ROOT_HOMES
        assert not (tmp_path / ".okf").exists()
        assert start(tmp_path) == start(tmp_path)
    finally:
        embedded.stop(tmp_path)
        shutil.rmtree(find_place(tmp_path).home)


def test_tests_open_their_own_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files that tests closed to others would stop every other program of the machine."""
    shared = tmp_path / "shared"
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    modes = {tmp_path: 0o700, shared: 0o777, shared / "own": 0o700, shared / "own" / "workspace": 0o740}
    for folder, mode in modes.items():
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    let_enter(shared / "own" / "workspace")
    assert [folder.stat().st_mode & 0o777 for folder in modes] == [0o700, 0o777, 0o711, 0o751]


@pytest.mark.slow
@pytest.mark.usefixtures("postgres15")
def test_folder_of_another_major_version() -> None:
    with workspace() as root:
        embedded.start(root, "agent_ro", Path("/usr/lib/postgresql/15/bin"))
        assert start(root).admin, "a running server is used as it is"
        embedded.stop(root)
        with pytest.raises(UserError, match=r"made by PostgreSQL 15, and this is PostgreSQL 18.\nMove that folder"):
            start(root)


def test_folder_with_something_else() -> None:
    with workspace() as root:
        (root / ".okf" / "postgres").mkdir(parents=True)
        (root / ".okf" / "postgres" / "mine.txt").write_text("x")
        with pytest.raises(UserError, match="Move it away"):
            start(root)
        assert (root / ".okf" / "postgres" / "mine.txt").read_text() == "x"


def test_place_that_is_a_file() -> None:
    with workspace() as root:
        (root / ".okf").write_text("x")
        with pytest.raises(UserError, match="does not start"):
            start(root)


LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n" + START


def test_no_room_leaves_nothing_half_made() -> None:
    with workspace() as root:
        result = subprocess.run([sys.executable, "-c", LIMITED, root], capture_output=True, text=True)
        assert "UserError" in result.stderr
        assert "too low for a database" in result.stderr
        assert not (root / ".okf" / "postgres").exists()
        assert start(root).admin


@as_root
def test_full_disk() -> None:
    with workspace("disk") as root:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", root], capture_output=True).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            root.chmod(0o755)
            with pytest.raises(UserError, match="The disk is full") as full:
                start(root)
            assert "creating subdirectories" not in str(full.value), "what initdb did well"
            assert "No space left on device" in str(full.value)
            assert not (root / ".okf" / "postgres").exists()
            subprocess.run(["mount", "-o", "remount,ro", root], check=True)
            with pytest.raises(UserError, match="read-only"):
                start(root)
        finally:
            subprocess.run(["umount", root], check=True)


def test_a_server_that_was_killed_is_started_again_for_whoever_uses_it(kept: Path) -> None:
    """A prompt and an MCP server hold a Database for days: the next query finds the server again."""
    server = embedded.start(kept, "agent_ro")
    with connect_admin(server) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE agent_ro LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        connection.execute("GRANT SELECT ON t TO agent_ro")
    with Database(server.agent, "postgres", DatabaseSection(), revive=server.revive) as database:
        another = database.another()
        for each in (database, another):
            assert each.run("SELECT a FROM t").rows == (("42",),)
            os.kill(pid(kept), signal.SIGKILL)
            assert each.run("SELECT a FROM t").rows == (("42",),)
        os.kill(pid(kept), signal.SIGKILL)
        with ThreadPoolExecutor(4) as pool:
            found = [*pool.map(lambda _: another.run("SELECT a FROM t").rows, range(8))]
        assert found == [(("42",),)] * 8
        embedded.stop(kept)
        assert database.run("SELECT a FROM t").rows == (("42",),)
    os.kill(pid(kept), signal.SIGKILL)
    with connect_admin(server) as connection:
        assert connection.execute("SELECT a FROM t").fetchone() == (42,)
