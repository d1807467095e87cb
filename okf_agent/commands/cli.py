"""`okf-agent`: thin; every command calls a function that takes plain values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_agent.commands.context import context as context_command
from okf_agent.commands.evaluation import data, evaluation
from okf_agent.commands.init import init
from okf_agent.commands.mcp import mcp
from okf_agent.commands.options import (
    bundle_option,
    chart_option,
    complete,
    configured,
    question_options,
    say,
    unsafe_option,
    with_knowledge,
)
from okf_agent.commands.runs import runs
from okf_agent.commands.server import doctor, prepare, stop
from okf_agent.results.formats import FORMATS
from okf_agent.results.one_object import JsonCommand, OneObject
from okf_compiler.inert import inert_lines
from okf_compiler.options import config_options, json_option

if TYPE_CHECKING:
    from okf_agent.tools import ToolResult

HELP = {"help_option_names": ["-h", "--help"]}
SHELLS = ("bash", "zsh", "fish")


@click.group(invoke_without_command=True, context_settings=HELP)
@click.version_option(package_name="okf-sql-agent")
@question_options
@unsafe_option
@chart_option
@click.pass_context
def commands(context: click.Context, /, **options: Any) -> None:
    """Ask a database a question and get an answer with its query, its rules and its cost.

    Without a command: a prompt that asks one question after the other.
    """
    if context.invoked_subcommand is not None:
        given = [name for name, value in options.items() if value]
        if given:
            name = context.invoked_subcommand
            option = "--" + given[0].replace("_", "-")
            raise click.UsageError(f"{option} belongs after the command: okf-agent {name} {option} …")
        return
    from okf_agent.interactive.prompt import PromptOptions, start

    start(configured(), PromptOptions(**with_knowledge(options)))


@commands.command(cls=JsonCommand)
@click.argument("question", required=False)
@click.option("--task", metavar="ID", shell_complete=complete("tasks"), help="Ask the question of this task.")
@question_options
@click.option("--compare", is_flag=True, help="Ask a second time, with the documents pasted; show both.")
@click.option("-q", "--quiet", is_flag=True, help="Print the answer alone.")
@json_option
@click.option("--format", type=click.Choice(FORMATS), help="Print the rows alone, all of them, in this format.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Write all rows to FILE; its suffix says the format: .csv, .json, .md, .txt; a device gets CSV.",
)  # fmt: skip
@click.option("--guard-formulas", is_flag=True, help="In CSV, put a ' before cells that a spreadsheet would run.")
@unsafe_option
@chart_option
def ask(**options: Any) -> None:
    """Ask one QUESTION, or that of a task, and leave. `-`, or no QUESTION in a pipe: from standard input.

    --json prints one object with everything: answer, query, rules, all rows, what it took.

    Exit status: 0 for a submitted answer whose query ran and for a declined question, 1 for everything else that
    ran, 2 for a wrong call or configuration, 130 when interrupted. Progress goes to standard error.
    """
    with OneObject(options["as_json"]) as one:
        from okf_agent.commands.ask import AskOptions, run

        sys.exit(run(configured(), AskOptions(**with_knowledge(options)), one))


@commands.command()
@click.argument("db", shell_complete=complete("databases"))
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=complete("paths"))
@bundle_option
def read(db: str, paths: tuple[str, ...], bundle: Path | None) -> None:
    """Read files of the bundle of DB, as the model would get them.

    Exit status: 1 when one of them cannot be read.
    """
    from okf_agent.ask import context_of, sources_of
    from okf_agent.cell import Cell
    from okf_agent.prepare import find_bundle
    from okf_agent.tools import read_file
    from okf_compiler.given import database_name

    config = configured()
    db = database_name(config.settings, db)
    folder, documents = find_bundle(config, db, bundle, say)
    sources = sources_of(config, db, documents, folder, Cell(""), say)
    _print_result(read_file.run({"paths": list(paths)}, context_of(config, sources, None)))


@commands.command()
@click.argument("db", shell_complete=complete("databases"))
@click.argument("query", required=False)
@unsafe_option
def sql(db: str, query: str | None, unsafe_role: bool) -> None:
    """Run one read-only QUERY over DB, and print what the model would get of it.

    DB may be left out where there is one database.

    Exit status: 1 when it is refused or fails.
    """
    from okf_agent.ask import Workspace
    from okf_agent.tools import Context, run_sql
    from okf_compiler.documents import only_database
    from okf_compiler.given import database_name

    config = configured()
    if query is None:
        if " " not in db.strip():
            raise click.UsageError("Missing argument 'QUERY'.")
        db, query = only_database(config.settings), db
    with Workspace(config, unsafe_role=unsafe_role) as workspace:
        ready = workspace.ready(database_name(config.settings, db), say)
        max_rows = config.settings.database.max_rows
        context = Context(database=ready.database, max_rows=max_rows)
        _print_result(run_sql.run({"sql": query}, context))


@commands.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes okf-agent's commands, options and names in SHELL.

    bash: okf-agent completion bash >> ~/.bashrc;
    zsh: okf-agent completion zsh >> ~/.zshrc;
    fish: okf-agent completion fish > ~/.config/fish/completions/okf-agent.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(commands, {}, "okf-agent", "_OKF_AGENT_COMPLETE")
    click.echo(script.source_template % script.source_vars())


for command in (context_command, init, prepare, doctor, stop, runs, mcp, evaluation, data):
    commands.add_command(command)
config_options(commands)


def _print_result(result: ToolResult) -> None:
    click.echo(inert_lines(result.text))
    if result.failed:
        sys.exit(1)
