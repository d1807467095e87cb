"""Signposts: paths that a question's words lead to, beside the question, in every mode that reads the bundle.

They are its best matches, the rules those depend on, and the tables behind them, so that a model can read rules and
tables in one step. They stand after the question, not before, because the instructions are the same for every question
and can be cached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from okf_agent import prompts
from okf_agent.bundles import reading
from okf_agent.prompts import framing
from okf_agent.search import index as search_index
from okf_compiler.bundle import Concept
from okf_compiler.headings import DEPENDS_ON, TABLES_NEEDED
from okf_compiler.loaded import loaded

MAX_MATCHES = 5
"""Concepts named for their words; what they depend on comes besides."""
NEAR = 0.35
"""A concept counts as a match from this share of the best score on."""
MAX_TABLES = 6
"""Tables named because the rules among the matches use or reach them, those of most rules first."""


def for_question(question: str, bundle: Path) -> str:
    """The matches with their descriptions, and the tables that go with them; "" where no word matches.

    Raises:
        UserError: the bundle cannot be read.
    """
    concepts = loaded(bundle).concepts
    found = matches(search_index.shared(bundle).rank(question, MAX_MATCHES), concepts)
    if not found:
        return ""
    lines = [f"* [{c.title}]({c.path}) - {c.description}" for c in (concepts[id] for id in found)]
    lines += [f"* [{c.title}]({c.path})" for c in (concepts[id] for id in tables(found, concepts))]
    return prompts.load("signposts.md", entries=framing.inside(reading.brief("\n".join(lines))))


def matches(ranked: Sequence[tuple[str, float]], concepts: Mapping[str, Concept]) -> list[str]:
    """Ids of the concepts among these paths whose scores come near the best one, then what they depend on."""
    least = NEAR * max((score for _, score in ranked), default=0.0)
    near = (path[1:-3] for path, score in ranked if score >= least)
    found = [id for id in near if id in concepts]
    for id in found:  # grows while it is read: dependencies have dependencies
        found.extend(n for n in _linked(concepts[id], DEPENDS_ON) if n in concepts and n not in found)
    return found


def tables(found: Sequence[str], concepts: Mapping[str, Concept]) -> list[str]:
    """Ids of the tables that the rules among `found` use or reach, those of most rules first, without those found."""
    uses: Counter[str] = Counter()
    for id in found:
        needed = _linked(concepts[id], *TABLES_NEEDED)
        uses.update([n for n in needed if n in concepts and concepts[n].is_table and n not in found])
    return [id for id, _ in uses.most_common(MAX_TABLES)]


def _linked(concept: Concept, *headings: str) -> list[str]:
    """Ids of what is linked under the headings."""
    return [path[1:-3] for path in concept.links(*headings)]
