"""A server of bundles and database for other agents: inside this process, over HTTP in a thread, or a process."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel

from okf_agent.ask import Workspace as Shared
from okf_agent.cell import Cell
from okf_agent.config import Config, load_config
from okf_agent.mcp_server import http
from okf_agent.mcp_server.databases import Databases, choose
from okf_agent.mcp_server.server import Service
from okf_agent.mcp_server.tokens import Tokens, load
from okf_agent.prepare import quiet
from support.workspace import SHOP, Workspace

Result = TypeVar("Result")
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000) AS endless"
"""A query that nobody waits for."""
SECRETS = {"alice": "alices-token-0123456789", "bob": "bobs-token-0123456789ab"}
INFO = types.Implementation(name="tester", version="1.2")
MODERN = "2026-07-28"


def configured(workspace: Workspace, **section: Any) -> Config:
    """The workspace's configuration with keys of `mcp:`."""
    config = load_config(workspace.root)
    return replace(config, mcp=type(config.mcp).model_validate({**config.mcp.model_dump(), **section}))


@contextmanager
def service(
    config: Config, *, names: tuple[str, ...] = ("shop",), cell: Cell | None = None, tokens: Tokens | None = None
) -> Iterator[Service]:
    """What a server is made of, with records like any other."""
    with Shared(config) as shared:
        made = Service(Databases(shared, choose(config, names), quiet), cell, tokens)
        try:
            yield made
        finally:
            made.close()


@dataclass(frozen=True)
class Running:
    """A server that answers at `url`."""

    port: int
    service: Service
    stop: Callable[[], None]
    """Orders the server to stop, as SIGTERM does."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def over_http(
    config: Config,
    *,
    names: tuple[str, ...] = ("shop",),
    secrets: Mapping[str, str] | None = None,
    stateless: bool = False,
    cell: Cell | None = None,
) -> Iterator[Running]:
    """A server on a free port, in a thread."""
    env = {"OKF_MCP_TOKENS": " ".join(f"{name}={secret}" for name, secret in (secrets or {}).items())}
    tokens = load(config.mcp, choose(config, names), None, env)
    with service(config, names=names, cell=cell, tokens=tokens) as made:
        listener = http.listen("127.0.0.1", 0)
        server = http.HttpServer(made, "127.0.0.1", stateless=stateless)
        port = listener.getsockname()[1]

        def stop() -> None:
            server.uvicorn.should_exit = True

        thread = threading.Thread(target=anyio.run, args=(server.run, listener))
        thread.start()
        try:
            wait_until(lambda: server.uvicorn.started, "the server has not started")
            yield Running(port, made, stop)
        finally:
            stop()
            thread.join(20)


@asynccontextmanager
async def client(url: str, secret: str = "", mode: str = "auto", **options: Any) -> Any:
    """The SDK's client of a server over HTTP."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as own:
        transport = streamable_http_client(url, http_client=own)
        async with Client(transport, mode=mode, client_info=INFO, **options) as made:
            yield made


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a coroutine function to its end."""
    return anyio.run(work)


def post(port: int, name: str, arguments: Mapping[str, Any], **headers: str) -> bytes:
    """A whole HTTP request that calls a tool, as a client without sessions sends it."""
    return request(port, "tools/call", {"name": name, "arguments": dict(arguments)}, **{"Mcp-Name": name, **headers})


def request(port: int, method: str, params: Mapping[str, Any], **headers: str) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}).encode()
    known = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in known.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


def wait_until(true: Callable[[], Any], what: str, seconds: float = 60) -> None:
    """Wait for something that is about to be so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def add_store(workspace: Workspace) -> None:
    """A second database beside the shop: its documents under another name, without content."""
    folder = workspace.root / "data" / "store"
    if folder.is_dir():
        return
    folder.mkdir()
    for file in SHOP.glob("shop_*"):
        shutil.copy(file, folder / file.name.replace("shop_", "store_"))


def steps(root: Path, run_id: str) -> list[dict[str, Any]]:
    text = (root / "runs" / "steps" / f"{run_id}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def texts(data: Any) -> list[str]:
    """Every string in an answer."""
    if isinstance(data, BaseModel):
        data = data.model_dump(by_alias=True, exclude_none=True, mode="json")
    if isinstance(data, dict):
        data = [*data.values()]
    if isinstance(data, list):
        return [text for each in data for text in texts(each)]
    return [data] if isinstance(data, str) else []
