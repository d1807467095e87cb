"""The options that commands of `okf-compiler` share; those for config.yaml and for JSON are `okf-agent`'s too."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_compiler.inert import inert_json

if TYPE_CHECKING:
    from okf_compiler.connections import Reach
    from okf_compiler.settings import Settings

Command = Callable[..., Any]
_SERVER = "postgresql://…, or `configured` for the server of config.yaml."


def config_options(command: click.Command) -> None:
    """Give a command, and every command below it, `--config` and `--set`; what stands before and behind it counts."""

    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
        if option.name == "config" and value is not None:
            context.meta["config"] = value
        elif option.name == "set":
            context.meta["set"] = (*context.meta.get("set", ()), *value)

    common: dict[str, Any] = {"expose_value": False, "callback": keep, "is_eager": True}
    command.params += [
        click.Option(
            ["--config"], type=click.Path(path_type=Path), metavar="PATH",
            help="Another config.yaml; its folder is the workspace.", **common,
        ),
        click.Option(
            ["--set"], multiple=True, metavar="KEY=VALUE", help="A key of config.yaml: database.port=5433.", **common
        ),
    ]  # fmt: skip
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        config_options(below)


def config_given(context: click.Context | None = None) -> tuple[Path | None, tuple[str, ...]]:
    """What `--config` and `--set` of this call say."""
    meta = (context or click.get_current_context()).meta
    return meta.get("config"), meta.get("set", ())


def settings_given(data: Path | None = None) -> Settings:
    """The workspace's settings, with one data root if `data` names it.

    Raises:
        UserError: config.yaml is broken, or there is no folder `data`.
    """
    from dataclasses import replace

    from okf_compiler.errors import UserError
    from okf_compiler.workspace_config import workspace_settings

    settings = workspace_settings(*config_given())
    if data is None:
        return settings
    if not data.is_dir():
        raise UserError(f"There is no folder {data}.", status=2)
    return replace(settings, data_roots=(data,))


def configured_server(name: str) -> Reach:
    """What reaches the database `name` on the server of this call's configuration."""
    from okf_compiler.connections import configured_parameters

    file, changes = config_given()

    def reach() -> Mapping[str, Any]:
        return configured_parameters(name, file, changes)

    return reach


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: one object, or one a line where the result is a list."
)


def print_json(data: Any) -> None:
    """One line of `--json`: the whole result, or one of its objects where it is a list."""
    narrow = sys.stdout.encoding.lower() not in ("utf-8", "utf8")
    click.echo(inert_json(json.dumps(data, ensure_ascii=narrow, default=str)))


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
