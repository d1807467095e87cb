"""The commands that look after bundles, whoever wrote them: validate, index, diff, stats, verify."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from okf_compiler.options import json_option, print_json, settings_given

if TYPE_CHECKING:
    from okf_compiler.documents import Documents

_PATH = click.Path(path_type=Path)
_EITHER = "NAME|DIR"


@click.command("validate")
@click.argument("bundles", nargs=-1, required=True, metavar=f"{_EITHER}...")
@click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
@json_option
def validate_command(bundles: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Hold bundles against OKF v0.2; exit status 1 if one does not conform.

    With --json each finding has code, severity, path, line, message and bundle.
    """
    from dataclasses import asdict

    from okf_compiler.validate import validate

    found = {folder: validate(folder) for folder in map(_folder, bundles)}
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
@click.argument("bundle", metavar=_EITHER)
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if an index is not what the concepts give.")
def index_command(bundle: str, check: bool) -> None:
    """Write index.md for every folder of a bundle; what people wrote into an index stays."""
    from okf_compiler.indexes import outdated, write

    folder = _folder(bundle)
    changes = outdated(folder) if check else write(folder)
    for what, path in changes:
        click.echo(f"{what}: {folder}/{path}")
    if not changes:
        click.echo(f"{folder}: the indexes are what the concepts give")
    elif check:
        click.echo(f"Write them: okf-compiler index {folder}", err=True)
        sys.exit(1)


@click.command("diff")
@click.argument("old")
@click.argument("new")
@json_option
def diff_command(old: str, new: str, as_json: bool) -> None:
    """List concepts added, removed and changed between two bundles (names or folders), and what changed inside.

    With --json each concept has what, path, title and inside.
    """
    from dataclasses import asdict

    from okf_compiler.bundle import load
    from okf_compiler.diff import diff, lines

    changes = diff(load(_folder(old)), load(_folder(new)))
    if not as_json:
        click.echo("\n".join(lines(changes)))
        return
    for change in changes:
        print_json(asdict(change))


@click.command("stats")
@click.argument("bundle", metavar=_EITHER)
@json_option
def stats_command(bundle: str, as_json: bool) -> None:
    """Show sizes in estimated tokens: the bundle, each index, the largest concepts, the raw documents."""
    from okf_compiler.documents import list_databases
    from okf_compiler.stats import lines, sizes

    folder = _folder(bundle)
    documents: Documents | None = list_databases(settings_given()).get(folder.name)
    found = sizes(folder, documents)
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(lines(found)))


@click.command("verify")
@click.argument("file", type=_PATH, metavar="PATH")
@click.option("--by", required=True, metavar="human:ID", help="Who has checked it.")
def verify_command(file: Path, by: str) -> None:
    """Mark the concept in the file PATH as checked by a person.

    PATH may also be a bundle's name and the path inside it: shop/knowledge/order-value.md.
    """
    from okf_compiler.given import concept_file
    from okf_compiler.verify import verify

    file = concept_file(settings_given(), file)
    click.echo(f"{file}: verified by {by} at {verify(file, by)}")


def _folder(bundle: str) -> Path:
    """Return the folder of a bundle that a command names."""
    from okf_compiler.given import bundle_folder

    return bundle_folder(settings_given(), bundle)


COMMANDS = (validate_command, index_command, diff_command, stats_command, verify_command)
