"""The real command lines: in a process of their own, or inside this one, which saves the seconds of its start."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

from okf_agent.commands.cli import commands
from okf_agent.models.providers import PROVIDERS
from okf_compiler import console

SCRIPTS = Path(sys.executable).parent


def run(
    command: str, *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `okf-agent` or `okf-compiler` in `cwd`, with no provider's key in the environment but those of `env`."""
    keys = {p.key for p in PROVIDERS}
    clean = {name: value for name, value in os.environ.items() if name not in keys}
    return subprocess.run(
        [str(SCRIPTS / command), *map(str, arguments)],
        cwd=cwd,
        env=clean | {"COLUMNS": "100", "PYTHONUTF8": "1", **(env or {})},
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def run_inside(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `okf-agent` as its entry point does, in this process, with standard streams of its own (no terminal)."""
    streams = [io.TextIOWrapper(io.BytesIO((text or "").encode()), encoding="utf-8")]
    streams += [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    clean = {name: value for name, value in os.environ.items() if name not in {p.key for p in PROVIDERS}}
    status = 0
    with _inside(streams, [str(a) for a in arguments], cwd, clean | {"COLUMNS": "100", **(env or {})}):
        try:
            console.run(commands)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
    said = []
    for stream in streams[1:]:
        stream.flush()
        assert isinstance(stream.buffer, io.BytesIO)
        said.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(["okf-agent", *map(str, arguments)], status, *said)


@contextlib.contextmanager
def _inside(streams: list[io.TextIOWrapper], arguments: list[str], cwd: Path, env: Mapping[str, str]) -> Iterator[None]:
    before = Path.cwd()
    names = dict(zip(("stdin", "stdout", "stderr"), streams, strict=True))
    with patch.dict(os.environ, env, clear=True), patch.multiple(sys, argv=["okf-agent", *arguments], **names):
        os.chdir(cwd)
        try:
            yield
        finally:
            os.chdir(before)
