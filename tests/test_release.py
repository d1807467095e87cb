"""What a wheel holds, and what somebody meets who installed it: outside of a checkout, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from okf_agent.setup import demo

ROOT = Path(__file__).parents[1]
COMPILED = (".pyc", ".pyo")
NEXT = "`okf-agent init --demo` puts the demo shop into "


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked: a folder for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def call(installed: Path, empty: Path, command: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = command.split()
    entry = {"okf-agent": "agent", "okf-compiler": "compiler"}[program]
    code = f"import sys; from okf_compiler.launch import {entry}; sys.argv[:] = {[program, *arguments]}; {entry}()"
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    env = keyless | {"PYTHONPATH": str(installed), "COLUMNS": "200", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=empty, env=env, stdin=subprocess.DEVNULL,
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip


def test_a_wheel_holds_the_packages_whole_the_demo_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    packages = [path for package in ("okf_agent", "okf_compiler") for path in (ROOT / package).rglob("*")]
    ours = {path.relative_to(ROOT).as_posix() for path in packages if path.is_file() and path.suffix not in COMPILED}
    assert {name for name in names if not name.startswith("okf_agent/demo/")} == ours
    suffixes = {Path(name).suffix for name in ours}
    assert {".py", ".md", ".yaml", ".json", ".txt", ".j2", ".css", ".js"} <= suffixes


def test_the_demo_is_what_the_repository_has(wheel: Path) -> None:
    archive, prefix = zipfile.ZipFile(wheel), "okf_agent/demo/"
    held = {name.removeprefix(prefix): name for name in archive.namelist() if name.startswith(prefix)}
    assert all((ROOT / name).read_bytes() == archive.read(inside) for name, inside in held.items())
    wanted = set()
    for name in demo.CONTENTS:
        files = [path for path in (ROOT / name).rglob("*") if path.is_file()] or [ROOT / name]
        wanted |= {path.relative_to(ROOT).as_posix() for path in files}
    made = {name for name in wanted if name.endswith(".py") or "cache" in name}
    assert set(held) == wanted - made
    assert "config.yaml" not in held, "a checkout's own may name an address or a key's variable"
    # Where its readers look for it, and far from what a model can read.
    assert [name for name in held if "gold" in name] == ["data/shop/gold.jsonl"]


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("okf-agent", 2, NEXT),
        ("okf-agent ask --task shop_1", 2, NEXT),
        ("okf-agent ask --db shop hello", 2, NEXT),
        ("okf-agent prepare --all", 2, NEXT),
        ("okf-agent doctor", 0, NEXT),
        ("okf-agent eval list", 0, "not here: `okf-agent init --demo`"),
        ("okf-compiler compile shop", 2, NEXT),
        ("okf-compiler compile all", 2, NEXT),
        ("okf-agent init --demo shop", 2, "--demo takes no database"),
    ],
)
def test_an_empty_folder_says_the_next_step(installed: Path, empty: Path, command: str, status: int, said: str) -> None:
    done = call(installed, empty, command)
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in empty.iterdir()} <= {"runs"}, "no server is started where there is nothing to load"


def test_the_demo_makes_a_workspace_that_works_and_keeps_what_is_edited(installed: Path, empty: Path) -> None:
    (empty / "config.yaml").write_text("agent: {max_steps: 7}\n", encoding="utf-8")
    first, again = (call(installed, empty, "okf-agent init --demo") for _ in range(2))
    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert "config.yaml" not in first.stdout and "data/shop" in first.stdout
    (empty / "config.yaml").rename(empty / "own.yaml")
    assert "config.yaml" in call(installed, empty, "okf-agent init --demo").stdout
    assert (empty / "config.yaml").read_bytes() == demo.CONFIG.read_bytes()
    (empty / "own.yaml").replace(empty / "config.yaml")
    assert "already" in again.stdout and "Next: okf-agent ask" in again.stdout
    assert (empty / "config.yaml").read_text("utf-8") == "agent: {max_steps: 7}\n"
    assert not [*empty.rglob("*.partial")] and not [*empty.rglob("*.py")]
    assert call(installed, empty, "okf-compiler compile shop --check").returncode == 0
    assert str(empty / "data" / "shop") in call(installed, empty, "okf-agent eval list").stdout
    assert "# " in call(installed, empty, "okf-agent read shop /index.md").stdout
