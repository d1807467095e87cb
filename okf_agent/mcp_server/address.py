"""Where the HTTP door listens, as `--http` says it and as clients are told. Needs nothing of the extra `mcp`."""

from __future__ import annotations

import ipaddress

from okf_compiler.errors import UserError

VARIABLE = "OKF_MCP_TOKENS"
"""The environment variable with the tokens."""
PATH = "/mcp"
"""Where the protocol is spoken."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of a machine's own, and the one by which it reaches itself."""


def parse(text: str) -> tuple[str, int]:
    """Return the host and port of `127.0.0.1:8765`, `[::1]:8765` or `:8765`.

    Raises:
        UserError: `text` is no address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535 or {*host} & {*"/@?# "}:
        raise UserError(f"--http {text}: write an address and a port: 127.0.0.1:8765", status=2)
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def url(host: str, port: int) -> str:
    """Return what a client calls.

    >>> url("::", 8765)
    'http://[::1]:8765/mcp'
    """
    host = EVERYWHERE.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
