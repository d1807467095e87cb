"""One shop for all tests of the server, prepared once, each test with records of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from support.command import run_inside
from support.workspace import Workspace
from support.workspace import workspace as make


@pytest.fixture(scope="session")
def shared_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(tmp_path_factory.mktemp("mcp")) as made:
        made.configure("http://127.0.0.1:1/v1")
        prepared = run_inside("prepare", "shop", cwd=made.root)
        assert prepared.returncode == 0, prepared.stderr
        yield made


@pytest.fixture
def shop(shared_shop: Workspace) -> Workspace:
    shutil.rmtree(shared_shop.root / "runs", ignore_errors=True)
    shared_shop.configure("http://127.0.0.1:1/v1")
    return shared_shop
