"""find_value: in which columns a value stands, as stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from okf_agent import prompts
from okf_agent.bundles import measured
from okf_agent.prompts import framing
from okf_agent.tools import Context, Tool, ToolResult, arguments_of
from okf_compiler.inert import inert
from okf_compiler.profiling import values
from okf_compiler.profiling.store import VALUES
from okf_compiler.profiling.text import quoted
from okf_compiler.profiling.values import Hit

MAX_VALUES = 10
"""Values of one call."""
HOW = {"case": "hit_case", "near": "hit_near", "word": "hit_word"}
"""What is said of a value that is not exactly what was asked for."""
MAX_HITS = 12
"""Lines of one value."""


def tool() -> Tool:
    """Looks values up in the value index of the database."""
    return Tool(
        name="find_value",
        description=prompts.load("tools/find_value.md", max_values=MAX_VALUES),
        schema=arguments_of(values={"type": "array", "items": {"type": "string"}}),
        example='{"values": ["New York", "shipped"]}',
        run=run,
        aliases={"value": "values", "text": "values", "texts": "values"},
    )


def offered(profiles: Path | None) -> bool:
    """Whether there is a value index to look in."""
    return profiles is not None and (profiles / VALUES).is_file()


def run(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    asked = [text for text in dict.fromkeys(value.strip() for value in arguments["values"]) if text][:MAX_VALUES]
    index = values.open(context.values, context.hide) if context.values else None
    if index is None:
        return ToolResult(prompts.say("values_unmeasured"), failed=True)
    if not asked:
        return ToolResult(prompts.say("no_values"), failed=True)
    try:
        with index:
            found = {text: index.find(text, MAX_HITS) for text in asked}
    except values.Broken:
        return ToolResult(prompts.say("values_unmeasured"), failed=True)
    known = "\n".join(describe(text, hits) for text, hits in found.items() if hits)
    unknown = [prompts.say("value_not_found", value=quoted(text)) for text, hits in found.items() if not hits]
    counted = measured.note(context.values, context.hide)
    parts = [f"{framing.framed('values', known)}\n{counted}".rstrip()] * bool(known) + unknown
    data = [{"value": text, "found": [_values(hit) for hit in hits]} for text, hits in found.items()]
    return ToolResult("\n".join(parts), failed=not known, data={"values": data})


def _values(hit: Hit) -> dict[str, Any]:
    return {"table": hit.table, "column": hit.column, "value": hit.value, "how": hit.how, "rows": hit.rows}


def describe(text: str, hits: Sequence[Hit]) -> str:
    """What a text stands for: a line for it, and one a column and spelling."""
    return "\n".join([f"{quoted(text)}:", *(f"  {inert(line(hit))}" for hit in hits)])


def line(hit: Hit) -> str:
    """One hit: the column, the value as stored, how it differs, and its rows."""
    how = f", {prompts.say(HOW[hit.how])}" if hit.how in HOW else ""
    rows = "" if hit.rows is None else f" ({hit.rows:,} row{'s' * (hit.rows != 1)})"
    return f"{hit.table}.{hit.column} = {quoted(hit.value)}{rows}{how}"
