"""`okf-compiler profile` as people call it."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from filelock import FileLock
from support.command import SCRIPTS, run
from support.databases import made, url
from support.workspace import workspace

from okf_agent.engines import Server
from okf_compiler.profiling import load, values

SCRIPT = """
CREATE TABLE a_customers (id integer PRIMARY KEY, email text, city text);
INSERT INTO a_customers SELECT g, 'someone' || g || '@secret.org', 'City ' || g % 5 FROM generate_series(1, 20) g;
CREATE VIEW b_slow AS SELECT id, pg_sleep(0.03)::text AS waited FROM a_customers;
GRANT SELECT ON a_customers, b_slow TO commanded;
"""


@pytest.fixture(scope="module")
def source(postgres: Server) -> Iterator[str]:
    with made(postgres, "commanded", SCRIPT, role="commanded") as params:
        yield url(params, "commanded")


def configure(folder: Path, **database: Any) -> None:
    (folder / "config.yaml").write_text(json.dumps({"database": database}), encoding="utf-8")


def test_what_is_hidden_never_leaves_and_nobody_else_reads_the_rest(source: str, tmp_path: Path) -> None:
    configure(tmp_path, hide=["a_customers.email"])
    done = run("okf-compiler", "profile", "people", "--from", source, "--hide", "b_slow", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 table, 20 rows, 2 columns" in done.stdout and "1/2 a_customers" in done.stderr
    folder = tmp_path / "bundles" / "profiles" / "people"
    profile = load(folder)
    assert profile is not None and list(profile.tables["a_customers"].columns) == ["id", "city"]
    for file in folder.iterdir():
        assert b"secret.org" not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert (folder / ".gitignore").read_text("utf-8") == "*\n"
    assert datetime.fromisoformat(profile.measured_at).tzinfo is not None


def test_ctrl_c_ends_cleanly_and_the_next_call_goes_on(source: str, postgres: Server, tmp_path: Path) -> None:
    command = [str(SCRIPTS / "okf-compiler"), "profile", "people", "--from", source]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stderr.readline() == "1/3 a_customers\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130 and said.strip() == "Interrupted."
    with psycopg.connect(**(postgres.admin or {}), dbname="postgres", autocommit=True) as admin:
        deadline = time.monotonic() + 5
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'commanded' AND state = 'active'"
        while admin.execute(query).fetchone() != (0,):
            assert time.monotonic() < deadline, "the query still runs"
    folder = tmp_path / "bundles" / "profiles" / "people"
    assert load(folder) is None
    again = run("okf-compiler", "profile", "people", "--from", source, "--seconds", "0.1", "--again", cwd=tmp_path)
    assert again.returncode == 0 and "b_slow" in again.stderr and "interruption" not in again.stdout


def test_a_lost_connection_is_no_fault_of_the_table(source: str, postgres: Server, tmp_path: Path) -> None:
    command = [str(SCRIPTS / "okf-compiler"), "profile", "people", "--from", source]
    with (  # connected before, since the tables may all be measured by the time that a busy machine connects
        psycopg.connect(**(postgres.admin or {}), dbname="postgres", autocommit=True) as admin,
        subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None and process.stderr.readline() == "1/3 a_customers\n"
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'commanded'")
        said = process.stderr.read()
    assert process.returncode == 1 and "goes on where it was" in said, said
    again = run("okf-compiler", "profile", "people", "--from", source, "--quiet", cwd=tmp_path)
    assert again.returncode == 0 and "before the interruption: 1 table;" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["people", "--from", "postgresql://nobody@127.0.0.1:9/people"], 1, "people: "),
        (["people", "--from", "nonsense"], 2, "--from takes a URL"),
        (["../people"], 2, "plain name"),
        (["people", "--sample-above", "0"], 2, "--sample-above"),
    ],
)
def test_errors_say_what_to_do(arguments: list[str], status: int, said: str, tmp_path: Path) -> None:
    done = run("okf-compiler", "profile", *arguments, cwd=tmp_path)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "bundles" / "profiles" / "people" / "profile.json").exists()


def test_a_disk_that_is_full_is_told_and_the_next_call_goes_on(source: str, tmp_path: Path) -> None:
    """A limit on file sizes stops the value index, which is the largest file, as a full disk would."""
    arguments = ["profile", "people", "--from", source, "--hide", "b_slow"]
    limited = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh", str(SCRIPTS / "okf-compiler"), *arguments]
    failed = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert failed.returncode == 1 and "cannot be written" in failed.stderr and "Traceback" not in failed.stderr
    again = run("okf-compiler", *arguments, cwd=tmp_path)
    assert again.returncode == 0 and "Measured before the interruption" in again.stdout


def test_two_at_once_are_one(source: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundles" / "profiles" / "people"
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"):
        done = run("okf-compiler", "profile", "people", "--from", source, "--quiet", cwd=tmp_path)
    assert done.returncode == 1 and "another process" in done.stderr


@pytest.mark.slow
def test_the_shop_of_a_fresh_checkout(tmp_path_factory: pytest.TempPathFactory) -> None:
    with workspace(tmp_path_factory.mktemp("checkout")) as made:
        prepared = run("okf-agent", "prepare", "shop", cwd=made.root)
        assert prepared.returncode == 0, prepared.stderr
        done = run("okf-compiler", "profile", "shop", "--quiet", cwd=made.root)
        assert done.returncode == 0 and done.stderr == ""
        missing = run("okf-compiler", "profile", "nothing_here", cwd=made.root)
        assert missing.returncode == 1 and "no content of nothing_here" in missing.stderr
        folder = made.root / "bundles" / "profiles" / "shop"
        profile = load(folder)
        assert profile is not None and "preferences.loyalty.tier" in profile.tables["customers"].columns
        with values.open(folder) as index:  # type: ignore[union-attr]
            assert ("customers", "country", "exact") in {(h.table, h.column, h.how) for h in index.find("Germany")}
