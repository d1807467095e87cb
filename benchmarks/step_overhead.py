"""Time what is our own in a run: the work of a step, the start to the first model request, many runs at once.

    python benchmarks/step_overhead.py

Targets: our own work at most 5 ms a step at the median, over 15 steps and 60,000 tokens; the first request at most
0.5 s later than `import litellm` alone takes; 32 runs at once over a slow endpoint at most 1.2 times as long as one.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.endpoint import Endpoint, Scripted, calls, submit  # noqa: E402

from okf_agent import agent  # noqa: E402
from okf_agent.clock import today  # noqa: E402
from okf_agent.config import ModelSection, TraceSection  # noqa: E402
from okf_agent.engines import embedded  # noqa: E402
from okf_agent.events import Event, StepStarted  # noqa: E402
from okf_agent.knowledge import Sources, prepare  # noqa: E402
from okf_agent.llm import Model  # noqa: E402
from okf_agent.records import trace  # noqa: E402
from okf_agent.run import Limits, Question  # noqa: E402
from okf_agent.tools import Context  # noqa: E402

STEPS = 15
FILE_CHARS = 16_000
"""Of one file, about 4,000 tokens: 15 steps read about 60,000."""
ROUNDS = 3
RUNS = 32
SLOW_SECONDS = 3.0
"""Before each reply of the slow endpoint; a run asks it three times."""


def main() -> None:
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {sys.version.split()[0]}")
    folder = Path(tempfile.mkdtemp(prefix="okf-benchmark-"))
    folder.chmod(0o755)
    try:
        bundle = write_bundle(folder / "bundle")
        steps = [step for _ in range(ROUNDS) for step in own_seconds(bundle, folder / "runs")]
        for name, seconds in zip(("by the clock", "of the processor"), zip(*steps, strict=True), strict=True):
            print(f"our own work in a step, {name}: median {ms(statistics.median(seconds))}, worst {ms(max(seconds))}")
        alone = statistics.median(import_seconds() for _ in range(ROUNDS))
        shutil.copytree(ROOT / "data" / "shop", folder / "workspace" / "data" / "shop")
        first_request_seconds(folder)  # the first use compiles and loads
        first = statistics.median(first_request_seconds(folder) for _ in range(ROUNDS))
        print(f"import litellm {alone:.2f} s, start to the first request {first:.2f} s: {first - alone:+.2f} s")
        at_once(bundle, folder / "runs", 2)  # nothing is imported or opened for the first time below
        one = at_once(bundle, folder / "runs", 1)
        many = at_once(bundle, folder / "runs", RUNS)
        print(f"one slow run {one:.2f} s, {RUNS} at once {many:.2f} s: {many / one:.2f} times")
    finally:
        embedded.stop(folder / "workspace")
        shutil.rmtree(folder)


def write_bundle(bundle: Path) -> Path:
    """A bundle of files that are long enough for the conversation wanted."""
    (bundle / "tables").mkdir(parents=True)
    links = []
    for number in range(STEPS):
        words = f"column_{number} holds {number}.5 of rule {number * 7}, see table_{number}. "
        text = f"---\ntype: PostgreSQL Table\ntitle: t{number}\ndescription: d\n---\n# Schema\n{words * 400}"
        (bundle / "tables" / f"t{number}.md").write_text(text[:FILE_CHARS], encoding="utf-8")
        links.append(f"* [t{number}](/tables/t{number}.md) - d")
    (bundle / "index.md").write_text("# Tables\n" + "\n".join(links) + "\n", encoding="utf-8")
    return bundle


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def own_seconds(bundle: Path, runs: Path) -> list[tuple[float, float]]:
    """Our own seconds in each step of one run: by the clock, all but what passes inside litellm.completion; and of
    the processor, in this thread, which waits while another one calls LiteLLM. On a busy machine only these count.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")
    inside: list[float] = []
    marks: list[tuple[float, float, float]] = []
    complete = litellm.completion

    def timed(**request: Any) -> Any:
        begin = time.perf_counter()
        try:
            return complete(**request)
        finally:
            inside.append(time.perf_counter() - begin)

    def on_event(event: Event) -> None:
        if isinstance(event, StepStarted):
            marks.append((time.perf_counter(), sum(inside), time.thread_time()))

    script = [calls(("read_file", {"paths": [f"/tables/t{number}.md"]})) for number in range(STEPS - 1)]
    litellm.completion = timed
    try:
        with Endpoint([*script, submit("SELECT 1", "One.")]) as endpoint:
            run(endpoint, bundle, runs, on_event)
    finally:
        litellm.completion = complete
    marks.append((time.perf_counter(), sum(inside), time.thread_time()))
    return [((b[0] - a[0]) - (b[1] - a[1]), b[2] - a[2]) for a, b in pairwise(marks)]


def run(endpoint: Endpoint, bundle: Path, runs: Path, on_event: Callable[[Event], None] = lambda _: None) -> None:
    """One recorded run over the endpoint, about a database without content."""
    header = trace.Header(database="d", model="openai/scripted", question="How many?", mode="bundle")
    with trace.Recorder(runs, header, TraceSection()) as recorder:

        def both(event: Event) -> None:
            recorder.on_event(event)
            on_event(event)

        done = agent.run(
            Question("How many?", "d", today(None, None)),
            prepare("bundle", "How many?", Sources("d", bundle=bundle)),
            Model(ModelSection(name="openai/scripted", api_base=endpoint.url)),
            Context(bundle=bundle),
            Limits(max_steps=STEPS),
            both,
        )
        recorder.finish(done)
    assert done.stop_reason == "submitted", done.error


def import_seconds() -> float:
    begin = time.perf_counter()
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    subprocess.run([sys.executable, "-c", "import litellm"], check=True, env=environment)
    return time.perf_counter() - begin


def first_request_seconds(folder: Path) -> float:
    """From starting `okf-agent ask`, in a workspace that was used before, to the first request at the endpoint."""
    arrived: list[float] = []

    class Clock(Endpoint):
        def _next(self, body: dict[str, Any], headers: dict[str, str]) -> Scripted:
            arrived.append(time.perf_counter())
            return super()._next(body, headers)

    workspace = folder / "workspace"
    with Clock([submit("SELECT 1", "One.")], forever=True) as endpoint:
        config = {"model": {"name": "openai/scripted", "api_base": endpoint.url}}
        (workspace / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        begin = time.perf_counter()
        command = [str(Path(sys.executable).parent / "okf-agent"), "ask", "How many?", "--db", "shop"]
        done = subprocess.run(command, cwd=workspace, check=False, capture_output=True)
    if not arrived:
        raise SystemExit(done.stderr.decode())
    return arrived[0] - begin


def at_once(bundle: Path, runs: Path, count: int) -> float:
    """Seconds until `count` runs that began together have ended; each asks a slow endpoint three times."""
    step = [("read_file", {"paths": ["/tables/t1.md"]}), ("read_file", {"paths": ["/tables/t2.md"]})]
    script = [calls(step[0], delay=SLOW_SECONDS), calls(step[1], delay=SLOW_SECONDS)]
    last = submit("SELECT 1", "One.")
    script.append(Scripted(last.body, delay=SLOW_SECONDS))

    def one() -> None:
        with Endpoint(script) as endpoint:
            run(endpoint, bundle, runs)

    threads = [threading.Thread(target=one) for _ in range(count)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
