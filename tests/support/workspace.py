"""A folder with a config.yaml and the shop, as a user has it, and questions whose model plays a script."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import psycopg

from okf_agent.engines import embedded
from support.command import run, run_inside
from support.endpoint import Endpoint, Scripted, calls, submit
from support.folders import let_enter

SHOP = Path(__file__).parents[2] / "data" / "shop"
SQL = """SELECT count(DISTINCT customer_id) FROM orders
WHERE NOT is_test AND order_state NOT IN ('draft', 'cancelled')
  AND placed_at >= '2025-04-01' AND placed_at < '2025-07-01'"""
ACTIVE = [
    calls(("read_file", {"paths": ["/knowledge/active-customer.md", "/knowledge/valid-order.md"]})),
    calls(("read_file", {"paths": ["/tables/orders.md"]})),
    calls(("run_sql", {"sql": SQL})),
    submit(SQL, "52 customers are active."),
]
TODAY = "2026-12-01"
"""What models are told; a test may say another day."""
QUESTION = "How many active customers do we have?"


class Workspace:
    """`agent` runs one command; `endpoint` is the one that answered it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ignored = shutil.ignore_patterns("*.py", "__pycache__", "gold.jsonl")
        shutil.copytree(SHOP, root / "data" / "shop", ignore=ignored)
        self.roots: list[Path] = []

    def agent(
        self, *arguments: str, script: list[Scripted], typed: str | None = None, process: bool = False,
        env: dict[str, str] | None = None,
    ) -> CompletedProcess[str]:  # fmt: skip
        """One call of okf-agent with a scripted model; in a process of its own if `process`."""
        with Endpoint(script) as endpoint:
            self.configure(endpoint.url)
            self.endpoint = endpoint
            if process:
                return run("okf-agent", *arguments, cwd=self.root, text=typed, env=env)
            return run_inside(*arguments, cwd=self.root, text=typed, env=env)

    def configure(self, api_base: str, **agent: Any) -> None:
        config = {
            "model": {"name": "openai/scripted", "api_base": api_base, "retries": 0},
            "agent": {"raw_docs": [root.as_posix() for root in self.roots], "today": TODAY, **agent},
        }
        (self.root / "config.yaml").write_text(json.dumps(config), encoding="utf-8")

    def records(self) -> list[dict[str, Any]]:
        lines = (self.root / "runs" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def queries(self) -> list[str]:
        """What the server is running for the agent's role right now."""
        server = embedded.start(self.root, "agent_ro")
        assert server.admin is not None
        with psycopg.connect(**server.admin, dbname="postgres") as admin:
            found = admin.execute(
                "SELECT query FROM pg_stat_activity WHERE usename = 'agent_ro' AND state = 'active'"
            ).fetchall()
        return [query for (query,) in found]


@contextmanager
def workspace(root: Path) -> Iterator[Workspace]:
    """One workspace, so that its PostgreSQL starts and loads once; stopped at the end."""
    let_enter(root)
    try:
        yield Workspace(root)
    finally:
        embedded.stop(root)
