"""The doctor sees what the role can do, wherever the right came from, and every attack refused."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from okf_agent.access import doctor, role
from okf_agent.access.rights import Finding, examine_role, unsafe_role
from okf_agent.config import Config, load_config
from okf_agent.engines import Server
from okf_agent.engines.connection import connect_admin, connect_agent
from okf_compiler.documents import Documents
from okf_compiler.readers import catalogue

DATABASE = "doctor_lab"
CONTENT = """
CREATE TABLE customers (id int PRIMARY KEY, name text, ssn text);
CREATE TABLE orders (id serial PRIMARY KEY, amount numeric);
CREATE VIEW ssns AS SELECT ssn FROM customers;
CREATE FUNCTION bump() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';
"""


@pytest.fixture
def lab(each_postgres: Server) -> Iterator[Server]:
    with connect_admin(each_postgres) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    try:
        run(each_postgres, CONTENT)
        yield each_postgres
    finally:
        with connect_admin(each_postgres) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            connection.execute("DROP ROLE IF EXISTS agent_ro, doctor_group")


def run(server: Server, *queries: str) -> None:
    with connect_admin(server, DATABASE) as connection:
        for query in queries:
            connection.execute(query.encode())


def written(root: Path, text: str = "") -> Config:
    (root / "config.yaml").write_text(text, encoding="utf-8")
    return load_config(root)


def database_findings(server: Server, config: Config) -> list[Finding]:
    present, findings = doctor._database(server, config, DATABASE, None)
    assert present
    return findings


def levels(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.level for finding in findings}


def test_a_hardened_role_is_all_green(lab: Server, tmp_path: Path) -> None:
    config = written(tmp_path, "database: {hide: [customers.ssn]}\n")
    assert role.ensure_role(lab, DATABASE, config) == ()
    findings = database_findings(lab, config)
    assert [finding for finding in findings if finding.level != "green"] == []
    refused = [finding for finding in findings if finding.check.startswith("attack: ")]
    assert len(refused) == len(doctor.ATTACKS)
    assert all(finding.text.startswith("Refused: ") for finding in refused)
    assert levels(findings)["query"] == "green"
    begin = time.perf_counter()
    assert unsafe_role(lab, DATABASE, config) == ()
    assert time.perf_counter() - begin < 1


SEEN = {
    "superuser": ("ALTER ROLE agent_ro SUPERUSER", "attributes", "red"),
    "row security": ("ALTER ROLE agent_ro BYPASSRLS", "attributes", "red"),
    "member": ("CREATE ROLE doctor_group; GRANT doctor_group TO agent_ro", "memberships", "red"),
    "server files": ("GRANT pg_read_server_files TO agent_ro", "memberships", "red"),
    "owner": ("ALTER TABLE orders OWNER TO agent_ro", "ownership", "red"),
    "writes": ("GRANT DELETE ON orders TO agent_ro", "writes", "red"),
    "writes a column": ("GRANT UPDATE (amount) ON orders TO agent_ro", "writes", "red"),
    "writes like everyone": ("GRANT INSERT ON orders TO PUBLIC", "writes", "red"),
    "sequence": ("GRANT USAGE ON SEQUENCE orders_id_seq TO agent_ro", "sequences", "red"),
    "schema": ("GRANT CREATE ON SCHEMA public TO PUBLIC", "creates", "red"),
    "database": ("GRANT CREATE ON DATABASE doctor_lab TO agent_ro", "creates", "red"),
    "temporary": ("GRANT TEMPORARY ON DATABASE doctor_lab TO PUBLIC", "temporary tables", "yellow"),
    "definer": ("GRANT EXECUTE ON FUNCTION bump() TO PUBLIC", "SECURITY DEFINER", "red"),
    "function": ("GRANT EXECUTE ON FUNCTION twice(int) TO PUBLIC", "functions", "yellow"),
    "catalogue": ("GRANT EXECUTE ON FUNCTION pg_sleep(float8) TO PUBLIC", "catalogue functions", "yellow"),
    "hidden column": ("GRANT SELECT ON customers TO PUBLIC", "hidden columns", "red"),
    "hidden by a view": ("GRANT SELECT ON ssns TO agent_ro", "hidden columns", "red"),
    "nothing to read": ("REVOKE SELECT ON ALL TABLES IN SCHEMA public FROM agent_ro", "reading", "yellow"),
}


def as_the_role(server: Server, grant: str) -> dict[str, str]:
    """The levels if `grant` had been run, which is rolled back. Settings are the administrator's here."""
    with connect_admin(server, DATABASE) as connection, connection.transaction(force_rollback=True):
        connection.execute(grant.encode())
        connection.execute("SET LOCAL SESSION AUTHORIZATION agent_ro")
        found = examine_role(connection, ours=True, hide=["customers.ssn"], allowed=[])
        assert all(f.remedy for f in found if f.level != "green")
    return {check: level for check, level in levels(found).items() if check != "settings"}


def test_every_right_too_many_is_seen(lab: Server, tmp_path: Path) -> None:
    role.ensure_role(lab, DATABASE, written(tmp_path, "database: {hide: [customers.ssn]}\n"))
    assert set(as_the_role(lab, "").values()) == {"green"}
    for name, (grant, check, level) in SEEN.items():
        assert as_the_role(lab, grant)[check] == level, name


HIDE = """\
database:
  hide:
    - customers.ssn
    - {0}
"""


@pytest.mark.parametrize("entry", ["customers.snn", "custmers.ssn", "nowhere", "public.customers.gone.inside"])
def test_an_entry_of_hide_that_hides_nothing_is_red(lab: Server, tmp_path: Path, entry: str) -> None:
    config = written(tmp_path, HIDE.format(entry))
    role.ensure_role(lab, DATABASE, config)
    (refused,) = unsafe_role(lab, DATABASE, config)
    assert f"config.yaml:4: {entry}" in refused and "hides nothing" in refused
    assert "databases.<name>.hide" in refused
    near = "; did you mean 'customers.ssn'?"
    assert (near in refused) == (entry in ("customers.snn", "custmers.ssn"))


def test_a_pattern_of_hide_may_name_nothing_here(lab: Server, tmp_path: Path) -> None:
    config = written(tmp_path, HIDE.format("'*.iban'"))
    role.ensure_role(lab, DATABASE, config)
    assert unsafe_role(lab, DATABASE, config) == ()


@pytest.mark.parametrize("entry", ["customers.ssn.inside.it", "public.customers.SSN.inside", "*.ssn.inside"])
def test_a_path_inside_a_column_hides_the_whole_column(lab: Server, tmp_path: Path, entry: str) -> None:
    config = written(tmp_path, json.dumps({"databases": {DATABASE: {"hide": [entry]}}}))
    assert role.ensure_role(lab, DATABASE, config) == ()
    assert unsafe_role(lab, DATABASE, config) == ()
    with connect_agent(lab, DATABASE) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT ssn FROM customers")
    with connect_agent(lab, DATABASE) as connection:
        connection.execute("SELECT id FROM customers")
        found = catalogue.read(connection, DATABASE, hide=config.settings.hidden(DATABASE))
    assert found.table("customers").column("ssn") is None  # type: ignore[union-attr]
    assert not [problem for problem in found.problems if "hide names" in problem.message]


def test_what_makes_ask_refuse(lab: Server, tmp_path: Path) -> None:
    config = written(tmp_path)
    role.ensure_role(lab, DATABASE, config)
    run(lab, "ALTER ROLE agent_ro SET statement_timeout = 0", "ALTER ROLE agent_ro SET temp_file_limit = -1")
    (found,) = [f for f in database_findings(lab, config) if f.level != "green"]
    assert found.text == "These settings of the role have no bound: statement_timeout, temp_file_limit."
    assert unsafe_role(lab, DATABASE, config) == ()
    run(lab, "GRANT DELETE ON orders TO agent_ro")
    assert unsafe_role(lab, DATABASE, config) == ("The role may write to 1 tables: public.orders.",)


def test_on_a_server_with_others_what_everyone_may_is_yellow(lab: Server, tmp_path: Path) -> None:
    config = written(tmp_path)
    theirs = Server("server", lab.admin, lab.agent)
    role.ensure_role(theirs, DATABASE, config)
    findings = database_findings(theirs, config)
    found = levels(findings)
    (definer,) = (f for f in findings if f.check == "SECURITY DEFINER")
    assert "database.harden_public" in definer.remedy  # what `prepare` alone leaves to everyone here
    yellow = {check for check, level in found.items() if level == "yellow"}
    assert yellow >= {"temporary tables", "SECURITY DEFINER", "functions", "catalogue functions", "other databases"}
    assert "red" not in found.values()
    assert unsafe_role(theirs, DATABASE, config) == ()


def test_a_role_with_every_right_still_cannot_attack(lab: Server, tmp_path: Path) -> None:
    run(lab, "CREATE ROLE agent_ro LOGIN SUPERUSER")
    found = database_findings(lab, written(tmp_path))
    ran = {f.check for f in found if f.check.startswith("attack: ") and f.level == "red"}
    assert ran <= {"attack: read a file of the server", "attack: list the server's files", "attack: read passwords"}
    assert levels(found)["attributes"] == "red"


def test_absent_database_and_changed_dump(lab: Server, tmp_path: Path) -> None:
    from okf_agent.loading.load import load

    config = written(tmp_path)
    dump = tmp_path / "dump.sql"
    dump.write_text("CREATE TABLE t (a int);", encoding="utf-8")
    documents = Documents("doctor_absent", *[tmp_path] * 4, dump=dump)
    run(lab, "CREATE ROLE agent_ro LOGIN")
    assert doctor._database(lab, config, "doctor_absent", documents)[0] is False
    try:
        load(lab, "doctor_absent", dump)
        role.ensure_role(lab, "doctor_absent", config)
        dump.write_text("CREATE TABLE t (a int); SELECT 1;", encoding="utf-8")
        content = doctor._database(lab, config, "doctor_absent", documents)[1][0]
        assert (content.check, content.level) == ("content", "yellow")
        assert "--reload" in content.remedy
    finally:
        with connect_admin(lab) as connection:
            connection.execute("DROP DATABASE IF EXISTS doctor_absent WITH (FORCE)")


def test_machine_model_and_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Path(__file__).parents[3] / "data" / "shop"
    shutil.copytree(shop, tmp_path / "data" / "shop")
    (tmp_path / ".env").write_text("X=1\n", encoding="utf-8")
    (tmp_path / ".env").chmod(0o644)
    config = written(tmp_path, "database: {engine: server, host: localhost, port: 1}\n")
    monkeypatch.setenv("POSTGRES_USER", "nobody_there")
    found = doctor.examine(config, model="openai/gpt-5-mini")
    assert {f.check: f.level for f in found} == {
        "versions": "green", "disk": "green", "secrets": "yellow", "model": "red", "bundles": "green",
        "server": "red",
    }  # fmt: skip
    from support.documents import compile_documents

    from okf_compiler.documents import find_documents

    compile_documents(find_documents(config.settings, "shop"), config.settings.bundles / "shop")
    texts = [f.text for f in doctor.examine(config) if f.check == "bundles"]
    assert texts == ["Compiled bundles that are what their sources say: 1."]
    rules = tmp_path / "data" / "shop" / "shop_kb.jsonl"
    lines = rules.read_text(encoding="utf-8").splitlines(keepends=True)
    rules.write_text("".join(lines[:-1]), encoding="utf-8")
    (stale,) = [f for f in doctor.examine(config) if f.check == "bundles"]
    assert (stale.level, stale.remedy) == ("yellow", "okf-compiler compile shop")


def test_row_security_that_keeps_rows_from_the_role_is_named(lab: Server, tmp_path: Path) -> None:
    config = written(tmp_path)
    role.ensure_role(lab, DATABASE, config)
    (none,) = [f for f in database_findings(lab, config) if f.check == "row security"]
    assert none.level == "green"
    run(lab, "ALTER TABLE orders ENABLE ROW LEVEL SECURITY", "ALTER TABLE customers ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY everybody ON customers FOR SELECT USING (true)")  # fmt: skip
    (found,) = [f for f in database_findings(lab, config) if f.check == "row security"]
    assert found.level == "yellow" and found.text.startswith(
        "Row security may keep rows from the role in 1 tables: orders."
    )
    assert "CREATE POLICY" in found.remedy
    run(lab, "CREATE POLICY narrow ON customers AS RESTRICTIVE FOR SELECT USING (id = 1)")
    (found,) = [f for f in database_findings(lab, config) if f.check == "row security"]
    assert "2 tables: customers, orders." in found.text
