"""Who may come in over HTTP: named bearer tokens, each for some of the databases."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, TokenVerifier

from okf_agent.config import McpSection
from okf_agent.mcp_server.address import VARIABLE
from okf_compiler.errors import UserError, did_you_mean

logger = logging.getLogger(__name__)
LEAST_CHARS = 16
"""Of a token: what is shorter can be guessed."""
NAME = re.compile(r"[\w.@-]+")
SECRET = re.compile(r"[A-Za-z0-9._~+/=-]+")
"""What a bearer token is made of, by RFC 6750; clients and proxies may send nothing else unchanged."""
MAKE_ONE = 'Make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'


@dataclass(frozen=True)
class Token:
    """One bearer token, kept as a digest."""

    name: str
    digest: bytes = field(repr=False)
    databases: tuple[str, ...]
    """What its holder may see."""


class Tokens(TokenVerifier):
    """The tokens of a server; with none, everybody may come in and sees everything."""

    def __init__(self, tokens: Sequence[Token] = ()) -> None:
        self._tokens = tuple(tokens)
        self.databases = {token.name: token.databases for token in tokens}

    @property
    def several(self) -> bool:
        return len(self._tokens) > 1

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the name of a token, as the SDK keeps it; None if it is none of ours.

        Every token is compared, each in a time that does not depend on how much of it is right.
        """
        given = _digest(token.strip())
        names = [known.name for known in self._tokens if hmac.compare_digest(known.digest, given)]
        return AccessToken(token="", client_id=names[0], scopes=[]) if names else None


def holder(scope: Mapping[str, Any]) -> str:
    """Return the name of the token that a request came with; "" where there are none."""
    user = scope.get("user")
    return user.access_token.client_id if isinstance(user, AuthenticatedUser) else ""


def load(section: McpSection, served: Sequence[str], file: Path | None, env: Mapping[str, str] = os.environ) -> Tokens:
    """Return the tokens of `OKF_MCP_TOKENS` and of a file: `name=token`, between spaces, commas or line ends.

    Raises:
        UserError: the file cannot be read, or says something else; a database or name in `mcp.tokens` is unknown.
    """
    found: dict[str, Token] = {}
    for origin, text in ((VARIABLE, env.get(VARIABLE, "")), (str(file), _read(file))):
        for name, secret in _pairs(text, origin):
            if name in found:
                raise UserError(f"{origin}: the token {name} is given twice.", status=2)
            same = next((other.name for other in found.values() if other.digest == _digest(secret)), None)
            if same:
                raise UserError(f"{origin}: {name} and {same} are the same token; each needs its own.", status=2)
            rights = section.tokens.get(name)
            databases = tuple(rights.databases) if rights and rights.databases else tuple(served)
            _check_served(name, databases, served)
            found[name] = Token(name, _digest(secret), databases)
    for name in section.tokens:
        if name not in found and found:
            raise UserError(f"mcp.tokens.{name}: there is no such token{did_you_mean(name, found)}", status=2)
    return Tokens([*found.values()])


def _read(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        if file.stat().st_mode & 0o077:
            logger.warning("Other users of this machine can read the tokens of %s: chmod 600 it.", file)
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--tokens {file} cannot be read: {error}", status=2) from None


def _pairs(text: str, origin: str) -> Iterator[tuple[str, str]]:
    """Names and secrets. Messages never quote a secret."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for number, entry in enumerate(re.split(r"[\s,]+", "\n".join(lines).strip()), start=1):
        if not entry:
            continue
        name, _, secret = entry.partition("=")
        if not NAME.fullmatch(name) or not secret:
            raise UserError(f"{origin}: entry {number} must be name=token.", status=2)
        if len(secret) < LEAST_CHARS:
            raise UserError(
                f"{origin}: the token {name} is shorter than {LEAST_CHARS} characters. {MAKE_ONE}", status=2
            )
        if not SECRET.fullmatch(secret):
            raise UserError(
                f"{origin}: the token {name} has characters that no bearer token may have. {MAKE_ONE}", status=2
            )
        yield name, secret


def _check_served(name: str, databases: Sequence[str], served: Sequence[str]) -> None:
    for database in databases:
        if database not in served:
            near = did_you_mean(database, served)
            raise UserError(f"mcp.tokens.{name}.databases: {database!r} is not served{near}", status=2)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
