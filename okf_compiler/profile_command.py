"""`okf-compiler profile`: what the data of one database says, measured once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_compiler.inert import inert
from okf_compiler.options import configured_server, database_from, seconds_option, settings_given

if TYPE_CHECKING:
    from okf_compiler.model import Database
    from okf_compiler.profiling.run import Done, Progress
    from okf_compiler.settings import Settings

SHOWN = 20


@click.command("profile")
@click.argument("name")
@database_from
@click.option("--hide", multiple=True, metavar="TABLE.COLUMN", help="A column to leave alone, beside database.hide.")
@click.option("--sample-above", default=500_000, show_default=True, metavar="ROWS", type=click.IntRange(1),
              help="Tables with more rows are measured on a sample.")  # fmt: skip
@seconds_option("Time for one query.")
@click.option("--again", is_flag=True, help="Begin anew where an interrupted profile could go on.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def profile_command(name: str, source: str, hide: tuple[str, ...], again: bool, quiet: bool, **limits: Any) -> None:
    """Measure the data of NAME: rows, NULLs, different values, ranges, examples, joins, and an index of its values.

    Reads as the role that can only read, and writes to bundles/profiles/NAME, for you alone. A profile that was
    interrupted goes on where it was.
    """
    from okf_compiler.connections import hidden_columns, with_connection
    from okf_compiler.errors import UserError
    from okf_compiler.given import database_name, is_name
    from okf_compiler.profiling import run
    from okf_compiler.profiling.limits import Limits, Request

    settings = settings_given()
    name = database_name(settings, name)
    if not is_name(name):
        raise UserError(f"A database has a plain name, not {name!r}.", status=2)
    folder = settings.profiles / name
    hidden = hidden_columns(settings, name, hide)
    request = Request(_documented(settings, name), hidden, Limits(**limits))
    with _progress(name, quiet) as progress:
        done = with_connection(
            source,
            name,
            lambda connection: run.profile(connection, name, folder, request, again=again, progress=progress),
            configured_server(name),
        )  # fmt: skip
    for line in _problems(done, quiet):
        click.echo(inert(line), err=True)
    for line in _lines(done, folder):
        click.echo(inert(line))


def _documented(settings: Settings, name: str) -> Database | None:
    """What documents say of the database, where there are any: JSON fields and foreign keys it may not know itself."""
    from dataclasses import replace

    from okf_compiler.errors import UserError
    from okf_compiler.gather import gather

    override = settings.databases.get(name)
    if override and override.live:
        if not override.files:
            return None
        # Its catalogue is read anyway, as it is now.
        settings = replace(settings, databases={**settings.databases, name: override.model_copy(update={"live": None})})
    try:
        return gather(settings, name)
    except UserError:
        return None


@contextmanager
def _progress(name: str, quiet: bool) -> Iterator[Progress]:
    """A bar where a terminal watches; elsewhere a line for each table, on standard error."""
    if quiet:
        yield lambda _done, _steps, _what: None
        return
    if not sys.stderr.isatty():
        yield lambda done, steps, what: click.echo(inert(f"{done}/{steps} {what}"), err=True)
        return
    from rich.markup import escape
    from rich.progress import Progress as Bar

    from okf_compiler.terminal import Console

    with Bar(console=Console(sys.stderr), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(f"Profiling {escape(inert(name))}", total=None)
        yield lambda done, steps, what: bar.update(
            task, completed=done, total=steps, description=f"Profiling {escape(inert(name))}: {escape(inert(what))}"
        )


def _problems(done: Done, quiet: bool) -> Iterator[str]:
    """What was not measured, and why; without progress only in numbers."""
    places = [*done.left_out, *(f"{place}: {why}" for place, why in done.profile.unmeasured.items())]
    shown = places[: 0 if quiet else SHOWN]
    yield from (f"not measured: {place}" for place in shown)
    if len(places) > len(shown):
        more = "more " if shown else ""
        yield f"not measured: {len(places) - len(shown)} {more}tables, columns or values; profile.json says which"


def _lines(done: Done, folder: Path) -> Iterator[str]:
    tables = done.profile.tables.values()
    sampled = sum(table.sampled_rows is not None for table in tables)
    yield (
        f"{done.profile.database}: {_tables(len(tables))}, {sum(table.rows for table in tables):,} rows, "
        f"{sum(len(table.columns) for table in tables):,} columns and JSON paths, {done.values:,} values in the index"
    )
    if done.taken_up:
        yield f"Measured before the interruption: {_tables(done.taken_up)}; --again measures everything anew"
    if sampled:
        yield f"Measured on a sample: {_tables(sampled)}"
    yield f"Measured at {done.profile.measured_at}, in {folder}"


def _tables(amount: int) -> str:
    return f"{amount} table{'s' * (amount != 1)}"
