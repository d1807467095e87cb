"""The commands that look after the database: prepare, doctor, stop."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from okf_agent.commands.options import complete, configured, model_option, say
from okf_compiler.options import json_option, print_json


@click.command()
@click.argument("db", required=False, shell_complete=complete("databases"))
@click.option("--all", "every", is_flag=True, help="Prepare every database of the data roots.")
@click.option("--reload", is_flag=True, help="Load the dump again, in place of what is there.")
@click.option("--print-sql", is_flag=True, help="Only print the statements that make and harden the role, for a DBA.")
def prepare(db: str | None, every: bool, reload: bool, print_sql: bool) -> None:
    """Get DB ready for questions: its bundle, its content and the read-only role. Safe to repeat.

    Exit status: 1 when it cannot be made ready (no connection, a dump that fails, a role that can do more than read),
    2 for a wrong call.
    """
    from okf_agent.access.rights import unsafe_role
    from okf_agent.access.role import statements
    from okf_agent.engines import reach
    from okf_agent.prepare import find_bundle, load_content, too_much
    from okf_compiler.documents import list_databases, no_database, only_database

    if every and db:
        raise click.UsageError("DB and --all do not go together. Give one of them.")
    config = configured()
    names = list(list_databases(config.settings)) if every else [db or only_database(config.settings)]
    if not names:
        raise no_database(config.settings)
    bundles = {} if print_sql else {name: find_bundle(config, name, None, say) for name in names}
    server = reach(config, say)
    failed = False
    for name in names:
        if print_sql:
            click.echo(str(statements(server, name, config)))
            continue
        folder, documents = bundles[name]
        has_content = load_content(config, server, name, documents, say, again=reload)
        if has_content and (unsafe := unsafe_role(server, name, config)):
            failed = True
            click.echo(too_much(config, name, unsafe), err=True)
            continue
        content = "ready" if has_content else "no content, so queries are not run"
        click.echo(f"{name}: bundle {folder}, {content}")
    if failed:
        sys.exit(1)


@click.command()
@click.argument("db", required=False, shell_complete=complete("databases"))
@model_option
@json_option
def doctor(db: str | None, model: str | None, as_json: bool) -> None:
    """Show what is set up and what the role can really do, and try the standard attacks.

    Exit status: 1 when a finding is red.
    """
    from rich.text import Text

    from okf_agent.access.doctor import examine
    from okf_compiler.inert import inert
    from okf_compiler.terminal import Console

    findings = examine(configured(), db, model)
    console = Console(sys.stdout)
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        if as_json:
            print_json(asdict(finding))
            continue
        line = Text(f"{finding.level:<7}", finding.level).append(f"{finding.check:<{width}}  ", "bold")
        line.append(inert(finding.text), "default")
        console.say(line)
        if finding.remedy:
            console.say(" " * (width + 9) + finding.remedy, "dim")
    if any(finding.level == "red" for finding in findings):
        sys.exit(1)


@click.command()
def stop() -> None:
    """Stop this workspace's embedded PostgreSQL, and the embedded model's server where nobody else uses it.

    The next question starts them again.
    """
    from okf_agent.engines import embedded
    from okf_agent.models import local_model

    stopped = embedded.stop(configured().settings.root)
    click.echo("PostgreSQL stopped." if stopped else "PostgreSQL was not running.")
    ended, stay = local_model.stop(unused_only=True)
    if ended:
        click.echo("The embedded model's server stopped.")
    if stay:
        minutes = local_model.IDLE_SECONDS / 60
        click.echo(
            f"Another question is using the embedded model's server; it ends {minutes:.0f} minutes after the last."
        )
