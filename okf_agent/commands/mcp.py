"""`okf-agent mcp`: the bundles and the database for other agents."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_agent.commands.options import complete, configured, model_option, say
from okf_agent.mcp_server.print_config import CLIENTS
from okf_compiler.options import config_given

if TYPE_CHECKING:
    from okf_agent.cell import Cell
    from okf_agent.config import Config
    from okf_agent.mcp_server.print_config import Way


@dataclass(frozen=True)
class McpOptions:
    """The arguments of `mcp`."""

    names: tuple[str, ...] = ()
    http: str | None = None
    """HOST:PORT; None: standard input and output."""
    stateless: bool = False
    tokens: Path | None = None
    with_ask: bool | None = None
    """None: where a model is set up."""
    model: str | None = None
    print_config: str | None = None
    """The client whose configuration is printed instead."""


@click.command()
@click.option(
    "--db", "names", multiple=True, metavar="DB", shell_complete=complete("databases"),
    help="Serve this database, any number of times; without: mcp.databases, or every one that has a bundle.",
)  # fmt: skip
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP at /mcp instead of standard input and output.")
@click.option("--stateless", is_flag=True, help="Keep no HTTP sessions: for several servers behind a balancer.")
@click.option(
    "--tokens", type=click.Path(path_type=Path), metavar="FILE",
    help="Take bearer tokens from FILE, a line each: name=token; OKF_MCP_TOKENS in the environment or .env too.",
)  # fmt: skip
@click.option("--ask/--no-ask", "with_ask", default=None, help="Offer the tool ask; without: where a model is set up.")
@model_option
@click.option(
    "--print-config", type=click.Choice([*CLIENTS]), help="Print what to put into this client's configuration."
)
def mcp(**options: Any) -> None:
    """Serve the bundles and the read-only database to any agent that speaks the Model Context Protocol.

    Exit status: 2 for a wrong call or configuration, and where the extra `mcp` is not installed.
    """
    from okf_agent.extras import need

    wanted = McpOptions(**options)
    if wanted.http is None and (wanted.stateless or wanted.tokens):
        raise click.UsageError("--stateless and --tokens go with --http HOST:PORT.")
    config = configured()
    if wanted.print_config:
        from okf_agent.mcp_server.print_config import place, text

        way = _way(config, wanted)
        say(f"For {place(wanted.print_config)}")
        click.echo(text(wanted.print_config, way))
        return
    need("`okf-agent mcp`", "mcp", "mcp", "uvicorn")
    _serve(config, wanted, _cell(config, wanted.model, wanted.with_ask))


def _serve(config: Config, wanted: McpOptions, cell: Cell | None) -> None:
    import logging

    from okf_agent.ask import Workspace
    from okf_agent.mcp_server import http, stdio, tokens
    from okf_agent.mcp_server.address import parse
    from okf_agent.mcp_server.databases import Databases, choose
    from okf_agent.mcp_server.server import Service
    from okf_compiler.errors import UserError

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    section = config.settings.database
    if config.mcp.connections >= section.connection_limit:
        raise UserError(
            f"mcp.connections ({config.mcp.connections}) must be below database.connection_limit "
            f"({section.connection_limit}), which is for everything that the role does.",
            status=2,
        )
    chosen = choose(config, wanted.names)
    address = parse(wanted.http) if wanted.http else None
    known = tokens.load(config.mcp, chosen, wanted.tokens) if address else tokens.Tokens()
    if address:
        http.check_address(address[0], known)
    with Workspace(config) as workspace:
        service = Service(Databases(workspace, chosen, say), cell, known)
        try:
            if address:
                http.serve(service, *address, stateless=wanted.stateless)
            else:
                if sys.stdin.isatty():
                    say("Waiting for a client on standard input; --print-config CLIENT shows how one starts this.")
                stdio.serve(service)
        finally:
            service.close()


def _cell(config: Config, model: str | None, with_ask: bool | None) -> Cell | None:
    """How `ask` asks; None where it is not offered: not wanted, or no model is set up and none is named."""
    from okf_agent.cell import choose_cell
    from okf_agent.models.providers import LOCAL
    from okf_compiler.errors import UserError

    if with_ask is False:
        return None
    try:
        cell = choose_cell(config, model, None, say if with_ask else lambda _line: None)
    except UserError:
        if model or with_ask:
            raise
        return None
    wanted = with_ask or model or cell.model != LOCAL or config.model.name == LOCAL
    return cell if wanted else None


def _way(config: Config, wanted: McpOptions) -> Way:
    """How a client gets to the server that the other options describe.

    Raises:
        UserError: the address is none; the workspace has no config.yaml, so that a client that starts the server
            cannot name it.
    """
    import os

    from okf_agent.mcp_server import address
    from okf_agent.mcp_server.address import VARIABLE
    from okf_agent.mcp_server.print_config import Reach, Start
    from okf_compiler.errors import UserError
    from okf_compiler.settings import CONFIG_FILE

    if wanted.http:
        return Reach(address.url(*address.parse(wanted.http)), bool(wanted.tokens or os.environ.get(VARIABLE)))
    file = config_given()[0] or config.settings.root / CONFIG_FILE
    if not Path(file).is_file():
        raise UserError(f"The client has to find this workspace by its {CONFIG_FILE}: make one, it may be empty.")
    program = shutil.which("okf-agent", path=str(Path(sys.executable).parent)) or sys.argv[0]
    databases = [part for name in wanted.names for part in ("--db", name)]
    return Start(program, ["mcp", "--config", str(Path(file).resolve()), *databases])
