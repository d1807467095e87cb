"""What the compiler wrote, section by section: by it a recompile tells people's edits from changes of the sources.

The record is a hidden file of the bundle, one line a concept, and no concept itself. It holds no dates, so compiling
the same sources gives the same record everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from okf_compiler import markdown
from okf_compiler.bundle import Concept

FILE = ".compiled.json"
FACTS = ""
"""The key of the frontmatter that belongs to the compiler; the others are headings."""

Record = Mapping[str, Mapping[str, str]]
"""Concept id -> heading -> digest."""


def of(concept: Concept, facts: Mapping[str, Any]) -> dict[str, str]:
    """The digests of a concept as compiled."""
    digests = {part.heading: digest(part.text) for part in markdown.sections(concept.body)}
    return {FACTS: digest_facts(facts), **digests}


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def digest_facts(facts: Mapping[str, Any]) -> str:
    """Of frontmatter, in any order of its keys."""
    return digest(json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str))


def read(folder: Path) -> Record | None:
    """The bundle's record; None where there is none that can be read."""
    try:
        content = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or not all(isinstance(digests, dict) for digests in content.values()):
        return None
    return content


def render(digests: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """The file's text, a line for each concept, sorted."""
    lines = [f"{json.dumps(id, ensure_ascii=False)}: {json.dumps(d, ensure_ascii=False)}" for id, d in sorted(digests)]
    return "{\n" + ",\n".join(lines) + "\n}\n"
