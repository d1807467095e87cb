"""The options that commands of `okf-compiler` share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]
_SERVER = "postgresql://…, or `configured` for the server of config.yaml."


def source_options(command: Command) -> Command:
    """What a database is documented by: a data root, and files that say more of it."""
    several: dict[str, Any] = {"multiple": True, "type": click.Path(path_type=Path)}
    for option in (
        click.option("--hide", multiple=True, metavar="TABLE.COLUMN", help="A column of a live database to leave out."),
        click.option("--dbt", **several, metavar="DIR", help="A dbt project."),
        click.option("--rules", **several, metavar="PATH", help="A glossary: YAML, JSON or CSV, or a folder of them."),
        click.option("--columns", **several, metavar="PATH", help="A data dictionary: CSV, or a folder of them."),
        click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="It has DIR/<db>/<db>_schema.txt."),
    ):
        command = option(command)
    return command


def tables_from(command: Command) -> Command:
    """`--from`, where a database's documents are read without it."""
    return click.option("--from", "live", metavar="URL", help=f"Take its tables from {_SERVER}")(command)


def database_from(command: Command) -> Command:
    """`--from`, where the database itself is asked in any case."""
    text = f"Its database: {_SERVER}"
    return click.option("--from", "source", default="configured", show_default=True, metavar="URL", help=text)(command)


def seconds_option(text: str) -> Callable[[Command], Command]:
    """`--seconds`: more than 0, at most a day."""

    def a_number(_context: click.Context, _option: click.Parameter, value: float) -> float:
        if math.isnan(value):
            raise click.BadParameter("nan is not a number of seconds.")
        return value

    bounds = click.FloatRange(0, 86_400, min_open=True)
    return click.option(
        "--seconds", default=60.0, show_default=True, metavar="SECONDS", type=bounds, callback=a_number, help=text
    )
