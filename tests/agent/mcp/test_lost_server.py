"""The embedded PostgreSQL dies under a server that runs: it is started again, and clients see one failure at most."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.command import run_inside
from support.mcp_lines import Lines, started
from support.mcp_server import wait_until
from support.workspace import workspace


def rows(client: Lines, id: int) -> bool:
    client.call("run_sql", {"sql": "SELECT count(*) FROM customers"}, id)
    return not client.answer(id)["result"]["isError"]


@pytest.mark.slow
def test_a_killed_postmaster_is_started_again(tmp_path: Path) -> None:
    with workspace(tmp_path) as shop:
        shop.configure("http://127.0.0.1:1/v1")
        assert run_inside("prepare", "shop", cwd=shop.root).returncode == 0
        with started(shop, "--no-ask") as client:
            client.hello()
            assert rows(client, 1)
            for turn in (1, 2):
                file = next((shop.root / ".okf").rglob("postmaster.pid"))
                postmaster = int(file.read_text(encoding="ascii").split("\n", 1)[0])
                os.kill(postmaster, signal.SIGKILL)
                wait_until(lambda pid=postmaster: not Path(f"/proc/{pid}").exists(), "it is dead")
                assert any([rows(client, 10 * turn), rows(client, 10 * turn + 1)])
                assert rows(client, 10 * turn + 2)
