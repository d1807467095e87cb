"""What was asked before, as a follow-up question's model sees it: the question, the final SQL, the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from okf_agent import prompts
from okf_agent.events import Answer, Message
from okf_agent.sql import render
from okf_agent.sql.database import QueryResult

MAX_TURNS = 5
"""Earlier questions that a follow-up sees: the last ones."""
FIRST_ROWS = 5
ROWS_CHARS = 3_000


@dataclass(frozen=True)
class Turn:
    """A question that was answered."""

    run_id: str
    question: str
    answer: Answer
    result: QueryResult | None
    files: tuple[str, ...] = ()
    """Bundle paths that its run read."""


def messages(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """The turns as messages between the instructions and the next question."""
    return tuple(message for turn in turns[-MAX_TURNS:] for message in _messages(turn))


def _messages(turn: Turn) -> tuple[Message, Message]:
    said = turn.answer.answer
    if turn.answer.sql:
        rows = "" if turn.result is None else _first_rows(turn.result)
        said = prompts.load("earlier.md", answer=said, sql=turn.answer.sql, rows=rows)
    return {"role": "user", "content": turn.question}, {"role": "assistant", "content": said}


def _first_rows(result: QueryResult) -> str:
    text = render.for_model(result.first(FIRST_ROWS))
    return text if len(text) <= ROWS_CHARS else text[:ROWS_CHARS] + "…"
