"""`okf-compiler`: thin; every command calls a function that takes plain values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from okf_compiler.settings import Documents


def main() -> None:
    """The entry point: an error that a person can put right is one message and an exit status."""
    from okf_compiler.console import run

    run(commands)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="okf-sql-agent")
def commands() -> None:
    """Compile schemas, column descriptions and business rules into Open Knowledge Format bundles."""


@commands.command("compile")
@click.argument("name")
@click.option("--data", type=click.Path(path_type=Path), help="Data root to read: DIR/<db>/<db>_schema.txt.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the bundles: each goes to DIR/<db>.")
def compile_command(name: str, data: Path | None, out: Path | None) -> None:
    """Compile the database NAME, or `all`, and report what is missing."""
    from okf_compiler.compile import compile
    from okf_compiler.settings import UserError

    documents = _documents(name, data)
    failed = 0
    for each, folder in _with_progress(documents, out):
        try:
            report = compile(each, folder)
        except UserError as error:
            if name != "all":
                raise
            failed += 1
            click.echo(f"{each.name}: {error}", err=True)
        else:
            click.echo("\n".join(report.lines()))
    if failed:
        raise UserError(f"{failed} of {len(documents)} databases were not compiled.")


@commands.command("validate")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
def validate_command(folders: tuple[Path, ...]) -> None:
    """Hold bundles against OKF v0.2; exit status 1 if one does not conform."""
    from okf_compiler.validate import validate

    errors = 0
    for folder in folders:
        findings = validate(folder)
        found = sum(finding.severity == "error" for finding in findings)
        errors += found
        for finding in findings:
            click.echo(f"{folder}{finding}")
        click.echo(f"{folder}: {found} errors, {len(findings) - found} warnings")
    if errors:
        sys.exit(1)


def _documents(name: str, data: Path | None) -> Mapping[str, Documents]:
    """The databases to compile, by name."""
    from dataclasses import replace

    from okf_compiler.settings import UserError, find_documents, list_databases, load_settings

    settings = load_settings()
    if data is not None:
        if not data.is_dir():
            raise UserError(f"There is no folder {data}.", status=2)
        settings = replace(settings, data_roots=(data,))
    if name != "all":
        return {name: find_documents(settings, name)}
    known = list_databases(settings)
    if not known:
        roots = ", ".join(map(str, settings.data_roots))
        raise UserError(f"There is no database in {roots}: looked for <db>/<db>_schema.txt.", status=2)
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
