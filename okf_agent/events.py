"""What happens in a run, as it happens: the loop emits events, the terminal prints them, the record keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

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

    input_tokens: int | None = 0
    """None where the provider counted none."""
    cached_tokens: int = 0
    output_tokens: int | None = 0
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
    error: str = ""
    """Why it does not run."""


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
    """What led to it where the reason has several causes: `repeated_calls`, `cut_off`, `empty`."""


@dataclass(frozen=True)
class Answered:
    """An answer stands."""

    answer: Answer
    ungrounded_numbers: tuple[str, ...] = ()
    """Numbers in the answer that no query, question or rule of this run has."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    """The first rows of the answer's query, so that two runs can be compared later."""
    document_numbers: tuple[str, ...] = ()
    """Numbers in the answer that a document has, and no query or question."""


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
