"""Time compiling and validating every database of a data root, and say on which machine.

    OKF_TEST_DATA=DIR python benchmarks/compile_base_lite.py [ROOT]

ROOT is `$OKF_TEST_DATA/livesqlbench-base-lite` unless given. Starting the interpreter and importing is timed apart.
`--profile` prints where the time of the first compile goes.
"""

from __future__ import annotations

import cProfile
import os
import platform
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from needs import test_data

START = time.perf_counter()
from okf_compiler.compile import compile_database  # noqa: E402
from okf_compiler.documents import list_databases  # noqa: E402
from okf_compiler.readers import livesqlbench  # noqa: E402
from okf_compiler.settings import load_settings  # noqa: E402
from okf_compiler.validate import validate  # noqa: E402

IMPORTS = time.perf_counter() - START
ROUNDS = 5
Seconds = tuple[float, float]
"""By the clock, and of the processor."""


def main() -> None:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    root = Path(arguments[0]) if arguments else test_data() / "livesqlbench-base-lite"
    documents = list_databases(load_settings(root, {"agent": {"raw_docs": str(root.resolve())}}))
    out = Path(tempfile.mkdtemp(prefix="okf-benchmark-"))

    def compile_all() -> int:
        return sum(compile_database(livesqlbench.read(each), out / name).added for name, each in documents.items())

    def validate_all() -> int:
        return sum(len(validate(out / name)) for name in documents)

    try:
        if "--profile" in sys.argv:
            with cProfile.Profile() as profile:
                compile_all()
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
            return
        print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
        print(f"{len(documents)} databases in {root}; imports {IMPORTS:.2f} s; {ROUNDS} rounds:")
        fresh: list[Seconds] = []
        checked: list[Seconds] = []
        again: list[Seconds] = []
        for _ in range(ROUNDS):
            shutil.rmtree(out)
            fresh.append(timed(compile_all))
            checked.append(timed(validate_all))
            again.append(timed(compile_all))
        show("compile into an empty folder", fresh)
        show("validate", checked)
        show("compile and validate", [(a[0] + b[0], a[1] + b[1]) for a, b in zip(fresh, checked, strict=True)])
        show("compile again, nothing changed", again)
    finally:
        shutil.rmtree(out, ignore_errors=True)


def timed(work: Callable[[], int]) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def show(what: str, rounds: list[Seconds]) -> None:
    wall, cpu = sorted(r[0] for r in rounds), sorted(r[1] for r in rounds)
    middle = len(rounds) // 2
    print(f"  {what:<32} best {wall[0]:5.2f} s, median {wall[middle]:5.2f} s; processor {cpu[middle]:5.2f} s")


if __name__ == "__main__":
    main()
