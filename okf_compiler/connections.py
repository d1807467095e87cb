"""Connections to a live database for the command line: by URL, or the workspace's own server. Secrets stay here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from okf_compiler.console import tell
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.model import Database
from okf_compiler.postgres import connect, without_secrets
from okf_compiler.settings import Settings

Result = TypeVar("Result")
CONFIGURED = "configured"
SERVER = "okf_compiler.server"
"""Entry points of this group give connect parameters for a database's name."""
OF_OTHERS = frozenset(
    (
        "pgbouncer", "schema", "connection_limit", "pool_timeout", "pool_size", "max_overflow", "statement_cache_size",
        "prepared_statement_cache_size", "prepareThreshold", "uselibpqcompat", "supa", "workaround", "sslaccept",
        "socket_timeout", "binary_parameters", "prepare", "default_query_exec_mode",
    )
)  # fmt: skip
"""Parameters of URLs as poolers and other programs' drivers write them, which change nothing of where one connects."""
Reach = Callable[[], Mapping[str, Any]]
"""Gives connect parameters of the configured server."""


def read_live(
    source: str, name: str, settings: Settings, *, hide: Sequence[str] = (), reach: Reach | None = None
) -> Database:
    """The catalogue of the database that `source` leads to, under the name `name`; `hide` as in `catalogue.read`,
    added to what config.yaml hides.

    Raises:
        UserError: no connection, or the catalogue cannot be read; the text has no password.
    """
    from okf_compiler.readers import catalogue

    hidden = hidden_columns(settings, name, hide)
    return with_connection(source, name, lambda connection: catalogue.read(connection, name, hide=hidden), reach)


def hidden_columns(settings: Settings, name: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns of a database that config.yaml and the command line keep back."""
    return tuple(dict.fromkeys((*settings.hidden(name), *more)))


def with_connection(
    source: str, name: str, work: Callable[[psycopg.Connection[Any]], Result], reach: Reach | None = None
) -> Result:
    """What `work` makes of a read-only connection to `source`: a connection URL, or `configured` for the database
    `name` on the server of config.yaml, which `reach` may have reached already.

    Raises:
        UserError: no connection, or PostgreSQL refuses; the text has no password.
    """
    params: Mapping[str, Any]
    params, dbname = (
        parse_url(source) if source != CONFIGURED else (reach() if reach else configured_parameters(name), name)
    )
    try:
        connection: psycopg.Connection[Any]
        with connect(params, dbname) as connection:
            return work(connection)
    except psycopg.Error as error:
        raise UserError(f"{name}: {without_secrets(str(error).strip(), params)}") from None


def parse_url(url: str, or_else: str = "") -> tuple[dict[str, Any], str]:
    """Connect parameters and the database of a URL. `or_else`: what else `--from` takes, for the message.

    Raises:
        UserError: it is none, in our words: libpq's own complaint about it could quote the password.
    """
    url = _without_driver(url)
    try:
        # Any other @ is part of a password, whose rest libpq would take for a host.
        if re.fullmatch(r"postgres(?:ql)?://([^/?#@]*@)?[^@]*", url) is None:
            raise ValueError
        params: dict[str, Any] = conninfo_to_dict(_without_strange(url))
        if re.fullmatch(r"[\d,]*", str(params.get("port", ""))) is None:  # a password whose host was forgotten
            raise ValueError
    except (psycopg.Error, ValueError):
        raise UserError(
            f"--from takes a URL such as postgresql://user@host:5432/database{or_else}; characters like "
            "@ : / ? in a password are written %40 %3A %2F %3F, or the password is given in PGPASSWORD.",
            status=2,
        ) from None
    dbname = str(params.pop("dbname", "") or "")
    if not dbname:
        raise UserError("--from: the URL names no database: postgresql://user@host:5432/database", status=2)
    return params, dbname


def _without_driver(url: str) -> str:
    """The URL without the driver that SQLAlchemy and its like name in the scheme: `postgresql+psycopg2://`."""
    driver = re.match(r"(postgres(?:ql)?)\+\w+(?=://)", url)
    return driver.group(1) + url[driver.end() :] if driver else url


def _without_strange(url: str) -> str:
    """The URL without the parameters that other programs read and libpq does not know, after saying which.

    Raises:
        UserError: a parameter that nobody knows, or a schema other than public; no value is in the message.
    """
    head, mark, query = url.partition("?")
    known = [option.keyword.decode() for option in pq.Conninfo.get_defaults()] + ["ssl"]
    kept, strange = [], []
    for pair in query.split("&") if mark else []:
        name, _, value = pair.partition("=")
        if name in known:
            kept.append(pair)
        elif name == "schema" and value != "public":
            raise UserError(
                "--from: libpq knows no parameter `schema`. Take it out of the URL, and name the schema in config.yaml "
                "as databases.NAME.schema.",
                status=2,
            )
        elif name in OF_OTHERS:
            strange.append(name)
        elif re.fullmatch(r"\w{1,40}", name) and ("@" in head or ":" not in head.partition("//")[2]):
            raise UserError(f"--from: libpq knows no parameter `{name}`{did_you_mean(name, known)}", status=2)
        else:  # it may be the rest of a password
            raise ValueError
    if strange:
        tell(f"--from: left out, since only other programs read it: {', '.join(strange)}.")
    return head + (mark + "&".join(kept) if kept else "")


def configured_parameters(name: str, file: Path | None = None, changes: Sequence[str] = ()) -> Mapping[str, Any]:
    """Connect parameters of the role that can only read, on the workspace's server, its content loaded. `file` and
    `changes`: as `--config` and `--set` say.

    Which server that is, and how it is started, only the agent knows. The compiler works without it, so the agent
    offers this as an entry point of the group SERVER.
    """
    offered = [*entry_points(group=SERVER, name=CONFIGURED)]
    if not offered:
        raise UserError(f"`{CONFIGURED}` needs okf_agent, which is not installed with this okf-compiler.")
    try:
        reach: Callable[[str, Path | None, Sequence[str]], Mapping[str, Any]] = offered[0].load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"`{CONFIGURED}` needs okf_agent, which cannot be imported: {error}") from None
    return reach(name, file, changes)
