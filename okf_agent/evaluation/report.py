"""The report of an evaluation: one HTML file that needs nothing else, and the same tables in markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from okf_agent.evaluation import figures, leakage, plots
from okf_agent.evaluation.compare import paired
from okf_agent.evaluation.figures import CellFigures, Explains, Scored
from okf_agent.evaluation.shown_steps import MOST_CHARS, Step, shortened, steps_of
from okf_agent.evaluation.split import seen_in_words
from okf_agent.evaluation.store import Evaluation
from okf_agent.evaluation.wording import (
    HOW_TO_READ,
    hundred,
    interval,
    markdown_text,
    number,
    p_value,
    percent,
    plain,
    points,
    short,
    when,
)
from okf_agent.extras import need
from okf_agent.wording import dollars
from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment

HTML, MARKDOWN = "report.html", "report.md"
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class RunPage:
    """One run on the page of its question."""

    scored: Scored
    steps: Sequence[Step]


@dataclass(frozen=True)
class TaskPage:
    """A question with every run of every cell."""

    id: str
    database: str
    difficulty: str
    question: str
    holdout: bool
    cells: Mapping[str, Sequence[RunPage]]
    """The runs of each cell, in the order of repeats."""

    def verdict(self, cell: str) -> str:
        """`right`, `wrong`, `mixed`, `unscored` or `none`, over the cell's repeats."""
        runs = self.cells.get(cell, ())
        verdicts = {run.scored.strict for run in runs if run.scored.strict is not None}
        if not verdicts:
            return "unscored" if runs else "none"
        return "mixed" if len(verdicts) == 2 else "right" if True in verdicts else "wrong"

    def misses(self, cell: str) -> str:
        kinds = [run.scored.miss.kind for run in self.cells.get(cell, ()) if run.scored.miss]
        return ", ".join(dict.fromkeys(kinds))


def write(folder: Path, explain: Explains | None = None) -> tuple[Path, Path]:
    """Write report.html and report.md into an evaluation's folder; gives both paths.

    `explain` names the misses that the scores do not, and counts detours (`explain.explainer`).

    Raises:
        UserError: no evaluation, no run in it, the extra `eval` is missing, or the files cannot be written.
    """
    environment = _environment()
    evaluation = Evaluation.load(folder)
    cells = figures.read(evaluation, explain)
    if not any(cell.runs for cell in cells):
        raise UserError(f"{folder} has no finished run yet; `okf-agent eval run` makes some.")
    pages, tokens = _pages(evaluation, cells)
    content = _content(evaluation, cells, pages, tokens)
    paths = folder / HTML, folder / MARKDOWN
    for path in paths:
        text = environment.get_template(f"{path.name}.j2").render(content)
        try:
            write_whole(path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise UserError(f"The report cannot be written to {path}: {error.strerror or error}.") from None
    return paths


def _content(
    evaluation: Evaluation, cells: Sequence[CellFigures], pages: Sequence[TaskPage], tokens: Mapping[str, list[float]]
) -> dict[str, Any]:
    """Everything that the templates name."""
    kinds = figures.miss_kinds(cells)
    shares = {c.name: {k: n / len(c.scored) for k, n in c.misses.items()} for c in cells if c.scored}
    known = [cell for cell in cells if cell.scored]
    tries = range(1, int(evaluation.facts.get("repeat") or 1) + 1)
    comparisons = [paired(a, b) for i, a in enumerate(known) for b in known[i + 1 :]]
    return {
        "facts": evaluation.facts,
        "name": evaluation.name,
        "cells": cells,
        "colours": plots.COLOURS,
        "differing": _differing(cells),
        "pages": pages,
        "comparisons": comparisons,
        "drawn": "databases" if any(each.databases > 1 for each in comparisons) else "tasks",
        "kinds": kinds,
        "difficulties": _names(known, "difficulty"),
        "databases": _names(known, "database"),
        "unscored": _unscored(cells),
        "remarks": _remarks(evaluation.facts, cells),
        "other_scores": any(c.mean("soft_f1") is not None or c.judged is not None for c in cells),
        "tries": tries,
        "repeated": len(tries) > 1,
        "how_to_read": HOW_TO_READ,
        "reading": [cell for cell in cells if any(run.run.get("files_opened") for run in cell.runs)],
        "plots": {
            "cost": plots.scatter({c.name: (c.cost, c.accuracy) for c in cells}, "mean cost", "$ a question"),
            "seconds": plots.scatter({c.name: (c.seconds, c.accuracy) for c in cells}, "median time", "s a question"),
            "tokens": plots.steps(tokens),
            "misses": plots.misses(kinds, shares),
        },
    }


def _pages(evaluation: Evaluation, cells: Sequence[CellFigures]) -> tuple[list[TaskPage], dict[str, list[float]]]:
    """A page a task, in the order of eval.json, and the median input tokens of each cell's first, second, … call."""
    runs = [run for cell in cells for run in cell.runs]
    most = MOST_CHARS // max(1, len(runs))
    tokens: dict[str, dict[int, list[int]]] = {cell.name: defaultdict(list) for cell in cells}
    grouped: dict[str, dict[str, list[RunPage]]] = defaultdict(lambda: {cell.name: [] for cell in cells})
    for run in sorted(runs, key=lambda run: run.repeat):
        steps = steps_of(evaluation.steps(str(run.run["run_id"])))
        for step in steps:
            if step.input_tokens is not None:
                tokens[run.cell][step.number].append(step.input_tokens)
        grouped[run.task_id][run.cell].append(RunPage(run, shortened(steps, most)))
    order = {str(task): i for i, task in enumerate(evaluation.facts.get("tasks", ()))}
    pages = [_page(task, found) for task, found in grouped.items()]
    pages.sort(key=lambda page: (order.get(page.id, len(order)), page.id))
    medians = {name: [float(median(values)) for _, values in sorted(found.items())] for name, found in tokens.items()}
    return pages, medians


def _page(task: str, found: Mapping[str, list[RunPage]]) -> TaskPage:
    first = next(run.scored for runs in found.values() for run in runs)
    scores = [run.scored.score for runs in found.values() for run in runs if run.scored.score]
    score = scores[0] if scores else {}
    return TaskPage(
        id=task,
        database=str(first.run.get("database") or ""),
        difficulty=str(score.get("difficulty") or ""),
        question=str(first.run.get("question") or ""),
        holdout=bool(score.get("holdout")),
        cells=found,
    )


def _unscored(cells: Sequence[CellFigures]) -> str:
    """Why there is no verdict at all; "" where there is one."""
    if any(cell.scored for cell in cells):
        return ""
    if any(cell.gold_errors for cell in cells):
        return "Nothing is scored: every gold query fails."
    reasons = {str(run.score.get("reason") or "") for cell in cells for run in cell.runs}
    if reasons == {"no gold"}:
        return "Nothing is scored: this suite has no gold here."
    return f"Nothing is scored: {'; '.join(sorted(reasons - {''})) or 'the runs wait for it'}."


def _remarks(facts: Mapping[str, Any], cells: Sequence[CellFigures]) -> list[str]:
    """What a reader of the figures has to know, a sentence each."""
    wanted = len(facts.get("tasks") or ()) * len(facts.get("cells") or ()) * int(facts.get("repeat") or 1)
    done = sum(len(cell.runs) for cell in cells)
    waiting = sum(not run.score for cell in cells for run in cell.runs)
    found = [f"Not finished: {done} of {wanted} runs are done."] if done < wanted else []
    found += [f"{waiting} runs are not scored yet."] if waiting else []
    if outside := facts.get("out_of_scope"):
        found.append(f"{outside} management tasks of the suite change the database: not asked, and not counted.")
    found += map(str, facts.get("notes") or ())
    found += leakage.remarks(facts) + seen_in_words(facts)
    for cell in cells:
        if cell.gold_errors:
            found.append(f"{cell.name}: gold fails in {cell.gold_errors} of {len(cell.runs)} runs: not counted.")
        if cell.cost_unknown:
            found.append(f"{cell.name}: the cost of {cell.cost_unknown} of {len(cell.runs)} runs is not known.")
        if cell.tokens_unknown:
            found.append(f"{cell.name}: the tokens of {cell.tokens_unknown} of {len(cell.runs)} runs are not known.")
        if cell.cached_calls:
            found.append(
                f"{cell.name}: {cell.cached_calls} calls were answered by kept replies, at no cost and in no time: its "
                "cost and seconds are lower than those of a fresh run."
            )
    return found


def _names(cells: Sequence[CellFigures], field: str) -> list[str]:
    """The values of a field of the scores, in the order they occur."""
    return [*dict.fromkeys(name for cell in cells for name in cell.by(field))]


def _differing(cells: Sequence[CellFigures]) -> dict[str, str]:
    """What tells each cell from the others: the settings that are not the same in all of them."""
    names = [*dict.fromkeys(name for cell in cells for name in cell.settings if name != "name")]
    shown = [name for name in names if name == "model" or len({str(cell.settings.get(name)) for cell in cells}) > 1]
    return {cell.name: ", ".join(_setting(name, cell.settings.get(name)) for name in shown) for cell in cells}


def _setting(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{'with' if value else 'without'} {name}"
    return str(value) if name in ("model", "knowledge") else f"{name} {value}"


def _environment() -> Environment:
    """Templates in which every text of a record is escaped, for HTML or for markdown.

    Raises:
        UserError: what it takes, or what its plots take, is not installed.
    """
    need("A report", "eval", "jinja2", "matplotlib")
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "interval": interval,
        "points": points,
        "short": short,
        "hundred": hundred,
        "p_value": p_value,
        "number": number,
        "dollars": dollars,
        "when": when,
        "plain": plain,
        "markdown": markdown_text,
    }
    return environment
