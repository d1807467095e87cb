"""How a command line ends: no message quotes the password of a URL that was given in the wrong place."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.command import run

from okf_compiler.cli import commands
from okf_compiler.console import without_passwords

URL = "postgresql://ann:s3cret/w@rd@127.0.0.1:1/db"


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", URL),
        ("inspect", URL),
        ("check", URL, "--live"),
        ("check", "x", "--live", "--from", "postgresql://ann:s3cret/db"),
        ("compile", "x", "--from", "postgresql://ann:s3cret/db"),
        ("compile", "x", "--columns", URL),
        ("compile", "x", "--dbt", URL),
        ("compile", "x", "--data", URL),
        ("compile", "x", URL),
        ("validate", URL),
        ("index", URL),
        ("diff", URL, "a"),
        ("stats", URL),
        ("verify", URL, "--by", "human:ann"),
        (URL,),
    ],
)
def test_a_url_in_the_wrong_place_keeps_its_password(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run("okf-compiler", *arguments, cwd=tmp_path)
    assert result.returncode in (1, 2)
    for part in ("s3cret", "w@rd"):
        assert part not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a postgres://u:p@h/d b", "a postgres://u:***@h/d b"),
        ("no folder postgresql:/u:p@h/d.", "no folder postgresql:/u:***@h/d."),
        ("postgresql://u@h/d?password=p&x=1", "postgresql://u@h/d?password=***&x=1"),
        ("host=h password=p dbname=d", "host=h password=*** dbname=d"),
        ("see http://localhost:8080/x and mail a@b.c", "see http://localhost:8080/x and mail a@b.c"),
        ("AGENT_DB_PASSWORD is missing", "AGENT_DB_PASSWORD is missing"),
        ("data/a:b.csv:3: bad", "data/a:b.csv:3: bad"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(message: str, shown: str) -> None:
    assert without_passwords(message) == shown


@pytest.mark.parametrize("command", ["check", "profile"])
@pytest.mark.parametrize("seconds", ["-5", "0", "nan", "inf"])
def test_seconds_have_bounds(command: str, seconds: str) -> None:
    result = CliRunner().invoke(commands, [command, "shop", "--seconds", seconds])
    assert (result.exit_code, "Invalid value for '--seconds'" in result.output) == (2, True)
