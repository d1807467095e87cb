"""Connect to a PostgreSQL so that nothing is written and every value arrives as PostgreSQL prints it.

Shared by the reader of a live catalogue and by the agent. What is asked of a catalogue stands here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.types import TypesRegistry
from psycopg.types.string import StrDumper, TextLoader

Row: TypeAlias = tuple[str | None, ...]
"""One row, every cell as PostgreSQL prints it, None for NULL."""

ConnectionT = TypeVar("ConnectionT", bound="psycopg.Connection[Any]")

SECRETS = ("password", "sslpassword", "passfile")
"""Connect parameters that no message may have."""
CONNECT_TIMEOUT_S = 10
GONE = ("Connection refused", "No such file or directory", "server closed the connection", "Connection reset")
STARTING = ("system is starting up", "system is in recovery mode", "not yet accepting connections")


class _AnyBytes(Loader):
    """Text of a database that does not know its own encoding: what is not UTF-8 is shown as `\\xe9`."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", errors="backslashreplace")


def _exact(loader: type[Loader]) -> AdaptersMap:
    """An adapters map that knows one loader, for every type that exists or will."""
    adapters = AdaptersMap(types=TypesRegistry())
    adapters.register_loader(0, loader)
    adapters.register_dumper(str, StrDumper)
    return adapters


_EXACT = _exact(TextLoader)
_EXACT_ANY_BYTES = _exact(_AnyBytes)


def connect(
    params: Mapping[str, Any],
    dbname: str,
    *,
    read_only: bool = True,
    autocommit: bool = False,
    factory: type[ConnectionT] = psycopg.Connection,  # type: ignore[assignment]
) -> ConnectionT:
    """A connection whose rows are tuples of exact text (`Row`), whatever the types and the server's styles.

    No start-up `options` are sent, because poolers refuse them. With `read_only`, each transaction psycopg
    begins is READ ONLY; in autocommit that is the caller's to say.

    Raises:
        psycopg.OperationalError: the server cannot be reached or refuses; the text never has the password.
    """
    settings: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "okf-agent",
        **params,
        "dbname": dbname,
        "autocommit": autocommit,
        "prepare_threshold": None,
    }
    connection = factory.connect(**settings, client_encoding="UTF8", context=_EXACT)
    if any_bytes(connection):  # such a server sends no byte that is not UTF-8 to a client that asked for UTF-8
        connection.close()
        connection = factory.connect(**settings, client_encoding="SQL_ASCII", context=_EXACT_ANY_BYTES)
    connection.read_only = read_only
    return connection


def without_secrets(text: str, params: Mapping[str, Any]) -> str:
    """The text with every secret of connect parameters as `***`, also as a URL writes it.

    >>> without_secrets("password s3/ret is wrong: s3%2Fret", {"password": "s3/ret"})
    'password *** is wrong: ***'
    """
    given = [str(params[key]) for key in SECRETS if len(str(params.get(key) or "")) > 2]  # a letter or two say nothing
    for secret in sorted({form for each in given for form in (each, quote(each, ""))}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def is_starting(error: psycopg.Error) -> bool:
    """Whether a server says that it will take connections in a moment: it starts, or recovers from a crash."""
    return any(sign in str(error) for sign in STARTING)


def is_gone(error: psycopg.Error) -> bool:
    """Whether nothing answers where the server should be, or it ended while it was asked."""
    return error.sqlstate is None and any(sign in str(error) for sign in GONE)


def any_bytes(connection: psycopg.Connection[Any]) -> bool:
    """Whether the database does not know its encoding (SQL_ASCII): its lengths are bytes, not characters."""
    return connection.pgconn.parameter_status(b"server_encoding") == b"SQL_ASCII"


def exact_text(connection: psycopg.Connection[Any]) -> AdaptersMap:
    """The adapters with which this connection's results are read: one loader for all types."""
    return _EXACT_ANY_BYTES if any_bytes(connection) else _EXACT
