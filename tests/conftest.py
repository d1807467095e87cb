"""What all tests share: where the real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real documents and dumps, named by OKF_TEST_DATA."""
    folder = os.environ.get("OKF_TEST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OKF_TEST_DATA does not name a folder with the real documents and dumps")
    return Path(folder)
