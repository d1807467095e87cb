"""An evaluation that is killed at random moments, or loses a worker, ends with the records of an undisturbed one."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import evaluations
from support.command import SCRIPTS
from support.workspace import Workspace
from support.workspace import workspace as make

from okf_agent.evaluation.store import Evaluation

pytestmark = pytest.mark.slow

TASKS = 300
CELLS = "schema,raw,pack"
KILLS = 5
SEED = 7
ITS_OWN = {"run_id", "started_at", "seconds", "model_seconds", "database_seconds", "rate_limit_wait_seconds"}
"""What differs from run to run whatever happens: ids and times."""


@pytest.fixture(scope="module")
def workspace() -> Iterator[Workspace]:
    """The shop, with a suite, and a model in a process of its own.

    Not in pytest's folder, which another session of pytest closes to the account of the PostgreSQL.
    """
    with tempfile.TemporaryDirectory(prefix="okf-tests-") as folder, make(Path(folder)) as made:
        evaluations.write_suite(made.root / "many.jsonl", TASKS)
        command = [sys.executable, "-m", "support.evaluations", "3600"]
        environment = os.environ | {"PYTHONPATH": str(Path(evaluations.__file__).parents[1])}
        model = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8")
        assert model.stdout is not None
        made.configure(model.stdout.readline().strip())
        try:
            yield made
        finally:
            model.kill()
            model.wait()


@pytest.fixture(scope="module")
def whole(workspace: Workspace) -> dict[Any, Any]:
    """What an undisturbed evaluation of the suite ends with."""
    done(workspace, "eval", "run", "--suite", "many.jsonl", "--cells", CELLS, "--name", "whole")
    return facts_of(load(workspace, "whole"))


def load(workspace: Workspace, name: str) -> Evaluation:
    return Evaluation.load(workspace.root / "runs" / "evals" / name)


def lines(file: Path) -> int:
    return len(file.read_bytes().splitlines()) if file.exists() else 0


def facts_of(evaluation: Evaluation) -> dict[Any, Any]:
    """Every run and its score without ids and times, by its place."""
    scores = {score["run_id"]: score for score in evaluation.scores()}
    found = {}
    for line in evaluation.runs():
        place = line["task_id"], line["cell"]["name"], line["repeat"]
        assert place not in found
        kept = {key: value for key, value in line.items() if key not in ITS_OWN}
        score = {key: value for key, value in scores[line["run_id"]].items() if key not in ITS_OWN}
        steps = [event["event"] for event in evaluation.steps(line["run_id"])]
        found[place] = kept, score, steps
    return found


def test_killed_five_times_it_ends_as_if_undisturbed(workspace: Workspace, whole: dict[Any, Any]) -> None:
    arguments = ("eval", "run", "--suite", "many.jsonl", "--cells", CELLS, "--name", "killed")
    dice = random.Random(SEED)
    file = workspace.root / "runs" / "evals" / "killed" / "runs.jsonl"
    for number in range(KILLS):
        enough = TASKS * 3 * (number + 1) // (KILLS + 1) + dice.randrange(40)
        with start(workspace, *arguments) as process:
            while lines(file) < enough and process.poll() is None:
                time.sleep(0.02)
            time.sleep(dice.random() * 0.05)
            assert process.poll() is None, "it was done before it was killed"
            process.kill()
    assert f"{TASKS * 3} of {TASKS * 3} done" in done(workspace, "eval", "run", "--name", "killed")

    assert facts_of(load(workspace, "killed")) == whole
    ended = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    again = [line for line in ended if line["stop_reason"] == "interrupted"]
    assert len(ended) == TASKS * 3 + len(again)  # what finished was asked once
    assert len(again) <= KILLS * 4  # of those under way, at most one for each worker and kill
    assert not [*file.parent.glob("steps/*.lock")]


def done(workspace: Workspace, *arguments: str) -> str:
    """Run it to its end; what it said."""
    command = [SCRIPTS / "okf-agent", *arguments]
    ended = subprocess.run(command, cwd=workspace.root, capture_output=True, encoding="utf-8", timeout=900, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


@contextlib.contextmanager
def start(workspace: Workspace, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [SCRIPTS / "okf-agent", *arguments]
    process = subprocess.Popen(command, cwd=workspace.root, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_worker_that_dies_loses_nothing(workspace: Workspace, whole: dict[Any, Any]) -> None:
    distributed = pytest.importorskip("distributed")
    arguments = ("eval", "run", "--suite", "many.jsonl", "--cells", "schema,pack", "--limit", "40", "--name", "spread")
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        file = workspace.root / "runs" / "evals" / "spread" / "runs.jsonl"
        with start(workspace, *arguments, "--executor", address) as process:
            while lines(file) < 20 and process.poll() is None:
                time.sleep(0.02)
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
            assert process.wait(timeout=600) == 0
    spread = facts_of(load(workspace, "spread"))
    assert len(spread) == lines(file) == 80
    assert spread == {place: whole[place] for place in spread}


def test_the_records_lie_in_one_folder_that_can_be_moved(workspace: Workspace, tmp_path: Path) -> None:
    done(workspace, "eval", "run", "--suite", "many.jsonl", "--cells", "pack", "--limit", "3", "--name", "small")
    moved = tmp_path / "moved"
    shutil.copytree(load(workspace, "small").folder, moved)
    assert facts_of(Evaluation.load(moved)) == facts_of(load(workspace, "small"))
