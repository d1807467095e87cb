"""No Docker engine runs here: the compose file's structure is checked, and the waiting against a real server."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import yaml

from okf_agent.config import load_config
from okf_agent.engines import Server, reach
from okf_agent.engines.connection import connect_admin
from okf_agent.engines.docker import DATABASES, SECRETS, wait_for
from okf_agent.models.providers import PROVIDERS
from okf_compiler.errors import UserError

ROOT = Path(__file__).parents[3]
IMAGE = "shawnxxh/bird-interact-postgresql@sha256:1ae45d7aa5d64dd8eb82e4058f56b4b9625d5035b9b9dc0d2afa0295d9d3053c"


def test_compose_file() -> None:
    found = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    service = found["services"]["postgresql"]
    assert service["image"] == IMAGE
    assert service["container_name"] == "livesqlbench_postgresql"
    assert service["volumes"] == ["pgdata:/var/lib/postgresql/data"]
    assert "pgdata" in found["volumes"]
    assert {name: value[: len(name) + 2] for name, value in service["environment"].items()} == {
        "POSTGRES_USER": "${POSTGRES_USER",
        "POSTGRES_PASSWORD": "${POSTGRES_PASSWORD",
    }
    assert service["ports"] == ["127.0.0.1:${OKF_DOCKER_PORT:-5432}:5432"]
    # Another service starts with it only where it is asked for.
    assert [name for name, other in found["services"].items() if "profiles" not in other] == ["postgresql"]


def test_env_example_names_every_secret() -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    names = {line.partition("=")[0] for line in lines if "=" in line and not line.startswith("#")}
    assert names == {*SECRETS, *(p.key for p in PROVIDERS if p.key)}


def test_databases_are_those_of_base_lite(test_data: Path) -> None:
    assert sorted(DATABASES) == sorted(p.parent.name for p in test_data.glob("livesqlbench-base-lite/*/*_schema.txt"))


def test_missing_secrets_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POSTGRES_USER", "root")
    (tmp_path / "config.yaml").write_text("database: {engine: docker}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"POSTGRES_PASSWORD and AGENT_DB_PASSWORD: add them to .env \(see .env.exam"):
        reach(load_config(tmp_path))


def test_no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "root")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "config.yaml").write_text("database: {engine: docker}\n", encoding="utf-8")
    with pytest.raises(UserError, match="Docker is not installed"):
        reach(load_config(tmp_path))


def test_waits_until_every_plain_database_is_there(postgres: Server) -> None:
    names = ["docker_one", "docker_two"]
    told: list[str] = []

    def load_slowly() -> None:
        with connect_admin(postgres) as connection:
            for name in names:
                connection.execute(f"CREATE DATABASE {name}_template")
                time.sleep(0.2)
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {name}_template")

    loader = threading.Thread(target=load_slowly)
    loader.start()
    try:
        wait_for(postgres, names, told.append, seconds=60, pause=0.05)
        with connect_admin(postgres) as connection:
            found = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
        assert found >= set(names)
        assert told[0].endswith("0 of 2 databases are loaded")
        assert any(text.endswith("1 of 2 databases are loaded") for text in told)
    finally:
        loader.join()
        with connect_admin(postgres) as connection:
            for name in names:
                connection.execute(f"DROP DATABASE {name}")
                connection.execute(f"DROP DATABASE {name}_template")


def test_gives_up_and_says_what_is_missing(postgres: Server) -> None:
    with pytest.raises(UserError, match=r"0 of 1 databases are loaded\. Missing: docker_never"):
        wait_for(postgres, ["docker_never"], lambda _: None, seconds=0.1, pause=0.05)
