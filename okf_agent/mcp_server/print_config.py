"""What to put into a client's configuration, so that it starts this server or reaches it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

NAME = "okf"
TOKEN = "OKF_MCP_TOKEN"
"""The variable from which a client takes its own token."""
SECONDS = 600
"""That a client should wait for one call, where it can be told: a first query may load a dump, `ask` takes minutes."""


@dataclass(frozen=True)
class Start:
    """How a client starts the server itself."""

    command: str
    arguments: Sequence[str]


@dataclass(frozen=True)
class Reach:
    """Where a client reaches a server that runs."""

    url: str
    with_token: bool


Way = Start | Reach


def text(client: str, way: Way) -> str:
    """The configuration of `client`, one of `CLIENTS`."""
    return CLIENTS[client][1](way)


def place(client: str) -> str:
    """Where that configuration belongs."""
    return CLIENTS[client][0]


def _claude(way: Way) -> str:
    return _json({"mcpServers": {NAME: _entry(way, f"${{{TOKEN}}}")}})


def _cursor(way: Way) -> str:
    return _json({"mcpServers": {NAME: _entry(way, f"${{env:{TOKEN}}}")}})


def _vscode(way: Way) -> str:
    entry = _entry(way, f"${{input:{TOKEN}}}")
    config: dict[str, Any] = {"servers": {NAME: {"type": "stdio", **entry}}}
    if isinstance(way, Reach) and way.with_token:
        asked = {"type": "promptString", "id": TOKEN, "description": "Token of okf-agent mcp", "password": True}
        config = {"inputs": [asked], **config}
    return _json(config)


def _codex(way: Way) -> str:
    lines = [f"[mcp_servers.{NAME}]"]
    if isinstance(way, Start):
        # A JSON string, or a list of them, is one of TOML too.
        lines += [f"command = {json.dumps(way.command)}", f"args = {json.dumps(list(way.arguments))}"]
    else:
        lines.append(f"url = {json.dumps(way.url)}")
        if way.with_token:
            lines.append(f"bearer_token_env_var = {json.dumps(TOKEN)}")
    return "\n".join([*lines, f"tool_timeout_sec = {SECONDS}"])


def _goose(way: Way) -> str:
    common = {"enabled": True, "name": NAME, "timeout": SECONDS}
    if isinstance(way, Start):
        entry: dict[str, Any] = {**common, "type": "stdio", "cmd": way.command, "args": list(way.arguments)}
    else:
        entry = {**common, "type": "streamable_http", "uri": way.url}
        if way.with_token:
            entry |= {"headers": {"Authorization": f"Bearer ${{{TOKEN}}}"}, "env_keys": [TOKEN]}
    return yaml.safe_dump({"extensions": {NAME: entry}}, sort_keys=False, allow_unicode=True).rstrip("\n")


def _entry(way: Way, token: str) -> dict[str, Any]:
    """An entry in the form that most clients share."""
    if isinstance(way, Start):
        return {"command": way.command, "args": list(way.arguments)}
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if way.with_token else {}
    return {"type": "http", "url": way.url, **headers}


def _json(config: Mapping[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False)


CLIENTS: Mapping[str, tuple[str, Callable[[Way], str]]] = {
    "claude": ("Claude Code: .mcp.json in your project; Claude Desktop: claude_desktop_config.json", _claude),
    "cursor": ("Cursor: .cursor/mcp.json in your project, or ~/.cursor/mcp.json", _cursor),
    "vscode": ("VS Code: .vscode/mcp.json in your project", _vscode),
    "codex": ("Codex: ~/.codex/config.toml", _codex),
    "goose": ("Goose: ~/.config/goose/config.yaml", _goose),
}
"""By name: where its configuration lies, and how it is written."""
