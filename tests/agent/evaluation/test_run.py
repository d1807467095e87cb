"""`okf-agent eval run`, by the command line, over the shop, with a model that answers by itself."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import evaluations
from support.command import SCRIPTS, run_inside
from support.databases import made
from support.endpoint import Endpoint, Scripted, error
from support.workspace import Workspace
from support.workspace import workspace as make

from okf_agent.engines import Server
from okf_agent.evaluation.plan import changes
from okf_agent.evaluation.runner import Budget, Costs, expected
from okf_agent.evaluation.store import Evaluation, alone

PRICE = {"openai/scripted": {"input": 1000, "output": 0}}
"""Dollars a million tokens: a call of 100 tokens costs ten cents."""


class Lab:
    """A workspace with a suite of twelve questions; `calls` counts what the model was asked."""

    def __init__(self, workspace: Workspace) -> None:
        self.root = workspace.root
        evaluations.write_suite(self.root / "many.jsonl", 12)
        self.calls = 0
        self.broken = False
        self.endpoint = Endpoint(answer=self.answer)

    def answer(self, request: dict[str, Any]) -> Scripted:
        self.calls += 1
        return error(401, "no such key") if self.broken else evaluations.answer(request)

    def run(self, *arguments: str, prices: Any = PRICE, **model: Any) -> tuple[int, str]:
        """The exit status and what was said, of one `okf-agent eval run`."""
        config = {"name": "openai/scripted", "api_base": self.endpoint.url, "retries": 0, "prices": prices, **model}
        (self.root / "config.yaml").write_text(json.dumps({"model": config}), encoding="utf-8")
        done = run_inside("eval", "run", *arguments, cwd=self.root)
        return done.returncode, done.stderr

    def load(self, name: str) -> Evaluation:
        return Evaluation.load(self.root / "runs" / "evals" / name)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [*self.load(name).runs()]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with make(tmp_path_factory.mktemp("workspace")) as workspace:
        lab = Lab(workspace)
        with lab.endpoint:
            yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.calls, shared.broken = 0, False
    return shared


def test_every_question_is_asked_in_every_cell_recorded_and_scored(lab: Lab) -> None:
    status, said = lab.run("--suite", "many.jsonl", "--cells", "bundle,raw,pack", "--limit", "10", "--name", "all")
    assert status == 0, said
    assert "30 of 30 done, 24 of 30 right" in said
    assert "\nRight by cell: bundle 8 of 10, raw 8 of 10, pack 8 of 10\n" in said
    evaluation = lab.load("all")
    lines, scores = lab.lines("all"), evaluation.scores()
    assert [(c["name"], c["knowledge"]) for c in evaluation.facts["cells"]] == [
        (m, m) for m in ("bundle", "raw", "pack")
    ]
    places = {(line["task_id"], line["cell"]["name"], line["mode"], line["repeat"]) for line in lines}
    assert places == {(f"count_{n}", m, m, 1) for n in range(1, 11) for m in ("bundle", "raw", "pack")}
    assert all(score["strict"] is evaluations.is_right(score["task_id"]) for score in scores)
    wrong = [score for score in scores if not score["strict"]]
    assert {score["miss"] for score in wrong} == {"formula differs"}
    assert all(evaluation.steps(line["run_id"])[-1]["event"] == "Finished" for line in lines)
    assert {score["holdout"] for score in scores} == {True, False}
    said = run_inside("eval", "compare", "all:raw", "last:pack", cwd=lab.root).stdout
    assert "all:pack against all:raw, 10 tasks" in said and "right in both 8" in said


def test_what_is_done_is_not_asked_again_and_a_lost_score_comes_back(lab: Lab) -> None:
    lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "6", "--name", "again")
    asked = lab.calls
    file = lab.load("again").folder / "scores.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-2]))
    status, said = lab.run("--name", "again")
    assert (status, lab.calls) == (0, asked)
    assert "6 of 6 done, 5 of 6 right" in said
    assert len(lab.load("again").scores()) == 6


@pytest.mark.parametrize(
    ("arguments", "model", "message"),
    [
        (("--cells", "raw"), {}, "cells left out: pack"),
        (("--limit", "3"), {}, "tasks left out: count_3"),
        (("--repeat", "2"), {}, "repeat: 1 then, 2 now"),
        ((), {"temperature": 0.5}, "cell pack, model.temperature: 0.0 then, 0.5 now"),
        (("--set", "agent.max_steps=3"), {}, "cell pack, limits.max_steps: 15 then, 3 now"),
    ],
)
def test_another_evaluation_under_the_same_name_is_refused(
    lab: Lab, arguments: tuple[str, ...], model: dict[str, Any], message: str
) -> None:
    if not (lab.root / "runs" / "evals" / "fixed").exists():
        lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "3", "--name", "fixed")
    wanted = ("--limit", "2") if "--limit" in arguments else ()
    status, said = lab.run("--name", "fixed", *(wanted or arguments), **model)
    assert status == 2
    assert message in said


def test_who_is_refused_leaves_another_s_lock_and_folder_alone(lab: Lab) -> None:
    folder = lab.root / "runs" / "evals" / "busy"
    with alone(folder):  # as one that has not begun: it gets its databases ready
        for _ in range(2):
            status, said = lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--name", "busy")
            assert (status, lab.calls) == (1, 0) and "Another process is running the evaluation busy" in said


def test_a_folder_that_cannot_be_made_is_named(lab: Lab) -> None:
    (lab.root / "other").mkdir()
    (lab.root / "other" / "evals").write_text("", encoding="utf-8")
    wanted = ("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--set", "agent.runs=other")
    status, said = lab.run(*wanted)
    assert status == 1 and "The evaluation cannot be kept in" in said and "agent.runs" in said


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"own_server": True}, {"own_server": False}, ["model.api_base: set then, not set now"]),
        ({"own_server": True}, {"own_server": True}, []),
        ({}, {"own_server": True}, []),  # begun before this was kept
    ],
)
def test_a_server_of_ones_own_that_is_forgotten_is_a_change(
    before: dict[str, Any], after: dict[str, Any], found: list[str]
) -> None:
    assert changes(before, after) == found


def test_a_suite_whose_file_changed_is_refused(lab: Lab) -> None:
    own = lab.root / "own.jsonl"
    evaluations.write_suite(own, 2)
    lab.run("--suite", "own.jsonl", "--cells", "pack", "--name", "changed")
    evaluations.write_suite(own, 2)
    own.write_text(own.read_text("utf-8").replace("below 2 are", "below  2 are"), encoding="utf-8")
    status, said = lab.run("--name", "changed")
    assert status == 2, said
    assert "the suite's files have another content: own.jsonl" in said
    status, said = lab.run("--suite", "own.jsonl", "--cells", "pack", "--name", "anew")
    assert status == 0, said
    assert "own was changed since it was last run here: own.jsonl. That is all right" in said


def test_which_cells_have_seen_the_hold_out_is_said_plainly_and_models_are_told_apart(lab: Lab) -> None:
    evaluations.write_suite(lab.root / "held.jsonl", 4)
    wanted = ("--suite", "held.jsonl", "--cells", "pack")
    for name, model in (("seen", "scripted"), ("other", "another")):  # another model is another cell
        said = lab.run(*wanted, "--name", name, "--model", f"openai/{model}")[1]
        assert "held-out tasks before" not in said
    status, said = lab.run(*wanted, "--name", "later", "--set", "agent.max_steps=3")
    assert status == 0
    sentence = "pack (openai/scripted) was asked held-out tasks before: in seen ("
    assert sentence in said and "with other limits.max_steps)." in said
    assert run_inside("eval", "report", "later", cwd=lab.root).returncode == 0
    for name in ("report.md", "report.html"):
        report = (lab.load("later").folder / name).read_text("utf-8").replace("\\", "")
        assert sentence in report and "contaminated" not in report
    assert sentence in run_inside("eval", "compare", "seen", "later", cwd=lab.root).stdout
    assert "with the same configuration" in lab.run(*wanted, "--name", "repeated")[1]


@pytest.mark.parametrize("id", ["a\nDone: 9 of 9 right", "a\x1b[2J", "a\u202eb"])
def test_an_id_that_would_drive_a_terminal_is_refused(lab: Lab, id: str) -> None:
    task = {"id": id, "question": "How many?", "database": "shop", "sql": "SELECT 1"}
    (lab.root / "odd.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    status, said = lab.run("--suite", "odd.jsonl", "--cells", "pack", "--name", "odd")
    assert status == 2 and "odd.jsonl:1: id 'a\\" in said and id not in said


def test_every_cell_is_checked_before_the_first_question(lab: Lab, postgres: Server, tmp_path: Path) -> None:
    task = {"question": "How many customers?", "database": "live_shop", "sql": "SELECT 1"}
    (tmp_path / "hand.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    script = "CREATE TABLE customers (id int)"
    with made(postgres, "live_shop", script, "live_reader") as params, psycopg.connect(**params, dbname="live_shop"):
        place = {"host": params["host"], "port": params["port"], "agent_user": params["user"]}
        config = {
            "model": {"name": "openai/scripted", "api_base": lab.endpoint.url},
            "database": {"engine": "server", **place},
            "databases": {"live_shop": {"from": "configured"}},
        }
        (tmp_path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        for cells in ("bundle,raw", "raw,pack"):
            wanted = ("--suite", "hand.jsonl", "--cells", cells, "--name", "hand", "--unsafe-role")
            done = run_inside("eval", "run", *wanted, cwd=tmp_path)
            assert (done.returncode, lab.calls) == (2, 0), done.stderr
            assert "cell raw, database live_shop: The tables of live_shop come from its server" in done.stderr
            assert not (tmp_path / "runs" / "evals" / "hand").exists()


def test_a_budget_ends_it_and_a_larger_one_goes_on(lab: Lab) -> None:
    arguments = ("--suite", "many.jsonl", "--cells", "pack", "--name", "cheap", "--workers", "2")
    status, said = lab.run(*arguments, "--budget", "0.45")
    assert status == 1
    assert "The next question could pass the budget of $0.45" in said
    assert 3 <= len(lab.lines("cheap")) <= 4
    assert lab.load("cheap").spent()[0] <= 0.45
    assert lab.run("--name", "cheap", "--budget", "inf")[0] == 0
    assert len(lab.lines("cheap")) == 12


def test_a_budget_is_passed_by_the_first_question_of_a_cell_at_most(lab: Lab) -> None:
    arguments = ("--suite", "many.jsonl", "--cells", "pack", "--name", "first", "--workers", "4")
    assert lab.run(*arguments, "--budget", "0.05")[0] == 1
    assert len(lab.lines("first")) == 1


def test_a_budget_that_was_passed_is_named(lab: Lab) -> None:
    few = ("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--name", "passed", "--budget", "0.000001")
    status, said = lab.run(*few)
    assert status == 0 and "That is more than the budget of $1e-06" in said


def test_a_budget_needs_prices(lab: Lab) -> None:
    status, said = lab.run("--suite", "many.jsonl", "--cells", "pack", "--name", "p", "--budget", "9", prices={})
    assert status == 1
    assert "What runs of openai/scripted cost is not known" in said and "Set model.prices" in said
    asked = lab.calls
    assert lab.run("--name", "p")[0] == 1  # prices come too late for what is kept
    assert lab.calls == asked


def test_a_key_that_is_missing_is_said_before_anything_is_asked(lab: Lab) -> None:
    lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--name", "keyless")
    cells = lab.root / "cells.yaml"
    cells.write_text("other: {model: groq/some-model, knowledge: pack}\n", encoding="utf-8")
    for arguments in (("--name", "keyless"), ("--suite", "many.jsonl", "--cells", str(cells), "--model", "ollama/x")):
        status, said = lab.run(*arguments, api_base=None)
        assert status == 2
        assert "_API_KEY is not set" in said and "model.api_base" in said


@pytest.mark.parametrize(
    ("spent", "costs", "out", "reached"),
    [
        (0.0, {}, "ab", False),
        (0.4, {"cheap": [0.1], "dear": [0.3]}, ("cheap", "dear"), False),
        (0.4, {"cheap": [0.1], "dear": [0.3]}, ("dear", "dear", "dear"), True),
        (0.4, {"cheap": [0.1], "dear": [0.3]}, ("cheap", "cheap", "cheap"), False),
        (0.4, {"cheap": [0.1, 0.1]}, ("cheap", "cheap"), False),
        (0.6, {"cheap": [0.1, 0.1]}, ("cheap", "cheap"), True),  # a judge took as much again, and more
        (1.0, {"cheap": [1.0]}, (), True),
    ],
)
def test_a_budget_knows_what_each_cell_takes(
    spent: float, costs: dict[str, list[float]], out: tuple[str, ...], reached: bool
) -> None:
    over = {cell: Costs(sum(each), len(each)) for cell, each in costs.items()}
    assert Budget(1.0).reached(spent, expected(over, spent, out)) is reached


def test_kept_replies_cost_nothing_and_are_counted(lab: Lab) -> None:
    arguments = ("--suite", "many.jsonl", "--cells", "bundle", "--tasks", "count_1,count_1?", "--cache")
    lab.run(*arguments, "--name", "fresh")
    asked = lab.calls
    assert asked == 6  # count_10 takes three
    status, said = lab.run(*arguments, "--name", "kept")
    assert (status, lab.calls) == (0, asked)
    assert "6 cached replies" in said and "$0.0000" in said
    fresh, kept = lab.lines("fresh"), lab.lines("kept")
    assert [sum(line["cached_calls"] for line in lines) for lines in (fresh, kept)] == [0, 6]
    assert [sum(line["cost_usd"] for line in lines) for lines in (fresh, kept)] == [pytest.approx(0.6), 0]
    assert sum(line["model_seconds"] for line in kept) == 0
    assert {(line["task_id"], line["input_tokens"]) for line in fresh} == {
        (line["task_id"], line["input_tokens"]) for line in kept
    }


def test_repetitions_are_asked_each(lab: Lab) -> None:
    lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "2", "--repeat", "3", "--cache", "--name", "thrice")
    assert lab.calls == 6
    assert sorted((line["task_id"], line["repeat"]) for line in lab.lines("thrice")) == [
        (f"count_{n}", r) for n in (1, 2) for r in (1, 2, 3)
    ]


def test_a_model_that_is_not_there_stops_it_and_its_questions_are_asked_again(lab: Lab) -> None:
    lab.broken = True
    said = lab.run("--suite", "many.jsonl", "--cells", "pack", "--name", "few", "--limit", "2")[1]
    assert "Runs without any reply of the model: 2, such as count_" in said
    status, said = lab.run("--suite", "many.jsonl", "--cells", "pack", "--name", "gone", "--workers", "1")
    assert status == 1
    assert "10 runs in a row had no reply of the model" in said
    lab.broken = False
    status, said = lab.run("--name", "gone")
    assert status == 0
    assert "12 of 12 done, 10 of 12 right" in said
    assert {line["stop_reason"] for line in lab.lines("gone")} == {"submitted"}


def test_a_suite_without_gold_runs_and_says_so(lab: Lab) -> None:
    folder = lab.root / "data" / "livesqlbench-base-lite"
    folder.mkdir()
    task = {
        "instance_id": "shop_1",
        "selected_database": "shop",
        "query": "How many customers with a number below 4 are there?",
        "sol_sql": [],
    }
    managed = {**task, "instance_id": "shop_M_1", "category": "Management"}
    lines = "".join(json.dumps(each) + "\n" for each in (task, managed))
    (folder / "livesqlbench_data.jsonl").write_text(lines, encoding="utf-8")
    status, said = lab.run("--suite", "livesqlbench-base-lite", "--cells", "pack", "--name", "blind")
    assert status == 0, said
    assert "1 of 1 tasks have no gold here: they are asked and stay unscored." in said
    assert "1 management tasks" in said
    assert "1 of 1 done, none scored" in said
    assert lab.load("blind").scores()[0]["strict"] is None


def test_a_leak_stops_it_and_going_on_is_written_everywhere(lab: Lab) -> None:
    file = lab.root / "bundles" / "compiled" / "shop" / "knowledge" / "leak.md"
    lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--name", "clean")  # compiles the bundle
    lab.calls = 0
    asked = "How many customers with a number below 7 are there?"
    wanted = ("--suite", "many.jsonl", "--cells", "pack", "--tasks", "count_7,count_8", "--name", "leaky")
    try:
        file.write_text(f"---\ntype: Note\ntitle: leak\n---\n{asked}\n{evaluations.gold_sql(7)}\n", encoding="utf-8")
        status, said = lab.run(*wanted)
        assert (status, lab.calls) == (1, 0)
        assert "leak.md:6: 100% of the gold SQL of task count_7" in said and "--despite-leaks" in said
        status, said = lab.run(*wanted, "--despite-leaks")
        assert (status, lab.calls) == (0, 2), said
        assert lab.run("--name", "leaky")[0] == 0  # goes on as it began
    finally:
        file.unlink()
    assert {line["cell"]["despite_leaks"] for line in lab.lines("leaky")} == {True}
    assert "despite_leaks" not in lab.lines("clean")[0]["cell"]
    assert run_inside("eval", "report", "leaky", cwd=lab.root).returncode == 0
    for name in ("report.md", "report.html"):
        text = (lab.load("leaky").folder / name).read_text("utf-8")
        assert "A model could read the answers" in text and "gold SQL of 2 tasks in 1 file" in text
    for arguments in (("show", "count_7", "leaky"), ("compare", "leaky", "leaky")):
        assert "could read answers (--despite-leaks)" in run_inside("eval", *arguments, cwd=lab.root).stdout


def test_a_leak_in_a_document_that_is_pasted_stops_it_too(lab: Lab) -> None:
    file = lab.root / "data" / "shop" / "shop_schema.txt"
    before = file.read_text("utf-8")
    lab.run("--suite", "many.jsonl", "--cells", "raw", "--limit", "1", "--name", "plain")
    lab.calls = 0
    file.write_text(f"-- {evaluations.gold_sql(7)}\n{before}", encoding="utf-8")
    try:
        status, said = lab.run("--suite", "many.jsonl", "--cells", "raw", "--name", "pasted")
    finally:
        file.write_text(before, encoding="utf-8")
    assert (status, lab.calls) == (1, 0)
    assert "shop_schema.txt:1: 100% of the gold SQL of task count_7" in said


def test_words_that_rules_share_are_counted_and_gold_of_what_is_not_asked_is_none(lab: Lab) -> None:
    knowledge = [json.loads(line) for line in (lab.root / "data/shop/shop_kb.jsonl").read_text("utf-8").splitlines()]
    rule = max((rule["description"] for rule in knowledge), key=lambda text: len(text.split()))
    assert len(rule.split()) > 16
    leaked = f"SELECT count(*), 1 FROM customers WHERE full_name = '{rule}'"
    tasks = [
        {"id": "a", "question": f"How many are there where {rule}", "sql": "SELECT count(*) FROM customers"},
        {"id": "b", "question": "How many?", "sql": leaked, "hint": rule},
    ]
    text = "".join(json.dumps({**task, "database": "shop"}) + "\n" for task in tasks)
    (lab.root / "phrases.jsonl").write_text(text, encoding="utf-8")
    status, said = lab.run("--suite", "phrases.jsonl", "--cells", "pack", "--name", "b", "--tasks", "b")
    assert status == 1 and "of the evidence of task b" in said
    lab.broken = True
    status, said = lab.run("--suite", "phrases.jsonl", "--cells", "pack", "--name", "phrases", "--tasks", "a")
    assert status == 0 and "Documents share words: question of 1 task in" in said
    assert run_inside("eval", "report", "phrases", cwd=lab.root).returncode == 0
    assert "Documents share words: question of 1 task" in (lab.load("phrases").folder / "report.md").read_text("utf-8")


def test_gold_that_fails_is_said_at_the_end_and_in_the_report(lab: Lab) -> None:
    task = {"question": "How many customers are there?", "database": "shop", "sql": "SELECT nothing FROM customers"}
    (lab.root / "bad.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    # The model answers this one with an error of its own script: what counts is that no verdict is given.
    lab.broken = True
    status, said = lab.run("--suite", "bad.jsonl", "--cells", "pack", "--name", "bad")
    assert status == 0
    assert 'Gold fails in 1 task, which counts neither as right nor as wrong:\n  1: ERROR: column "nothing"' in said
    assert run_inside("eval", "report", "bad", cwd=lab.root).returncode == 0
    report = (lab.load("bad").folder / "report.md").read_text("utf-8")
    assert "Nothing is scored: every gold query fails." in report
    assert "pack: gold fails in 1 of 1 runs: not counted." in report


def test_what_was_measured_is_part_of_the_configuration(lab: Lab) -> None:
    lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--name", "measured")
    kept = lab.load("measured").facts["configuration"]["pack"]
    assert kept["bundle.shop, measured"] == "" and kept["bundle.shop"] != kept["bundle.shop, documents"]


def test_wrong_calls_are_named(lab: Lab) -> None:
    for arguments, message in (
        ((), "has them) or --suite FILE.jsonl"),
        (("--suite", "shopp"), "did you mean 'shop'"),
        (("--suite", "many.jsonl", "--tasks", "count_99"), "has no task 'count_99'"),
        (("--suite", "many.jsonl", "--name", "../x"), "cannot be the name of an evaluation"),
        (("--suite", "many.jsonl", "--name", "a:b"), "cannot be the name of an evaluation"),
        (("--suite", "many.jsonl", "--name", "last"), "cannot be the name of an evaluation"),
        (("--suite", "many.jsonl", "--budget", "nan"), "--budget nan: give dollars"),
        (("--suite", "many.jsonl", "--executor", "ray://x"), "write dask://host:port"),
    ):
        status, said = lab.run(*arguments)
        assert status == 2, said
        assert message in said


def test_ctrl_c_ends_it_cleanly(lab: Lab) -> None:
    def slow(request: dict[str, Any]) -> Scripted:
        done = lab.answer(request)
        return Scripted(done.body, delay=30 if lab.calls > 4 else 0)

    with Endpoint(answer=slow) as endpoint:
        config = {"name": "openai/scripted", "api_base": endpoint.url, "retries": 0, "prices": PRICE}
        (lab.root / "config.yaml").write_text(json.dumps({"model": config}), encoding="utf-8")
        command = [SCRIPTS / "okf-agent", "eval", "run", "--suite", "many.jsonl", "--cells", "pack", "--name", "c"]
        command += ["--set", "agent.max_steps=6"]
        process = subprocess.Popen(command, cwd=lab.root, stderr=subprocess.PIPE, encoding="utf-8")
        deadline = time.monotonic() + 60
        while lab.calls < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        said = process.communicate(timeout=60)[1]
    assert time.monotonic() - began < 20
    assert process.returncode == 130, said
    assert "To go on: okf-agent eval run --set agent.max_steps=6 --name c" in said
    assert len(lab.lines("c")) == 4
    status, _ = lab.run("--name", "c", "--set", "agent.max_steps=6")
    assert status == 0
    assert len(lab.lines("c")) == 12


def test_predictions_made_elsewhere_are_scored(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    sql = {1: evaluations.gold_sql(1), 2: "SELECT 7", 3: "SELECT nothing"}
    lines = "".join(json.dumps({"task_id": f"count_{n}", "sql": text}) + "\n" for n, text in sql.items())
    file.write_text(lines, encoding="utf-8")
    out = tmp_path / "scores.jsonl"
    done = run_inside("eval", "score", file, "--suite", "many.jsonl", "-o", out, cwd=lab.root)
    assert done.returncode == 0, done.stderr
    assert "1 of 3 right" in done.stdout and "9 questions without a prediction" in done.stdout
    assert "count_3: wrong: the query fails" in done.stdout
    assert [json.loads(line)["strict"] for line in out.read_text("utf-8").splitlines()] == [True, False, False]


def test_the_list_says_what_is_here(lab: Lab) -> None:
    lab.run("--suite", "many.jsonl", "--cells", "pack", "--limit", "1", "--name", "listed")
    said = run_inside("eval", "list", cwd=lab.root).stdout
    assert "listed: many in pack; 1 of 1 runs" in said
    assert "defog" in said and "not here" in said
    assert '{"question": "How many …?", "database": "shop", "sql": "SELECT …"}' in said
    unknown = run_inside("eval", "report", "liisted", cwd=lab.root)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "did you mean 'listed'?\n`last` stands for the latest, listed;" in unknown.stderr
