"""How many of the shop's questions the embedded local model answers, through the real path.

    python benchmarks/local_model.py [--every even|odd|all] [--details]

Documents -> bundle -> pack -> local model -> embedded PostgreSQL, as `okf-agent ask` does it. An answer is right
(strict) if it gives gold.jsonl's rows: the same columns in the same order, rows in order where gold says that order
matters, numbers within 0.0001 of each other or a millionth of their size; a question that cannot be answered is
right if no SQL is given. Lenient also takes other column orders, columns too many, and rows in another order.
Prompts were worded on the even-numbered questions alone; read the odd ones as the fair figure.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from okf_agent import local_model
from okf_agent.ask import Asked, Workspace, ask
from okf_agent.cell import Cell
from okf_agent.config import load_config
from okf_agent.database import Database
from okf_agent.query_error import QueryError
from okf_agent.tasks import list_tasks
from okf_agent.weights import cache_folder

DATABASE = "shop"
MAX_ROWS = 5000
ROOT = Path(__file__).parent.parent
SPEED_PROMPT = "CREATE TABLE orders (order_id integer, placed_at timestamp, total numeric);\n" * 30

Row = tuple[float | str | None, ...]


@dataclass(frozen=True)
class Score:
    number: int
    verdict: str
    """strict, lenient or wrong."""
    seconds: float
    calls: int
    input_tokens: int
    output_tokens: int
    checked: str
    sql: str


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", choices=("even", "odd", "all"), default="all")
    parser.add_argument("--details", action="store_true", help="print each question's verdict and SQL")
    options = parser.parse_args()
    config = load_config(ROOT)
    with tempfile.TemporaryDirectory(prefix="okf-bench-") as runs:
        config = replace(config, agent=config.agent.model_copy(update={"runs": Path(runs)}))
        with Workspace(config) as workspace:
            begin = time.monotonic()
            workspace.model("local")
            print(f"model ready: {time.monotonic() - begin:.1f} s")
            scores = _scores(workspace, options.every, options.details)
            with local_model.serve() as api_base:
                speed = _speed(api_base)
    _report(scores)
    print(speed)
    print(f"machine: {platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}")


def _scores(workspace: Workspace, every: str, details: bool) -> list[Score]:
    gold = {g["instance_id"]: g for g in map(json.loads, (ROOT / "data/shop/gold.jsonl").open(encoding="utf-8"))}
    scores = []
    for id, task in list_tasks(workspace.config.settings).items():
        number = int(id.rpartition("_")[2]) if id in gold else 0
        if not number or (every != "all" and (every == "even") == bool(number % 2)):
            continue
        begin = time.monotonic()
        outcome = ask(Asked(task.question, DATABASE, id), Cell("local", "pack"), workspace, _quiet, _quiet)
        tally = outcome.run.tally
        database = workspace.ready(DATABASE, _quiet).database
        assert database, "the shop has content"
        sql = tally.answer.sql if tally.answer else ""
        score = Score(
            number,
            judge(database, sql, gold[id]),
            time.monotonic() - begin,
            tally.llm_calls,
            tally.input_tokens,
            tally.output_tokens,
            tally.answer.checked if tally.answer else outcome.run.error or outcome.run.stop_reason,
            sql,
        )
        scores.append(score)
        if details:
            print(
                f"{id}: {score.verdict}, {score.checked}, {score.calls} calls, {score.seconds:.0f} s\n    {sql!r}",
                flush=True,
            )
    return scores


def _quiet(_: object) -> None:
    pass


def judge(database: Database, sql: str, gold: dict[str, Any]) -> str:
    """strict, lenient or wrong."""
    if gold["declined"]:
        return "wrong" if sql else "strict"
    try:
        answer = _rows(database, sql)
    except QueryError:
        return "wrong"
    right = _rows(database, gold["sol_sql"][0])
    if _same(answer, right, gold["order"]):
        return "strict"
    width, wanted = len(answer[0]) if answer else 0, len(right[0])
    for order in itertools.permutations(range(width), wanted) if wanted <= width <= 7 else ():
        if _same([tuple(row[i] for i in order) for row in answer], right, ordered=False):
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
    for name, chosen in (
        ("even", [s for s in scores if s.number % 2 == 0]),
        ("odd", [s for s in scores if s.number % 2]),
        ("all", list(scores)),
    ):
        strict = sum(s.verdict == "strict" for s in chosen)
        lenient = strict + sum(s.verdict == "lenient" for s in chosen)
        print(f"{name}: {strict} of {len(chosen)} right (strict), {lenient} lenient")
    seconds = [s.seconds for s in scores]
    print(f"seconds a question: median {statistics.median(seconds):.1f}, largest {max(seconds):.1f}")
    print(
        f"tokens a question: {statistics.mean(s.input_tokens for s in scores):.0f} in, "
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
