"""What a recompile keeps: the bytes of what did not change, and everything that people added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from okf_compiler import markdown
from okf_compiler.bundle import Concept, files, is_concept, parse, render
from okf_compiler.concepts import GENERATOR, KEYS, SECTIONS
from okf_compiler.frontmatter import FormatError
from okf_compiler.settings import UserError

_AT = re.compile(r"^generated: \{.*\}$", re.MULTILINE)
"""The one line of a compiled file that holds the date."""


@dataclass
class Merged:
    """The next state of a bundle's concepts, and how it differs from the one on disk."""

    texts: dict[str, str] = field(default_factory=dict)
    """Relative path -> text, for the concepts that were added or changed."""
    concepts: list[Concept] = field(default_factory=list)
    """Every concept the bundle will have, people's own included."""
    added: list[Concept] = field(default_factory=list)
    changed: list[Concept] = field(default_factory=list)
    removed: list[Concept] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a person should look at."""


def merge(folder: Path, concepts: Iterable[Concept], now: str) -> Merged:
    """The compiled concepts joined with what lies in the folder; `now` is ISO 8601 with an offset.

    Raises:
        UserError: a file in a concept's place cannot be read, so that what it holds would be lost.
    """
    merged = Merged()
    old = {path for path in files(folder) if is_concept(path)} if folder.is_dir() else set()
    for concept in concepts:
        path = f"{concept.id}.md"
        fresh = render(_dated(concept, now))
        if path in old:
            old.discard(path)
            _update(merged, folder / path, concept, fresh, now)
        else:
            merged.texts[path] = fresh
            merged.added.append(concept)
            merged.concepts.append(concept)
    for path in sorted(old):
        _leftover(merged, folder, path)
    return merged


def _update(merged: Merged, file: Path, concept: Concept, fresh: str, now: str) -> None:
    text = _read(file)
    at = _AT.search(text)
    if at and _AT.sub(lambda _: at[0], fresh, count=1) == text:
        merged.concepts.append(concept)
        return
    try:
        before = parse(text, concept.id)
    except FormatError as error:
        raise UserError(f"{file}:{error.line}: {error}. Correct the file, or delete it to have it compiled.") from None
    if not _is_compiled(before):
        merged.notes.append(f"{file}: written by someone else, so it was left as it is")
        merged.concepts.append(before)
        return
    extra_keys = {key: value for key, value in before.frontmatter.items() if key not in KEYS}
    parts = markdown.sections(concept.body)
    own = SECTIONS | {part.heading for part in parts}
    before_parts = markdown.sections(before.body)
    extra = [part for part in before_parts if part.heading not in own]
    same = [p for p in before_parts if p.heading in own] == parts and _facts(before) == _facts(concept)
    if same:
        merged.concepts.append(before)
        return
    body = concept.body
    if extra:
        lead = [part for part in extra if not part.heading]
        body = markdown.join([*lead, *parts, *(part for part in extra if part.heading)])
    updated = replace(concept, frontmatter={**concept.frontmatter, **extra_keys}, body=body)
    if extra_keys.get("verified"):
        merged.notes.append(f"{file}: changed after it was verified; have it checked again")
    merged.texts[f"{concept.id}.md"] = render(_dated(updated, now))
    merged.changed.append(updated)
    merged.concepts.append(updated)


def _leftover(merged: Merged, folder: Path, path: str) -> None:
    """A concept that the sources no longer give: removed if the compiler wrote all of it, kept otherwise."""
    try:
        concept = parse(_read(folder / path), path[:-3])
    except FormatError:
        return
    if not _is_compiled(concept):
        merged.concepts.append(concept)
    elif set(concept.frontmatter) <= set(KEYS) and all(
        part.heading in SECTIONS for part in markdown.sections(concept.body)
    ):
        merged.removed.append(concept)
    else:
        merged.notes.append(f"{folder / path}: its source is gone, but people added to it, so it was kept")
        merged.concepts.append(concept)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8. Save it as UTF-8, or delete it to have it compiled.") from None
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None


def _dated(concept: Concept, at: str) -> Concept:
    generated = {**concept.frontmatter["generated"], "at": at}
    return Concept(concept.id, {**concept.frontmatter, "generated": generated}, concept.body)


def _facts(concept: Concept) -> Mapping[str, Any]:
    """The compiler's keys without the date."""
    facts = {key: value for key, value in concept.frontmatter.items() if key in KEYS}
    generated = facts.get("generated")
    if isinstance(generated, dict):
        facts["generated"] = {key: value for key, value in generated.items() if key != "at"}
    return facts


def _is_compiled(concept: Concept) -> bool:
    generated = concept.frontmatter.get("generated")
    by = generated.get("by") if isinstance(generated, dict) else None
    return isinstance(by, str) and by.partition("/")[0] == GENERATOR.partition("/")[0]
