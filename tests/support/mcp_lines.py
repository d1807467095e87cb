"""A client that starts the server itself and writes the lines of the protocol by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from support.command import SCRIPTS
from support.workspace import Workspace

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "lines", "version": "0"},
}


class Lines:
    """A client that keeps what comes back."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []

    def send(self, method: str, params: dict[str, Any], id: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answer(self, id: int) -> dict[str, Any]:
        """Return what answers a request; every line before it has to be of the protocol too."""
        assert self.process.stdout and self.process.stderr
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            self.seen.append(message)
            if message.get("id") == id:
                return message

    def hello(self, **info: str) -> dict[str, Any]:
        self.send("initialize", {**HELLO, "clientInfo": {**HELLO["clientInfo"], **info}}, 0)  # type: ignore[dict-item]
        answered = self.answer(0)
        self.send("notifications/initialized", {})
        return answered

    def call(self, name: str, arguments: dict[str, Any], id: int) -> None:
        self.send("tools/call", {"name": name, "arguments": arguments}, id)


@contextmanager
def started(shop: Workspace | Path, *arguments: str, db: str = "shop") -> Iterator[Lines]:
    """Start a server of a database over standard input and output, and kill it at the end."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [str(SCRIPTS / "okf-agent"), "mcp", "--db", db, *arguments],
        cwd=shop if isinstance(shop, Path) else shop.root,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        encoding="utf-8",
    )
    try:
        yield Lines(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):  # what was not sent to a process that is gone
                stream.close()  # type: ignore[union-attr]
