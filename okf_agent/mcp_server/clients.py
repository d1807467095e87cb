"""Who makes a request: its client, what that may see, and the conversation it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from okf_agent.mcp_server.calls import Gone
from okf_agent.mcp_server.tokens import Tokens

Ctx = ServerRequestContext[Any, Any]
LABEL_CHARS = 200
TOKEN, GONE, SESSION = "okf.token", "okf.gone", "mcp-session-id"
"""Where the HTTP door keeps, in a request's scope, whose it is and whether its client is still there; and the header
that names a session."""


@dataclass(frozen=True)
class Client:
    """Who makes a request."""

    label: str
    """The record's `client`: `mcp`, the client's name and version, and the name of its token."""
    token: str
    databases: tuple[str, ...]
    """Those it may see; the rest does not exist for it."""
    conversation: str | None
    """None where each call stands alone."""
    gone: Gone | None


class Clients:
    """Tells the clients of one server apart."""

    def __init__(self, access: Tokens, served: tuple[str, ...]) -> None:
        self._access = access
        self._served = served
        self.keeps_sessions = False
        """Whether HTTP sessions are conversations."""

    def of(self, ctx: Ctx) -> Client:
        """The client of a request."""
        request = ctx.request
        scope: Mapping[str, Any] = request.scope if request is not None else {}
        token = scope.get(TOKEN, "")
        session = request.headers.get(SESSION) if request is not None and self.keeps_sessions else None
        # An id alone would let the holder of another token write into this record.
        own = f"{token} {session}" if session and has_handshake(ctx) else None
        databases = self._access.databases.get(token, ()) if self._access else self._served
        return Client(_label(ctx, token), token, databases, ctx.lifespan_context or own, scope.get(GONE))


def has_handshake(ctx: Ctx) -> bool:
    """Whether the request is of the protocol before 2026-07-28, which knows sessions."""
    return ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS


def _label(ctx: Ctx, token: str) -> str:
    info = ctx.session.client_params.client_info if ctx.session.client_params else None
    if info:
        name = f"{info.name} {info.version}"
    elif ctx.request is not None:
        name = ctx.request.headers.get("user-agent", "")
    else:
        name = ""
    # A comma sets the token off, so a client's own name has none.
    label = " ".join(f"mcp {name}".replace(",", " ").split())[:LABEL_CHARS]
    return f"{label}, token {token}" if token else label
