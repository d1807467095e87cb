"""A folder in which nobody may write, as a mounted workspace is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write in the folder: an ordinary user by its rights, root by a mount that is taken away again."""
    if os.geteuid() == 0:
        if subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode:
            pytest.skip("root writes everywhere, and may not mount here")
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
            yield
        finally:
            subprocess.run(["umount", folder], check=True)
        return
    places = [folder, *(place for place in folder.rglob("*") if place.is_dir())]
    for place in places:
        place.chmod(0o555)
    try:
        yield
    finally:
        for place in places:
            place.chmod(0o755)
