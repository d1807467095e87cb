"""CONTRIBUTING.md names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PATH = r"`([\w.-]+/[\w./-]*|[\w-]+\.\w+|\.env\.example)`"


def test_every_path_is_there() -> None:
    paths = [*re.findall(PATH, PAGE), *re.findall(r"\]\((\w[\w./-]*)\)", PAGE)]
    assert len(paths) > 25
    assert [path for path in paths if not (ROOT / path).exists()] == []
