"""`okf-agent runs`: the records, listed, filtered, shown step by step, followed, compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_agent.commands.options import complete, configured, say
from okf_compiler.options import json_option, print_json

if TYPE_CHECKING:
    from okf_agent.records.runs import Found, Record, RunFilter
    from okf_compiler.terminal import Console

LISTED = 20
"""Runs of a list where --last does not say."""


def filters(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose runs."""
    options = [
        click.option(
            "--db", default="", metavar="DB", shell_complete=complete("databases"), help="Take runs over this database."
        ),
        click.option(
            "--knowledge", "--mode", "mode", default="", metavar="NAME", shell_complete=complete("knowledge"),
            help="Take runs with this knowledge: bundle, raw, pack, …",
        ),
        click.option("--model", default="", metavar="TEXT", help="Take runs whose model has TEXT in its name."),
        click.option(
            "--stop-reason", default="", metavar="REASON", help="Take runs that ended so: submitted, step_limit, …"
        ),
        click.option("--task", default="", metavar="ID", help="Take runs of this task."),
        click.option(
            "--since", default="", metavar="TIME", help="Take runs since a date (2026-11-01) or for so long (2h, 7d)."
        ),
        click.option(
            "--last", type=click.IntRange(min=1), metavar="N", help=f"Take the latest N; a list has {LISTED}."
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


class Runs(click.Group):
    """`runs` and its commands; an id alone, which looks like a command's name, gets a hint."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and (args[0][:1].isdigit() or args[0] == "last"):  # else the shell completes
            raise click.UsageError(f"{args[0]!r} is no command. To show that run: okf-agent runs show {args[0]}", ctx)
        return super().resolve_command(ctx, args)


@click.group(invoke_without_command=True, cls=Runs)
@filters
@click.option("--stats", is_flag=True, help="Show figures by knowledge and model instead.")
@json_option
def runs(stats: bool, as_json: bool, last: int | None, **chosen: str) -> None:
    """List the runs, latest last; show one, follow them, compare two. Those of evaluations: `okf-agent eval`.

    With --json each run is its record, and what people said of it as `feedback`.

    Exit status: 1 when there is no such run, or only a part of an id that several have.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from okf_agent.records import runs as records

    folder = configured().runs
    count = last if last is not None or stats or as_json else LISTED
    found = records.read_runs(folder, _wanted(**chosen), count)
    feedback = records.read_feedback(folder)
    _say_skipped(folder, found)
    if stats:
        _print_statistics(records.statistics(found.records, feedback), as_json)
        return
    for record in found.records:
        _print_run(record, feedback.get(record["run_id"], ()), as_json)
    if not found.records and not as_json:
        say(f"No such runs in {folder}.")


@runs.command()
@click.argument("run_id", metavar="[ID]", default="last")
@click.option("--full", is_flag=True, help="Print every text whole, the instructions too.")
@json_option
def show(run_id: str, full: bool, as_json: bool) -> None:
    """Show the run ID step by step: without one, or with `last`, the latest; a part of an id is enough."""
    from okf_agent.records import runs as records
    from okf_agent.records import view as runs_view

    folder = configured().runs
    record = records.find_run(folder, run_id)
    steps = records.steps_of(folder, record["run_id"])
    said = records.read_feedback(folder).get(record["run_id"], [])
    if as_json:
        print_json({"record": record, "steps": steps, "feedback": [vars(one) for one in said]})
        return
    out = _console()
    for line in runs_view.run_lines(record, said):
        out.say(line)
    if not steps:
        say("Its steps are not kept any more (trace.keep_days).")
    for event in steps:
        if full or event["event"] != "Instructions":
            for line in runs_view.step_lines(event, full):
                out.say(line)
    for line in runs_view.end_lines(record):
        out.say(line)


@runs.command()
@click.argument("run_id", metavar="[ID]", required=False)
@json_option
def tail(run_id: str | None, as_json: bool) -> None:
    """Show each run as it ends, or each step of the run ID as it happens; Ctrl-C leaves."""
    from okf_agent.records import runs as records
    from okf_agent.records import view as runs_view
    from okf_agent.records.json_lines import follow
    from okf_agent.records.trace import RUNS_FILE

    folder = configured().runs
    if run_id is None:
        path = folder / RUNS_FILE
        for record in follow(path, start=path.stat().st_size if path.exists() else 0):
            if records.is_record(record):
                _print_run(record, (), as_json)
        return
    out = _console()
    for event in follow(_steps_file(folder, run_id), start=0):
        if as_json:
            print_json(event)
        for line in () if as_json else runs_view.step_lines(event, False):
            out.say(line)
        if event.get("event") == "Finished":
            return


@runs.command()
@click.argument("a")
@click.argument("b")
@json_option
def compare(a: str, b: str, as_json: bool) -> None:
    """Show the runs A and B of one question side by side: files, tokens, cost, rows that differ."""
    from okf_agent.records import runs as records
    from okf_agent.records import view as runs_view

    folder = configured().runs
    one, other = records.find_run(folder, a), records.find_run(folder, b)
    found = records.compare(one, other, records.kept_rows(folder, one), records.kept_rows(folder, other))
    if as_json:
        print_json(vars(found))
        return
    out = _console()
    for part in runs_view.comparison_view(found, (one["run_id"], other["run_id"])):
        out.print(part)


def _wanted(db: str, mode: str, model: str, stop_reason: str, task: str, since: str) -> RunFilter:
    from okf_agent.records.runs import RunFilter, parse_since

    return RunFilter(db, mode, model, stop_reason, task, parse_since(since) if since else None)


def _steps_file(folder: Path, run_id: str) -> Path:
    """The steps file of a run that may live still.

    Raises:
        UserError: there is none, or several.
    """
    from okf_compiler.errors import UserError

    known = sorted((folder / "steps").glob("*.jsonl"))
    if not known:
        raise UserError(f"There are no steps of runs in {folder / 'steps'}. `okf-agent ask` makes a run.")
    files = known[-1:] if run_id == "last" else [file for file in known if run_id in file.stem]
    if len(files) != 1:
        raise UserError(
            f"{len(files) or 'No'} runs in {folder / 'steps'} have {run_id!r} in their id. `okf-agent runs` lists them."
        )
    return files[0]


def _say_skipped(folder: Path, found: Found) -> None:
    from okf_agent.records.trace import RUNS_FILE

    if found.skipped:
        lines = "1 line is no record" if found.skipped == 1 else f"{found.skipped} lines are no records"
        say(f"{folder / RUNS_FILE}: {lines} and left out: {found.example!r}")


def _print_run(record: Record, said: Sequence[Any], as_json: bool) -> None:
    from okf_agent.records import view as runs_view

    if as_json:
        print_json({**record, "feedback": [vars(one) for one in said]})
        return
    out = _console()
    for line in runs_view.run_lines(record, said):
        out.say(line)


def _print_statistics(figures: Sequence[Any], as_json: bool) -> None:
    from okf_agent.records import view as runs_view

    if not as_json:
        _console().print(runs_view.statistics_view(figures))
        return
    for each in figures:
        print_json(each)


def _console() -> Console:
    from okf_compiler.terminal import Console

    return Console(sys.stdout)
