"""What a recompile keeps: the bytes of what did not change, and everything that people added or edited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from okf_compiler import compiled, frontmatter, markdown
from okf_compiler.bundle import Concept, files, is_concept, parse, render
from okf_compiler.compiled import own_keys
from okf_compiler.concepts import GENERATOR, KEYS
from okf_compiler.edits import Edit
from okf_compiler.errors import UserError
from okf_compiler.frontmatter import FormatError
from okf_compiler.headings import SECTIONS

_AT = re.compile(r"^generated: \{.*\}$", re.MULTILINE)
"""The one line of a compiled file that holds the date."""
FRONTMATTER = "frontmatter"


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
    edits: list[Edit] = field(default_factory=list)
    """What people wrote into the compiler's sections, which gives way to what is compiled."""
    notes: list[str] = field(default_factory=list)
    """What a person should look at."""


def merge(folder: Path, concepts: Iterable[Concept], now: str) -> Merged:
    """The compiled concepts joined with what lies in the folder; `now` is ISO 8601 with an offset.

    Raises:
        UserError: a file in a concept's place cannot be read, so that what it holds would be lost.
    """
    merging = _Merging(folder, now)
    old = {path for path in files(folder) if is_concept(path)} if folder.is_dir() else set()
    for concept in concepts:
        path = f"{concept.id}.md"
        if path in old:
            old.discard(path)
            merging.update(folder / path, concept)
        else:
            merging.add(concept)
    for path in sorted(old):
        merging.leftover(path)
    return merging.merged


class _Merging:
    """The folder as it is, and what it becomes."""

    def __init__(self, folder: Path, now: str) -> None:
        self.folder = folder
        self.now = now
        self.merged = Merged()
        self.record = compiled.read(folder)

    def add(self, concept: Concept) -> None:
        self.merged.texts[f"{concept.id}.md"] = render(_dated(concept, self.now))
        self.merged.added.append(concept)
        self.merged.concepts.append(concept)

    def update(self, file: Path, concept: Concept) -> None:
        """Keep the file where it is what is compiled; else replace the compiler's part of it."""
        text = _read(file)
        at = _AT.search(text)
        if at and _AT.sub(lambda _: at[0], render(_dated(concept, self.now)), count=1) == text:
            self.merged.concepts.append(concept)
            return
        try:
            before = parse(text, concept.id)
        except FormatError as error:
            raise UserError(
                f"{file}:{error.line}: {error}. Correct the file, or delete it to have it compiled."
            ) from None
        if not _is_compiled(before):
            self.merged.notes.append(f"{file}: written by someone else, so it was left as it is")
            self.merged.concepts.append(before)
            return
        self._replace(file, before, concept)

    def _replace(self, file: Path, before: Concept, concept: Concept) -> None:
        known = (self.record or {}).get(concept.id, {})
        parts = markdown.sections(concept.body)
        own = _headings(known) | {part.heading for part in parts}
        before_parts = markdown.sections(before.body)
        extra_keys = {key: value for key, value in before.frontmatter.items() if key not in KEYS}
        if [p for p in before_parts if p.heading in own] == parts and own_keys(before) == own_keys(concept):
            self._check_marks(file, before)
            self.merged.concepts.append(before)
            return
        self._keep_edits(file, before, concept)
        extra = [part for part in before_parts if part.heading not in own]
        body = concept.body
        if extra:
            lead = [part for part in extra if not part.heading]
            body = markdown.join([*lead, *parts, *(part for part in extra if part.heading)])
        updated = replace(concept, frontmatter={**concept.frontmatter, **extra_keys}, body=body)
        at = self.now
        if compiled.digests(concept) == known:  # only an edit is undone: the content is what it was
            at = str(_at(before) or self.now)
        else:
            self.merged.changed.append(updated)
        updated = _dated(updated, at)
        self._check_marks(file, updated)
        self.merged.texts[f"{concept.id}.md"] = render(updated)
        self.merged.concepts.append(updated)

    def _keep_edits(self, file: Path, before: Concept, after: Concept | None) -> None:
        """Set aside each section, and the frontmatter, that is neither what was compiled nor what now is.

        Where no record says what was compiled, whatever differs may be a person's.
        """
        known = (self.record or {}).get(before.id, {})
        own = _headings(known)
        new = {(p.heading, p.text) for p in markdown.sections(after.body)} if after else set()
        edits = [
            Edit(before.path, part.heading, part.text)
            for part in markdown.sections(before.body)
            if part.heading in own
            and (part.heading, part.text) not in new
            and known.get(part.heading) != compiled.of_text(part.text)
        ]
        values = own_keys(before)
        if known.get(compiled.FRONTMATTER) != compiled.of_frontmatter(values) and (
            after is None or values != own_keys(after)
        ):
            edits.append(Edit(before.path, FRONTMATTER, frontmatter.dump(values).rstrip("\n")))
        self.merged.edits += edits
        if edits:
            where = ", ".join(edit.section for edit in edits)
            self.merged.notes.append(f"{file}: edited in what the compiler writes ({where}); the edits were kept aside")

    def _check_marks(self, file: Path, concept: Concept) -> None:
        """A note where everybody's mark is older than the content."""
        marks = concept.frontmatter.get("verified")
        marks = [mark for mark in (marks if isinstance(marks, list) else [marks]) if isinstance(mark, dict)]
        times = [time for mark in marks if (time := _instant(mark.get("at")))]
        changed = _instant(_at(concept))
        if marks and changed and (not times or max(times) < changed):
            self.merged.notes.append(f"{file}: changed after it was verified; have it checked again")

    def leftover(self, path: str) -> None:
        """A concept that the sources no longer give: removed if the compiler wrote all of it, kept otherwise."""
        file = self.folder / path
        try:
            concept = parse(_read(file), path[:-3])
        except FormatError:
            return
        own = _headings((self.record or {}).get(concept.id, {}))
        if not _is_compiled(concept):
            self.merged.concepts.append(concept)
        elif concept.frontmatter.keys() <= set(KEYS) and all(
            part.heading in own for part in markdown.sections(concept.body)
        ):
            if self.record is not None:  # without a record nothing tells an edit from what was compiled
                self._keep_edits(file, concept, None)
            self.merged.removed.append(concept)
        else:
            self.merged.notes.append(f"{file}: its source is gone, but people added to it, so it was kept")
            self.merged.concepts.append(concept)


def _headings(known: Mapping[str, str]) -> AbstractSet[str]:
    """The compiler's headings, and those it wrote into a concept. What stands above every heading is a person's."""
    return SECTIONS | (known.keys() - {compiled.FRONTMATTER})


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


def _at(concept: Concept) -> Any:
    generated = concept.frontmatter.get("generated")
    return generated.get("at") if isinstance(generated, dict) else None


def _instant(value: Any) -> datetime | None:
    """The time that a mark names; one without an offset, or a bare date, counts as UTC."""
    try:
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _is_compiled(concept: Concept) -> bool:
    generated = concept.frontmatter.get("generated")
    by = generated.get("by") if isinstance(generated, dict) else None
    return isinstance(by, str) and by.partition("/")[0] == GENERATOR.partition("/")[0]
