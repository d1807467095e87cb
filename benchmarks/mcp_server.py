"""What a call through the server of other agents takes, and many clients at once: figures, never a test.

    python benchmarks/mcp_server.py            # all
    python benchmarks/mcp_server.py --clients 20 --calls 50

Prints medians of `read_file` over stdio and over HTTP (with a session, and without), then clients that all call at
once over HTTP: errors, calls a second, and the server's memory before and after each of three rounds. Look at the load
that is printed too: on a machine that does other work every figure is larger.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.command import SCRIPTS, run
from support.workspace import Workspace, workspace

PROGRAM = str(SCRIPTS / "okf-agent")
READ = ("read_file", {"paths": ["/knowledge/active-customer"]})
WARM, MEASURED = 20, 300
ROUNDS = 3


async def latencies(client: Client) -> list[float]:
    """Milliseconds of calls, one after the other."""
    found = []
    for number in range(WARM + MEASURED):
        begin = time.perf_counter()
        await client.call_tool(*READ)
        if number >= WARM:
            found.append((time.perf_counter() - begin) * 1000)
    return found


def show(name: str, values: list[float]) -> None:
    values = sorted(values)
    print(f"{name:<28} median {statistics.median(values):6.2f} ms   p95 {values[len(values) * 95 // 100]:6.2f} ms")


async def over_stdio(root: Path) -> None:
    command = StdioServerParameters(command=PROGRAM, args=["mcp", "--no-ask"], cwd=root)
    for mode in ("legacy", "2026-07-28"):
        async with Client(command, mode=mode) as client:
            show(f"read_file, stdio, {mode}", await latencies(client))


async def over_http(url: str) -> None:
    for mode in ("legacy", "2026-07-28"):
        async with Client(url, mode=mode) as client:
            show(f"read_file, HTTP, {mode}", await latencies(client))


async def many(url: str, clients: int, calls: int, pid: int) -> None:
    """Clients that all begin at once."""
    for number in range(1, ROUNDS + 1):
        errors: list[str] = []

        async def talk(errors: list[str] = errors) -> None:
            try:
                async with Client(url, mode="legacy") as client:
                    for turn in range(calls):
                        sql = ("run_sql", {"sql": "SELECT count(*) FROM customers"})
                        result = await client.call_tool(*(sql if turn % 10 == 9 else READ))
                        if result.is_error:
                            errors.append(str(result.content[0]))
            except Exception as error:
                errors.append(repr(error))

        before, begin = memory_mb(pid), time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(clients):
                tasks.start_soon(talk)
        seconds = time.perf_counter() - begin
        print(
            f"round {number}: {clients} clients x {calls} calls in {seconds:.1f} s ({clients * calls / seconds:.0f} a "
            f"second), {len(errors)} errors {errors[:1]}, memory {before:.0f} -> {memory_mb(pid):.0f} MB"
        )


def memory_mb(pid: int) -> float:
    """Resident memory of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0.0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def serve(made: Workspace) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([PROGRAM, "mcp", "--no-ask", "--http", f"127.0.0.1:{port}"], cwd=made.root)
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    return server, f"http://127.0.0.1:{port}/mcp"


def load() -> str:
    return " ".join(f"{each:.1f}" for each in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--calls", type=int, default=50)
    options: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, workspace(Path(folder)) as made:
        made.configure("http://127.0.0.1:1/v1")
        prepared = run("okf-agent", "prepare", "shop", cwd=made.root)
        assert prepared.returncode == 0, prepared.stderr
        print(f"load {load()}, {os.cpu_count()} processors")
        anyio.run(over_stdio, made.root)
        server, url = serve(made)
        try:
            anyio.run(over_http, url)
            anyio.run(many, url, options.clients, options.calls, server.pid)
        finally:
            server.terminate()
            server.wait()
        print(f"load {load()}, {len(made.records())} records")


if __name__ == "__main__":
    main()
