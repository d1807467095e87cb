"""read_file: files of the bundle, several at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from okf_agent import prompts
from okf_agent.bundles import reading
from okf_agent.bundles.measured import of_table
from okf_agent.bundles.reading import Reading
from okf_agent.prompts import framing
from okf_agent.tools import Context, Tool, ToolResult, arguments_of

MAX_PATHS = 200
"""Of one call. A path that is not there costs a look through all names for those near it."""


def tool() -> Tool:
    """Reads files of the bundle, several at once."""
    return Tool(
        name="read_file",
        description=prompts.load("tools/read_file.md"),
        schema=arguments_of(paths={"type": "array", "items": {"type": "string"}}),
        example='{"paths": ["/knowledge/some-rule.md", "/tables/some_table.md"]}',
        run=run,
        aliases={"path": "paths", "file": "paths", "files": "paths", "file_path": "paths"},
    )


def run(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    paths = [p for p in dict.fromkeys(path.strip() for path in arguments["paths"]) if p]
    if not paths or context.bundle is None:
        return ToolResult(prompts.say("no_paths"), failed=True)
    left_out = len(paths) - MAX_PATHS
    parts: list[str] = []
    files: list[str] = []
    data: list[dict[str, str]] = []
    failed = 0
    for asked in paths[:MAX_PATHS]:
        found = reading.read(context.bundle, asked)
        text = framing.beneath(found.text)
        if found.failed:
            failed += 1
        else:
            text = prompts.say("file_known") if found.key in context.files else _new(found, context)
            context.files.add(found.key)
            files.append(found.path)
        parts.append(framing.under(found.path, text))
        data.append({"path": framing.one_line(found.path), "error" if found.failed else "text": text})
    if left_out > 0:
        parts.append(prompts.say("paths_left_out", count=left_out, most=MAX_PATHS))
    return ToolResult("\n\n".join(parts), not files, tuple(files), failed, data={"files": data})


def _new(found: Reading, context: Context) -> str:
    """The text of a file that the run has not seen, and what was measured in the table that it is about.

    An index only says what there is, and what was measured may have changed: neither grounds an answer.
    """
    if not found.is_index:
        context.evidence.add_document(found.text)
    measured = of_table(context.profiles, found.table, context.hide) if found.table else ""
    text = framing.beneath(found.text)
    return f"{text.rstrip()}\n\n{measured}" if measured else text
