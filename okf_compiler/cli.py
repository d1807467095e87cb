"""`okf-compiler`: thin; every command calls a function that takes plain values."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_compiler.bundle_commands import COMMANDS
from okf_compiler.options import (
    config_options,
    configured_server,
    database_from,
    json_option,
    print_json,
    seconds_option,
    settings_given,
    source_options,
    tables_from,
)
from okf_compiler.profile_command import profile_command

if TYPE_CHECKING:
    from okf_compiler.settings import Settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="okf-sql-agent")
def commands() -> None:
    """Compile schemas, column descriptions and business rules into Open Knowledge Format bundles."""


@commands.command("compile")
@click.argument("name")
@source_options
@tables_from
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the bundles to DIR/<db>.")
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if a bundle is not what its sources give.")
def compile_command(
    name: str, data: Path | None, live: str | None, out: Path | None, check: bool, **files: tuple[Any, ...]
) -> None:
    """Compile the database NAME, or `all`, and report what is missing."""
    from okf_compiler.compile import compile
    from okf_compiler.errors import UserError
    from okf_compiler.gather import NOTHING_MORE, Sources
    from okf_compiler.given import database_name

    settings, sources = settings_given(data), Sources(live=live, **files)
    name = database_name(settings, name)
    if sources != NOTHING_MORE and (name in ("all", "..", ".") or Path(name).name != name):
        raise UserError(f"These sources are of one database, and it needs a plain name, not {name!r}.", status=2)
    names = _all_databases(settings) if name == "all" else [name]
    failed = stale = 0
    for each in _with_progress(names):
        try:
            folder = (out or settings.bundles) / each
            report = compile(settings, each, folder, sources, configured_server(each), check=check)
        except UserError as error:
            if name != "all":
                raise
            failed += 1
            click.echo(f"{each}: {error}", err=True)
        else:
            stale += report.checked and report.saved
            click.echo("\n".join(report.lines()))
    if failed:
        raise UserError(f"{failed} of {len(names)} databases were not compiled.")
    if stale:
        sys.exit(1)


@commands.command("check")
@click.argument("name")
@source_options
@click.option("--live", is_flag=True, expose_value=False, hidden=True, help="What `check` does in any case.")
@database_from
@seconds_option("Time for questions to the content.")
@click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
@json_option
def check_command(
    name: str, data: Path | None, source: str, seconds: float, strict: bool, as_json: bool, **files: tuple[Any, ...]
) -> None:
    """Find where the documents of NAME and its database differ; exit status 1 if queries made from them would fail.

    With --json each finding has code, severity, place and text.
    """
    from dataclasses import asdict

    from okf_compiler import live as live_check
    from okf_compiler.connections import hidden_columns, with_connection
    from okf_compiler.gather import Sources, gather
    from okf_compiler.given import database_name
    from okf_compiler.link import link

    settings = settings_given(data)
    name = database_name(settings, name)
    reach = configured_server(name)
    documented = gather(settings, name, Sources(live=None, **files), reach)
    links, hidden = link(documented), hidden_columns(settings, name, files["hide"])
    findings = with_connection(
        source,
        name,
        lambda connection: live_check.check(documented, connection, links=links, hide=hidden, seconds=seconds),
        reach,
    )
    for finding in findings if as_json else ():
        print_json(asdict(finding))
    for line in () if as_json else live_check.lines(name, findings):
        click.echo(line)
    if any(f.severity == "error" or (strict and f.severity == "warning") for f in findings):
        sys.exit(1)


@commands.command("inspect")
@click.argument("name")
@source_options
@tables_from
@json_option
def inspect_command(name: str, data: Path | None, live: str | None, as_json: bool, **files: tuple[Any, ...]) -> None:
    """Show what the sources of NAME hold: tables, columns, which have no meaning, rules, joins of each table."""
    from okf_compiler.gather import Sources, gather
    from okf_compiler.given import database_name
    from okf_compiler.inspect import facts, lines

    settings = settings_given(data)
    name = database_name(settings, name)
    found = facts(gather(settings, name, Sources(live=live, **files), configured_server(name)))
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(lines(found)))


for _command in (*COMMANDS, profile_command):
    commands.add_command(_command)
for _command in (compile_command, check_command, inspect_command, profile_command, *COMMANDS):
    config_options(_command)


def _all_databases(settings: Settings) -> list[str]:
    """The names of all databases to compile."""
    from okf_compiler.documents import list_databases, no_database

    known = list_databases(settings)
    if not known:
        raise no_database(settings)
    return list(known)


def _with_progress(names: Sequence[str]) -> Iterator[str]:
    """Each name, under a progress bar where a terminal watches several."""
    if len(names) == 1 or not sys.stderr.isatty():
        yield from names
        return
    from rich.progress import Progress

    from okf_compiler.terminal import Console

    # Reports printed meanwhile go above the bar, but only while both go to the terminal: elsewhere they stay in stdout.
    bar = Progress(console=Console(sys.stderr), transient=True, redirect_stdout=sys.stdout.isatty())
    with bar:
        yield from bar.track(names, description="Compiling")
