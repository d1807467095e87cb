"""`okf-agent`: thin; every command calls a function that takes plain values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from okf_agent import cli_runs, cli_server

if TYPE_CHECKING:
    from okf_agent.ask import Asked
    from okf_agent.config import Config
    from okf_agent.tools import ToolResult

HELP = {"help_option_names": ["-h", "--help"]}


def main() -> None:
    """The entry point: an error that a person can put right is one message and an exit status."""
    from okf_compiler.console import run

    run(commands)


db_option = click.option("--db", metavar="DB", help="The database; not needed where there is only one.")
raw_option = click.option("--raw", is_flag=True, help="Paste the three documents instead of reading the bundle.")
model_option = click.option("--model", metavar="NAME", help="A LiteLLM model name, or `local` for the embedded model.")
bundle_option = click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="DIR", help="Read this bundle instead of the compiled one."
)


@click.group(invoke_without_command=True, context_settings=HELP)
@click.version_option(package_name="okf-sql-agent")
@db_option
@raw_option
@model_option
@bundle_option
@click.pass_context
def commands(context: click.Context, db: str | None, raw: bool, model: str | None, bundle: Path | None) -> None:
    """Ask a database a question and get an answer with its query, its rules and its cost.

    Without a command: a prompt that asks one question after the other.
    """
    if context.invoked_subcommand is not None:
        given = [option for option in ("db", "raw", "model", "bundle") if context.params[option]]
        if given:
            name = context.invoked_subcommand
            raise click.UsageError(f"--{given[0]} belongs after the command: okf-agent {name} --{given[0]} …")
        return
    from okf_agent.ask import Workspace, choose_cell
    from okf_agent.prepare import default_database
    from okf_agent.prompt import Prompt

    config = _config()
    with Workspace(config, bundle) as workspace:
        Prompt(workspace, db or default_database(config), choose_cell(config, model, raw, _say)).run()


@commands.command()
@click.argument("question", required=False)
@click.option("--task", metavar="ID", help="Ask the question of this task, by its instance_id.")
@db_option
@raw_option
@model_option
@bundle_option
def ask(
    question: str | None, task: str | None, db: str | None, raw: bool, model: str | None, bundle: Path | None
) -> None:
    """Ask one QUESTION, or that of a task, and leave."""
    from rich.console import Console

    from okf_agent.ask import Workspace, choose_cell
    from okf_agent.terminal import show_asking

    config = _config()
    asked = _asked(config, question, task, db)
    cell = choose_cell(config, model, raw, _say)
    with Workspace(config, bundle) as workspace:
        outcome = show_asking(asked, cell, workspace, Console(), Console(stderr=True))
    sys.exit(outcome.exit_status)


@commands.command()
@click.argument("db")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@bundle_option
def read(db: str, paths: tuple[str, ...], bundle: Path | None) -> None:
    """Read files of the bundle of DB, as the model would get them."""
    from okf_agent import tools
    from okf_agent.prepare import find_bundle

    folder, _ = find_bundle(_config(), db, bundle, _say)
    _print_result(tools.read_file().run({"paths": list(paths)}, tools.Context(bundle=folder)))


@commands.command()
@click.argument("db")
@click.argument("query")
def sql(db: str, query: str) -> None:
    """Run one read-only QUERY over DB, as the model would get it."""
    from okf_agent import tools
    from okf_agent.ask import Workspace

    config = _config()
    with Workspace(config) as workspace:
        ready = workspace.ready(db, _say)
        max_rows = config.settings.database.max_rows
        context = tools.Context(database=ready.database, max_rows=max_rows)
        _print_result(tools.run_sql(max_rows).run({"sql": query}, context))


for command in (cli_server.prepare, cli_server.doctor, cli_server.stop, cli_runs.runs):
    commands.add_command(command)


def _config() -> Config:
    from okf_agent.config import load_config

    return load_config()


def _asked(config: Config, question: str | None, task_id: str | None, db: str | None) -> Asked:
    """The question of the command line.

    Raises:
        UsageError: neither a question nor a task, or both.
        UserError: an unknown task or database.
    """
    from okf_agent.ask import Asked
    from okf_agent.prepare import default_database
    from okf_agent.tasks import find_task

    if (question is None) == (task_id is None):
        raise click.UsageError('Give a question or --task ID: okf-agent ask "How many …?" --db shop')
    if task_id is None:
        return Asked(question or "", db or default_database(config))
    task = find_task(config.settings, task_id)
    return Asked(task.question, db or task.database, task.id)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _print_result(result: ToolResult) -> None:
    click.echo(result.text)
    if result.failed:
        sys.exit(1)
