"""What all tests share: where the real data lies, and a PostgreSQL."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from okf_agent.engines import Server, embedded


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real documents and dumps, named by OKF_TEST_DATA."""
    folder = os.environ.get("OKF_TEST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OKF_TEST_DATA does not name a folder with the real documents and dumps")
    return Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL of the tests' own, stopped at the end: databases made in it should have names of their own."""
    root = Path(tempfile.mkdtemp(prefix="okf-tests-"))
    root.chmod(0o755)  # run by root, the server's account must enter it
    try:
        yield embedded.start(root, "agent_ro")
    finally:
        embedded.stop(root)
        shutil.rmtree(root)
