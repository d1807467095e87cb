"""Where the HTTP door listens, as `--http` says it and as clients are told. Needs nothing of the extra `mcp`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from okf_compiler.errors import UserError

PATH = "/mcp"
"""Where the protocol is spoken."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of a machine's own, and the one by which it reaches itself."""


def parse(text: str) -> tuple[str, int]:
    """`127.0.0.1:8765`, `[::1]:8765` or `:8765` as host and port.

    Raises:
        UserError: it is none.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535 or {*host} & {*"/@?# "}:
        raise UserError(f"--http {text}: write an address and a port: 127.0.0.1:8765", status=2)
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def url(host: str, port: int) -> str:
    """What a client calls.

    >>> url("::", 8765)
    'http://[::1]:8765/mcp'
    """
    host = EVERYWHERE.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hosts(bound: str, allowed: Iterable[str]) -> frozenset[str]:
    """The Host names that a server bound to an address answers to."""
    own = () if bound in EVERYWHERE else (bound,)
    return frozenset(hostname(name) for name in (*LOOPBACK, *own, *allowed)) - {""}


def hostname(netloc: str) -> str:
    """The name in a Host header or an address, lower case; "" for what is none.

    >>> hostname("[::1]:80"), hostname("Shop.Example:443"), hostname("me@localhost")
    ('::1', 'shop.example', '')
    """
    if "@" in netloc:
        return ""
    try:
        name = urlsplit(f"//{netloc}" if netloc.count(":") < 2 or netloc.startswith("[") else f"//[{netloc}]").hostname
    except ValueError:
        return ""
    return name or ""


def origin_hostname(origin: str) -> str:
    """The name in an Origin header; "" for what is none."""
    try:
        return hostname(urlsplit(origin).netloc)
    except ValueError:
        return ""
