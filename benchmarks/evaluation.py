"""Time and memory of an evaluation whose model answers at once: what is ours, and what the database takes.

    python benchmarks/evaluation.py [TASKS …]

Targets: 1,000 tasks in at most 60 s on two cores, the database included; memory flat from 100 to 10,000 tasks. One
cell, `bundle`; the model runs in a process of its own and hands its query in at once, for every tenth question after a
read and a query. PostgreSQL, the model and the runner share the cores.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import evaluations  # noqa: E402

from okf_agent.engines import embedded  # noqa: E402

COUNTS = (100, 1_000)
WORKERS = 4


def main() -> None:
    counts = [int(argument) for argument in sys.argv[1:]] or COUNTS
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {sys.version.split()[0]}")
    folder = Path(tempfile.mkdtemp(prefix="okf-benchmark-"))
    folder.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-m", "support.evaluations", "36000"]
    model = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        assert model.stdout is not None
        shutil.copytree(ROOT / "data" / "shop", folder / "data" / "shop")
        config = {"model": {"name": "openai/scripted", "api_base": model.stdout.readline().strip(), "retries": 0}}
        (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        evaluations.write_suite(folder / "many.jsonl", max(counts))
        measure(folder, 4)  # loads the database, compiles the bundle
        for count in counts:
            seconds, cpu, peak = measure(folder, count)
            print(
                f"{count:6,} tasks: {seconds:6.1f} s, {1000 * seconds / count:5.1f} ms each, {cpu:6.1f} s of processor "
                f"in the runner, at most {peak:.0f} MB; load {os.getloadavg()[0]:.1f}"
            )
    finally:
        model.kill()
        embedded.stop(folder)
        shutil.rmtree(folder)


def measure(folder: Path, count: int) -> tuple[float, float, float]:
    """Seconds by the clock, seconds of processor, and the peak of resident memory in MB, of one evaluation."""
    begin = time.perf_counter()
    name = f"n{count}-{time.monotonic_ns()}"
    options = ["--cells", "bundle", "--limit", str(count), "--workers", str(WORKERS), "--name", name]
    code = "from okf_agent.commands.cli import main; main()"
    command = [sys.executable, "-c", code, "eval", "run", "--suite", "many.jsonl", *options]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, encoding="utf-8")
    said = process.stderr.read() if process.stderr else ""
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(said)
    peak = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, peak


if __name__ == "__main__":
    main()
