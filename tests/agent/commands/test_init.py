"""`okf-agent init` on a database of one's own: PostgreSQL 15 with passwords, the real command line."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from support.command import SCRIPTS, run, run_inside
from support.databases import loaded, made
from support.endpoint import Endpoint, submit
from support.pooler import Pooler

from okf_agent.engines import Server

SCRIPT = """
CREATE TYPE tier AS ENUM ('basic', 'plus');
CREATE TABLE members (member_id int PRIMARY KEY, full_name text NOT NULL, tier tier, state text, joined date);
COMMENT ON COLUMN members.joined IS 'Day of the first visit';
CREATE TABLE visits (
    visit_id int PRIMARY KEY, member_id int NOT NULL REFERENCES members, visited date, amt numeric(10, 2));
CREATE VIEW regulars AS SELECT member_id, count(*) AS visits FROM visits GROUP BY member_id HAVING count(*) >= 10;
INSERT INTO members SELECT n, 'Member ' || n, 'basic', substr('APX', n % 3 + 1, 1) FROM generate_series(1, 60) n;
"""
PASSWORD = "k€y:h@lder #1"
CONFIG = """# ours
database:
  engine: embedded   # until there is a server
  agent_user: gym_reader

agent: {max_steps: 7}  # enough
"""
NEVER = ("GRANT", "CREATE ROLE")


class Gym:
    """The database, and workspaces to set it up in."""

    def __init__(self, server: Server, folder: Path) -> None:
        assert server.admin is not None
        self.admin = server.admin
        self.folder = folder

    def url(self, user: str = "gym_boss", password: str = PASSWORD, dbname: str = "gym", **more: Any) -> str:
        place = {**self.admin, **more}
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@/{dbname}?host={quote(str(place['host']))}&port={place['port']}"

    def workspace(self, name: str, config: str = CONFIG) -> Path:
        root = self.folder / name
        root.mkdir()
        (root / "config.yaml").write_text(config, encoding="utf-8")
        return root

    def init(self, root: Path, *arguments: str, env: dict[str, str] | None = None) -> CompletedProcess[str]:
        result = run_inside("init", *arguments, cwd=root, env=env)
        files = [p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != ".env"]
        texts = (*files, result.stdout.encode(), result.stderr.encode())
        assert not any(secret.encode() in text for text in texts for secret in (PASSWORD, quote(PASSWORD, safe="")))
        return result

    def has_role(self, name: str) -> bool:
        with psycopg.connect(**self.admin, dbname="gym") as connection:
            return bool(connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [name]).fetchall())

    def run(self, statement: str, dbname: str = "gym") -> None:
        with psycopg.connect(**self.admin, dbname=dbname, autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture(scope="module")
def gym(postgres15: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gym]:
    with made(postgres15, "gym", SCRIPT):
        place = Gym(postgres15, tmp_path_factory.mktemp("init"))
        with psycopg.connect(**place.admin, dbname="postgres", autocommit=True) as connection:
            secret = connection.pgconn.encrypt_password(PASSWORD.encode(), b"gym_boss", b"scram-sha-256").decode()
            connection.execute(f"CREATE ROLE gym_boss LOGIN SUPERUSER PASSWORD '{secret}'".encode())
            connection.execute(b"CREATE ROLE gym_viewer LOGIN NOINHERIT")
            file = Path(str((connection.execute("SHOW hba_file").fetchone() or [""])[0]))
            users = "gym_boss,gym_reader,gym_keeper"
            file.write_text(f"local all {users} scram-sha-256\n{file.read_text('utf-8')}", encoding="utf-8")
            connection.execute("SELECT pg_reload_conf()")
        place.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO gym_viewer")
        yield place


@pytest.fixture(scope="module")
def ready(gym: Gym) -> Path:
    """A workspace after the whole of `init`, its first question answered by a scripted model."""
    count = "SELECT count(*) FROM members"
    with Endpoint([submit(count, "There are 60 members.")]) as endpoint:
        model = f"model: {{name: openai/scripted, api_base: '{endpoint.url}', retries: 0}}\n"
        root = gym.workspace("ready", CONFIG + model)
        result = gym.init(root, "--yes", "--from", gym.url(), "--question", "How many members are there?")
    assert result.returncode == 0, result.stdout + result.stderr
    (root / "said.txt").write_text(result.stdout, encoding="utf-8")
    return root


def test_without_consent_the_statements_are_shown_and_all_else_is_done(gym: Gym) -> None:
    root = gym.workspace("shown")
    config = (root / "config.yaml").read_text("utf-8").replace("gym_reader", "gym_keeper")
    (root / "config.yaml").write_text(config, encoding="utf-8")
    result = gym.init(root, "--from", gym.url())
    assert result.returncode == 1
    assert 'CREATE ROLE "gym_keeper" LOGIN' in result.stdout
    assert 'GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "gym_keeper"' in result.stdout
    assert "FROM PUBLIC" not in result.stdout
    assert "okf-agent prepare gym --print-sql" in result.stdout
    assert "Questions cannot be asked yet: the role gym_keeper is still to be made." in result.stderr
    assert not gym.has_role("gym_keeper")
    assert (root / "bundles" / "compiled" / "gym" / "tables" / "visits.md").is_file()


def test_it_ends_with_an_answer(ready: Path) -> None:
    said = (ready / "said.txt").read_text("utf-8")
    assert "There are 60 members." in said
    line = json.loads((ready / "runs" / "runs.jsonl").read_text("utf-8"))
    assert (line["database"], line["mode"], line["stop_reason"], line["unsafe_role"]) == (
        "gym", "bundle", "submitted", False)  # fmt: skip


def test_the_role_has_a_password_of_its_own_in_env_alone(gym: Gym, ready: Path) -> None:
    env = ready / ".env"
    name, _, password = env.read_text("utf-8").strip().partition("=")
    assert name == "AGENT_DB_PASSWORD" and len(password) >= 32
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(**{**gym.admin, "user": "gym_reader", "password": "x"}, dbname="gym")
    files = [p for p in ready.rglob("*") if p.is_file() and p != env]
    assert not [p for p in files if password.encode() in p.read_bytes()]


def test_config_keeps_what_people_wrote(gym: Gym, ready: Path) -> None:
    text = (ready / "config.yaml").read_text("utf-8")
    place = f"  host: {gym.admin['host']}\n"
    assert text.startswith(
        "# ours\ndatabase:\n  engine: server   # until there is a server\n  agent_user: gym_reader\n"
    )
    assert place in text and "agent: {max_steps: 7}  # enough\n" in text
    assert text.endswith(
        "\ndatabases:\n  gym:\n    from: configured\n    columns: [data/gym/dictionary.csv]\n"
        "    rules: [data/gym/glossary.yaml]\n"
    )


def test_the_dictionary_says_what_is_known_and_what_is_not(ready: Path) -> None:
    rows = (ready / "data" / "gym" / "dictionary.csv").read_text("utf-8-sig").splitlines()
    assert rows[0] == "table,column,description,known,to do"
    assert "members,joined,Day of the first visit,date," in rows
    assert "members,full_name,,text; never empty,describe" in rows
    assert 'members,tier,,"tier; labels basic, plus","describe first: 2 labels: basic, plus"' in rows
    assert "visits,member_id,,integer; refers to members.member_id; never empty,describe" in rows


def test_the_columns_that_matter_most_are_named(ready: Path) -> None:
    said = (ready / "said.txt").read_text("utf-8")
    shown = said.partition("nobody has described")[2].partition("by hand")[0].splitlines()[1:]
    assert [" ".join(line.split()) for line in shown if line.strip()] == [
        "members.state only 3 different values; a name that leaves open what it means",
        "members.tier 2 labels: basic, plus",
        "visits.amt an abbreviated name",
    ]


def test_what_a_view_computes_is_a_rule(ready: Path) -> None:
    text = run_inside("read", "gym", "/knowledge/regulars", cwd=ready).stdout
    assert "HAVING count(*) >= 10" in text and "/tables/visits.md" in text


def test_a_second_time_changes_nothing_that_was_edited(gym: Gym, ready: Path) -> None:
    dictionary, glossary = (ready / "data" / "gym" / name for name in ("dictionary.csv", "glossary.yaml"))
    dictionary.write_text(dictionary.read_text("utf-8").replace("visits,amt,,", "visits,amt,Euros paid,"), "utf-8")
    kept = [ready / "config.yaml", ready / ".env", dictionary, glossary]
    before = [file.read_bytes() for file in kept]
    gym.run("ALTER TABLE visits ADD COLUMN IF NOT EXISTS note text")
    result = gym.init(ready, "gym", "--no-question")
    gym.run("ALTER TABLE visits DROP COLUMN note")
    assert result.returncode == 0, result.stderr
    assert [file.read_bytes() for file in kept] == before
    assert "dictionary.csv is kept as it is; not in it: visits.note" in result.stdout
    told = [
        json.loads(line)
        for line in run_inside("doctor", "gym", "--model", "local", "--json", cwd=ready).stdout.splitlines()
    ]
    notes = [
        f["check"] for f in told if f["level"] == "yellow" and not f["check"].startswith(("attack", "model", "bundles"))
    ]
    said = f"`okf-agent doctor gym` has a note on: {', '.join(notes)}\n" if notes else "it can read, and nothing more\n"
    assert said in result.stdout
    assert not [word for word in NEVER if word in result.stdout]
    assert "visits.amt" in (ready / "said.txt").read_text("utf-8") and "visits.amt" not in result.stdout
    assert "Euros paid" in (ready / "bundles/compiled/gym/tables/visits.md").read_text("utf-8")


def test_an_edited_glossary_is_used_by_the_next_command(ready: Path) -> None:
    with (ready / "data" / "gym" / "glossary.yaml").open("a", encoding="utf-8") as file:
        file.write("  - name: Weekend visit\n    definition: visits.visited is a Saturday or Sunday\n")
    told = run_inside("doctor", "gym", "--model", "local", cwd=ready).stdout
    assert "The sources of gym have changed since their bundles were compiled." in told
    result = run_inside("read", "gym", "/knowledge/weekend-visit", cwd=ready)
    assert "Compiling gym from the catalogue of its server" in result.stderr
    assert "Saturday or Sunday" in result.stdout and "`visited`" in result.stdout
    assert run_inside("read", "gym", "/index", cwd=ready).stderr == ""
    told = run_inside("doctor", "gym", "--model", "local", cwd=ready).stdout
    assert "Compiled bundles that are what their sources say: 1." in told


def test_the_compiler_knows_its_sources_too(ready: Path) -> None:
    for name in ("gym", "all"):
        result = run("okf-compiler", "compile", name, cwd=ready)
        assert result.returncode == 0, result.stderr
        assert "gym: 3 tables" in result.stdout and "Regulars" not in result.stdout


def test_there_are_no_documents_to_paste(ready: Path) -> None:
    result = run_inside("ask", "x?", "--db", "gym", "--raw", "--model", "openai/x", cwd=ready,
                        env={"OPENAI_API_KEY": "x"})  # fmt: skip
    assert result.returncode == 2
    assert "The tables of gym come from its server" in result.stdout + result.stderr


def test_a_login_that_can_only_read_is_the_role(gym: Gym) -> None:
    root = gym.workspace("viewer")
    env = {"PGHOST": str(gym.admin["host"]), "PGPORT": str(gym.admin["port"]), "PGUSER": "gym_viewer"}
    result = gym.init(root, "gym", "--no-question", env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "questions are asked as gym_viewer" in result.stdout
    assert "  agent_user: gym_viewer\n" in (root / "config.yaml").read_text("utf-8")
    assert not [word for word in NEVER if word in result.stdout]
    again = gym.init(root, "gym")
    assert again.returncode == 0, again.stderr
    assert 'okf-agent ask --db gym "How many rows does the table members have?"' in again.stdout


def test_a_pooler_that_wants_a_project_behind_each_role_gets_it(gym: Gym) -> None:
    """The login stays as given, the role is made without the project, and later commands log in with it."""
    root = gym.workspace("pooled", CONFIG.replace("gym_reader", "gym_pooled"))
    with Pooler(gym.admin, project="abcd") as pooler:
        place = f"127.0.0.1:{pooler.params['port']}"
        url = f"postgresql://{gym.admin['user']}.abcd@{place}/gym?pgbouncer=true"
        result = gym.init(root, "--yes", "--from", url, "--no-question")
        assert result.returncode == 0, result.stdout + result.stderr
        assert "left out, since only other programs read it: pgbouncer" in result.stderr
        assert "  pooler_project: abcd\n" in (root / "config.yaml").read_text("utf-8")
        assert "  agent_user: gym_pooled\n" in (root / "config.yaml").read_text("utf-8")
        found = run_inside("sql", "gym", "SELECT current_user, count(*) FROM members", cwd=root)
        assert '["gym_pooled", 60]' in found.stdout, found.stdout + found.stderr
    assert gym.has_role("gym_pooled") and not gym.has_role("gym_pooled.abcd")


def test_who_may_make_roles_and_owns_nothing_learns_what_is_missing(gym: Gym) -> None:
    gym.run("CREATE ROLE gym_maker LOGIN CREATEROLE")
    root = gym.workspace("maker", CONFIG.replace("gym_reader", "gym_other"))
    result = gym.init(root, "--yes", "--from", gym.url("gym_maker", ""))
    assert result.returncode == 1
    assert "not done: GRANT SELECT ON ALL TABLES" in result.stdout
    assert "What was refused to gym_maker needs a superuser or the owner of the tables" in result.stderr
    gym.run('GRANT SELECT ON ALL TABLES IN SCHEMA public TO "gym_other"')
    assert gym.init(root, "gym", "--no-question").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "Which server? okf-agent init --from postgresql://"),
        (["--from", "mysql://x"], 2, "--from takes a URL such as postgresql://"),
        (["other", "--from", "URL"], 2, "--from leads to gym"),
        (["--from", "URL:dbname=gymm"], 1, "has no database 'gymm'. It has: "),
        (["--from", "URL:password=no"], 1, "rejects the login of gym_boss to gym. Correct the password in --from"),
        (["--from", "URL:port=1"], 1, "Check that the server runs, and host and port in --from."),
        (["--from", "URL:host=no.invalid"], 1, "Check that the server runs, and host and port in --from."),
    ],
)
def test_a_connection_that_fails_says_what_to_do(
    gym: Gym, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    words = []
    for argument in arguments:
        name, _, change = argument.partition(
            ":dbname=" if "dbname" in argument else ":" if "URL:" in argument else "\0"
        )
        key, _, value = change.partition("=")
        more = {"dbname": change} if "dbname" in argument else {key: value} if key else {}
        words.append(gym.url(**more) if name == "URL" else argument)
    result = run_inside("init", *words, cwd=tmp_path)
    assert (result.returncode, message in result.stderr) == (status, True), result.stderr
    assert (tmp_path / "config.yaml").read_text("utf-8") == CONFIG
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


def test_documents_that_are_there_stay_the_source(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "data" / "gym").mkdir(parents=True)
    (tmp_path / "data" / "gym" / "gym_schema.txt").write_text("CREATE TABLE a (b int);", encoding="utf-8")
    result = run_inside("init", "--from", gym.url(), cwd=tmp_path)
    assert result.returncode == 2
    assert "gym has documents already" in result.stderr and "okf-agent prepare gym" in result.stderr


def test_at_a_terminal_it_asks_first(gym: Gym) -> None:
    import pexpect

    root = gym.workspace("terminal", CONFIG.replace("gym_reader", "gym_keeper"))
    child = pexpect.spawn(str(SCRIPTS / "okf-agent"), ["init", "--from", gym.url()], cwd=str(root), timeout=60,
                          encoding="utf-8", dimensions=(50, 200))  # fmt: skip
    child.expect(r"Run this as gym_boss now\? \[y/N\]")
    child.sendline("n")
    child.expect("not done;")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1
    assert not gym.has_role("gym_keeper")


def documented() -> list[str]:
    """The lines of init's output that docs/your-database.md shows and that do not speak of one machine."""
    page = (Path(__file__).parents[3] / "docs" / "your-database.md").read_text("utf-8")
    lines = page.partition("--yes\n")[2].partition("```")[0].splitlines()
    ours = (
        "1. Connection",
        "   there is no such role",
        "     CREATE ROLE",
        "     GRANT",
        "   .env:",
        "2. ",
        "   config.yaml: database.",
    )
    return [line.partition(" -> ")[0] for line in lines if line.strip() != "…" and not line.startswith(ours)]


@pytest.mark.slow
def test_pagila_and_northwind(gym: Gym, postgres15: Server, test_data: Path) -> None:
    root = gym.workspace("samples", CONFIG.replace("gym_reader", "gym_agent"))
    said: dict[str, str] = {}
    for name, dump in (("pagila", "neon/pagila.sql"), ("northwind", "northwind/northwind.sql")):
        loaded(postgres15, name, test_data / "samples" / dump)
        result = gym.init(root, "--yes", "--no-question", "--from", gym.url(dbname=name))
        assert result.returncode == 0, result.stderr
        said[name] = result.stdout
    assert "film.rating           5 labels: G, PG, PG-13, R, NC-17" in said["pagila"]
    for line in documented():
        assert line in said["northwind"]
    shutil.copy(Path(__file__).parents[2] / "data" / "northwind_rules.csv", root / "data" / "northwind" / "rules.csv")
    config = (root / "config.yaml").read_text("utf-8")
    config = config.replace("data/northwind/glossary.yaml", "data/northwind/glossary.yaml, data/northwind/rules.csv")
    (root / "config.yaml").write_text(config, encoding="utf-8")
    rule = run_inside("read", "northwind", "/knowledge/late-shipment", cwd=root).stdout
    assert "`shipped_date`" in rule and "`required_date`" in rule
    late = run_inside("sql", "northwind", "SELECT count(*) FROM orders WHERE shipped_date > required_date", cwd=root)
    assert "37" in late.stdout, late.stderr
    assert "sales-by-store.md" in run_inside("read", "pagila", "/knowledge", cwd=root).stdout
