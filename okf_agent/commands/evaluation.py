"""`okf-agent eval`: many questions in every cell, checked against gold, and what came of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_agent.commands.options import configured, model_option, say, unsafe_option
from okf_compiler.options import config_given

if TYPE_CHECKING:
    from okf_agent.config import Config

OWN_LINE = '{"question": "How many …?", "database": "shop", "sql": "SELECT …"}'
"""What a file of one's own questions has a line of."""


@click.group("eval")
def evaluation() -> None:
    """Ask the questions of a suite in every cell, score the answers, and show where each one fails."""


@evaluation.command()
@click.option("--suite", metavar="NAME", help="Ask this suite, by name (see `eval list`), or your own .jsonl file.")
@click.option(
    "--cells",
    metavar="FILE|LIST",
    help="Ask in these cells: a file (.yaml, .json), or names: bundle,raw,pack; without: config.yaml's, else as `ask`.",
)
@model_option
@click.option("--tasks", metavar="IDS", help="Ask only these, with commas between; * stands for anything.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Ask only the first N of them.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Ask N at once; without: 4, and 1 of the embedded model."
)
@click.option("--repeat", type=click.IntRange(min=1), metavar="K", help="Ask everything K times.")
@click.option("--name", metavar="NAME", help="Call it NAME, or go on with the one of that name.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="Stop before more is spent on it, in all sittings; inf for no limit.",
)
@click.option("--executor", metavar="ADDRESS", help="Ask on dask://host:port; without: in threads here.")
@click.option("--judge", metavar="MODEL", help="Also ask this model whether each answer matches.")
@click.option("--cache", is_flag=True, help="Keep replies of models, and use those kept of the same request.")
@click.option(
    "--despite-leaks", is_flag=True, help="Ask although a model can read answers; records and reports say so."
)
@unsafe_option
def run(tasks: str | None, **options: Any) -> None:
    """Run a suite, or go on where it stopped. Safe to stop in any way: what finished is kept.

    Exit status: 0 when everything is done, 1 when it stopped before (a budget, a model that is not there, a leak),
    2 for a wrong call or a change since it began, 130 when interrupted.
    """
    from okf_agent.evaluation.evaluate import run as evaluate
    from okf_agent.evaluation.plan import EvalOptions
    from okf_compiler.terminal import Console

    patterns = tuple(part.strip() for part in (tasks or "").split(",") if part.strip())
    file, changes = config_given()
    given = (*(("--config", str(file)) if file else ()), *(part for change in changes for part in ("--set", change)))
    wanted = EvalOptions(tasks=patterns, config_given=given, **options)
    sys.exit(evaluate(configured(), wanted, Console(sys.stderr)))


@evaluation.command()
@click.argument("name", default="last")
def report(name: str) -> None:
    """Write the report of the evaluation NAME (without: the latest): one HTML file and a markdown one."""
    from okf_agent.evaluation import explain, store
    from okf_agent.evaluation import report as reports

    config = configured()
    folder = store.find(config, name).folder
    for path in reports.write(folder, explain.explainer(config, folder, say)):
        click.echo(path)


@evaluation.command()
@click.argument("a")
@click.argument("b")
def compare(a: str, b: str) -> None:
    """Compare two evaluations, or two cells of one (NAME:CELL; last:CELL of the latest), question by question."""
    from okf_agent.evaluation import store
    from okf_agent.evaluation.compare import Side
    from okf_agent.evaluation.compare import compare as compared

    def side(text: str) -> Side:
        """`NAME` or `NAME:CELL`; a path may have a colon too."""
        whole = (Path(text) / store.FACTS_FILE).is_file()
        name, _, cell = (text, "", "") if whole or ":" not in text else text.rpartition(":")
        return Side(store.find(configured(), name).folder, cell)

    click.echo(compared(side(a), side(b)))


@evaluation.command()
@click.argument("task")
@click.argument("name", default="last")
def show(task: str, name: str) -> None:
    """Show how each cell of NAME (without: the latest) answered TASK, step by step, and why it is right or wrong."""
    from okf_agent.evaluation import explain, store
    from okf_agent.evaluation import show as showing

    config = configured()
    folder = store.find(config, name).folder
    click.echo(showing.show(folder, task, explain.explainer(config, folder, say)))


@evaluation.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--suite", required=True, metavar="NAME", help="Score them as answers of this suite.")
@click.option("--judge", metavar="MODEL", help="Also ask this model whether each answer matches.")
@click.option(
    "--speed", type=click.IntRange(min=1), metavar="N", help="Run right queries N times, for R-VES (BIRD: 100)."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write a line a task to FILE.")
def score(file: Path, **options: Any) -> None:
    """Score predictions made elsewhere: FILE has lines with `task_id` and `sql`.

    Exit status: 2 when it cannot be read, or the suite is not known.
    """
    from okf_agent.evaluation.predictions import ScoreOptions, score_file

    score_file(configured(), ScoreOptions(file, **options), click.echo)


@evaluation.command("list")
def list_all() -> None:
    """List the suites, here or to be had, and the evaluations of this workspace."""
    from okf_agent.evaluation import store

    config = configured()
    _list_suites(config)
    click.echo(f"{'questions of your own':24} `okf-agent eval run --suite FILE.jsonl`, lines of {OWN_LINE}")
    for name in store.names(config):
        found = store.Evaluation.load(store.folder_of(config, name))
        cells = ", ".join(cell["name"] for cell in found.facts["cells"])
        wanted = len(found.facts["tasks"]) * len(found.facts["cells"]) * found.facts["repeat"]
        click.echo(f"{name}: {found.facts['suite']} in {cells}; {len(found.runs())} of {wanted} runs")


@click.group("data")
def data() -> None:
    """Bring public suites from their publishers."""


@data.command()
@click.argument("name")
@click.option("--update", is_flag=True, help="Take what the publisher has now, and pin that instead.")
def get(name: str, update: bool) -> None:
    """Bring the documents and tasks of the suite NAME to data/, or what is missing of them.

    The first time pins the publisher's revision and the SHA-256 of every file; later times bring the same bytes.

    Exit status: 1 when something cannot be fetched or is not what was pinned.
    """
    from okf_agent.downloads import suites as publishers
    from okf_agent.downloads.fetch import progress_bar

    with progress_bar(name) as progress:
        got = publishers.get(configured().settings, name, update=update, progress=progress)
    click.echo(f"{got.folder}: {got.files} files, {got.fetched} of them fetched now.")
    if got.first:
        click.echo(f"Nothing was pinned before, so these are trusted as they came; {publishers.LOCK} pins them now.")
    click.echo(got.content)


@data.command("list")
def list_data() -> None:
    """List the suites that can be had, and whether they are here."""
    _list_suites(configured())


def _list_suites(config: Config) -> None:
    from okf_agent.evaluation import suites

    for suite in suites.listed(config):
        click.echo(f"{suite.name:24} {suite.folder or 'not here: ' + suite.get}")
