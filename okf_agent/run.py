"""What a run is: its question and limits, the events it goes through, its answer, and the tally of it all.

The loop emits events; the terminal prints them, the record keeps them, and `Tally` adds them up. The same
tally is made from a live run and from the steps file of one that was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from okf_agent.sql.database import QueryResult

StopReason: TypeAlias = Literal[
    "submitted",
    "declined",
    "step_limit",
    "time_limit",
    "token_limit",
    "cost_limit",
    "no_tool_calls",
    "interrupted",
    "error",
]
Checked: TypeAlias = Literal["ran", "error", "no_rows", "lone_null", "not_run"]
"""What happened when the answer's SQL was run before it counted."""

Message: TypeAlias = dict[str, Any]
"""One message of a conversation, in the shape of OpenAI's chat completions."""


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
    conversation: tuple[Message, ...] = ()
    """Messages between the instructions and this question: earlier questions, their SQL, their first rows."""


@dataclass(frozen=True)
class Answer:
    """What was handed in. `sql` is "" where the question was declined."""

    sql: str
    answer: str
    rows_total: int | None
    """Rows of the whole result; None where they were not counted."""
    checked: Checked


@dataclass(frozen=True)
class Usage:
    """What one model call took, as the provider reports it."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    """None where the price is unknown."""
    seconds: float = 0.0
    """Of the call that succeeded and of those that failed, waiting apart."""
    wait_seconds: float = 0.0
    """Between tries, because the provider said so or was out of order."""
    cached: bool = False
    """The whole reply was kept from an earlier time, and nobody was asked: it cost nothing and took no time."""


@dataclass(frozen=True)
class Instructions:
    """The messages a conversation begins with."""

    messages: tuple[Message, ...]


@dataclass(frozen=True)
class StepStarted:
    """A model call begins; the first step is 1."""

    step: int


@dataclass(frozen=True)
class Writing:
    """A piece of the model's text, as it is written; only where replies come as a stream. Records leave it out."""

    step: int
    text: str


@dataclass(frozen=True)
class ModelReplied:
    step: int
    content: str
    tool_calls: tuple[Mapping[str, Any], ...]
    """`{"name": …, "arguments": …}` of each call, arguments as the model wrote them."""
    finish_reason: str
    usage: Usage
    reasoning: str = ""


@dataclass(frozen=True)
class ModelFailed:
    """A model call gave no reply."""

    step: int
    error: str
    seconds: float
    wait_seconds: float


@dataclass(frozen=True)
class ToolStarted:
    step: int
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class ToolFinished:
    """A tool call is over, or was refused before it began."""

    step: int
    name: str
    text: str
    """What the model reads."""
    failed: bool = False
    files: tuple[str, ...] = ()
    """Bundle paths that were read with success."""
    failed_reads: int = 0
    sql_attempts: int = 0
    sql_errors: int = 0
    rows: int | None = None
    """Rows that a query returned; None where no query ran, or it failed."""
    database_seconds: float = 0.0


@dataclass(frozen=True)
class Told:
    """The loop itself said something to the model: a nudge, a repair, the last call."""

    step: int
    text: str


@dataclass(frozen=True)
class AnswerChecked:
    """The SQL of a reply without tool calls was run."""

    step: int
    checked: Checked
    database_seconds: float


@dataclass(frozen=True)
class Notice:
    """Something worth saying to the person who waits."""

    text: str


@dataclass(frozen=True)
class Shortened:
    """Old tool results were cut, because the conversation no longer fitted the model."""

    results: int


@dataclass(frozen=True)
class LimitReached:
    reason: StopReason
    why: str = ""
    """What led to it where the reason has several causes: `repeated_calls`."""


@dataclass(frozen=True)
class Answered:
    """An answer stands."""

    answer: Answer
    ungrounded_numbers: tuple[str, ...] = ()
    """Numbers in the answer that no query, question or rule of this run has."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    """The first rows of the answer's query, so that two runs can be compared later."""


Event: TypeAlias = (
    Instructions
    | StepStarted
    | Writing
    | ModelReplied
    | ModelFailed
    | ToolStarted
    | ToolFinished
    | Told
    | AnswerChecked
    | Notice
    | Shortened
    | LimitReached
    | Answered
)
EVENTS: dict[str, type[Any]] = {cls.__name__: cls for cls in Event.__args__}


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
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0
    cost_known_usd: float = 0.0
    model_seconds: float = 0.0
    rate_limit_wait_seconds: float = 0.0
    database_seconds: float = 0.0
    limits_hit: list[str] = field(default_factory=list)
    shortened: int = 0
    ungrounded_numbers: list[str] = field(default_factory=list)
    answer: Answer | None = None

    @property
    def tokens(self) -> int:
        """Input and output together; reasoning is part of the output."""
        return self.input_tokens + self.output_tokens

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
            case AnswerChecked(database_seconds=seconds):
                self.database_seconds += seconds
            case Shortened(results=results):
                self.shortened += results
            case LimitReached(reason=reason, why=why):
                self.limits_hit.append(why or reason)
            case Answered(answer=answer, ungrounded_numbers=numbers):
                self.answer = answer
                self.ungrounded_numbers = list(numbers)

    def _add_usage(self, usage: Usage) -> None:
        self.llm_calls += 1
        self.cached_calls += usage.cached
        self.input_tokens += usage.input_tokens
        self.cached_tokens += usage.cached_tokens
        self.output_tokens += usage.output_tokens
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


def event_to_json(event: Event) -> dict[str, Any]:
    """An event as a JSON object; `event` is its kind."""
    return {"event": type(event).__name__, **asdict(event)}


def event_from_json(data: Mapping[str, Any]) -> Event | None:
    """The event of one line of a steps file; None for a line of another kind or of another version."""
    kind = EVENTS.get(str(data.get("event")))
    if kind is None:
        return None
    values = {f.name: data[f.name] for f in fields(kind) if f.name in data}
    try:
        if kind is ModelReplied:
            values["usage"] = Usage(**values["usage"])
        if kind is Answered:
            values["answer"] = Answer(**values["answer"])
        event: Event = kind(**values)
    except (KeyError, TypeError):
        return None
    return event
