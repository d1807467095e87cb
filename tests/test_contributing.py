"""CONTRIBUTING.md names files that are there, and commits that touched them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if re.search(r"`[0-9a-f]{7}`", line)]
PATH = r"`([\w.-]+/[\w./-]*|[\w-]+\.\w+|\.env\.example)`"


def test_every_path_is_there() -> None:
    paths = [*re.findall(PATH, PAGE), *re.findall(r"\]\((\w[\w./-]*)\)", PAGE)]
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_commit_touched_what_is_said(row: str) -> None:
    proof = row.split("|")[-2]
    for part in proof.split("; "):
        commit = re.findall(r"`([0-9a-f]{7})`", part)[0]
        show = ["git", "show", "--name-only", "--format=", commit]
        done = subprocess.run(show, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{commit} is not here: a source distribution, or a clone without its history")
        # Files have moved since, and modules lost their prefix: cli_init.py is init.py now.
        touched = [PurePosixPath(line) for line in done.stdout.splitlines()]
        for path in map(PurePosixPath, re.findall(PATH, part)):
            found = (one for one in touched if path in one.parents or one.stem.endswith(path.stem))
            assert any(one.suffix == path.suffix or not path.suffix for one in found), f"{commit}: {path}"
