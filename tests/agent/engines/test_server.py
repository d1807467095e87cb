"""A server of somebody else: by host and port or PG* variables, with any password, with and without TLS."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.tcp_server import PASSWORD, USER, TcpServer, tcp_server

from okf_agent.access import role
from okf_agent.config import Config, load_config
from okf_agent.engines import Server, reach
from okf_agent.engines.connection import MissingDatabase, connect_admin, connect_agent
from okf_agent.loading.load import load
from okf_agent.prepare import find_bundle, quiet
from okf_agent.setup.target import Target, explained
from okf_compiler.errors import UserError

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
AGENT_PASSWORD = "its own: ' \\ @ #"


@pytest.fixture(scope="module")
def tcp() -> Iterator[TcpServer]:
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate, and is not installed")
    if not PROGRAMS.is_dir():
        pytest.skip(f"the wheel's PostgreSQL is built without TLS, and there is none in {PROGRAMS}")
    with tcp_server(PROGRAMS) as server:
        yield server


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that says who, and nothing of where."""
    for name in [n for n in os.environ if n.startswith(("PG", "POSTGRES_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("POSTGRES_USER", USER)
    monkeypatch.setenv("POSTGRES_PASSWORD", PASSWORD)
    monkeypatch.setenv("AGENT_DB_PASSWORD", AGENT_PASSWORD)
    return monkeypatch


def written(root: Path, port: int, host: str = "localhost") -> Config:
    text = f"database: {{engine: server, host: {host}, port: {port}}}\n"
    (root / "config.yaml").write_text(text, encoding="utf-8")
    return load_config(root)


def uses_tls(server: Server) -> bool:
    with connect_admin(server) as connection:
        return bool(connection.pgconn.ssl_in_use)


@pytest.mark.usefixtures("variables")
def test_from_a_dump_to_a_role_that_reads(tcp: TcpServer, tmp_path: Path) -> None:
    config = written(tmp_path, tcp.port)
    server = reach(config)
    dump = tmp_path / "dump.sql"
    dump.write_text("CREATE TABLE t (a int); INSERT INTO t VALUES (7);", encoding="utf-8")
    assert load(server, "tcp_small", dump).status == "loaded"
    assert role.ensure_role(server, "tcp_small", config) == ()
    with connect_agent(server, "tcp_small") as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(7,)]
    assert PASSWORD not in repr(server)
    with connect_admin(server) as connection:
        connection.execute("ALTER ROLE agent_ro PASSWORD 'other'")
    rejected = "rejects the password of agent_ro: correct AGENT_DB_PASSWORD in .env (see .env.example)."
    with pytest.raises(UserError) as error:
        connect_agent(server, "tcp_small").__enter__()
    assert str(error.value).endswith(rejected)
    (tmp_path / "config.yaml").write_text(
        f"database: {{engine: server, port: {tcp.port}}}\ndatabases: {{tcp_small: {{from: configured}}}}\n", "utf-8"
    )
    with pytest.raises(UserError) as error:
        find_bundle(load_config(tmp_path), "tcp_small", None, quiet)
    assert str(error.value).endswith(rejected)


TOLD = {
    "fe_sendauth: no password supplied": ({}, "asks for the password of ann, and none was given: put it into"),
    'password authentication failed for user "ann"': ({}, "Correct the password in PGPASSWORD; libpq's"),
    '"x": password authentication failed': ({"password": "wrong"}, "Correct the password in --from: characters like"),
    "failed to resolve host 'x': [Errno -2] Name or service not known": ({}, "Check that the server runs, and host"),
    'definition of service "theirs" not found': ({}, "Correct PGSERVICE, or the file"),
}


@pytest.mark.parametrize("said", TOLD)
def test_a_first_connection_that_fails_names_what_was_given(said: str) -> None:
    params, expected = TOLD[said]
    target = Target("shop", {"user": "ann", **params}, "--from")
    assert expected in str(explained(target, said))


def test_variables_say_where(tcp: TcpServer, tmp_path: Path, variables: pytest.MonkeyPatch) -> None:
    config = written(tmp_path, 1, "nowhere.invalid")
    variables.setenv("PGHOST", "127.0.0.1")
    variables.setenv("PGPORT", str(tcp.port))
    assert reach(config).admin == {"user": USER, "password": PASSWORD}
    variables.setenv("PGHOST", "u:s3cret@nowhere.invalid")
    with pytest.raises(UserError) as raised:
        reach(load_config(tmp_path))
    assert "nowhere.invalid" in str(raised.value) and "s3cret" not in str(raised.value)
    variables.delenv("PGHOST")
    variables.delenv("PGPORT")
    services = tmp_path / "services.conf"
    services.write_text(f"[ours]\nhost=localhost\nport={tcp.port}\nsslmode=require\n", encoding="utf-8")
    variables.setenv("PGSERVICEFILE", str(services))
    variables.setenv("PGSERVICE", "ours")
    assert uses_tls(reach(config))
    variables.setenv("PGSERVICE", "theirs")
    with pytest.raises(UserError, match='"theirs" not found'):
        reach(config)


TLS = {"disable": False, "prefer": True, "require": True, "verify-full": True}


@pytest.mark.parametrize("mode", TLS)
def test_tls(tcp: TcpServer, tmp_path: Path, variables: pytest.MonkeyPatch, mode: str) -> None:
    variables.setenv("PGSSLMODE", mode)
    variables.setenv("PGSSLROOTCERT", str(tcp.root_certificate))
    assert uses_tls(reach(written(tmp_path, tcp.port))) is TLS[mode]


def test_tls_with_a_certificate_nobody_vouches_for(
    tcp: TcpServer, tmp_path: Path, variables: pytest.MonkeyPatch
) -> None:
    variables.setenv("PGSSLMODE", "verify-full")
    variables.setenv("PGSSLROOTCERT", str(tmp_path / "absent.crt"))
    with pytest.raises(UserError, match="PGSSLROOTCERT"):
        reach(written(tmp_path, tcp.port))


@pytest.mark.parametrize("quoted", ['"{}"', "'{}'", "{}"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_passwords_from_a_env_file(
    tcp: TcpServer, tmp_path: Path, variables: pytest.MonkeyPatch, quoted: str, ending: str
) -> None:
    """Double quotes want a backslash before a quote or a backslash, as in a shell; bare values end at ` #`."""
    password = "p@ss#w%rd/:x$HOME${HOME}"
    variables.delenv("POSTGRES_PASSWORD")
    with psycopg.connect(host="localhost", port=tcp.port, user=USER, password=PASSWORD, dbname="postgres") as admin:
        admin.execute("CREATE ROLE other SUPERUSER LOGIN")
        admin.execute(f"ALTER ROLE other PASSWORD '{password}'".encode())
        admin.commit()
        try:
            variables.setenv("POSTGRES_USER", "other")
            lines = ["# secrets", f"POSTGRES_PASSWORD={quoted.format(password)}", ""]
            (tmp_path / ".env").write_bytes(("\ufeff" + ending.join(lines)).encode())
            assert reach(written(tmp_path, tcp.port)).admin is not None
        finally:
            os.environ.pop("POSTGRES_PASSWORD", None)
            admin.execute("DROP ROLE other")


def test_what_is_missing_is_named(tcp: TcpServer, tmp_path: Path, variables: pytest.MonkeyPatch) -> None:
    config = written(tmp_path, tcp.port)
    variables.setenv("POSTGRES_PASSWORD", "wrong")
    with pytest.raises(UserError, match="correct POSTGRES_PASSWORD") as caught:
        reach(config)
    assert "wrong" not in str(caught.value)
    variables.delenv("POSTGRES_PASSWORD")
    variables.setenv("PGPASSFILE", os.devnull)
    with pytest.raises(UserError, match=r"add POSTGRES_PASSWORD to .env \(see .env.example\)"):
        reach(config)
    variables.delenv("POSTGRES_USER")
    server = reach(config)
    assert server.admin is None
    with pytest.raises(UserError, match="add POSTGRES_USER and POSTGRES_PASSWORD"):
        connect_admin(server).__enter__()


@pytest.mark.usefixtures("variables")
def test_nothing_there(tcp: TcpServer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No connection to 'postgres' on localhost:1 .*\n.*database.port"):
        reach(written(tmp_path, 1))
    with pytest.raises(UserError, match="No connection"):
        reach(written(tmp_path, 5432, "nowhere.invalid"))
    with pytest.raises(MissingDatabase, match="no database 'absent'"):
        connect_admin(reach(written(tmp_path, tcp.port)), "absent").__enter__()
