"""`okf-agent eval show`: one task in the terminal, how each cell answered it, step by step, and where it went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from okf_agent.evaluation import figures
from okf_agent.evaluation.figures import Explains, Scored
from okf_agent.evaluation.shown_steps import shortened, steps_of
from okf_agent.evaluation.store import Evaluation
from okf_agent.evaluation.wording import number
from okf_agent.wording import count, dollars
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert, inert_lines

MOST_CHARS = 12_000
"""Of the steps of one run."""


def show(folder: Path, task: str, explain: Explains | None = None) -> str:
    """Question, then verdict, miss, answer and steps of every run of a task, by cell; safe to print.

    Raises:
        UserError: no evaluation, or no run of that task in it.
    """
    evaluation = Evaluation.load(folder)
    runs = [run for cell in figures.read(evaluation, explain) for run in cell.runs]
    wanted = [run for run in runs if run.task_id == task]
    if not wanted:
        known = {run.task_id for run in runs}
        raise UserError(f"{evaluation.name} has no finished run of task {task!r}{did_you_mean(task, known)}", status=2)
    first = wanted[0]
    leaks = ["A model could read answers (--despite-leaks)."] if evaluation.leaks else []
    head = [f"{task} ({first.run.get('database')}) in {evaluation.name}", str(first.run.get("question") or ""), *leaks]
    parts = ["\n".join(map(inert_lines, head))]
    for run in wanted:
        steps = [*_steps(evaluation, run)] or ["  Its steps are not kept any more."]
        parts.append("\n".join([*_verdict(run), *steps]))
    return "\n\n".join(parts)


def _verdict(run: Scored) -> Iterator[str]:
    record, score = run.run, run.score
    verdict = "unscored" if run.strict is None else "right" if run.strict else "wrong"
    lenient = ", right by the lenient rule" if run.strict is False and score.get("lenient") else ""
    calls = count(int(record.get("llm_calls") or 0), "model call")
    took = f"{calls}, {number(run.tokens)} tokens, {dollars(record.get('cost_usd'))}"
    repeat = f", run {run.repeat}" if run.repeat > 1 else ""
    yield inert(f"━━ {run.cell}{repeat}: {verdict}{lenient} ({record.get('stop_reason')}, {took})")
    if run.miss:
        yield inert(f"  {run.miss.kind}{': ' if run.miss.evidence else ''}{run.miss.evidence}")
    for what, text in (("", score.get("reason")), ("gold fails: ", score.get("gold_error")), ("", record.get("error"))):
        if text:
            yield inert(f"  {what}{text}")
    answer = record.get("answer")
    if isinstance(answer, dict):
        if answer.get("answer"):
            yield _block("Answer: " + str(answer["answer"]))
        if answer.get("sql"):
            yield _block(f"SQL ({answer.get('checked')}):\n{indent(str(answer['sql']), '  ')}")


def _steps(evaluation: Evaluation, run: Scored) -> Iterator[str]:
    for step in shortened(steps_of(evaluation.steps(str(run.run["run_id"]))), MOST_CHARS):
        yield f"  step {step.number}: {number(step.input_tokens)} tokens in, {number(step.output_tokens)} out"
        for part in step.parts:
            left = f"\n… {part.cut:,} characters more" if part.cut else ""
            yield _block(f"{part.label}{' (failed)' if part.failed else ''}:\n{indent(part.text + left, '  ')}", "    ")


def _block(text: str, margin: str = "  ") -> str:
    return indent(inert_lines(text), margin)
