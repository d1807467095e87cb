"""`okf-agent runs`: the records, listed, filtered, shown step by step, followed, compared."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from okf_agent.records.runs import Found, Record, Wanted

LISTED = 20
"""Runs of a list where --last does not say."""


def filters(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose runs."""
    options = [
        click.option("--db", default="", metavar="DB", help="Of this database."),
        click.option("--mode", default="", metavar="MODE", help="Of this mode: bundle, raw, pack, …"),
        click.option("--model", default="", metavar="TEXT", help="Whose model has this in its name."),
        click.option("--stop-reason", default="", metavar="REASON", help="That ended so: submitted, step_limit, …"),
        click.option("--task", default="", metavar="ID", help="Of this task."),
        click.option("--since", default="", metavar="TIME", help="Since a date (2026-11-01) or for so long (2h, 7d)."),
        click.option("--last", type=click.IntRange(min=1), metavar="N", help=f"The latest N; a list has {LISTED}."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


json_option = click.option("--json", "as_json", is_flag=True, help="JSON for programs.")


@click.group(invoke_without_command=True)
@filters
@click.option("--stats", is_flag=True, help="Figures by mode and model: runs, success, steps, tokens, cost, seconds.")
@json_option
def runs(stats: bool, as_json: bool, last: int | None, **chosen: str) -> None:
    """List the runs, latest last; show one, follow them, compare two.

    With --json a list is one JSON object a line: the record, and what people said of it as `feedback`.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from okf_agent.records import runs as records

    folder = _folder()
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
        click.echo(f"No such runs in {folder}.", err=True)


@runs.command()
@click.argument("run_id", metavar="ID")
@click.option("--full", is_flag=True, help="Every text whole, the instructions too.")
@json_option
def show(run_id: str, full: bool, as_json: bool) -> None:
    """Show the run ID step by step; a part of the id is enough, `last` is the latest."""
    from okf_agent.records import runs as records
    from okf_agent.records import view as runs_view

    folder = _folder()
    record = records.find_run(folder, run_id)
    steps = records.steps_of(folder, record["run_id"])
    said = records.read_feedback(folder).get(record["run_id"], [])
    if as_json:
        _print_json({"record": record, "steps": steps, "feedback": [vars(one) for one in said]})
        return
    out = _console()
    for line in runs_view.run_lines(record, said):
        out.print(line, soft_wrap=True)
    if not steps:
        click.echo("Its steps are not kept any more (trace.keep_days).", err=True)
    for event in steps:
        if full or event["event"] != "Instructions":
            for line in runs_view.step_lines(event, full):
                out.print(line, soft_wrap=True)
    for line in runs_view.end_lines(record):
        out.print(line, soft_wrap=True)


@runs.command()
@click.argument("run_id", metavar="[ID]", required=False)
@json_option
def tail(run_id: str | None, as_json: bool) -> None:
    """Show each run as it ends, or each step of the run ID as it happens; Ctrl-C leaves."""
    from okf_agent.records import runs as records
    from okf_agent.records import view as runs_view
    from okf_agent.records.trace import RUNS_FILE

    folder = _folder()
    if run_id is None:
        path = folder / RUNS_FILE
        for record in records.follow(path, start=path.stat().st_size if path.exists() else 0):
            if records.is_record(record):
                _print_run(record, (), as_json)
        return
    out = _console()
    for event in records.follow(_steps_file(folder, run_id), start=0):
        if as_json:
            _print_json(event)
        for line in () if as_json else runs_view.step_lines(event, False):
            out.print(line, soft_wrap=True)
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

    folder = _folder()
    found = records.compare(folder, records.find_run(folder, a), records.find_run(folder, b))
    if as_json:
        _print_json(vars(found))
        return
    out = _console()
    for part in runs_view.comparison_view(found):
        out.print(part)


def _folder() -> Path:
    from okf_agent.config import load_config

    meta = click.get_current_context().meta
    return load_config(file=meta.get("config"), changes=meta.get("set", ())).runs


def _wanted(db: str, mode: str, model: str, stop_reason: str, task: str, since: str) -> Wanted:
    from okf_agent.records.runs import Wanted, parse_since

    return Wanted(db, mode, model, stop_reason, task, parse_since(since) if since else None)


def _steps_file(folder: Path, run_id: str) -> Path:
    """The steps file of a run that may live still.

    Raises:
        UserError: there is none, or several.
    """
    from okf_compiler.errors import UserError

    files = [file for file in sorted((folder / "steps").glob("*.jsonl")) if run_id in file.stem]
    if run_id == "last" and not files:
        files = sorted((folder / "steps").glob("*.jsonl"))[-1:]
    if len(files) != 1:
        raise UserError(
            f"{len(files) or 'No'} runs in {folder / 'steps'} have {run_id!r} in their id; give the whole id."
        )
    return files[0]


def _say_skipped(folder: Path, found: Found) -> None:
    if found.skipped:
        lines = "1 line is no record" if found.skipped == 1 else f"{found.skipped} lines are no records"
        click.echo(f"{folder / 'runs.jsonl'}: {lines} and left out: {found.example!r}", err=True)


def _print_run(record: Record, said: Sequence[Any], as_json: bool) -> None:
    from okf_agent.records import view as runs_view

    if as_json:
        _print_json({**record, "feedback": [vars(one) for one in said]})
        return
    out = _console()
    for line in runs_view.run_lines(record, said):
        out.print(line, soft_wrap=True)


def _print_statistics(figures: Sequence[Any], as_json: bool) -> None:
    from okf_agent.records import view as runs_view

    if as_json:
        _print_json(figures)
    else:
        _console().print(runs_view.statistics_view(figures))


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, ensure_ascii=sys.stdout.isatty(), default=str))


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
