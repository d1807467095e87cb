"""`okf-compiler`: thin; every command calls a function that takes plain values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_compiler.bundle_commands import COMMANDS
from okf_compiler.profile_command import profile_command

if TYPE_CHECKING:
    from okf_compiler.settings import Documents, Settings


def main() -> None:
    """The entry point: an error that a person can put right is one message and an exit status."""
    from okf_compiler.console import run

    run(commands)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="okf-sql-agent")
def commands() -> None:
    """Compile schemas, column descriptions and business rules into Open Knowledge Format bundles."""


def _source_options(command: Callable[..., None]) -> Callable[..., None]:
    """What both `compile` and `check` read: a data root, and files that say more of a database."""
    several: dict[str, Any] = {"multiple": True, "type": click.Path(path_type=Path)}
    for option in (
        click.option("--hide", multiple=True, metavar="TABLE.COLUMN", help="A column of a live database to leave out."),
        click.option("--dbt", **several, metavar="DIR", help="A dbt project."),
        click.option("--rules", **several, metavar="PATH", help="A glossary: YAML, JSON or CSV, or a folder of them."),
        click.option("--columns", **several, metavar="PATH", help="A data dictionary: CSV, or a folder of them."),
        click.option("--data", type=click.Path(path_type=Path), help="Data root to read: DIR/<db>/<db>_schema.txt."),
    ):
        command = option(command)
    return command


@commands.command("compile")
@click.argument("name")
@_source_options
@click.option("--from", "live", metavar="URL", help="Tables from a live database: postgresql://…, or `configured`.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the bundles: each goes to DIR/<db>.")
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if a bundle is not what its sources give.")
def compile_command(
    name: str, data: Path | None, live: str | None, out: Path | None, check: bool, **files: tuple[Any, ...]
) -> None:
    """Compile the database NAME, or `all`, and report what is missing."""
    if live is not None or any(files.values()):
        _compile_sources(name, data, live, out, files, check=check)
        return
    from okf_compiler.compile import compile_database
    from okf_compiler.errors import UserError
    from okf_compiler.gather import gather
    from okf_compiler.overlays import overlay_file

    settings, documents = _settings(data), _documents(name, data)
    failed = stale = 0
    for each, folder in _with_progress(documents, out):
        try:
            overlay = overlay_file(settings, each.name)
            report = compile_database(gather(settings, each.name), folder, overlay, check=check)
        except UserError as error:
            if name != "all":
                raise
            failed += 1
            click.echo(f"{each.name}: {error}", err=True)
        else:
            stale += report.checked and report.saved
            click.echo("\n".join(report.lines()))
    if failed:
        raise UserError(f"{failed} of {len(documents)} databases were not compiled.")
    if stale:
        sys.exit(1)


def _compile_sources(
    name: str,
    data: Path | None,
    live: str | None,
    out: Path | None,
    files: Mapping[str, tuple[Any, ...]],
    *,
    check: bool,
) -> None:
    from okf_compiler.compile import compile_database
    from okf_compiler.errors import UserError
    from okf_compiler.gather import Sources, gather
    from okf_compiler.overlays import overlay_file

    if name in ("all", "..", ".") or Path(name).name != name:
        raise UserError(f"These sources are of one database, and it needs a plain name, not {name!r}.", status=2)
    settings = _settings(data)
    database = gather(settings, name, Sources(live=live, **files))
    folder = (out or settings.bundles) / name
    report = compile_database(database, folder, overlay_file(settings, name), check=check)
    click.echo("\n".join(report.lines()))
    if report.checked and report.saved:
        sys.exit(1)


@commands.command("check")
@click.argument("name")
@_source_options
@click.option("--live", is_flag=True, required=True, help="Hold the documents against the database itself.")
@click.option("--from", "source", default="configured", metavar="URL", help="Its database: postgresql://…")
@click.option("--seconds", default=60.0, show_default=True, help="Time for questions to the content.")
@click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array of {code, severity, place, text}.")
def check_command(
    name: str, data: Path | None, live: bool, source: str, seconds: float, strict: bool, as_json: bool,
    **files: tuple[Any, ...],
) -> None:  # fmt: skip
    """Where the documents of NAME and its database differ; exit status 1 if queries written from them would fail."""
    from okf_compiler import live as live_check
    from okf_compiler.connections import hidden_columns, with_connection
    from okf_compiler.gather import Sources, gather
    from okf_compiler.link import link

    del live  # the only kind of check there is
    settings = _settings(data)
    documented = gather(settings, name, Sources(live=None, **files))
    links, hidden = link(documented), hidden_columns(settings, name, files["hide"])
    findings = with_connection(
        source,
        name,
        lambda connection: live_check.check(documented, connection, links=links, hide=hidden, seconds=seconds),
    )
    click.echo("\n".join(live_check.lines(name, findings, as_json=as_json)))
    if any(f.severity == "error" or (strict and f.severity == "warning") for f in findings):
        sys.exit(1)


@commands.command("inspect")
@click.argument("name")
@_source_options
@click.option("--from", "live", metavar="URL", help="Tables from a live database: postgresql://…, or `configured`.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def inspect_command(name: str, data: Path | None, live: str | None, as_json: bool, **files: tuple[Any, ...]) -> None:
    """What the sources of NAME hold: tables, columns, which of them have no meaning, rules, joins of each table."""
    import json

    from okf_compiler.gather import Sources, gather
    from okf_compiler.inspect import facts, lines

    found = facts(gather(_settings(data), name, Sources(live=live, **files)))
    click.echo(json.dumps(found, ensure_ascii=False, indent=2) if as_json else "\n".join(lines(found)))


for _command in (*COMMANDS, profile_command):
    commands.add_command(_command)


def _settings(data: Path | None) -> Settings:
    """The workspace's settings, with one data root if `data` names it."""
    from dataclasses import replace

    from okf_compiler.errors import UserError
    from okf_compiler.settings import load_settings

    settings = load_settings()
    if data is None:
        return settings
    if not data.is_dir():
        raise UserError(f"There is no folder {data}.", status=2)
    return replace(settings, data_roots=(data,))


def _documents(name: str, data: Path | None) -> Mapping[str, Documents]:
    """The databases to compile, by name."""
    from okf_compiler.settings import find_documents, list_databases, no_database

    settings = _settings(data)
    if name != "all":
        return {name: find_documents(settings, name)}
    known = list_databases(settings)
    if not known:
        raise no_database(settings)
    return known


def _with_progress(documents: Mapping[str, Documents], out: Path | None) -> Iterator[tuple[Documents, Path]]:
    """Each database with its bundle's folder, under a progress bar where a terminal watches several."""
    from okf_compiler.settings import load_settings

    bundles = out if out is not None else load_settings().bundles
    pairs: Iterable[tuple[Documents, Path]] = [(each, bundles / name) for name, each in documents.items()]
    if len(documents) == 1 or not sys.stderr.isatty():
        yield from pairs
        return
    from rich.console import Console
    from rich.progress import Progress

    # Reports printed meanwhile go above the bar, but only while both go to the terminal: elsewhere they stay in stdout.
    bar = Progress(console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
    with bar:
        yield from bar.track(pairs, total=len(documents), description="Compiling")
