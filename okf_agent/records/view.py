"""Records on a terminal: a list, one run step by step, two side by side, figures by mode and model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from okf_agent.records.runs import Comparison, Feedback, Record, number, succeeded, tokens
from okf_agent.wording import count, dollars
from okf_compiler.inert import inert, inert_lines

SHOWN_CHARS = 600
"""Of a text in a step, unless the whole is asked for."""
SHOWN_ROWS = 10
"""Of rows that only one run has."""


def run_lines(record: Record, said: Sequence[Feedback]) -> Iterator[Text]:
    """A run of a list: where and how it ended, its question, what people said."""
    answer = record.get("answer")
    head = Text(inert(record["run_id"]), "bold")
    head.append(f"  {inert(record['database'])} ({inert(record['mode'])})  {inert(record['model'])}  ", "default")
    head.append(inert(record["stop_reason"]), "green" if succeeded(record) else "yellow")
    if isinstance(answer, dict) and answer.get("checked") not in ("ran", None):
        head.append(f" [{inert(str(answer['checked']))}]", "yellow")
    yield head
    yield Text("  " + inert(record["question"]))
    yield Text("  " + taken(record), "dim")
    yield from said_lines(said)


def said_lines(said: Sequence[Feedback]) -> Iterator[Text]:
    for one in said:
        mark = one.verdict or "note"
        yield Text(f"  {inert(mark)}{': ' + inert(one.note) if one.note else ''}", "red" if mark == "wrong" else "cyan")


def taken(record: Record) -> str:
    """What a run took, in one line."""
    return " · ".join(
        [
            count(int(number(record, "llm_calls")), "model call"),
            f"{figure(tokens(record))} tokens",
            dollars(record.get("cost_usd")),
            f"{number(record, 'seconds'):.1f} s",
        ]
    )


def figure(count: Any) -> str:
    """A count as it is shown; a provider may not have counted."""
    return f"{count:,}" if isinstance(count, int | float) else "unknown"


def step_lines(event: Mapping[str, Any], whole: bool) -> Iterator[Text]:
    """One event of a steps file, as far as a reader of a run wants it."""
    step = event.get("step", "")
    match event.get("event"):
        case "Instructions":
            for message in event.get("messages", ()):
                yield from _said(f"     {message.get('role', '')}", str(message.get("content") or ""), whole, "dim")
        case "ModelReplied":
            usage = event.get("usage") or {}
            sent, written = (figure(usage.get(name, 0)) for name in ("input_tokens", "output_tokens"))
            facts = f"{sent} + {written} tokens"
            cached = f", {usage['cached_tokens']:,} cached" if usage.get("cached_tokens") else ""
            seconds = usage.get("seconds", 0.0)
            yield Text(
                f"{step:>3}  model: {facts}{cached}, {seconds:.1f} s, {inert(str(event.get('finish_reason')))}", "bold"
            )
            yield from _said("     thinks", str(event.get("reasoning") or ""), whole, "dim italic")
            yield from _said("     says", str(event.get("content") or ""), whole, "italic")
            for call in event.get("tool_calls", ()):
                yield from _said(f"     calls {call.get('name')}", str(call.get("arguments") or ""), whole, "cyan")
        case "ToolFinished":
            style = "red" if event.get("failed") else "default"
            yield from _said(f"     {event.get('name')} gave", str(event.get("text") or ""), whole, style)
        case "AnswerChecked" if event.get("error"):
            yield from _said("     its query does not run", str(event["error"]), whole, "red")
        case "Told":
            yield from _said("     told", str(event.get("text") or ""), whole, "yellow")
        case "ModelFailed":
            yield Text(f"{step:>3}  the model failed: {inert_lines(str(event.get('error')))}", "red")
        case "Notice":
            yield Text("     " + inert_lines(str(event.get("text"))), "dim")
        case "Shortened":
            yield Text(f"     older tool results shortened: {event.get('results')}", "yellow")
        case "LimitReached":
            yield Text(f"     stopped: {inert(str(event.get('reason')))}", "yellow")


def end_lines(record: Record) -> Iterator[Text]:
    """How a run ended: its answer, its SQL, and what to know before trusting it."""
    answer = record.get("answer")
    if isinstance(answer, dict):
        yield Text(inert(str(answer.get("answer"))), "bold")
        for line in str(answer.get("sql") or "").splitlines():
            yield Text("  " + inert(line), "cyan")
        if answer.get("checked") not in ("ran", None):
            yield Text(f"The check of its SQL: {inert(str(answer['checked']))}", "yellow")
    if record.get("ungrounded_numbers"):
        yield Text(f"Numbers found nowhere: {inert(', '.join(map(str, record['ungrounded_numbers'])))}", "yellow")
    if record.get("error"):
        yield Text(inert_lines(str(record["error"])), "red")


def comparison_view(found: Comparison, names: tuple[str, str]) -> Iterator[RenderableType]:
    """Two runs side by side under their names, then the rows that differ."""
    grid = Table(show_lines=False)
    for title in ("", *map(inert, names)):
        grid.add_column(title, overflow="fold")
    for name, values in _facts(found):
        style = "" if values[0] == values[1] else "yellow"
        grid.add_row(name, *(Text(inert_lines(value), style) for value in values))
    yield grid
    if not found.same_question:
        yield Text("These runs answer different questions.", "yellow")
    yield from _rows_view(found, names)


def statistics_view(figures: Sequence[Mapping[str, Any]]) -> Table:
    """The figures as a table; steps, tokens, cost and seconds are medians."""
    # No lines and no cut figures: all of it has to fit into 80 columns, so only the model's name is folded.
    caption = "steps, tokens, cost and seconds are medians"
    grid = Table(caption=caption, caption_justify="left", box=None, padding=(0, 1, 0, 0))
    grid.add_column("mode", no_wrap=True)
    grid.add_column("model", overflow="fold")
    for name in ("runs", "success", "steps", "tokens", "cost", "seconds", "right", "wrong"):
        grid.add_column(name, justify="right", no_wrap=True)
    for one in figures:
        grid.add_row(
            inert(one["mode"]),
            inert(one["model"]),
            f"{one['runs']:,}",
            "-" if one["success"] is None else f"{one['success']:,} ({one['success'] / one['runs']:.0%})",
            f"{one['steps']:g}",
            f"{one['tokens']:,.0f}",
            dollars(one["cost_usd"]),
            f"{one['seconds']:.1f}",
            str(one["right"]),
            str(one["wrong"]),
        )
    return grid


def _facts(found: Comparison) -> Iterator[tuple[str, tuple[str, str]]]:
    a, b = found.records

    def both(name: str, show: Callable[[Record], str]) -> tuple[str, tuple[str, str]]:
        return name, (show(a), show(b))

    for title, name in (("question", "question"), ("knowledge", "mode"), ("model", "model"), ("ended", "stop_reason")):
        yield both(title, partial(_text, name=name))
    yield both("answer", lambda record: _of_answer(record, "answer") or str(record.get("error") or "none"))
    for title, name in (("SQL", "sql"), ("checked", "checked"), ("rows", "rows_total")):
        yield both(title, partial(_of_answer, name=name))
    yield both("model calls", lambda record: f"{number(record, 'llm_calls'):,}")
    yield both("tokens", _tokens)
    yield both("cost", lambda record: dollars(record.get("cost_usd")))
    yield both("seconds", lambda record: f"{number(record, 'seconds'):.1f}")
    yield both("SQL errors", lambda record: f"{number(record, 'sql_errors'):,}")
    common = "\n".join(found.files_in_both)
    yield "files both read", (common, common)
    yield "files only one read", ("\n".join(found.files_only[0]), "\n".join(found.files_only[1]))


def _text(record: Record, name: str) -> str:
    return str(record.get(name))


def _of_answer(record: Record, name: str) -> str:
    answer = record.get("answer")
    value = answer.get(name) if isinstance(answer, dict) else None
    return "" if value is None else str(value)


def _tokens(record: Record) -> str:
    cached = f", {number(record, 'cached_tokens'):,} cached" if number(record, "cached_tokens") else ""
    sent, written = (figure(record.get(name, 0)) for name in ("input_tokens", "output_tokens"))
    return f"{sent} in{cached}, {written} out"


def _rows_view(found: Comparison, names: tuple[str, str]) -> Iterator[Text]:
    if found.rows_only is None:
        yield Text("Rows cannot be compared: one of the runs has none, or they were not kept.", "yellow")
        return
    cut = " of the rows that were kept" if found.rows_cut else ""
    if not any(found.rows_only):
        yield Text(f"Rows: all {found.rows_in_both:,}{cut} are the same.", "green")
        return
    yield Text(f"Rows: {found.rows_in_both:,}{cut} are the same.")
    for name, rows in zip(map(inert, names), found.rows_only, strict=True):
        for row in rows[:SHOWN_ROWS]:
            cells = " | ".join("NULL" if cell is None else str(cell) for cell in row)
            yield Text(f"  only {name}: {inert(cells)}")
        if len(rows) > SHOWN_ROWS:
            yield Text(f"  only {name}: {len(rows) - SHOWN_ROWS:,} more", "dim")


def _said(label: str, text: str, whole: bool, style: str) -> Iterator[Text]:
    """A text of several lines under its label, cut unless the whole is asked for."""
    text = text.strip()
    if not text:
        return
    shown = text if whole or len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}\n… ({len(text):,} characters; --full)"
    first, *more = [inert(line) for line in shown.splitlines()]
    yield Text(f"{inert(label)}: {first}", style)
    for line in more:
        yield Text(f"       {line}", style)
