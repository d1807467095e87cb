"""Tokens as they are written, limits as time passes, and connections that databases share; no server needed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from starlette.requests import HTTPConnection

from okf_agent.config import McpSection
from okf_agent.mcp_server.databases import Pool
from okf_agent.mcp_server.tokens import Meter, Tokens, load
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.errors import UserError
from okf_compiler.settings import DatabaseSection

SERVED = ("shop", "store")
SECTION = McpSection.model_validate({"tokens": {"bob": {"databases": ["store"]}}})


def name_of(tokens: Tokens, header: str) -> str | None:
    """Return the name that the SDK keeps for a request with this Authorization header."""
    connection = HTTPConnection({"type": "http", "headers": [(b"authorization", header.encode("utf-8"))]})
    found = anyio.run(BearerAuthBackend(tokens).authenticate, connection)
    return found[1].access_token.client_id if found else None


def test_tokens_come_from_the_environment_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("# who: why\ncarol=carols-token-01234567\n", encoding="utf-8")
    env = {"OKF_MCP_TOKENS": "alice=alices-token-0123456,bob=bobs-token=with=equals"}
    tokens = load(SECTION, SERVED, file, env)
    assert tokens.databases == {"alice": SERVED, "bob": ("store",), "carol": SERVED}
    for header, name in (
        ("Bearer alices-token-0123456", "alice"),
        ("bearer  carols-token-01234567", "carol"),
        ("Bearer bobs-token=with=equals", "bob"),
        ("Bearer alices-token-012345", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("", None),
        ("Bearer größe", None),
        ("Token alices-token-0123456", None),
    ):
        assert name_of(tokens, header) == name, header
    assert "alices-token" not in repr(vars(tokens))


def test_a_token_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("alice=another-token-0123456", encoding="utf-8")
    with pytest.raises(UserError, match="the token alice is given twice") as caught:
        load(McpSection(), SERVED, file, {"OKF_MCP_TOKENS": "alice=alices-token-0123456"})
    assert "token-0123456" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alice=alices-token-0123456 bob=alices-token-0123456", "bob and alice are the same token"),
        ("alice=größe-größe-größe", "characters that no bearer token may have"),
    ],
)
def test_a_token_that_tells_nobody_apart_or_cannot_be_sent_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        load(McpSection(), SERVED, None, {"OKF_MCP_TOKENS": text})
    assert "0123456" not in str(caught.value)


def test_a_file_of_tokens_that_others_can_read_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("carol=carols-token-01234567\n", encoding="utf-8")
    for mode, told in ((0o644, True), (0o600, False)):
        file.chmod(mode)
        caplog.clear()
        load(McpSection(), SERVED, file, {})
        assert ("chmod 600" in caplog.text) == told
        assert "carols-token" not in caplog.text


def test_limits_slide_with_time() -> None:
    now = [0.0]
    meter = Meter(McpSection(calls_per_minute=2, rows_per_hour=100, seconds_per_hour=50), lambda: now[0])
    for second in (0, 10):
        now[0] = second
        with meter.call():
            pass
    assert "2 calls a minute" in meter.refusal()
    assert "Try again in 50 s" in meter.refusal()
    now[0] = 75
    assert not meter.refusal()
    with meter.call() as count:
        count(100)
    assert "100 rows an hour" in meter.refusal()
    now[0] = 3700
    assert not meter.refusal()
    with meter.call():
        now[0] += 60  # a call under way counts too
        assert "50 seconds of queries an hour" in meter.refusal()
    now[0] += 3601
    assert not meter.refusal()


def test_databases_take_each_other_s_idle_connections_and_never_more_than_there_are() -> None:
    made: list[str] = []

    def lend(pool: Pool, name: str, seconds: float = 0.2):  # type: ignore[no-untyped-def]
        def make() -> Database:
            made.append(name)
            return Database({}, name, DatabaseSection())

        return pool.lend(name, make, seconds)

    pool = Pool(2)
    with lend(pool, "a") as first, lend(pool, "b"):
        with pytest.raises(QueryError, match="All 2 connections are busy") as busy, lend(pool, "c"):
            pass
        assert busy.value.passing
    with lend(pool, "a") as again:
        assert again is first
    with lend(pool, "c"), lend(pool, "a"):  # in the place of b's, which was used longest ago
        pass
    assert made == ["a", "b", "c"]

    def fails() -> Database:
        raise UserError("no server")

    with pytest.raises(UserError), pool.lend("d", fails, 0.2):
        pass
    with lend(pool, "c"), lend(pool, "e"):  # the failure has given its place back
        pass
