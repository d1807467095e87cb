"""`okf-agent context`: the text a model would see first, and what each part of it takes. No model is called.

A prompt frames what others wrote (`okf_agent.prompts.framing`), and nothing inside can end its frame: so the parts can
be told apart in the text itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from okf_agent import knowledge
from okf_agent.ask import sources_of
from okf_agent.cell import Cell
from okf_agent.clock import UNASKED, today
from okf_agent.config import Config
from okf_agent.events import Message
from okf_agent.messages import first_messages, tools_of
from okf_agent.prepare import Say, find_bundle
from okf_agent.prompts import framing
from okf_agent.run import Question
from okf_compiler.documents import Documents
from okf_compiler.tokens import tokens

NO_QUESTION = "(the question)"
ESTIMATE = "an estimate, bytes / 3.7; no model's own tokenizer takes part"
_PART = re.compile(
    rf"^<(?P<mark>{'|'.join(framing.FRAMES)})>\n(?P<content>.*?)^</(?P=mark)>$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Seen:
    """What a model would see first."""

    database: str
    knowledge: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    """As a provider gets them; none where one reply is asked for."""
    parts: Mapping[str, int]
    """Tokens by part, in the order of the text: instructions, each frame by its mark, question, signposts, tools."""

    @property
    def tokens(self) -> int:
        return sum(self.parts.values())

    @property
    def changed(self) -> list[str]:
        """The lines in which content was changed so that it stays content."""
        return [line for message in self.messages for line in framing.changed_lines(str(message["content"]))]

    def as_json(self) -> dict[str, Any]:
        return {
            "database": self.database,
            "knowledge": self.knowledge,
            "messages": list(self.messages),
            "tools": list(self.tools),
            "tokens": {"parts": dict(self.parts), "all": self.tokens, "are": ESTIMATE},
            "changed": self.changed,
        }


def see(config: Config, database: str, question: str, cell: Cell, bundle: Path | None, say: Say) -> Seen:
    """What the model of a cell would see of a question. No server is asked.

    Raises:
        UserError: there is no such database or bundle, or it lacks what the mode needs.
    """
    folder, documents = find_bundle(config, database, bundle, say)
    sources = sources_of(config, database, documents, folder, cell, say)
    if sources.values is None and (cell.profiles or cell.values or cell.find_value):
        say(f"Nothing was measured in {database}: `okf-compiler profile {database}` does, for profiles and values")
    text = question.strip() or NO_QUESTION
    known = knowledge.prepare(cell.knowledge, question.strip(), sources)
    day = replace(today(None, config.agent.today), time_zone=UNASKED)
    messages = first_messages(Question(text, database, day), known, has_content=_has_content(config, documents))
    offered = tools_of(known, config.settings.database.max_rows) if known.reply == "tools" else ()
    specs = tuple(tool.spec() for tool in offered)
    return Seen(database, cell.knowledge, tuple(messages), specs, _parts(messages, specs, text))


def _has_content(config: Config, documents: Documents | None) -> bool:
    """Whether queries can be run, as far as can be told without a server: of one that is not ours, they can."""
    ours = config.settings.database.engine == "embedded"
    return not ours or documents is None or documents.live or documents.dump is not None


def _parts(messages: Sequence[Message], specs: Sequence[Mapping[str, Any]], question: str) -> dict[str, int]:
    parts: dict[str, int] = {}
    for message in messages:
        for name, text in _split(str(message["content"]), question, is_users=message["role"] == "user"):
            parts[name] = parts.get(name, 0) + tokens(text)
    if specs:
        parts["tools"] = tokens(json.dumps(specs, ensure_ascii=False))
    return parts


def _split(text: str, question: str, *, is_users: bool) -> Iterator[tuple[str, str]]:
    """A message as its parts: what is framed, the question, and the rest, which is ours."""
    rest = _PART.sub("", text)
    asked = framing.unmarked(question)
    if is_users and asked in rest:
        before, _, after = rest.rpartition(asked)
        yield "instructions", before
        framed = [(found["mark"], found[0]) for found in _PART.finditer(text)]
        yield from framed
        yield "question", asked
        yield ("signposts" if not framed and not before.strip() else "instructions"), after
        return
    yield "instructions", rest
    yield from ((found["mark"], found[0]) for found in _PART.finditer(text))


def shown(seen: Seen) -> Iterator[str]:
    """Lines for a person: every message and tool as it would be sent, then what each part takes."""
    for message in seen.messages:
        yield f"--- {message['role']} ---"
        yield str(message["content"])
    for spec in seen.tools:
        yield "--- tool ---"
        yield json.dumps(spec, ensure_ascii=False, indent=2)
    yield f"--- tokens ({ESTIMATE}) ---"
    for name, count in seen.parts.items():
        if count:
            yield f"{name:<16}{count:>8,}"
    yield f"{'all':<16}{seen.tokens:>8,}"
    if seen.changed:
        yield f"--- lines in which content was changed, so that it stays content: {len(seen.changed)} ---"
        yield from seen.changed
