"""How many questions the embedded local model answers, through the real path: the shop's, or Defog's.

    python benchmarks/local_model.py [--suite shop|defog] [--every even|odd|all] [--no PART] [--details]

`defog` asks the 81 questions about restaurants, geography and ewallet that can be answered; its folder lies where
OKF_TEST_DATA points. Questions of one database come after each other.

Documents -> bundle and profile -> pack -> local model -> embedded PostgreSQL, as `okf-agent ask` does it. An answer is
right (strict) if it gives the gold query's rows: the same columns in the same order, rows in order where gold says that
order matters, numbers within 0.0001 of each other or a millionth of their size; a question that cannot be answered is
right if no SQL is given. Lenient also takes other column orders, columns too many, and rows in another order.
Prompts were worded on restaurants and on the shop's even-numbered questions; read the others as the fair figure.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from okf_agent.ask import Asked, Workspace, ask
from okf_agent.cell import Cell, cell_from
from okf_agent.config import Config, load_config
from okf_agent.engines import embedded, reach
from okf_agent.engines.connection import connect_agent
from okf_agent.evaluation import gold, suites
from okf_agent.evaluation.scorers import defog
from okf_agent.evaluation.suites import Suite, Task, databases
from okf_agent.models import local_model
from okf_agent.models.weights import cache_folder
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.profiling.run import profile

DATABASES = {"shop": ("shop",), "defog": ("restaurants", "geography", "ewallet")}
SWITCHES = ("profiles", "rules", "values", "repair")
MAX_ROWS = 5000
ROOT = Path(__file__).parent.parent
SPEED_PROMPT = "CREATE TABLE orders (order_id integer, placed_at timestamp, total numeric);\n" * 30

Row = tuple[float | str | None, ...]


@dataclass(frozen=True)
class Score:
    database: str
    number: int
    """Of the question in its database, from 1."""
    verdict: str
    """strict, lenient or wrong."""
    seconds: float
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    checked: str
    sql: str

    def details(self, task_id: str) -> str:
        return f"{task_id}: {self.verdict}, {self.checked}, {self.calls} calls, {self.seconds:.0f} s\n    {self.sql!r}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", choices=("shop", "defog"), default="shop")
    parser.add_argument("--db", action="append", default=[], help="only this database; may be given more than once")
    parser.add_argument("--every", choices=("even", "odd", "all"), default="all")
    parser.add_argument("--no", action="append", default=[], choices=SWITCHES, help="switch a part of the pack off")
    parser.add_argument("--details", action="store_true", help="print each question's verdict and SQL")
    options = parser.parse_args()
    cell = cell_from({"model": "local", "knowledge": "pack", **dict.fromkeys(options.no, False)})
    with tempfile.TemporaryDirectory(prefix="okf-bench-", ignore_cleanup_errors=True) as folder:
        suite, config = _configured(options.suite, Path(folder))
        with Workspace(config) as workspace:
            begin = time.monotonic()
            workspace.model("local")
            print(f"model ready: {time.monotonic() - begin:.1f} s")
            scores = _scores(workspace, suite, cell, options)
            with local_model.serve() as api_base:
                speed = _speed(api_base)
        embedded.stop(config.settings.root)
    _report(scores)
    print(speed)
    print(f"machine: {platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}")


def _configured(name: str, folder: Path) -> tuple[Suite, Config]:
    """The suite, and a workspace of its own for it, so that bundles and profiles are made anew."""
    roots = [str(ROOT / "data")] + ([os.environ["OKF_TEST_DATA"]] if "OKF_TEST_DATA" in os.environ else [])
    (folder / "config.yaml").write_text(json.dumps({"agent": {"raw_docs": roots}}), encoding="utf-8")
    config = load_config(folder)
    suite = suites.load(name, config)
    return suite, databases.configured(suite, config)


def _scores(workspace: Workspace, suite: Suite, cell: Cell, options: argparse.Namespace) -> list[Score]:
    """The questions of one database after the other, so that the server need not read its tables again."""
    answers = gold.load(suite)
    wanted = options.db or DATABASES[suite.name]
    scores = []
    for name in wanted:
        asked = [task for task in suite.tasks if task.database == name and _is_asked(answers[task.id], suite)]
        _profile(workspace, name)
        for number, task in enumerate(asked, start=1):
            if options.every == "all" or (options.every == "even") == (number % 2 == 0):
                scores.append(_score(workspace, task, number, answers[task.id], cell))
                if options.details:
                    print(scores[-1].details(task.id), flush=True)
    return scores


def _is_asked(answer: gold.Gold, suite: Suite) -> bool:
    """All questions of the shop; Defog's that can be answered."""
    return answer.answerable or suite.name == "shop"


def _profile(workspace: Workspace, name: str) -> None:
    """Measure the data as `okf-compiler profile` does, with the role that can only read."""
    workspace.ready(name, _quiet)
    config = workspace.config
    with connect_agent(reach(config), name) as connection:
        profile(connection, name, config.settings.profiles / name)


def _score(workspace: Workspace, task: Task, number: int, answer: gold.Gold, cell: Cell) -> Score:
    begin = time.monotonic()
    outcome = ask(Asked(task.question, task.database, task.id), cell, workspace, _quiet, _quiet)
    seconds = time.monotonic() - begin
    tally = outcome.run.tally
    database = workspace.ready(task.database, _quiet).database
    assert database, "the suites' databases have content"
    sql = tally.answer.sql if tally.answer else ""
    return Score(
        task.database,
        number,
        judge(database, sql, answer),
        seconds,
        tally.llm_calls,
        tally.input_tokens or 0,
        tally.cached_tokens,
        tally.output_tokens or 0,
        tally.answer.checked if tally.answer else outcome.run.error or outcome.run.stop_reason,
        sql,
    )


def _quiet(_: object) -> None:
    pass


def judge(database: Database, sql: str, answer: gold.Gold) -> str:
    """strict, lenient or wrong; the best that any of the gold's alternatives gives."""
    if not answer.answerable:
        return "wrong" if sql else "strict"
    try:
        given = _rows(database, sql)
    except QueryError:
        return "wrong"
    verdicts = {_compare(given, _rows(database, each), answer.ordered) for each in defog.alternatives(answer)}
    return next(verdict for verdict in ("strict", "lenient", "wrong") if verdict in verdicts)


def _compare(given: Sequence[Row], right: Sequence[Row], ordered: bool) -> str:
    if _same(given, right, ordered):
        return "strict"
    width, wanted = len(given[0]) if given else 0, len(right[0]) if right else 1
    for order in itertools.permutations(range(width), wanted) if wanted <= width <= 7 else ():
        if _same([tuple(row[i] for i in order) for row in given], right, ordered=False):
            return "lenient"
    return "wrong"


def _rows(database: Database, sql: str) -> list[Row]:
    return [tuple(map(_value, row)) for row in database.run(sql, max_rows=MAX_ROWS).rows] if sql else []


def _value(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _same(answer: Sequence[Row], right: Sequence[Row], ordered: bool) -> bool:
    if len(answer) != len(right):
        return False
    if not ordered:
        answer, right = sorted(answer, key=_sort_key), sorted(right, key=_sort_key)
    return all(len(a) == len(b) and all(map(_close, a, b)) for a, b in zip(answer, right, strict=True))


def _sort_key(row: Row) -> list[tuple[bool, str, float, str]]:
    return [
        (v is None, type(v).__name__, round(v, 3) if isinstance(v, float) else 0.0, v if isinstance(v, str) else "")
        for v in row
    ]


def _close(a: float | str | None, b: float | str | None) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= max(1e-4, 1e-6 * abs(b))
    return a == b


def _report(scores: Sequence[Score]) -> None:
    names = dict.fromkeys(score.database for score in scores)
    for label, chosen in (
        *((name, [s for s in scores if s.database == name]) for name in names),
        ("even", [s for s in scores if s.number % 2 == 0]),
        ("odd", [s for s in scores if s.number % 2]),
        ("all", list(scores)),
    ):
        strict = sum(s.verdict == "strict" for s in chosen)
        lenient = strict + sum(s.verdict == "lenient" for s in chosen)
        print(f"{label}: {strict} of {len(chosen)} right (strict), {lenient} lenient")
    seconds = [s.seconds for s in scores]
    print(f"seconds a question: median {statistics.median(seconds):.1f}, largest {max(seconds):.1f}")
    print(
        f"tokens a question: {statistics.mean(s.input_tokens for s in scores):.0f} in "
        f"({statistics.mean(s.cached_tokens for s in scores):.0f} cached), "
        f"{statistics.mean(s.output_tokens for s in scores):.0f} out; "
        f"{sum(s.calls > 1 for s in scores)} of {len(scores)} were sent back once"
    )


def _speed(api_base: str) -> str:
    """Tokens a second as the server itself counts them, and its memory where the system tells."""
    question = {"messages": [{"role": "user", "content": SPEED_PROMPT}], "max_tokens": 64, "temperature": 0}
    request = urllib.request.Request(
        api_base + "/chat/completions", json.dumps(question).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as reply:
        timings = json.load(reply)["timings"]
    memory = ""
    for state in (cache_folder() / "server").glob("*.json"):
        status = Path(f"/proc/{json.loads(state.read_text(encoding='utf-8'))['pid']}/status")
        if status.is_file():
            peak = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
            memory = f", {int(peak.split()[1]) / 1e6:.2f} GB at most"
    return (
        f"speed: {timings['prompt_per_second']:.0f} prompt tokens/s, "
        f"{timings['predicted_per_second']:.0f} generated tokens/s{memory}; load {_load()}"
    )


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    main()
