"""find_value: in which columns a value stands, as stored.

The index is of the day on which the data was measured, which is said beside the counts. Columns that the database no
longer has are left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from okf_agent import prompts
from okf_agent.bundles import measured
from okf_agent.prompts import framing
from okf_agent.search.named_values import MAX_CHARS
from okf_agent.tools import Context, Queries, Tool, ToolResult, arguments_of
from okf_agent.tools.existing import missing_columns
from okf_compiler.inert import inert
from okf_compiler.profiling import values
from okf_compiler.profiling.store import VALUES
from okf_compiler.profiling.text import quoted
from okf_compiler.profiling.values import Hit, ValueIndex

MAX_VALUES = 10
"""Values of one call."""
HOW = {"case": "hit_case", "near": "hit_near", "word": "hit_word"}
"""What is said of a value that is not exactly what was asked for."""
MAX_HITS = 12
"""Lines of one value."""
MAX_LOOKED_AT = 200
"""Hits of one value that are looked at where some of them are in columns that are gone."""


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
    begin = time.monotonic()
    try:
        with index:
            found, gone = _standing(asked, index, context.database)
    except values.Broken:
        return ToolResult(prompts.say("values_unmeasured"), failed=True)
    seconds = time.monotonic() - begin if context.database else 0.0
    known = "\n".join(describe(text, hits) for text, hits in found.items() if hits)
    measured_at = measured.note(context.values, context.hide)
    parts = [f"{framing.framed('values', known)}\n{measured_at}".rstrip()] if known else []
    parts += [prompts.say("value_not_found", value=quoted(text)) for text, hits in found.items() if not hits]
    if gone:
        parts.append(prompts.say("values_gone", places=framing.one_line(", ".join(gone))))
    data = [{"value": text, "found": [_values(hit) for hit in hits]} for text, hits in found.items()]
    return ToolResult("\n".join(parts), failed=not known, database_seconds=seconds, data={"values": data})


def _standing(
    asked: Sequence[str], index: ValueIndex, database: Queries | None
) -> tuple[dict[str, list[Hit]], list[str]]:
    """The hits of each text in columns that the database still has, and the columns that it has no more."""
    found = {text: _hits(text, index, MAX_HITS) for text in asked}
    gone = _gone(found, database)
    if gone:  # their hits may have stood before others
        found = {text: _hits(text, index, MAX_LOOKED_AT) for text in asked}
        gone = _gone(found, database)
    kept = {text: [hit for hit in hits if (hit.table, hit.column) not in gone] for text, hits in found.items()}
    return {text: hits[:MAX_HITS] for text, hits in kept.items()}, sorted(map(".".join, gone))


def _hits(text: str, index: ValueIndex, most: int) -> list[Hit]:
    return index.find(text, most) if len(text) <= MAX_CHARS else []


def _gone(found: Mapping[str, Sequence[Hit]], database: Queries | None) -> set[tuple[str, str]]:
    """Table and column of each hit that stands nowhere any more, as far as the database can be asked."""
    places = {(hit.table, hit.column) for hits in found.values() for hit in hits}
    return missing_columns(places, database) if database else set()


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
