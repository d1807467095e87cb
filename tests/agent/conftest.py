"""A workspace of the shop, for the tests that go through the command line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from support.workspace import Workspace
from support.workspace import workspace as make


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One for a file, so that its PostgreSQL starts and loads once."""
    with make(tmp_path_factory.mktemp("workspace")) as made:
        yield made


@pytest.fixture
def workspace(shared: Workspace) -> Workspace:
    """The same, without records of earlier tests."""
    shutil.rmtree(shared.root / "runs", ignore_errors=True)
    shared.roots = []
    return shared
