"""The arguments of a tool call, from the text that a model wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from okf_agent import prompts

QUOTED_CHARS = 300
"""Of the model's own words, when an error quotes them."""


class Declared(Protocol):
    """A tool, as far as its arguments go: the loop's (tools.Tool), or one that only the MCP server has."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]: ...
    @property
    def example(self) -> str: ...
    @property
    def aliases(self) -> Mapping[str, str]: ...


class ArgumentError(Exception):
    """The arguments cannot be used; the text is for the model."""


def parse_arguments(tool: Declared, text: str) -> dict[str, Any]:
    """The arguments of a call: every required one, and of the right kind.

    Raises:
        ArgumentError: broken JSON, not an object, a missing, unknown or mistyped argument; quotes it.
    """
    try:
        # An empty text stands for no arguments, and control characters inside strings are common.
        parsed = json.loads(text, strict=False) if text.strip() else {}
        if isinstance(parsed, str) and parsed.lstrip().startswith("{"):
            parsed = json.loads(parsed, strict=False)
    except (ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, ValueError) else "nested too deep"
        raise ArgumentError(
            prompts.say("arguments_broken", name=tool.name, problem=problem, quoted=quote(text))
        ) from None
    if not isinstance(parsed, dict):
        raise ArgumentError(
            prompts.say("arguments_not_object", name=tool.name, example=tool.example, quoted=quote(text))
        )
    arguments: dict[str, Any] = {}
    for name, value in parsed.items():
        known = name if name in tool.schema["properties"] else tool.aliases.get(name)
        if known is None:
            names = ", ".join(f"`{n}`" for n in tool.schema["properties"])
            raise ArgumentError(prompts.say("argument_unknown", name=tool.name, argument=name, known=names))
        arguments[known] = _typed(tool, known, value)
    for name, schema in tool.schema["properties"].items():
        if name not in arguments:
            kind = _kind(schema)
            raise ArgumentError(
                prompts.say("argument_missing", name=tool.name, argument=name, kind=kind, example=tool.example)
            )
    return arguments


def _typed(tool: Declared, name: str, value: Any) -> Any:
    """A value of the kind its argument has; a lone string counts as a list of one.

    Raises:
        ArgumentError: it is of another kind.
    """
    schema = tool.schema["properties"][name]
    if schema["type"] == "string":
        if isinstance(value, str):
            _check_length(tool, name, value)
            return value
    else:
        if isinstance(value, str):
            value = _list_in(value)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
    raise ArgumentError(
        prompts.say(
            "argument_type",
            name=tool.name,
            argument=name,
            kind=_kind(schema),
            quoted=quote(json.dumps(value, ensure_ascii=False)),
            example=tool.example,
        )
    )


def _check_length(tool: Declared, name: str, value: str) -> None:
    """Raise ArgumentError for a text that its schema finds too short or too long."""
    schema = tool.schema["properties"][name]
    if schema.get("minLength") and not value.strip():
        kind = _kind(schema)
        raise ArgumentError(
            prompts.say("argument_missing", name=tool.name, argument=name, kind=kind, example=tool.example)
        )
    most = schema.get("maxLength", len(value))
    if len(value) > most:
        raise ArgumentError(
            prompts.say("argument_long", name=tool.name, argument=name, found=f"{len(value):,}", most=f"{most:,}")
        )


def _list_in(value: str) -> Any:
    """The list that a string holds as JSON, else a list of the string."""
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            pass
    return [value]


def _kind(schema: Mapping[str, Any]) -> str:
    return "a string" if schema["type"] == "string" else "a list of strings"


def quote(text: str) -> str:
    """The model's own words, cut to a length that an error can quote."""
    return text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]}… ({len(text)} characters)"


def printable(text: str) -> str:
    """`text` as a request can carry it: half of a surrogate pair and NUL become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
