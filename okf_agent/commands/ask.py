"""`okf-agent ask`: one question of the command line, and its answer as people or as scripts want it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from okf_agent.ask import Asked, Outcome, Workspace, ask, check
from okf_agent.cell import Cell, choose_cell
from okf_agent.config import Config
from okf_agent.prepare import quiet
from okf_agent.results import compare, output
from okf_agent.results.answers import grounds_of
from okf_agent.results.asking import close, show_answer
from okf_agent.results.formats import Format, Written
from okf_agent.results.one_object import OneObject
from okf_agent.results.terminal import Progress
from okf_agent.tasks import find_task
from okf_agent.wording import count
from okf_compiler.documents import only_database
from okf_compiler.errors import UserError
from okf_compiler.options import print_json
from okf_compiler.terminal import Console


@dataclass(frozen=True)
class AskOptions:
    """The arguments of `ask`."""

    question: str | None = None
    """`-` or None: from standard input."""
    task: str | None = None
    db: str | None = None
    knowledge: str | None = None
    without: str = ""
    model: str | None = None
    bundle: Path | None = None
    quiet: bool = False
    as_json: bool = False
    format: Format | None = None
    output: Path | None = None
    guard_formulas: bool = False
    """Put a ' before the CSV cells that a spreadsheet would run."""
    unsafe_role: bool = False
    chart: bool | None = None
    compare: bool = False

    def check(self) -> None:
        """Refuse what does not go together.

        Raises:
            UserError: names the two.
        """
        pairs = {
            ("--json", "--quiet"): self.as_json and self.quiet,
            ("--json", "--format"): self.as_json and self.format is not None and self.output is None,
            ("--compare", "--knowledge raw"): self.compare and self.knowledge == "raw",
            ("--compare", "--quiet"): self.compare and self.quiet,
            ("--compare", "--format"): self.compare and self.format is not None,
            ("--compare", "--output"): self.compare and self.output is not None,
        }
        for (one, other), both in pairs.items():
            if both:
                raise UserError(f"{one} and {other} do not go together. Give one of them.", status=2)


def run(config: Config, wanted: AskOptions, one: OneObject) -> int:
    """Ask and show; the exit status. `one` learns when the object of --json is begun.

    Raises:
        UserError: a wrong call, or something the question needs cannot be had.
    """
    wanted.check()
    asked = question_of(config, wanted)
    if wanted.output:
        output.check_target(wanted.output)
        wanted = replace(wanted, format=wanted.format or output.format_for(wanted.output))
    err = Console(sys.stderr)
    cell = choose_cell(config, wanted.model, wanted.knowledge, partial(err.say, style="dim"), wanted.without)
    with Workspace(config, wanted.bundle, unsafe_role=wanted.unsafe_role) as workspace:
        if wanted.compare:
            return _compare(asked, cell, workspace, wanted, one)
        with Progress(err, quiet=wanted.quiet and not wanted.as_json) as progress:
            outcome = ask(asked, cell, workspace, progress, progress.say)
        try:
            return (_give_json if wanted.as_json else _give)(asked, outcome, workspace, wanted, one)
        finally:
            close(outcome, cell, err, quiet=wanted.quiet)


def question_of(config: Config, wanted: AskOptions) -> Asked:
    """The question, from the argument, a task or standard input.

    Raises:
        UserError: neither a question nor a task, or both; an unknown task or database.
    """
    if wanted.task is not None:
        if wanted.question is not None:
            raise UserError("Give a question or --task ID, not both.", status=2)
        task = find_task(config.settings, wanted.task)
        return Asked(task.question, wanted.db or task.database, task.id)
    text = wanted.question
    if text == "-" or (text is None and not sys.stdin.isatty()):
        text = _standard_input()
        if not text.strip():
            text = None
    if text is None:
        raise UserError(
            'Give a question or --task ID, or write the question to standard input: okf-agent ask "How many …?"',
            status=2,
        )
    if any("\udc80" <= character <= "\udcff" for character in text):  # bytes that the locale has no character for
        text = os.fsencode(text).decode("utf-8", "replace")
    return Asked(text, wanted.db or only_database(config.settings))


def _standard_input() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return data.decode(sys.stdin.encoding or "latin-1", "replace").strip()


def _give(asked: Asked, outcome: Outcome, workspace: Workspace, wanted: AskOptions, _: OneObject) -> int:
    """Print the answer, and write the rows where a format asks for them; the exit status."""
    out, err = Console(sys.stdout), Console(sys.stderr)
    to_pipe = wanted.quiet or (wanted.format and not wanted.output)
    if not to_pipe and outcome.run.answer is not None:
        show_answer(asked, outcome, workspace, out, wanted.chart)
    status = outcome.exit_status
    if wanted.format and not _write(asked, outcome, workspace, wanted, err):
        status = status or (1 if wanted.output else 0)
    if to_pipe:
        _say_answer(outcome, wanted, out, err)
    return status


def _give_json(asked: Asked, outcome: Outcome, workspace: Workspace, wanted: AskOptions, one: OneObject) -> int:
    """Print everything as one object, which also says whether the file was written; the exit status."""
    err = Console(sys.stderr)
    facts = output.everything(outcome, grounds_of(asked, outcome, workspace))
    if wanted.output:
        try:
            written = _write(asked, outcome, workspace, wanted, err)
            facts["output_error"] = "" if written else "no query of this answer ran"
        except UserError as error:
            err.say(str(error), "red")
            facts["output_error"] = str(error)
        facts["exit_status"] = outcome.exit_status or (1 if facts["output_error"] else 0)
    database = workspace.ready(asked.database, quiet).database if outcome.run.result else None
    return output.write_json(facts, outcome, database, output.standard_output(), one)


def _say_answer(outcome: Outcome, wanted: AskOptions, out: Console, err: Console) -> None:
    """The answer in words: on standard output where it is what was asked for, else beside the rows or not at all."""
    if outcome.run.answer is None:
        return
    if wanted.quiet and (wanted.output or not wanted.format):
        out.say(outcome.run.answer.answer)
    elif not wanted.quiet:
        err.say(outcome.run.answer.answer, "bold")


def _write(asked: Asked, outcome: Outcome, workspace: Workspace, wanted: AskOptions, err: Console) -> bool:
    """Write the rows to the file or to standard output; False where there are none to write."""
    answer, result = outcome.run.answer, outcome.run.result
    assert wanted.format
    if answer is None or result is None or answer.checked == "error":
        if wanted.output:
            err.say(f"{wanted.output} was not written: no query of this answer ran.", "red")
        return False
    database = workspace.ready(asked.database, quiet).database
    query, how = output.Query(answer.sql, result, database), Written(wanted.format, wanted.guard_formulas)
    if wanted.output is None:
        output.write_rows(query, how, output.standard_output())
        return True
    rows = output.save(query, wanted.output, how, err)
    if not wanted.quiet:
        err.say(f"{count(rows, 'row')} written to {wanted.output}", "dim")
    return True


def _compare(asked: Asked, cell: Cell, workspace: Workspace, wanted: AskOptions, one: OneObject) -> int:
    """As configured and with other knowledge, one after the other, and both shown; the worse exit status.

    Raises:
        UserError: one of the two cannot work; nothing was asked.
    """
    out, err = Console(sys.stdout), Console(sys.stderr)
    cells = [replace(cell, knowledge=mode) for mode in (cell.knowledge, compare.other_knowledge(cell.knowledge))]
    for each in cells:
        check(asked, each, workspace, partial(err.say, style="dim"))
    runs: list[compare.OneRun] = []
    problem: UserError | None = None
    for each in cells:
        if not wanted.as_json:
            err.say(f"{each.knowledge}:", "bold")
        try:
            with Progress(err) as progress:
                outcome = ask(asked, each, workspace, progress, progress.say)
        except UserError as error:
            problem = error
            break
        close(outcome, each, err)
        runs.append((each, outcome))
        if outcome.run.stop_reason == "interrupted":
            break
    if problem and not runs:
        raise problem
    status = max([outcome.exit_status for _, outcome in runs] + [problem.status if problem else 0])
    if wanted.as_json:
        one.begin()
        print_json({"exit_status": status, "error": str(problem or ""), **_compared(asked, runs, workspace)})
    elif len(runs) == 2:
        out.print(*compare.side_by_side(*runs), sep="\n")
    elif runs[0][1].run.answer:
        (_, outcome), *_ = runs
        show_answer(asked, outcome, workspace, out, wanted.chart)
    if problem:
        err.say(str(problem), "red")
    return status


def _compared(asked: Asked, runs: list[compare.OneRun], workspace: Workspace) -> dict[str, Any]:
    """Both runs, with the rows that were shown, and the rows that differ; an interrupted one is the last."""
    found = compare.compared(*runs) if len(runs) == 2 else None
    only = found.rows_only if found else None
    return {
        "runs": [
            {
                **output.everything(outcome, grounds_of(asked, outcome, workspace)),
                "rows": None if outcome.run.result is None else outcome.run.result.rows,
            }
            for _, outcome in runs
        ],
        "same_rows": None if only is None else not any(only),
        "all_rows_compared": found is not None and only is not None and not found.rows_cut,
        "only_in": {} if only is None else dict(zip(compare.names(*runs), only, strict=True)),
    }
