"""The commands that look after bundles, whoever wrote them: validate, index, diff, stats, verify."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from okf_compiler.options import json_option, print_json

if TYPE_CHECKING:
    from okf_compiler.documents import Documents

_FOLDER = click.Path(path_type=Path)


@click.command("validate")
@click.argument("folders", nargs=-1, required=True, type=_FOLDER, metavar="DIR...")
@click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
@json_option
def validate_command(folders: tuple[Path, ...], strict: bool, as_json: bool) -> None:
    """Hold bundles against OKF v0.2; exit status 1 if one does not conform.

    With --json each finding has code, severity, path, line, message and bundle.
    """
    from dataclasses import asdict

    from okf_compiler.validate import validate

    found = {folder: validate(folder) for folder in folders}
    for folder, findings in found.items():
        if as_json:
            for finding in findings:
                print_json(asdict(finding) | {"bundle": str(folder)})
            continue
        errors = sum(finding.severity == "error" for finding in findings)
        for finding in findings:
            click.echo(f"{folder}{finding}")
        click.echo(f"{folder}: {errors} errors, {len(findings) - errors} warnings")
    if any(f.severity == "error" or strict for findings in found.values() for f in findings):
        sys.exit(1)


@click.command("index")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if an index is not what the concepts give.")
def index_command(folder: Path, check: bool) -> None:
    """Write index.md for every folder of a bundle; what people wrote into an index stays."""
    from okf_compiler.indexes import outdated, write

    changes = outdated(folder) if check else write(folder)
    for what, path in changes:
        click.echo(f"{what}: {folder}/{path}")
    if not changes:
        click.echo(f"{folder}: the indexes are what the concepts give")
    elif check:
        click.echo(f"Write them: okf-compiler index {folder}", err=True)
        sys.exit(1)


@click.command("diff")
@click.argument("old", type=_FOLDER)
@click.argument("new", type=_FOLDER)
@json_option
def diff_command(old: Path, new: Path, as_json: bool) -> None:
    """List concepts added, removed and changed between two bundles, and columns and sections that changed inside.

    With --json each concept has what, path, title and inside.
    """
    from dataclasses import asdict

    from okf_compiler.bundle import load
    from okf_compiler.diff import diff, lines

    changes = diff(load(old), load(new))
    if not as_json:
        click.echo("\n".join(lines(changes)))
        return
    for change in changes:
        print_json(asdict(change))


@click.command("stats")
@click.argument("name", metavar="NAME|DIR")
@json_option
def stats_command(name: str, as_json: bool) -> None:
    """Show sizes in estimated tokens: the bundle, each index, the largest concepts, the raw documents."""
    from okf_compiler.documents import list_databases
    from okf_compiler.options import configured
    from okf_compiler.stats import lines, sizes

    settings = configured()
    folder = settings.bundles / name if Path(name).name == name else Path(name)
    if not folder.is_dir() and Path(name).is_dir():
        folder = Path(name)
    documents: Documents | None = list_databases(settings).get(folder.name)
    found = sizes(folder, documents)
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(lines(found)))


@click.command("verify")
@click.argument("file", type=_FOLDER, metavar="PATH")
@click.option("--by", required=True, metavar="human:ID", help="Who has checked it.")
def verify_command(file: Path, by: str) -> None:
    """Mark the concept in the file PATH as checked by a person."""
    from okf_compiler.verify import verify

    click.echo(f"{file}: verified by {by} at {verify(file, by)}")


COMMANDS = (validate_command, index_command, diff_command, stats_command, verify_command)
