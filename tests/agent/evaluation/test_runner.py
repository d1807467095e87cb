"""The runner's own end: what was stopped in the middle is left for the next session."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from okf_agent.evaluation.runner import Runner
from okf_agent.models.bounded import Cancelled


def test_a_judge_that_is_stopped_leaves_its_run_unscored() -> None:
    """Its model is stopped with those of the runs; the run is scored at the next start."""
    nowhere: Any = SimpleNamespace(state=SimpleNamespace())
    runner = Runner(nowhere, nowhere, nowhere, nowhere, nowhere)
    judged: Future[Any] = Future()
    judged.set_running_or_notify_cancel()
    judged.set_exception(Cancelled())
    runner._scoring[judged] = nowhere
    stopped = []
    with ThreadPoolExecutor(1) as scorers:
        runner._end(lambda: stopped.append(True), scorers)
    assert stopped and not runner._scoring
