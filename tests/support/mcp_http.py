"""HTTP by hand for a server of other agents: bytes on a connection of their own, and sessions."""

from __future__ import annotations

import socket

import httpx2

from support.mcp_server import SECRETS


def exchange(port: int, data: bytes, seconds: float = 20) -> tuple[int, bytes]:
    """Return what comes back for bytes on a connection of their own: the status (0 if none) and all that was sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        return read_answer(connection)


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    got = b""
    try:
        while piece := connection.recv(65536):
            got += piece
    except ConnectionResetError:
        pass
    return (int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/") else 0), got


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {SECRETS[name]}"}


def initialize(url: str, **headers: str) -> httpx2.Response:
    """Return the answer to a request that opens a session."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    accept = {"Accept": "application/json, text/event-stream"}
    return httpx2.post(url, json=opening, headers=accept | headers, timeout=30)


def opened(url: str, **headers: str) -> dict[str, str]:
    """Return the headers of a session that is open now."""
    answer = initialize(url, **headers).raise_for_status()
    return {"mcp-session-id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
