"""search: files of the bundle by words."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from okf_agent import prompts
from okf_agent.models.arguments import printable
from okf_agent.prompts import framing
from okf_agent.search import index as search_index
from okf_agent.search.index import Match
from okf_agent.tools import Context, Tool, ToolResult, arguments_of
from okf_compiler.errors import UserError

logger = logging.getLogger(__name__)
MAX_RESULTS = 8
MAX_QUERY_CHARS = 2_000
"""What is longer is no query; its beginning says enough."""


def tool() -> Tool:
    """Finds files of the bundle by words."""
    return Tool(
        name="search",
        description=prompts.load("tools/search.md", max_results=MAX_RESULTS),
        schema=arguments_of(query={"type": "string"}),
        example='{"query": "customers who stopped buying"}',
        run=run,
        aliases={"q": "query", "text": "query", "question": "query", "keywords": "query", "words": "query"},
    )


def run(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    query = printable(arguments["query"]).strip()[:MAX_QUERY_CHARS]
    if not query or context.bundle is None:
        return ToolResult(prompts.say("no_query"), failed=True)
    try:
        found = search_index.shared(context.bundle).search(query, MAX_RESULTS)
    except UserError as error:  # it names the bundle's folder, which is nothing to a model
        logger.error("%s", error)
        return ToolResult(prompts.say("search_unreadable"), failed=True)
    for match in found:
        context.evidence.add_document(match.text)
    if not found:
        return ToolResult(prompts.say("search_none"), data={"matches": []})
    key = "search_near" if found[0].near else "search_found"
    matches = [_values(match) for match in found]
    text = prompts.say(key, results=framing.framed("results", "\n".join(map(entry, found))))
    return ToolResult(text, data={"matches": matches})


def _values(match: Match) -> dict[str, Any]:
    """The same for a program, which may show it to a model."""
    title, text = framing.inside(match.title), framing.inside(match.text)
    return {"path": match.path, "title": title, "line": match.line, "text": text, "near": match.near}


def entry(match: Match) -> str:
    """A match as the model reads it, its line quoted.

    >>> entry(Match("/knowledge/late.md", "Late Delivery", 12, "handed over late", 1.0))
    '* /knowledge/late.md - Late Delivery\\n  12: handed over late'
    """
    title = "" if _said(match) else f" - {match.title}"
    return f"* {framing.one_line(match.path)}{title}" + (f"\n  {match.line}: {match.text}" if match.line else "")


def _said(match: Match) -> bool:
    """Whether the path says the title already."""
    return match.path.rpartition("/")[2].removesuffix(".md") == match.title
