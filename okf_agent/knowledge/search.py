"""The bundle, by search: no index in the instructions; the model searches, and reads what it finds.

The index is left out because it costs what search saves: it is the longest part of the instructions, and names what
search finds by other words too. `/index.md` can be read as in the bundle mode.
"""

from __future__ import annotations

from collections.abc import Iterable

from okf_agent import prompts
from okf_agent.knowledge.model import Knowledge, Sources
from okf_agent.prompts import framing
from okf_agent.search import signposts
from okf_agent.tools import read_file, search
from okf_compiler import bundle as bundles


def prepare(question: str, sources: Sources) -> Knowledge:
    """What the bundle holds in a line a folder, the question's signposts, search and read_file.

    Raises:
        UserError: there is no bundle, or it cannot be read.
    """
    bundle = sources.need_bundle()
    section = prompts.load("search.md", folders=framing.one_line(_folders(bundles.files(bundle))))
    found = signposts.for_question(question, bundle) if sources.cell.signposts else ""
    return Knowledge((section,), (search.tool(), read_file.tool()), signposts=found)


def _folders(files: Iterable[str]) -> str:
    """How many concepts each folder at the top holds.

    >>> _folders(["index.md", "knowledge/a.md", "knowledge/x/b.md", "tables/t.md", "notes.md"])
    '/knowledge/ has 2, /tables/ has 1, / has 1'
    """
    counts: dict[str, int] = {}
    for path in filter(bundles.is_concept, files):
        folder = f"/{path.split('/')[0]}/" if "/" in path else "/"
        counts[folder] = counts.get(folder, 0) + 1
    return ", ".join(f"{folder} has {count}" for folder, count in counts.items()) or "it has none"
