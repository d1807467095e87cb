"""Time the start: both helps with what they import, and the prompt of a workspace that has been used before.

    python benchmarks/startup.py

Targets: help at most 0.3 s, prompt ready at most 1 s.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pexpect

AGENT = Path(sys.executable).parent / "okf-agent"
COMPILER = Path(sys.executable).parent / "okf-compiler"
SHOP = Path(__file__).parents[1] / "data" / "shop"
ROUNDS = 9


def main() -> None:
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {ROUNDS} rounds")
    for program in (AGENT, COMPILER):
        report(f"{program.name} --help", [seconds(program, "--help") for _ in range(ROUNDS)])
        print(f"{'':<22} of it imports: {', '.join(slowest_imports(program))}")
    root = Path(tempfile.mkdtemp(prefix="okf-benchmark-"))
    root.chmod(0o755)
    try:
        shutil.copytree(SHOP, root / "data" / "shop")
        (root / "config.yaml").write_text("model: {name: openai/none, api_base: 'http://127.0.0.1:9/v1'}\n")
        subprocess.run([AGENT, "sql", "shop", "SELECT 1"], cwd=root, check=True, capture_output=True)  # the first use
        report("the prompt is ready", [seconds_at_terminal(root) for _ in range(ROUNDS)])
        report("one query by hand", [seconds(AGENT, "sql", "shop", "SELECT 1", cwd=root) for _ in range(ROUNDS)])
    finally:
        from okf_agent.engines import embedded

        embedded.stop(root)
        shutil.rmtree(root)


def slowest_imports(program: Path, count: int = 4) -> list[str]:
    """The packages that take longest of what `--help` imports, each with its milliseconds, those below included."""
    command = [sys.executable, "-X", "importtime", str(program), "--help"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found = re.findall(r"\|\s+(\d+) \| +([a-z_0-9]+)$", said, re.M)
    slowest = sorted(((int(taken) / 1000, name) for taken, name in found), reverse=True)[:count]
    return [f"{name} {taken:.0f} ms" for taken, name in slowest]


def seconds(program: Path, *arguments: str, cwd: Path | None = None) -> float:
    """From starting a program until it has ended."""
    start = time.perf_counter()
    subprocess.run([program, *arguments], cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def seconds_at_terminal(cwd: Path) -> float:
    """From starting okf-agent at a pseudo-terminal until its editor takes input."""
    start = time.perf_counter()
    child = pexpect.spawn(str(AGENT), cwd=str(cwd), dimensions=(40, 100), env={**os.environ, "TERM": "xterm"})
    child.expect_exact("shop (bundle)>")
    taken = time.perf_counter() - start
    child.close(force=True)
    return taken


def report(what: str, taken: list[float]) -> None:
    print(f"{what:<22} median {statistics.median(taken):.3f} s, worst {max(taken):.3f} s")


if __name__ == "__main__":
    main()
