"""What a run is: its question and limits, and at the end its answer and the tally of its events.

The same tally is made from a live run and from the steps file of one that was killed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from okf_agent.events import (
    Answer,
    AnswerChecked,
    Answered,
    Event,
    LimitReached,
    Message,
    ModelFailed,
    ModelReplied,
    Shortened,
    StopReason,
    ToolFinished,
    Usage,
)

if TYPE_CHECKING:
    from okf_agent.clock import Day
    from okf_agent.sql.database import QueryResult


@dataclass(frozen=True)
class Limits:
    """How far one question may go; the keys of `agent:` in config.yaml."""

    max_steps: int = 15
    max_seconds: float = 600
    max_tokens: int = 1_000_000
    max_cost_usd: float = 1.0


@dataclass(frozen=True)
class Question:
    """A question, and what was said before it."""

    text: str
    database: str
    day: Day
    """What the model is told of the day on which it is asked."""
    conversation: tuple[Message, ...] = ()
    """Messages between the instructions and this question: earlier questions, their SQL, their first rows."""


def added(*counts: int | None) -> int | None:
    """The sum of counts; None where one of them is unknown."""
    return None if None in counts else sum(c for c in counts if c is not None)


@dataclass
class Tally:
    """Everything counted over a run's events; the field names are those of the record."""

    llm_calls: int = 0
    cached_calls: int = 0
    """Of `llm_calls`, those whose reply was kept from an earlier run."""
    sql_attempts: int = 0
    sql_errors: int = 0
    failed_reads: int = 0
    tool_calls: dict[str, int] = field(default_factory=dict)
    files_opened: list[str] = field(default_factory=list)
    input_tokens: int | None = 0
    """None, as `output_tokens`, once the provider did not count a call."""
    cached_tokens: int = 0
    output_tokens: int | None = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0
    cost_known_usd: float = 0.0
    model_seconds: float = 0.0
    rate_limit_wait_seconds: float = 0.0
    database_seconds: float = 0.0
    limits_hit: list[str] = field(default_factory=list)
    shortened: int = 0
    ungrounded_numbers: list[str] = field(default_factory=list)
    document_numbers: list[str] = field(default_factory=list)
    answer: Answer | None = None

    def __post_init__(self) -> None:
        self.tokens_known = 0
        """Input and output together, as far as they were counted; reasoning is part of the output."""

    @property
    def tokens(self) -> int | None:
        """Input and output together; None where some of them were not counted."""
        return added(self.input_tokens, self.output_tokens)

    def add(self, event: Event) -> None:
        """Count one event."""
        match event:
            case ModelReplied(usage=usage):
                self._add_usage(usage)
            case ModelFailed(seconds=seconds, wait_seconds=waited):
                self.model_seconds += seconds
                self.rate_limit_wait_seconds += waited
            case ToolFinished():
                self._add_tool(event)
            case AnswerChecked(checked=checked, database_seconds=seconds):
                self.database_seconds += seconds
                self.sql_errors += checked == "error"
            case Shortened(results=results):
                self.shortened += results
            case LimitReached(reason=reason, why=why):
                self.limits_hit.append(why or reason)
            case Answered(answer=answer, ungrounded_numbers=numbers, document_numbers=documented):
                self.answer = answer
                self.document_numbers = list(documented)
                self.ungrounded_numbers = list(numbers)

    def _add_usage(self, usage: Usage) -> None:
        self.llm_calls += 1
        self.cached_calls += usage.cached
        self.tokens_known += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        self.input_tokens = added(self.input_tokens, usage.input_tokens)
        self.cached_tokens += usage.cached_tokens
        self.output_tokens = added(self.output_tokens, usage.output_tokens)
        self.reasoning_tokens += usage.reasoning_tokens
        self.model_seconds += usage.seconds
        self.rate_limit_wait_seconds += usage.wait_seconds
        self.cost_known_usd += usage.cost_usd or 0.0
        unknown = usage.cost_usd is None or self.cost_usd is None
        self.cost_usd = None if unknown else self.cost_known_usd

    def _add_tool(self, event: ToolFinished) -> None:
        self.tool_calls[event.name] = self.tool_calls.get(event.name, 0) + 1
        self.files_opened.extend(event.files)
        self.failed_reads += event.failed_reads
        self.sql_attempts += event.sql_attempts
        self.sql_errors += event.sql_errors
        self.database_seconds += event.database_seconds


@dataclass(frozen=True)
class Run:
    """A run that is over. `result` holds the rows of the answer's own query, for the user."""

    stop_reason: StopReason
    tally: Tally
    error: str = ""
    seconds: float = 0.0
    result: QueryResult | None = None
    sql_error: str = ""
    """Why the answer's own query does not run."""

    @property
    def answer(self) -> Answer | None:
        return self.tally.answer

    @property
    def succeeded(self) -> bool:
        return succeeded(self.stop_reason, self.answer.checked if self.answer else None)


def succeeded(stop_reason: str, checked: str | None) -> bool:
    """Whether a run ended well: declined, or handed in with SQL that did not fail. `checked` is None without an answer.

    SQL that could not be run, for want of content, has not failed.
    """
    return stop_reason in ("submitted", "declined") and checked not in (None, "error")
