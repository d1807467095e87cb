"""What a report shows of single runs: their steps, short enough that a whole evaluation fits one file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_CHARS = 24_000_000
"""Of all steps of a report; some 30 MB of HTML."""
LIMITS = (4_000, 2_000, 1_000, 500, 200, 80)
"""What each text of a run is cut to, in turn, until the run has its share."""


@dataclass(frozen=True)
class Part:
    """A text of a step: what the model wrote, a tool call, its result, or a word of the loop itself."""

    label: str
    text: str
    failed: bool = False
    cut: int = 0
    """Characters that were left out."""


@dataclass(frozen=True)
class Step:
    """One model call and what came of it."""

    number: int
    input_tokens: int | None
    """None, as `output_tokens`, where the provider did not count."""
    output_tokens: int | None
    parts: tuple[Part, ...]


def steps_of(events: Iterable[Mapping[str, Any]]) -> list[Step]:
    """The steps in a run's events, whole. The instructions are left out: they are the same in every run of a cell."""
    usage: dict[int, tuple[int | None, int | None]] = {}
    parts: dict[int, list[Part]] = {}
    for event in events:
        number = event.get("step")
        if not isinstance(number, int):
            continue
        found = parts.setdefault(number, [])
        match event.get("event"):
            case "ModelReplied":
                used = event.get("usage") or {}
                usage[number] = (used.get("input_tokens", 0), used.get("output_tokens", 0))
                found += _reply(event)
            case "ModelFailed":
                found.append(Part("model call failed", str(event.get("error", "")), failed=True))
            case "ToolFinished":
                failed = bool(event.get("failed"))
                found.append(Part(f"result of {event.get('name')}", str(event.get("text", "")), failed))
            case "Told":
                found.append(Part("told", str(event.get("text", ""))))
    return [Step(number, *usage.get(number, (None, None)), tuple(parts[number])) for number in sorted(parts)]


def shortened(steps: Sequence[Step], most: int) -> list[Step]:
    """The steps with texts cut so that all together have at most about `most` characters; what is cut is counted."""
    for limit in LIMITS:
        if sum(min(len(part.text), limit) for step in steps for part in step.parts) <= most:
            break
    return [
        Step(s.number, s.input_tokens, s.output_tokens, tuple(_cut(part, limit) for part in s.parts)) for s in steps
    ]


def _cut(part: Part, limit: int) -> Part:
    if len(part.text) <= limit:
        return part
    return Part(part.label, part.text[:limit], part.failed, len(part.text) - limit)


def _reply(event: Mapping[str, Any]) -> list[Part]:
    found = [Part("reasoning", str(event["reasoning"]))] if event.get("reasoning") else []
    if event.get("content"):
        found.append(Part("model", str(event["content"])))
    for call in event.get("tool_calls") or ():
        if isinstance(call, Mapping):
            found.append(Part(f"calls {call.get('name')}", _arguments(call.get("arguments"))))
    return found


def _arguments(arguments: Any) -> str:
    """A call's arguments to read: SQL with its line breaks, lists one entry a line."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(arguments)
    if not isinstance(arguments, Mapping):
        return json.dumps(arguments, ensure_ascii=False)
    values = {
        str(name): "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in arguments.items()
    }
    return next(iter(values.values())) if len(values) == 1 else "\n".join(f"{n}: {v}" for n, v in values.items())
