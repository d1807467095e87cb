"""The bundle, by progressive disclosure: its root index in the instructions, its files through read_file.

After the question stand the paths that its words lead to, and the tables behind them, so that a model can read rules
and tables in one step and need not read the smaller indexes first.
They come after it, not before, because the instructions are the same for every question and can be cached.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from okf_agent import prompts, ranking, reading
from okf_agent.knowledge import Knowledge, Sources
from okf_agent.tools import read_file
from okf_compiler import bundle as bundles
from okf_compiler import link_text
from okf_compiler.settings import UserError

MAX_MATCHES = 5
"""Concepts named for their words; what they depend on comes besides."""
NEAR = 0.3
"""A concept counts as a match from this share of the best score on.

With 5 and 0.3, 97 of the 100 rules that the questions of `data/shop` need are named, in 7 paths a question."""
MAX_TABLES = 6
"""Tables named because the rules among the matches use or reach them, those of most rules first.

So rules and tables can be read in one step. Without a limit, 98 % of the tables that the shop's questions need are
named and 90 % of those of Base-Lite's, about 3 a question; so it is with 6, which holds where rules reach far."""
TITLE_WEIGHT = 3
DEPENDS_ON = re.compile(r"^# Depends on\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
USES = re.compile(rf"^# (?:{'|'.join(link_text.HEADINGS)})\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
LINE_LINK = re.compile(r"^\* \[(?:\\.|[^\[\]\\\n])*\]\(/([^)\s]+)\.md\)", re.MULTILINE)
LINK = re.compile(r"\]\(/([^)\s]+)\.md\)")


def prepare(question: str, sources: Sources) -> Knowledge:
    """The root index as a section, the question's matches as hints, and read_file.

    Raises:
        UserError: there is no bundle, or it cannot be read.
    """
    if sources.bundle is None or not sources.bundle.is_dir():
        raise UserError(
            f"There is no bundle of {sources.database}. Make one with "
            f"`okf-compiler compile {sources.database}`, or ask with --knowledge raw."
        )
    index = reading.read(sources.bundle, "/")
    if index.failed:
        raise UserError(f"The index of the bundle {sources.bundle} cannot be read: {index.text}")
    section = prompts.load("bundle.md", index=index.text)
    hints = _hints(question, sources.bundle)
    return Knowledge("bundle", (section,), (read_file.tool(),), holds_rules=False, hints=hints)


def matches(question: str, concepts: Mapping[str, bundles.Concept]) -> list[str]:
    """Ids of the concepts that share the most words with the question, the best first, then what they depend on."""
    texts = {
        id: ranking.words(concept.title) * TITLE_WEIGHT + ranking.words(f"{concept.description} {concept.body}")
        for id, concept in concepts.items()
    }
    scores = ranking.bm25(ranking.words(question), texts)
    least = NEAR * max(scores.values(), default=0.0)
    ranked = sorted((id for id in scores if scores[id] >= least), key=lambda id: (-scores[id], id))
    found = ranked[:MAX_MATCHES]
    for id in found:  # grows while it is read: dependencies have dependencies
        section = DEPENDS_ON.search(concepts[id].body)
        needed = LINK.findall(section[1]) if section else []
        found.extend(n for n in dict.fromkeys(needed) if n in concepts and n not in found)
    return found


def tables(found: Sequence[str], concepts: Mapping[str, bundles.Concept]) -> list[str]:
    """Ids of the tables that the rules among `found` use or reach, those of most rules first, without those found."""
    uses: Counter[str] = Counter()
    for id in found:
        lines = "".join(section[1] for section in USES.finditer(concepts[id].body))
        uses.update([*dict.fromkeys(n for n in LINE_LINK.findall(lines) if n in concepts and n not in found)])
    return [id for id, _ in uses.most_common(MAX_TABLES)]


def _hints(question: str, root: Path) -> str:
    """The matches with their descriptions, and the tables that go with them; "" where no word matches."""
    try:
        concepts = bundles.load(root).concepts
    except OSError as error:
        raise UserError(f"The bundle {root} cannot be read: {error}") from None
    found = matches(question, concepts)
    if not found:
        return ""
    lines = [f"* [{c.title}]({c.path}) - {c.description}" for c in (concepts[id] for id in found)]
    lines += [f"* [{c.title}]({c.path})" for c in (concepts[id] for id in tables(found, concepts))]
    return prompts.load("matches.md", entries=reading.brief("\n".join(lines)))
