"""The loop of an evaluation: hand out questions, keep what comes back, score it, stop cleanly.

Only this process writes to the evaluation's folder. A run that is over is kept before it is scored; a run without a
score is scored at the next start, one without a line is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import product
from typing import Any

from okf_agent.cell import Cell
from okf_agent.evaluation.progress import Display
from okf_agent.evaluation.store import Evaluation, Key, Line, cell_of, key_of
from okf_agent.evaluation.worker import Done, Job, Workers
from okf_agent.models.bounded import Cancelled
from okf_agent.tasks import Task
from okf_compiler.errors import UserError

GLANCE = 0.2
"""Seconds between two looks at the display while nothing ends."""
SCORERS = 2
"""Runs that are scored at once."""
BACKLOG = 4
"""Unscored runs for each question that is asked at once, before the next one has to wait."""
FAILURES = 10
"""Runs in a row without any reply of a model, after which it is not there."""

Score = Callable[[Job, Mapping[str, Any]], Line]
"""A run's line of scores.jsonl, from its line of runs.jsonl."""


def jobs(tasks: Iterable[Task], cells: Iterable[Cell], repeat: int) -> Iterator[Job]:
    """Every question in every cell, as often as wanted: a budget that ends it early has asked all cells the same."""
    tasks, cells = tuple(tasks), tuple(cells)
    for number, task, cell in product(range(1, repeat + 1), tasks, cells):
        yield Job(task, cell, number)


def unanswered(line: Mapping[str, Any]) -> bool:
    """Whether a run is to be asked again: a model that cannot be reached was all there was."""
    return line["stop_reason"] == "error" and not line["llm_calls"]


@dataclass(frozen=True)
class Budget:
    """Dollars for the whole evaluation, earlier sessions included; None for no bound."""

    usd: float | None = None

    def reached(self, spent: float, coming: float) -> bool:
        """Whether it is spent, or would be passed by the runs under way and the next one, `coming` dollars."""
        return self.usd is not None and (spent >= self.usd or spent + coming > self.usd)


@dataclass
class Costs:
    """What the runs that are over cost."""

    usd: float = 0.0
    runs: int = 0

    def add(self, usd: float) -> None:
        self.usd += usd
        self.runs += 1

    @property
    def mean(self) -> float:
        return self.usd / self.runs


def expected(costs: Mapping[str, Costs], spent: float, coming: Iterable[str]) -> float:
    """Dollars of runs to come, by their cells' names, if each costs as those of its cell did.

    `costs` are those of the runs that are over, by cell; a cell without any takes the mean of all. What was `spent`
    besides, on a judge or on interrupted runs, is shared among them.
    """
    every = Costs(sum(each.usd for each in costs.values()), sum(each.runs for each in costs.values()))
    if not every.runs:
        return 0.0
    besides = max(0.0, spent - every.usd) / every.runs
    return sum(costs.get(cell, every).mean + besides for cell in coming)


class Runner:
    """One session of an evaluation."""

    def __init__(
        self, evaluation: Evaluation, workers: Workers, perform: Callable[[Job], Done], score: Score, display: Display
    ) -> None:
        self.evaluation = evaluation
        self.workers = workers
        self.perform = perform
        self.score = score
        self.display = display
        self.state = display.state
        self._asked: dict[Future[Done], Job] = {}
        self._scoring: dict[Future[Line], Job] = {}
        self._costs: dict[str, Costs] = {}
        """Of this and earlier sessions, by cell: a cell may cost many times what another does."""
        self._silent = 0
        self._stop = ""

    def run(self, wanted: Iterable[Job], budget: Budget, cancel: Callable[[], None]) -> str:
        """Ask what is wanted and not finished, score what is unscored; why it stopped early, "" for everything done.

        Why: `interrupted`, `budget`, `unknown price`, or what was the matter where no model replied.

        `cancel` ends the runs under way; it is called on Ctrl-C.

        Raises:
            UserError: something that every question needs cannot be had, or nothing can be written.
        """
        with ThreadPoolExecutor(SCORERS, thread_name_prefix="score") as scorers:
            try:
                todo = self._resume([*wanted], scorers)
                self._loop(todo, budget, scorers)
            except KeyboardInterrupt:
                self._stop = "interrupted"
                self.display.say("Stopping; the questions under way are asked again next time.")
                self._end(cancel, scorers)
            except UserError:
                self._end(cancel, scorers)
                raise
        return self._stop

    def _resume(self, wanted: list[Job], scorers: ThreadPoolExecutor) -> Iterator[Job]:
        """What is left of the jobs wanted; what earlier sessions left unscored is handed to the scorers."""
        by_key = {job.key: job for job in wanted}
        scores = {line["run_id"]: line for line in self.evaluation.scores()}
        over: set[Key] = set()
        for line in self.evaluation.runs():
            job = by_key.get(key_of(line))
            if job is None or unanswered(line):
                continue
            over.add(job.key)
            self._count(line)
            if line["run_id"] in scores:
                self._count_score(scores[line["run_id"]])
            else:
                self._scoring[scorers.submit(self.score, job, line)] = job
        self.state.spent, _ = self.evaluation.spent()
        return (job for job in wanted if job.key not in over)

    def _loop(self, todo: Iterator[Job], budget: Budget, scorers: ThreadPoolExecutor) -> None:
        job = next(todo, None)
        while True:
            while job is not None and not self._stop and self._room() and not self._must_wait(job, budget):
                if budget.usd is not None and self.state.unknown_cost:
                    self._stop = "unknown price"
                elif budget.reached(self.state.spent, self._coming(job)):
                    self._stop = "budget"
                else:
                    self._asked[self.workers.executor.submit(self.perform, job)] = job
                    job = next(todo, None)
            if not self._asked and not self._scoring:
                return
            out: list[Future[Any]] = [*self._asked, *self._scoring]
            done, _ = wait(out, GLANCE, FIRST_COMPLETED)
            for future in done:
                if future in self._asked:
                    self._keep(future, scorers)
                else:
                    self._keep_score(future)
            self.display.update()

    def _must_wait(self, job: Job, budget: Budget) -> bool:
        """Whether a budget has to know what the first question of a cell cost before its second one is asked."""
        name = job.cell.name
        under_way = any(each.cell.name == name for each in self._asked.values())
        return budget.usd is not None and name not in self._costs and under_way

    def _coming(self, job: Job) -> float:
        """Dollars of the runs under way and of one more."""
        return expected(self._costs, self.state.spent, [each.cell.name for each in (*self._asked.values(), job)])

    def _room(self) -> bool:
        return len(self._asked) < self.workers.slots and len(self._scoring) < BACKLOG * self.workers.slots

    def _keep(self, future: Future[Done], scorers: ThreadPoolExecutor) -> None:
        """Write what came back, and hand it on to be scored."""
        job = self._asked.pop(future)
        done = self._result(future)
        if done.steps is not None:
            self.evaluation.add_run(done.line, done.steps)
        self.state.spent += done.line["cost_known_usd"]
        if done.line["stop_reason"] == "interrupted":
            return
        self._count(done.line)
        self.state.here += 1
        self._silent = 0 if done.line["llm_calls"] else self._silent + 1
        if self._silent >= FAILURES:
            self._stop = str(done.line["error"] or done.line["stop_reason"])
        self._scoring[scorers.submit(self.score, job, done.line)] = job

    def _result(self, future: Future[Done]) -> Done:
        """What a worker hands back.

        Raises:
            UserError: the question could not be asked, or the engine gave it up.
        """
        try:
            return future.result()
        except (UserError, CancelledError):
            raise
        except Exception as error:
            if not self.workers.remote:
                raise
            raise UserError(f"A worker could not do its part: {type(error).__name__}: {error}") from None

    def _keep_score(self, future: Future[Line]) -> None:
        self._scoring.pop(future)
        line = future.result()
        self.evaluation.add_score(line)
        self.state.spent += line.get("judge_cost_usd") or 0.0
        self._count_score(line)

    def _count(self, line: Mapping[str, Any]) -> None:
        self._costs.setdefault(cell_of(line), Costs()).add(line["cost_known_usd"])
        self.state.cells[cell_of(line)].done += 1
        self.state.cached_calls += line["cached_calls"]
        self.state.unknown_cost = self.state.unknown_cost or line["cost_usd"] is None

    def _count_score(self, line: Mapping[str, Any]) -> None:
        count = self.state.cells[line["cell"]]
        if line["strict"] is not None:
            count.scored += 1
            count.right += bool(line["strict"])

    def _end(self, cancel: Callable[[], None], scorers: ThreadPoolExecutor) -> None:
        """Let the runs under way end as interrupted, and keep what was already done."""
        cancel()
        for future in [*self._asked]:
            future.cancel()
        for future in [*self._asked]:
            try:
                self._keep(future, scorers)
            except (UserError, CancelledError, OSError):
                continue
        for scored in [*self._scoring]:
            if scored.cancel():
                continue
            try:
                self._keep_score(scored)
            except (UserError, OSError, Cancelled):  # a judge was stopped too: scored again next time
                continue
