"""How a command line ends: no message quotes the password of a URL that was given in the wrong place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.command import SCRIPTS, run

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


@pytest.mark.parametrize("command", ["okf-compiler stats nowhere", "okf-agent runs", "okf-agent --version"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_traceback_and_their_descriptors_are_nobody_s(
    closed: str, command: str, tmp_path: Path
) -> None:
    shown = subprocess.run(
        ["sh", "-c", f"exec {SCRIPTS}/{command} {closed}"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert shown.returncode == (2 if "nowhere" in command else 0), shown
    assert "Traceback" not in shown.stderr


DESCRIPTORS = """
import click, os
from pathlib import Path
from okf_compiler.console import run

@click.command()
def commands():
    with Path("kept").open("w") as file:
        os.system("echo said by a child >&2")
        file.write(str(file.fileno()))

run(commands)
"""


def test_what_a_child_says_goes_into_no_file_of_ours(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -c '{DESCRIPTORS}' 2>&-"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert int((tmp_path / "kept").read_text("utf-8")) > 2


@pytest.mark.parametrize("command", ["okf-compiler compile shop", "okf-agent runs"])
def test_a_current_folder_that_is_gone_is_said(command: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {gone} && exec {SCRIPTS}/{command}"
    shown = subprocess.run(["sh", "-c", script], cwd=gone, capture_output=True, encoding="utf-8", check=False)
    assert shown.returncode == 1 and "The current folder is not there any more" in shown.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", ["okf-compiler --help", "okf-compiler validate .", "okf-agent --version", "okf-agent data list"]
)
def test_an_output_that_cannot_be_written_is_one_message(command: str, unbuffered: str, tmp_path: Path) -> None:
    (tmp_path / "table.md").write_text("no frontmatter\n", encoding="utf-8")
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(
            [SCRIPTS / command.split()[0], *command.split()[1:]],
            cwd=tmp_path,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    assert (shown.returncode, shown.stderr) == (1, "Cannot write the output: No space left on device.\n")
