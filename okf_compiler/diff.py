"""How two bundles differ: concepts that came, went and changed, and what changed inside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from okf_compiler import markdown
from okf_compiler.bundle import Bundle, Concept

_DATED = ("generated", "verified")
"""Frontmatter that tells when somebody looked, and not what is so."""


@dataclass(frozen=True, slots=True)
class Change:
    what: str
    """`added`, `removed` or `changed`."""
    path: str
    title: str
    inside: tuple[str, ...] = ()
    """Of a changed concept: each column, section or key that differs."""


def diff(old: Bundle, new: Bundle) -> list[Change]:
    """Every difference in content, by path; dates, marks, indexes and logs are none."""
    changes = []
    for id in sorted(old.concepts.keys() | new.concepts.keys()):
        before, after = old.concepts.get(id), new.concepts.get(id)
        if before is None and after is not None:
            changes.append(Change("added", after.path, after.title))
        elif after is None and before is not None:
            changes.append(Change("removed", before.path, before.title))
        elif before and after and (inside := tuple(_inside(before, after))):
            changes.append(Change("changed", after.path, after.title, inside))
    return changes


def lines(changes: list[Change]) -> Iterator[str]:
    """The changes as a person reads them, a summary last."""
    for change in changes:
        yield f"{change.what}: {change.title} ({change.path})"
        yield from (f"  {text}" for text in change.inside)
    counts = {what: sum(c.what == what for c in changes) for what in ("added", "removed", "changed")}
    yield ", ".join(f"{count} {what}" for what, count in counts.items())


def _inside(before: Concept, after: Concept) -> Iterator[str]:
    for key in dict.fromkeys((*before.frontmatter, *after.frontmatter)):
        if key not in _DATED and before.frontmatter.get(key) != after.frontmatter.get(key):
            yield f"{key}: {_short(before.frontmatter.get(key))} -> {_short(after.frontmatter.get(key))}"
    old, new = before.sections, after.sections
    for heading in dict.fromkeys((*old, *new)):
        if old.get(heading) == new.get(heading):
            continue
        name = heading or "the beginning"
        rows = (_rows(old.get(heading, "")), _rows(new.get(heading, "")))
        if not any(rows):
            yield f"{name}: {'added' if heading not in old else 'removed' if heading not in new else 'changed'}"
            continue
        yield from _rows_changed(name, *rows)


def _rows(text: str) -> dict[str, str]:
    """First cell -> the others, of a table's rows; of a list, each entry -> nothing. The header is left out."""
    cells = {row[0]: " | ".join(row[1:]) for row in markdown.rows(text) if row}
    return cells or {line[2:]: "" for line in text.split("\n") if line.startswith("* ")}


def _rows_changed(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for row in dict.fromkeys((*old, *new)):
        if row not in new:
            yield f"{name}: removed {row}"
        elif row not in old:
            yield f"{name}: added {row}" + (f": {_short(new[row])}" if new[row] else "")
        elif old[row] != new[row]:
            yield f"{name}: changed {row}: {_short(old[row])} -> {_short(new[row])}"
    if old == new:
        yield f"{name}: changed"


def _short(value: object, length: int = 100) -> str:
    text = "nothing" if value is None else markdown.one_line(str(value))
    return text if len(text) <= length else text[: length - 1] + "…"
