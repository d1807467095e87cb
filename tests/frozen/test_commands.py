"""What both command lines print: every help, the context of a question, and the records of scripted runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from support.command import run
from support.endpoint import Endpoint, Scripted, calls, submit, text
from support.frozen import hold
from support.workspace import ACTIVE, QUESTION, SQL, Workspace
from support.workspace import workspace as make

from okf_agent.cell import KNOWLEDGE
from okf_agent.commands.cli import commands as agent
from okf_compiler.cli import commands as compiler

QUESTIONS = {
    "shop": (QUESTION, "What is the return rate of each product category?", "Which regions lost revenue since 2024?"),
    "disaster": (
        "Which distribution hubs have the worst resource utilization ratio?",
        "How many operations need more than 30 % of their budget for transport?",
        "List the supplies by coordination effectiveness.",
    ),
    "museum": (
        "Which artifacts are at high conservation risk?",
        "What is the average humidity of showcases with a leak?",
        "How often was each exhibition hall's sensitivity exceeded?",
    ),
}
VOLATILE = {"run_id", "follows", "started_at", "versions", "bundle_hash", "at", "time", "pid", "time_zone"}
ZONE = re.compile(r"time zone is [\w/+-]+")
"""That of the machine that the test runs on."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(tmp_path_factory.mktemp("workspace")) as made:
        yield made


def every_command(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize("program", ["okf-agent", "okf-compiler"])
def test_help(program: str) -> None:
    group = {"okf-agent": agent, "okf-compiler": compiler}[program]
    texts = {}
    for path, _ in every_command(group, (program,)):
        shown = CliRunner().invoke(group, [*path[1:], "--help"], prog_name=program, terminal_width=100)
        assert shown.exit_code == 0, path
        texts[" ".join(path)] = shown.output
    hold(f"help_{program}", texts)


@pytest.mark.parametrize("name", QUESTIONS)
def test_context(shop: Workspace, request: pytest.FixtureRequest, name: str) -> None:
    shop.roots = [] if name == "shop" else [request.getfixturevalue("test_data") / "livesqlbench-base-lite"]
    texts = {}
    for number, question in enumerate(QUESTIONS[name], start=1):
        for mode in KNOWLEDGE:
            shown = shop.agent("context", question, "--db", name, "--knowledge", mode, script=[])
            assert shown.returncode == 0, shown.stderr
            texts[f"{mode} {number}"] = shown.stdout
    hold(f"context_{name}", texts, digests=True)


RUNS: dict[str, tuple[str, list[Scripted]]] = {
    "a bundle read": ("bundle", ACTIVE),
    "raw": ("raw", [calls(("run_sql", {"sql": SQL})), submit(SQL, "52 customers are active.")]),
    "a pack": ("pack", [text(f"```sql\n{SQL}\n```")]),
    "a pack repaired": ("pack", [text("```sql\nSELECT nothing FROM orders\n```"), text(f"```sql\n{SQL}\n```")]),
    "schema": ("schema", [submit("SELECT count(*) AS n FROM customers WHERE status = 'active'", "207 are active.")]),
    "searched": ("search", [calls(("search", {"query": "active customer"})), submit(SQL, "52.")]),
    "declined": ("bundle", [submit("", "Hello, ask me about the shop.")]),
    "errors on the way": (
        "bundle",
        [
            calls(("read_file", {"paths": ["/tables/none.md", "/tables/orders"]}), ("run_sql", {"sql": "SELECT x"})),
            calls(("run_sql", {"sql": "DELETE FROM orders"}), ("no_such_tool", {})),
            submit("SELECT count(*) FROM customers", "There are 9999."),
            submit("SELECT count(*) AS n FROM customers", "There are 9999."),
        ],
    ),
    "prose alone": ("bundle", [text("Let me think."), text("Still."), text("Hm."), submit("SELECT 1 AS one", "1")]),
}


@pytest.mark.parametrize("name", RUNS)
def test_records(shop: Workspace, name: str) -> None:
    mode, script = RUNS[name]
    shop.roots = []
    done = shop.agent("ask", QUESTION, "--db", "shop", "--knowledge", mode, script=script)
    assert done.returncode in (0, 1), done.stderr
    record = shop.records()[-1]
    steps = (shop.root / "runs" / "steps" / f"{record['run_id']}.jsonl").read_text(encoding="utf-8").splitlines()
    hold(f"record_{name.replace(' ', '_')}", {"record": shown(record)})
    texts = {f"step {number:02}": shown(json.loads(step)) for number, step in enumerate(steps, start=1)}
    hold(f"steps_{name.replace(' ', '_')}", texts, digests=True)


def shown(value: dict[str, Any]) -> str:
    return json.dumps(settled(value), indent=1, ensure_ascii=False, sort_keys=True)


def settled(value: Any) -> Any:
    """The value without what differs from run to run."""
    if isinstance(value, dict):
        return {k: "…" if k in VOLATILE or "seconds" in k else settled(v) for k, v in value.items()}
    if isinstance(value, list):
        return [settled(each) for each in value]
    return ZONE.sub("time zone is …", value) if isinstance(value, str) else value


@pytest.mark.slow
def test_verdicts_on_superhero(shop: Workspace, test_data: Path) -> None:
    from random import Random

    from support.mutations import mutations

    from okf_agent.evaluation.transpile import to_postgres

    gold = json.loads((test_data / "bird-superhero" / "questions.json").read_text(encoding="utf-8"))
    rng = Random(240)
    lines = []
    for task in gold:
        sql, _ = to_postgres(task["SQL"])
        changed = [query for _, query in mutations(sql, rng)]
        lines += [{"task_id": str(task["question_id"]), "sql": each} for each in (sql, *changed[:3])]
    file = shop.root / "predictions.jsonl"
    verdicts = []
    for number in range(4):  # a file has one prediction a task
        chosen: dict[str, list[dict[str, str]]] = {}
        for line in lines:
            chosen.setdefault(line["task_id"], []).append(line)
        rows = [each[number] for each in chosen.values() if len(each) > number]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        shop.roots = [test_data]
        with Endpoint([]) as endpoint:
            shop.configure(endpoint.url)
        out = shop.root / "verdicts.jsonl"
        done = run("okf-agent", "eval", "score", file, "--suite", "bird-superhero", "-o", out, cwd=shop.root)
        assert done.returncode == 0, done.stderr
        verdicts += [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    keep = ("task_id", "strict", "lenient")
    rows = [" ".join(str(verdict.get(key)) for key in keep) for verdict in verdicts]
    hold("verdicts_superhero", {"verdicts": "\n".join(rows)})
