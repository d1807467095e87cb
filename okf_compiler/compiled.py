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
from okf_compiler.concepts import KEYS

FILE = ".compiled.json"
FRONTMATTER = ""
"""The key of the frontmatter that belongs to the compiler; the others are headings."""

Record = Mapping[str, Mapping[str, str]]
"""Concept id -> heading -> digest."""


def own_keys(concept: Concept) -> dict[str, Any]:
    """The compiler's keys without the date."""
    found = {key: value for key, value in concept.frontmatter.items() if key in KEYS}
    generated = found.get("generated")
    if isinstance(generated, dict):
        found["generated"] = {key: value for key, value in generated.items() if key != "at"}
    return found


def digests(concept: Concept) -> dict[str, str]:
    """Of a concept as compiled, as the record holds them."""
    sections = {part.heading: of_text(part.text) for part in markdown.sections(concept.body)}
    return {FRONTMATTER: of_frontmatter(own_keys(concept)), **sections}


def of_text(text: str) -> str:
    """The digest of a section."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def of_frontmatter(values: Mapping[str, Any]) -> str:
    """The digest of frontmatter, in any order of its keys."""
    return of_text(json.dumps(values, sort_keys=True, ensure_ascii=False, default=str))


def read(folder: Path) -> Record | None:
    """The bundle's record; None where there is none that can be read."""
    try:
        content = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or not all(isinstance(digests, dict) for digests in content.values()):
        return None
    return content


def render(concepts: Iterable[Concept]) -> str:
    """The file's text, a line for each of the compiled concepts, sorted."""
    found = sorted((concept.id, digests(concept)) for concept in concepts)
    lines = [f"{json.dumps(id, ensure_ascii=False)}: {json.dumps(d, ensure_ascii=False)}" for id, d in found]
    return "{\n" + ",\n".join(lines) + "\n}\n"
