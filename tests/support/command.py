"""The real command lines, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from okf_agent.providers import PROVIDERS

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
