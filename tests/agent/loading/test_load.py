"""A dump is loaded once, whole or not at all; the real ones load as psql would load them."""

from __future__ import annotations

import hashlib
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql

from okf_agent.engines import Server
from okf_agent.engines.binaries import clean_environment, find_programs
from okf_agent.engines.connection import connect_admin
from okf_agent.loading.load import LoadState, Mark, load
from okf_compiler.errors import UserError

NAMES = ("load_small", "load_schema", "load_real", "load_psql")


@pytest.fixture(autouse=True)
def clean(postgres: Server) -> Iterator[None]:
    yield
    with connect_admin(postgres) as connection:
        for name in NAMES:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def written(folder: Path, text: str) -> Path:
    dump = folder / "dump.sql"
    dump.write_text(text, encoding="utf-8", newline="\n")
    return dump


def value(server: Server, query: str, name: str = "load_small") -> object:
    with connect_admin(server, name) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def databases(server: Server) -> set[str]:
    with connect_admin(server) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_loaded_once_then_present_then_changed(postgres: Server, tmp_path: Path) -> None:
    dump = written(tmp_path, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2);")
    told: list[tuple[int, int]] = []
    assert load(postgres, "load_small", dump, progress=lambda *at: told.append(at)) == LoadState("loaded")
    assert told[-1] == (dump.stat().st_size,) * 2
    assert load(postgres, "load_small", dump) == LoadState("present")
    dump.touch()
    assert load(postgres, "load_small", dump) == LoadState("present"), "another date, the same content"
    written(tmp_path, "CREATE TABLE t (a int); INSERT INTO t VALUES (1);")
    assert load(postgres, "load_small", dump) == LoadState("present", changed=True)
    assert value(postgres, "SELECT count(*) FROM t") == 2
    assert load(postgres, "load_small", dump, again=True) == LoadState("loaded")
    assert value(postgres, "SELECT count(*) FROM t") == 1


def test_no_dump(postgres: Server) -> None:
    assert load(postgres, "load_small", None) == LoadState("no_content")
    with connect_admin(postgres) as connection:
        connection.execute("CREATE DATABASE load_small")
    assert load(postgres, "load_small", None) == LoadState("present"), "loaded by somebody else"


def test_a_role_or_setting_the_server_lacks_is_left_out(postgres: Server, tmp_path: Path) -> None:
    dump = written(
        tmp_path,
        "BEGIN;\nSET no_such_setting = 1;\nCREATE TABLE t (a int);\nALTER TABLE t OWNER TO root;\n"
        "GRANT SELECT ON t TO nobody_here;\nCOMMENT ON DATABASE other IS 'x';\nCOMMIT;\n",
    )
    state = load(postgres, "load_small", dump)
    assert state.skipped == (
        'line 2: unrecognized configuration parameter "no_such_setting"',
        'line 4: role "root" does not exist',
        'line 5: role "nobody_here" does not exist',
        "line 6: a statement about the database itself",
    )
    again = LoadState("loaded", skipped=(*state.skipped[:2], *state.skipped[1:2]))
    assert again.passed_over(dump) == (
        f'Passed over 3 statements of {dump}: unrecognized configuration parameter "no_such_setting" '
        '(first in line 2); role "root" does not exist (first in line 4)'
    )
    assert state.passed_over(dump).endswith("; and 1 more")
    assert value(postgres, "SELECT count(*) FROM t") == 0


def test_a_database_of_somebody_else_is_not_replaced(postgres: Server, tmp_path: Path) -> None:
    with connect_admin(postgres) as connection:
        connection.execute("CREATE DATABASE load_small")
    dump = written(tmp_path, "CREATE TABLE t (a int);")
    with pytest.raises(UserError, match="not loaded by okf-agent"):
        load(postgres, "load_small", dump, again=True)
    assert load(postgres, "load_small", dump) == LoadState("present")


def test_several_megabytes_are_hashed_once_after_a_new_date(postgres: Server, tmp_path: Path) -> None:
    dump = written(tmp_path, "CREATE TABLE t (a int);")
    load(postgres, "load_small", dump)
    dump.touch()
    load(postgres, "load_small", dump)
    comment = value(
        postgres, "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'load_small'"
    )
    mark = Mark.read(str(comment))
    assert mark is not None
    assert mark.mtime_ns == dump.stat().st_mtime_ns


BROKEN = {
    "wrong SQL": ("CREATE TABLE t (a int);\nINSERT INTO u VALUES (1);", 'line 2: relation "u" does not exist'),
    "wrong row": ("CREATE TABLE t (a int);\nCOPY t FROM stdin;\nx\n\\.\n", "line 2: invalid input syntax"),
    "shell command": ("SELECT 1;\n\\! touch /tmp/okf-was-here\n", "line 2: the psql command"),
    "program": ("COPY (SELECT 1) TO PROGRAM 'touch /tmp/okf-was-here';", "line 1: COPY … PROGRAM"),
    "cut off": ("BEGIN;\nCREATE TABLE t (a int);\n", "the file is cut off"),
    "no such extension": ("CREATE EXTENSION no_such;", "Install that extension"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_dump_leaves_nothing(postgres: Server, tmp_path: Path, name: str) -> None:
    text, message = BROKEN[name]
    before = databases(postgres)
    with pytest.raises(UserError, match=message):
        load(postgres, "load_small", written(tmp_path, text))
    assert databases(postgres) == before
    assert not Path("/tmp/okf-was-here").exists()


def test_a_broken_dump_leaves_the_old_content(postgres: Server, tmp_path: Path) -> None:
    load(postgres, "load_small", written(tmp_path, "CREATE TABLE t AS SELECT 1 AS a;"))
    with pytest.raises(UserError):
        load(postgres, "load_small", written(tmp_path, "CREATE TABLE t AS SELECT 2 AS a; SELECT 1/0;"), again=True)
    assert value(postgres, "SELECT a FROM t") == 1


def test_several_at_once_load_once(postgres: Server, tmp_path: Path) -> None:
    dump = written(tmp_path, "CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000);")
    states: list[str] = []

    def loading() -> None:
        states.append(load(postgres, "load_small", dump).status)

    threads = [threading.Thread(target=loading) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(states) == ["loaded", "present", "present", "present"]


def test_leftover_of_a_killed_loader_is_replaced(postgres: Server, tmp_path: Path) -> None:
    dump = written(tmp_path, "CREATE TABLE t (a int);")
    load(postgres, "load_small", dump)
    before = databases(postgres)
    with connect_admin(postgres) as connection:
        leftover = "okf_loading_" + hashlib.sha256(b"load_small").hexdigest()[:12]
        connection.execute("DROP DATABASE load_small")
        connection.execute(f"CREATE DATABASE {leftover}")
    assert load(postgres, "load_small", dump).status == "loaded"
    assert databases(postgres) == before


@pytest.mark.parametrize("name", ["postgres", "template1", "n" * 64])
def test_names_that_cannot_be(postgres: Server, name: str) -> None:
    with pytest.raises(UserError, match="rename"):
        load(postgres, name, None)


def test_a_schema_of_its_own(postgres: Server, tmp_path: Path) -> None:
    dump = written(tmp_path, "CREATE SCHEMA s; CREATE TABLE s.t (a int);")
    assert load(postgres, "load_schema", dump, schema="s").status == "loaded"
    bare = written(tmp_path, "CREATE TABLE s.t (a int);")
    assert load(postgres, "load_schema", bare, schema="s", again=True).status == "loaded"


REAL = {
    "livesqlbench-base-full-v1/dumps/solar_panel_full.sql": (10, 8527),
    "livesqlbench-base-full-v1/dumps/mental_healths_full.sql": (9, 5403),
    "livesqlbench-base-lite-postgres/alien_content.sql": (11, 10912),
    "defog/ewallet/ewallet.sql": (9, 155),
    "samples/neon/pagila.sql": (21, 46273),
    "samples/northwind/northwind.sql": (14, 3362),
}
REAL_SLOW = {
    "livesqlbench-base-full-v1/dumps/cross_border_full.sql": (7, 3889),
    "livesqlbench-base-full-v1/dumps/disaster_relief_full.sql": (11, 5780),
    "livesqlbench-base-full-v1/dumps/households_full.sql": (7, 6548),
    "livesqlbench-base-full-v1/dumps/virtual_idol_full.sql": (14, 4745),
    "defog/academic/academic.sql": (15, 70),
    "defog/advising/advising.sql": (14, 73),
    "defog/atis/atis.sql": (24, 215),
    "defog/broker/broker.sql": (4, 149),
    "defog/geography/geography.sql": (7, 74),
    "defog/restaurants/restaurants.sql": (3, 27),
    "defog/scholar/scholar.sql": (12, 78),
    "defog/yelp/yelp.sql": (7, 82),
    "samples/neon/chinook.sql": (11, 15607),
    "samples/neon/happiness_index.sql": (1, 156),
    "samples/neon/periodic_table.sql": (1, 118),
}
TABLES = """
    SELECT nspname, relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema')"""


def size(server: Server, name: str) -> tuple[int, int]:
    """Tables, and rows in all."""
    with connect_admin(server, name) as connection:
        tables = [sql.Identifier(*row) for row in connection.execute(TABLES)]
        counts = [connection.execute(sql.SQL("SELECT count(*) FROM {}").format(t)).fetchone() for t in tables]
    return len(tables), sum(row[0] for row in counts if row)


@pytest.mark.parametrize("dump", [*REAL, *(pytest.param(d, marks=pytest.mark.slow) for d in REAL_SLOW)])
def test_real_dump(postgres: Server, test_data: Path, dump: str) -> None:
    assert load(postgres, "load_real", test_data / dump).status == "loaded"
    assert size(postgres, "load_real") == {**REAL, **REAL_SLOW}[dump]


@pytest.mark.slow
@pytest.mark.parametrize("dump", [d for d in (*REAL, *REAL_SLOW) if "broker" not in d and "ewallet" not in d])
def test_same_as_psql(postgres: Server, test_data: Path, dump: str) -> None:
    """pg_dump shows no difference from what psql loads; broker and ewallet hold the time of loading."""
    programs, admin = find_programs(), postgres.admin
    assert admin is not None
    load(postgres, "load_real", test_data / dump)
    with connect_admin(postgres) as connection:
        connection.execute("CREATE DATABASE load_psql TEMPLATE template0")
    where = ["-h", admin["host"], "-p", str(admin["port"]), "-U", admin["user"]]
    environment = clean_environment()
    psql = [programs / "psql", *where, "-X", "-q", "-o", "/dev/null", "-f", test_data / dump, "load_psql"]
    subprocess.run(psql, env=environment, capture_output=True)
    shown = [
        subprocess.run(
            [programs / "pg_dump", *where, "--restrict-key=test", name],
            env=environment,
            capture_output=True,
            check=True,
        ).stdout
        for name in ("load_real", "load_psql")
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) > 1_000
