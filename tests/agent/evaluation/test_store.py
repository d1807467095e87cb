"""An evaluation's folder: what counts, what a killed writer leaves, and who may write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from okf_agent.evaluation.store import Evaluation, alone
from okf_compiler.errors import UserError


def line(run_id: str, task: str = "t1", reason: str = "submitted", repeat: int = 1, **more: Any) -> dict[str, Any]:
    known = {"run_id": run_id, "task_id": task, "cell": {"name": "pack", "model": "m"}, "repeat": repeat}
    return {**known, "stop_reason": reason, "cost_usd": 0.5, "cost_known_usd": 0.5, **more}


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    return Evaluation.create(tmp_path / "e", {"name": "e"})


def test_a_later_run_takes_the_place_of_an_earlier_one_and_an_interrupted_one_has_none(evaluation: Evaluation) -> None:
    for each in (line("a"), line("b", reason="interrupted"), line("c"), line("d", "t2"), line("e", repeat=2)):
        evaluation.add_run(each, "")
    assert [run["run_id"] for run in evaluation.runs()] == ["c", "d", "e"]


def test_scores_are_those_of_the_runs_that_count_the_last_one_of_each(evaluation: Evaluation) -> None:
    for each in (line("a"), line("b"), line("c", "t2")):
        evaluation.add_run(each, "")
    for run_id, right in (("a", True), ("b", False), ("b", True)):
        evaluation.add_score({"run_id": run_id, "strict": right})
    assert evaluation.scores() == [{"run_id": "b", "strict": True}]


def test_money_spent_on_interrupted_runs_and_judges_counts(evaluation: Evaluation) -> None:
    evaluation.add_run(line("a"), "")
    evaluation.add_run(line("b", reason="interrupted"), "")
    evaluation.add_score({"run_id": "a", "judge_cost_usd": 0.25})
    assert evaluation.spent() == (1.25, True)
    evaluation.add_run(line("c", "t2", cost_usd=None), "")
    assert evaluation.spent() == (1.75, False)


def test_a_torn_last_line_is_no_run_and_the_next_one_is_whole(evaluation: Evaluation) -> None:
    evaluation.add_run(line("a"), '{"event": "Started"}\n')
    file = evaluation.folder / "runs.jsonl"
    file.write_bytes(file.read_bytes() + json.dumps(line("b", "t2")).encode()[:40])
    assert [run["run_id"] for run in evaluation.runs()] == ["a"]
    evaluation.add_run(line("c", "t2"), "")
    assert [run["run_id"] for run in evaluation.runs()] == ["a", "c"]
    assert evaluation.steps("a") == [{"event": "Started"}]
    assert evaluation.steps("b") == []


def test_two_runners_at_once_are_refused(evaluation: Evaluation) -> None:
    with (
        alone(evaluation.folder),
        pytest.raises(UserError, match="Another process is running the evaluation e"),
        alone(evaluation.folder),
    ):
        raise AssertionError("not reached")
    with alone(evaluation.folder):
        pass


def test_a_folder_without_an_evaluation_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no evaluation"):
        Evaluation.load(tmp_path)
