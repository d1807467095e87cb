"""Who may come in over HTTP, and how much each may use: named bearer tokens, and what their holders have used.

Counted in this process: several servers behind a balancer each allow it anew.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, TokenVerifier

from okf_agent import prompts
from okf_agent.config import McpSection
from okf_agent.mcp_server.address import VARIABLE
from okf_compiler.errors import UserError, did_you_mean

logger = logging.getLogger(__name__)
MINUTE, HOUR = 60.0, 3600.0
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


class Window:
    """What was used in the last `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.total = 0.0
        self._entries: deque[tuple[float, float]] = deque()

    def add(self, now: float, amount: float) -> None:
        self._entries.append((now, amount))
        self.total += amount

    def used(self, now: float) -> float:
        while self._entries and self._entries[0][0] <= now - self.seconds:
            self.total -= self._entries.popleft()[1]
        return self.total

    def wait(self, now: float) -> float:
        """Return the seconds until the oldest entry counts no more."""
        return self._entries[0][0] + self.seconds - now if self._entries else self.seconds


class Meter:
    """What the holder of one token has used. Used from the server's event loop."""

    def __init__(self, section: McpSection | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a `section` nothing is refused."""
        self._section = section
        self._clock = clock
        self._calls, self._rows, self._seconds = Window(MINUTE), Window(HOUR), Window(HOUR)
        self._began: list[float] = []

    def refusal(self) -> str:
        """Return why a further call is refused, with the time to wait; "" if it is not."""
        now, section = self._clock(), self._section
        if section is None:
            return ""
        running = sum(now - began for began in self._began)
        limits = (
            (self._calls, 0.0, section.calls_per_minute, "calls a minute"),
            (self._rows, 0.0, section.rows_per_hour, "rows an hour"),
            (self._seconds, running, section.seconds_per_hour, "seconds of queries an hour"),
        )
        for window, more, most, words in limits:
            if window.used(now) + more >= most:
                seconds = math.ceil(max(1.0, window.wait(now)))
                return prompts.say("mcp_limit", limit=f"{most:,.0f} {words}", seconds=seconds)
        return ""

    @contextmanager
    def call(self) -> Iterator[Callable[[int], None]]:
        """Count a call, and its seconds while it runs; gives a function that counts rows."""
        began = self._clock()
        self._calls.add(began, 1)
        self._began.append(began)
        try:
            yield lambda rows: self._rows.add(self._clock(), rows)
        finally:
            self._began.remove(began)
            now = self._clock()
            self._seconds.add(now, now - began)
