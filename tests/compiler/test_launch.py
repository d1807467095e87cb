from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


def run(command: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    code = f"from okf_compiler.launch import {command}; import sys; sys.argv[1:] = ['--help']; {command}()"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    # Not from the repository: Python looks into the current folder first, where ours lies.
    folder = paths[0] if paths else Path(tempfile.gettempdir())
    call = [sys.executable, "-c", code]
    return subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with a package of the shape that PyPI's okf-agent has."""
    (tmp_path / "okf_agent").mkdir()
    (tmp_path / "okf_agent/__init__.py").write_text('__version__ = "0.1.0"\n', encoding="utf-8")
    return tmp_path


def test_a_foreign_module_stops_the_agent_with_the_remedy(foreign: Path) -> None:
    result = run("agent", foreign)
    assert result.returncode == 1
    assert str(foreign) in result.stderr
    assert "pip uninstall okf-agent" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_compiler_works_beside_it_and_warns(foreign: Path) -> None:
    result = run("compiler", foreign)
    assert result.returncode == 0
    assert "warning: Another package's okf_agent" in result.stderr
    assert "compile" in result.stdout


def test_ours_starts() -> None:
    result = run("agent")
    assert (result.returncode, result.stderr) == (0, "")
