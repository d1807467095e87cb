"""Tool calls that a model wrote as text, in the forms that small and local models use."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

XML_CALL = re.compile(r"<function=(?P<name>\w+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL)
XML_PARAMETER = re.compile(r"<parameter=(\w+)>\n?(.*?)\n?</parameter>", re.DOTALL)
NEAR = 200
"""Characters before a call in which its name or its mark stands."""
LEAD = re.compile(r"(<tool_call>|\[TOOL_CALLS\]\[?|```\w*|<\|python_tag\|>|\w+\()\s*$")


def calls_in_text(text: str, names: Collection[str]) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the first call, and the calls as (name, arguments as JSON); only of tools in `names`.

    >>> calls_in_text('I look. <tool_call>{"name": "run_sql", "arguments": {"sql": "SELECT 1"}}', ["run_sql"])
    ('I look.', [('run_sql', '{"sql": "SELECT 1"}')])
    """
    found = [*_json_calls(text, names)] or [*_xml_calls(text, names)]
    if not found:
        return text, []
    before = text[: found[0][0]].rstrip()
    while lead := LEAD.search(before, max(0, len(before) - NEAR)):
        before = before[: lead.start()].rstrip()
    return before, [(name, arguments) for _, name, arguments in found]


def _json_calls(text: str, names: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """(position, name, arguments) of every call written as a JSON object, in a list or not."""
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while (start := text.find("{", position)) >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        call = _as_call(value, names) or _named_before(text[max(0, start - NEAR) : start], value, names)
        if call:
            yield start, *call
        position = end


def _as_call(value: Any, names: Collection[str]) -> tuple[str, str] | None:
    """The call that a JSON object is: `{"name": …, "arguments": …}` and its relatives."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping):
        return None
    name = value.get("name") or value.get("tool") or value.get("function")
    arguments = next((value[k] for k in ("arguments", "parameters", "args", "input") if k in value), None)
    if name not in names or arguments is None:
        return None
    return str(name), arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _named_before(before: str, value: Any, names: Collection[str]) -> tuple[str, str] | None:
    """The call that an object of arguments is, after a name and a bracket: `run_sql({…})`."""
    match = re.search(r"(\w+)\(\s*$", before)
    if match is None or match[1] not in names:
        return None
    return match[1], json.dumps(value, ensure_ascii=False)


def _xml_calls(text: str, names: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """(position, name, arguments) of every `<function=name><parameter=key>value</parameter></function>`."""
    for match in XML_CALL.finditer(text):
        if match["name"] in names:
            whole, mark, _ = match["body"].rpartition("</parameter>")  # looking for an end that is missing takes long
            arguments = dict(XML_PARAMETER.findall(whole + mark))
            yield match.start(), match["name"], json.dumps(arguments, ensure_ascii=False)
