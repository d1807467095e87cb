"""Nothing that a model, a document or a cell wrote drives a terminal, whichever command shows it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import cast

import pexpect
import pytest
from rich.style import Style
from rich.table import Table
from rich.text import Text
from support.command import SCRIPTS
from support.endpoint import Endpoint, Scripted, calls, error, submit
from support.workspace import Workspace, workspace

from okf_compiler.console import InertStream
from okf_compiler.inert import ACTIVE
from okf_compiler.terminal import Console

HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202ered"
CELL = "E'\\x1b]52;c;aGk=\\x07\\x1b[2J\\u009b31m\\u202ered'"
OBEYED = ("\x1b]52", "\x07", "\x1b[2J", "\x9b", "\u202e")
SHOWN = "]52;c;aGk="
SQL = f"SELECT 1 AS n, {CELL} AS cell"
SCRIPT: list[Scripted] = [
    calls((f"run{HOSTILE}", "{}"), content=f"I think {HOSTILE}"),
    calls(("read_file", {"paths": [f"/{HOSTILE}.md", "/tables/hostile.md"]})),
    calls(("run_sql", {"sql": f"SELECT '{HOSTILE}'::int"})),
    submit(f"SELECT 1 AS n, {CELL} AS cell -- {HOSTILE}", f"It is 1 {HOSTILE}."),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with a hostile bundle and a run whose model wrote hostile text."""
    with workspace(tmp_path_factory.mktemp("hostile")) as made:
        folder = made.root / "hostile"
        (folder / "tables").mkdir(parents=True)
        (folder / "index.md").write_text("# Index\n\n* [hostile](/tables/hostile.md)\n", encoding="utf-8")
        text = f"---\ntype: x\ntitle: {HOSTILE!a}\n---\n{HOSTILE}\n"
        (folder / "tables" / "hostile.md").write_text(text, encoding="utf-8")
        result = made.agent("ask", f"How {HOSTILE}?", "--bundle", "hostile", script=SCRIPT)
        assert result.returncode == 0, result.stderr
        yield made


def shown(place: Workspace, script: list[Scripted], *arguments: str, typed: tuple[str, ...] = ()) -> str:
    """Everything that one command writes to a terminal."""
    with Endpoint(script) as endpoint:
        place.configure(endpoint.url)
        child = pexpect.spawn(
            str(SCRIPTS / "okf-agent"), [*arguments], cwd=str(place.root), timeout=120, encoding="utf-8",
            env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}, dimensions=(40, 100),
        )  # fmt: skip
        written = io.StringIO()
        child.logfile_read = written
        for line in typed:
            child.expect(r"(\)|sql)>")
            child.send(line + "\r")
        child.expect(pexpect.EOF)
        child.close()
    return written.getvalue()


QUESTION = ("--db", "shop", "--bundle", "hostile", f"How {HOSTILE}?")


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", *QUESTION),
        pytest.param(("ask", *QUESTION, "--quiet"), marks=pytest.mark.slow),
        ("ask", *QUESTION, "--json"),
        pytest.param(("ask", *QUESTION, "--format", "csv"), marks=pytest.mark.slow),
        pytest.param(("ask", *QUESTION, "--format", "table"), marks=pytest.mark.slow),
        ("ask", *QUESTION, "-o", "/dev/tty"),
        pytest.param(("ask", *QUESTION, "-o", f"no{HOSTILE}/rows.csv"), marks=pytest.mark.slow),
        ("context", *QUESTION),
        pytest.param(("context", *QUESTION, "--json"), marks=pytest.mark.slow),
        ("runs",),
        pytest.param(("runs", "--json"), marks=pytest.mark.slow),
        ("runs", "show", "--full"),
        pytest.param(("runs", "show", "--json"), marks=pytest.mark.slow),
        ("runs", "show", HOSTILE),
        ("read", "shop", "/tables/hostile.md", "--bundle", "hostile"),
        ("sql", "shop", f"SELECT {CELL}::int"),
        ("sql", HOSTILE, "SELECT 1"),
        ("doctor", HOSTILE),
        pytest.param(("ask", "x", "--set", f"model.{HOSTILE}=1"), marks=pytest.mark.slow),
        (HOSTILE,),
    ],
    ids=lambda arguments: " ".join(arguments).replace(HOSTILE, "…"),
)
def test_no_command_drives_the_terminal(place: Workspace, arguments: tuple[str, ...]) -> None:
    written = shown(place, SCRIPT, *arguments)
    assert SHOWN in written, written
    assert [found for found in OBEYED if found in written] == []


def test_no_error_of_a_provider_drives_the_terminal(place: Workspace) -> None:
    written = shown(place, [error(400, f"No {HOSTILE}")], "ask", *QUESTION)
    assert SHOWN in written and [found for found in OBEYED if found in written] == []


def test_the_prompt_drives_nothing_by_what_a_model_wrote(place: Workspace) -> None:
    lines = ("How?", "/why", "/rows", "/runs 5", "/cost", "/sql", "", "/exit")
    written = shown(place, SCRIPT, "--db", "shop", "--bundle", "hostile", typed=lines)
    assert SHOWN in written and "sql>" in written
    hostile = [found for found in ("\x1b]52", "\x1b[2J", "\x9b", "\u202e") if found in written]
    assert hostile == [], written


ASKING = """
import click
from okf_compiler.console import run

@click.command()
@click.argument("name")
def ask(name):
    click.confirm(f"Make {name}?")
    click.echo(click.prompt("First", default=name))

run(ask)
"""


def test_a_question_of_a_command_drives_nothing() -> None:
    child = pexpect.spawn(sys.executable, ["-c", ASKING, HOSTILE], timeout=60, encoding="utf-8", echo=False)
    written = io.StringIO()
    child.logfile_read = written
    for expected, line in (("y/N", "y"), ("First", "")):
        child.expect(expected)
        child.send(line + "\r")
    child.expect(pexpect.EOF)
    assert written.getvalue().count(SHOWN) == 3
    assert [found for found in OBEYED if found in written.getvalue()] == []


@pytest.mark.parametrize("write", ["print", "bytes", "pieces"])
def test_whatever_is_printed_at_a_terminal_is_lines_of_text(write: str) -> None:
    raw = io.StringIO()
    stream = InertStream(raw)
    if write == "print":
        print(HOSTILE, "é\tb", file=cast(io.TextIOBase, stream))
    else:
        data = f"{HOSTILE} é\tb\n".encode()
        for piece in [data] if write == "bytes" else [data[i : i + 1] for i in range(len(data))]:
            stream.buffer.write(piece)
    assert raw.getvalue() == "\\x1b]52;c;aGk=\\x07\\x1b[2J\\x9b31m\\u202ered é\tb\n"


def test_what_is_drawn_has_only_escape_sequences_of_the_drawer() -> None:
    raw = io.StringIO()
    console = Console(raw)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(Text(HOSTILE, Style(link="file:///etc/passwd")))
    for drawn in (HOSTILE, f"[link=x]{HOSTILE}", table):
        console.print(drawn)
    console.say(HOSTILE)
    assert ACTIVE.sub("", raw.getvalue()) == raw.getvalue().replace("\n", "")
    assert "[link=x]" in raw.getvalue() and "passwd" not in raw.getvalue()
