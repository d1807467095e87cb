"""What several benchmarks need: a PostgreSQL of their own, and the folder of real documents and dumps."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from okf_agent.engines import Server


@contextmanager
def own_server() -> Iterator[tuple[Path, Server]]:
    """An embedded PostgreSQL and the workspace that it lies in, for as long as the block."""
    from okf_agent.engines import embedded  # here, since one benchmark times what imports take

    with tempfile.TemporaryDirectory(prefix="okf-bench-") as folder:
        root = Path(folder)
        root.chmod(0o755)  # run by root, the server's account must enter it
        try:
            yield root, embedded.start(root, "agent_ro")
        finally:
            embedded.stop(root)


def admin_of(server: Server) -> dict[str, Any]:
    """How its administrator connects."""
    assert server.admin is not None
    return dict(server.admin)


def test_data() -> Path:
    """The folder that OKF_TEST_DATA names; without it the benchmark ends, and says so."""
    if not (root := os.environ.get("OKF_TEST_DATA")):
        sys.exit("Set OKF_TEST_DATA to the folder with the benchmarks' documents (livesqlbench-base-lite/, …).")
    return Path(root)
