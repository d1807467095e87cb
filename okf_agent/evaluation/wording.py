"""Figures and texts of records in the words of reports, `compare` and `show`."""

from __future__ import annotations

from okf_agent.evaluation.shown_steps import LIMITS
from okf_agent.evaluation.statistics import Interval
from okf_compiler.inert import inert, inert_lines

HOW_TO_READ = (
    "A task that was asked several times counts once: its verdicts are averaged, and intervals count tasks.",
    "Strict is the benchmark's own rule. Lenient also takes what does not matter to a reader: order of columns, ties, "
    "letter case, the last digit, harmless extra columns.",
    "Three of five tasks are held out: always the same ones, to be looked at only when a cell is no longer changed.",
    "Differences come with intervals that draw whole databases, because the tasks of one database share its traps. "
    "With few databases such an interval is rough; with one, tasks are drawn.",
    "A run whose gold query fails, or that has no gold, counts in cost, seconds and tokens and not in accuracy.",
    "A class of miss says how an answer differs from the nearest gold query. It is where to look first, not a proof of "
    "the cause.",
    "Detours are files read that a question's gold query and rules do not need; reads per needed counts the files read "
    "for each that they do.",
    "Why an answer missed quotes gold. Where a benchmark's authors withhold its answers, do not publish this file.",
)
"""What a reader of a report must know, a point each."""


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def interval(found: Interval) -> str:
    """`59.5 % (46.6–71.1)`; a dash where there is no task."""
    return f"{100 * found.value:.1f} % ({100 * found.low:.1f}–{100 * found.high:.1f})" if found.n else "–"


def points(found: Interval) -> str:
    """A difference in percentage points: `+28.4 (+14.9 to +41.5)`."""
    value, low, high = (f"{100 * each:+.1f}".replace("-", "−") for each in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"


def p_value(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def number(value: float | None, places: int = 0) -> str:
    return "–" if value is None else f"{value:,.{places}f}"


def hundred(value: float | None) -> str:
    """A share as 0 to 100."""
    return "–" if value is None else number(100 * value, 1)


def when(text: object) -> str:
    """The minute of an ISO 8601 time."""
    return " at ".join(str(text)[:16].split("T"))


def short(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= LIMITS[0] else f"{text[: LIMITS[0]]}\n… the record has the rest."


def plain(text: object) -> str:
    """A text that no terminal or page acts on."""
    return inert_lines(str(text))


def markdown_text(text: object) -> str:
    """A text for a cell of a markdown table: on one line, and nothing in it is markup."""
    line = " ".join(inert(str(text)).split())
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>|#~&" else letter for letter in line)
