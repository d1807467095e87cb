"""`okf-agent eval run`: get everything ready, look for what would make the figures untrue, ask, score.

The order of the steps is that of `run`: suite, pins, databases, row counts, leakage, what was begun before, the
questions.
"""

from __future__ import annotations

import math
import secrets
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from okf_agent import knowledge, prompts
from okf_agent.ask import Workspace, sources_of
from okf_agent.cell import Cell
from okf_agent.clock import today
from okf_agent.config import Config
from okf_agent.evaluation import (
    gold,
    leakage,
    plan,
    progress,
    runner,
    store,
    suites,
    worker,
)
from okf_agent.evaluation.cells import choose as choose_cells
from okf_agent.evaluation.plan import EvalOptions, Planned, at_once
from okf_agent.evaluation.replies import Replies
from okf_agent.evaluation.scoring import Scoring
from okf_agent.evaluation.split import holdout, seen_before, seen_in_words
from okf_agent.evaluation.store import Evaluation
from okf_agent.evaluation.suites import databases
from okf_agent.evaluation.worker import Done, Job
from okf_agent.models.providers import choose_model
from okf_agent.prepare import Ready, Say, quiet
from okf_agent.records.left_behind import close_dead_runs
from okf_agent.wording import count
from okf_compiler.errors import UserError
from okf_compiler.terminal import Console

MOST_FAILING = 10
"""Tasks with failing gold that are named at the end."""
REPLIES = "replies"
"""The folder of kept replies, beside the evaluations."""


def run(config: Config, wanted: EvalOptions, console: Console) -> int:
    """Run an evaluation, or go on with it; the exit status: 0 for done, 1 for stopped early, 130 for Ctrl-C.

    Raises:
        UserError: a wrong call, a suite that is not as pinned, a leak, a change since it began, ….
    """

    def say(text: str) -> None:
        console.say(text)

    planned = make_plan(config, wanted, say)
    name = planned.wanted.name or _new_name(planned.suite.name)
    folder = store.folder_of(config, name)
    suites.hold_pins(planned.suite, say)
    config = _on_one_day(databases.configured(planned.suite, config), planned.begun)
    replies = Replies(config.runs / REPLIES) if wanted.cache else None
    with ExitStack() as stack:
        stack.enter_context(store.alone(folder))
        stack.callback(_remove_if_empty, folder)  # under the lock: who was refused must not clear away another's
        close_dead_runs(folder, alone=True)
        own = worker.configured(config, folder)
        workspace = stack.enter_context(Workspace(own, unsafe_role=wanted.unsafe_role, replies=replies))
        ready = get_ready(planned, workspace, say)
        evaluation = begin(planned, config, folder, ready, say)
        workers = stack.enter_context(worker.opened(wanted.executor, at_once(wanted, planned.cells)))
        stopped = _ask_all(planned, evaluation, workspace, workers, console)
    return _say_end(evaluation, stopped, planned, say)


def _on_one_day(config: Config, begun: Evaluation | None) -> Config:
    """Return the configuration with the date that every question is told, that of the evaluation's first day."""
    told = (begun.facts.get("today") or str(begun.facts["started_at"])[:10]) if begun else ""
    day = date.fromisoformat(told) if told else config.agent.today or today(None, None).date
    return replace(config, agent=config.agent.model_copy(update={"today": day}))


def make_plan(config: Config, wanted: EvalOptions, say: Say) -> Planned:
    """What to ask; an evaluation of that name that was begun says what the command line leaves out.

    Raises:
        UserError: no such suite, cell or task, or a cell's model lacks its key.
    """
    begun = None
    if wanted.name and (store.folder_of(config, wanted.name) / store.FACTS_FILE).is_file():
        begun = Evaluation.load(store.folder_of(config, wanted.name))
    before: Mapping[str, Any] = begun.facts if begun else {}
    suite_name = wanted.suite or (begun.suite if begun else "")
    if not suite_name:
        known = store.names(config)
        begun_ones = f", or go on with one by --name: {', '.join(known)}" if known else ""
        ways = "--suite NAME (`okf-agent eval list` has them) or --suite FILE.jsonl"
        raise UserError(f"Which suite? Give {ways}{begun_ones}.", status=2)
    suite = suites.load(suite_name, config)
    if begun:
        plan.refuse_other_files(before, suite)
    wanted = replace(
        wanted,
        suite=suite_name,
        repeat=wanted.repeat or int(before.get("repeat", 1)),
        judge=wanted.judge or before.get("judge"),
        despite_leaks=wanted.despite_leaks or bool(before.get("leaks")),
        budget=_budget(wanted.budget if wanted.budget is not None else before.get("budget_usd")),
    )
    if begun and not wanted.cells and not wanted.model:
        cells = tuple(Cell(**values) for values in before.get("cells", ()))
    else:
        cells = choose_cells(config, wanted.cells, wanted.model, say)
    for model in sorted({cell.model for cell in cells}):
        choose_model(model, config.model.name, config.model.api_base)
    if begun and not wanted.tasks and wanted.limit is None:
        tasks = plan.choose_tasks(suite, tuple(before.get("tasks", ())), None)
    else:
        tasks = plan.choose_tasks(suite, wanted.tasks, wanted.limit)
    return Planned(suite, cells, tasks, wanted, begun)


def get_ready(planned: Planned, workspace: Workspace, say: Say) -> dict[str, Ready]:
    """Get every database ready, count its rows, and try every cell's knowledge of it; the databases by name.

    Raises:
        UserError: a database cannot be had or is not loaded completely, or a cell has no knowledge of it.
    """
    suite = planned.suite
    found = {}
    for name in dict.fromkeys(task.database for task in planned.tasks):
        ready = workspace.ready(name, say)
        found[name] = ready
        if ready.database and (short := databases.check_rows(suite, ready.database)):
            raise UserError(
                f"The database {name} is not loaded completely: {'; '.join(short)}.\n"
                f"`okf-agent prepare {name} --reload` loads it again."
            )
    for model in dict.fromkeys(cell.model for cell in planned.cells):
        workspace.model(model)
    for cell, (name, ready) in product(planned.cells, found.items()):
        try:
            sources = sources_of(workspace.config, name, ready.documents, ready.bundle, cell, quiet)
            knowledge.prepare(cell.knowledge, planned.tasks[0].question, sources)
        except UserError as error:
            raise UserError(f"cell {cell.name}, database {name}: {error}", status=error.status) from None
    return found


def begin(planned: Planned, config: Config, folder: Path, ready: Mapping[str, Ready], say: Say) -> Evaluation:
    """Look for leaks, and write eval.json or hold what was begun against it.

    Raises:
        UserError: a leak, or a change since it began.
    """
    answers = gold.load(planned.suite)
    hidden = leakage.secrets(planned.suite, answers, {task.id for task in planned.tasks})
    found = leakage.scan(hidden, _readable(config, ready))
    if not planned.wanted.despite_leaks:
        leakage.stop_on(found)
    bundles = plan.contents(config.settings, ready)
    configurations = {cell.name: plan.configuration(config, cell, bundles) for cell in planned.cells}
    facts = plan.facts(folder.name, planned, configurations) | {plan.OWN_SERVER: bool(config.model.api_base)}
    facts |= {"today": str(config.agent.today)}
    facts |= leakage.summary(found)
    facts["seen_holdout"] = _seen_before(planned, folder, facts)
    for remark in (*leakage.remarks(facts), *seen_in_words(facts)):
        say(remark)
    if planned.begun:
        plan.refuse_changes(planned.begun.facts, facts)
    evaluation = planned.begun or Evaluation.create(folder, facts)
    unscored = [task for task in planned.tasks if task.id not in answers]
    if unscored:
        say(f"{len(unscored)} of {len(planned.tasks)} tasks have no gold here: they are asked and stay unscored.")
    if planned.suite.management:
        say(f"{len(planned.suite.management)} management tasks of {planned.suite.name} are out of scope and not asked.")
    return evaluation


def _seen_before(planned: Planned, folder: Path, facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return where the cells were asked held-out tasks before, by name; {} if none is asked now."""
    held = holdout(planned.suite.queries)
    if held.isdisjoint(facts["tasks"]):
        return {}
    return seen_before(facts, (each.facts for each in store.all_in(folder.parent) if each.name != folder.name), held)


def _readable(config: Config, databases: Mapping[str, Ready]) -> list[Path]:
    """Everything on disk that a model may come to read: bundles, documents, what was measured, prompts."""
    settings = config.settings
    places = [Path(prompts.__file__).parent]
    for name, ready in databases.items():
        places += [ready.bundle, settings.bundles / name, settings.bundles.parent / name, settings.profiles / name]
        places += plan.documents_of(ready)
    return [place for place in dict.fromkeys(places) if place.exists()]


def _ask_all(
    planned: Planned, evaluation: Evaluation, workspace: Workspace, workers: worker.Workers, console: Console
) -> str:
    """The questions; why it ended early, "" if it did not."""
    wanted = planned.wanted
    repeat = wanted.repeat or 1
    state = progress.State({cell.name: progress.Count(repeat * len(planned.tasks)) for cell in planned.cells})
    scoring = Scoring(planned.suite, workspace, wanted.judge)
    hints = gold.hints(planned.suite) if any(cell.hints for cell in planned.cells) else {}
    perform: Callable[[Job], Done]
    if workers.remote:
        kept = workspace.replies.folder if isinstance(workspace.replies, Replies) else None
        perform = worker.Remote(workspace.config, kept, wanted.unsafe_role)
    else:
        perform = partial(worker.perform, workspace=workspace)
    wanted_jobs = (
        replace(job, task=replace(job.task, hint=hints.get(job.task.id, ""))) if job.cell.hints else job
        for job in runner.jobs(planned.tasks, planned.cells, repeat)
    )
    if evaluation.facts.get("leaks"):
        wanted_jobs = (replace(job, despite_leaks=True) for job in wanted_jobs)
    with progress.shown(state, console) as display:
        loop = runner.Runner(evaluation, workers, perform, scoring.score, display)
        return loop.run(wanted_jobs, runner.Budget(wanted.budget), workspace.cancel)


def _say_end(evaluation: Evaluation, stopped: str, planned: Planned, say: Say) -> int:
    """Say how it ended, and how to go on; the exit status."""
    again = shlex.join(["okf-agent", "eval", "run", *planned.wanted.config_given, "--name", evaluation.name])
    if stopped == "interrupted":
        say(f"Interrupted. To go on: {again}")
        return 130
    if stopped == "budget":
        budget = planned.wanted.budget or 0.0
        say(f"The next question could pass the budget of ${budget:g}. To go on, with more in all: {again} --budget …")
    elif stopped == "unknown price":
        models = {line["model"] for line in evaluation.runs() if line["cost_usd"] is None}
        say(
            f"What runs of {', '.join(sorted(models))} cost is not known, so no budget can be kept. Set model.prices "
            "in config.yaml, `prices: {MODEL: {input: 0.5, output: 2}}` in dollars per million tokens, and begin anew "
            f"with another --name. Or go on without a budget: {again} --budget inf"
        )
    elif stopped:
        say(f"{runner.FAILURES} runs in a row had no reply of the model: {stopped} Put that right, then: {again}")
    if stopped:
        return 1
    if silent := [line for line in evaluation.runs() if runner.unanswered(line)]:
        example = f"{silent[0]['task_id']}: {silent[0]['error']}"
        say(
            f"Runs without any reply of the model: {len(silent)}, such as {example}\n"
            f"They count as wrong. To ask them again: {again}"
        )
    failing = {line["task_id"]: line["gold_error"] for line in evaluation.scores() if line.get("gold_error")}
    if failing:
        shown = [f"  {task}: {error}" for task, error in failing.items()][:MOST_FAILING]
        more = [f"  and {len(failing) - MOST_FAILING} more"] if len(failing) > MOST_FAILING else []
        tasks = f"{count(len(failing), 'task')}, which {'counts' if len(failing) == 1 else 'count'}"
        say("\n".join([f"Gold fails in {tasks} neither as right nor as wrong:", *shown, *more]))
    if planned.wanted.budget is not None and evaluation.spent()[0] > planned.wanted.budget:
        say(f"That is more than the budget of ${planned.wanted.budget:g}: a question cost more than those before it.")
    say(f"Done: {evaluation.folder}. Its report: okf-agent eval report {evaluation.name}")
    return 0


def _remove_if_empty(folder: Path) -> None:
    """Leave nothing of an evaluation that did not begin."""
    if not (folder / store.FACTS_FILE).exists():
        with suppress(OSError):
            (folder / store.LOCK_FILE).unlink(missing_ok=True)
            folder.rmdir()


def _budget(budget: float | None) -> float | None:
    """None for no bound.

    Raises:
        UserError: no number, which no cost would ever reach.
    """
    if budget is not None and math.isnan(budget):
        raise UserError("--budget nan: give dollars, or inf for no bound.", status=2)
    return None if budget is None or math.isinf(budget) else budget


def _new_name(suite: str) -> str:
    return f"{Path(suite).stem}-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
