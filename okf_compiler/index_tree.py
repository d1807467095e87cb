"""An index that has grown too large becomes an index of smaller ones, each of which a model can read.

What is listed is sorted by what people look for: the kind of concept, then its topic, then its title. Neighbours are
packed into indexes that fit: whole kinds together, else whole topics, and letters only inside one topic. A concept
stays where it is; the smaller indexes lie in `<folder>/contents/<name>/index.md`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from okf_compiler import markdown
from okf_compiler.bundle import Concept
from okf_compiler.names import slug
from okf_compiler.tokens import size

CONTENTS = "contents"
"""Name of the folders that hold indexes only."""
UNTYPED = "Untyped"
MIXED = "More"
"""Heading for smaller indexes that hold several kinds."""
_TITLE_CHARS, _DESCRIPTION_CHARS, _TOPICS_CHARS, _NAME_CHARS = 120, 300, 90, 60
_GROUPS = 10
"""How many entries an index of indexes of indexes aims at: the root shows it beside others."""
_FEW = 8
"""So many kinds never share a smaller index."""
_SPLIT_NAME = re.compile(r"[\s_.\-]+|(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of an index: a concept, or a smaller index that stands for several."""

    kind: str
    area: str
    """The subfolder, or the schema, that the concept belongs to; of a rule, that of the table it speaks of."""
    topic: str
    """The first word of the table's name, which tables that belong together share."""
    title: str
    line: str
    kinds: tuple[tuple[str, int], ...]
    """How many concepts of each kind it stands for."""
    last: tuple[str, str, str] = ("", "", "")
    """Area, topic and title of the last concept in it."""
    brief: str = ""
    """The line of a concept without its description."""

    @property
    def bytes(self) -> int:
        return size(self.line) + 1


@dataclass(frozen=True)
class Tree:
    """What the index of one folder shows, and the smaller indexes below it."""

    body: str
    brief: str
    """The body with titles alone, where it lists concepts."""
    smaller: dict[str, str]
    """Relative path -> text."""
    levels: int
    """1 where the body lists the concepts themselves; each level of smaller indexes adds one read."""


def build(folder: str, concepts: Iterable[Concept], limit: int) -> Tree:
    """The index of a folder ("" for the root) over these concepts, no text of it longer than `limit` bytes."""
    entries = sorted((_entry(c, folder) for c in concepts), key=lambda e: (e.kind, e.area, e.topic, e.title.casefold()))
    smaller: dict[str, str] = {}
    taken: dict[str, int] = {}
    levels = 1
    # A listing that fits needs no topics: it is in order of titles.
    by_title = sorted(entries, key=lambda e: (e.kind, e.title.casefold(), e.line))
    body = _render(by_title)
    brief = _render(by_title, brief=True)
    if size(body) > limit >= size(brief):
        # Titles in one place say more than descriptions in three; each concept has its own.
        return Tree(brief, brief, {}, 1)
    while size(body) > limit and len(entries) > 1:
        total = size(body)
        room = limit if levels == 1 else min(limit, max(limit // 3, total // _GROUPS))
        groups = list(_pack(entries, room))
        if len(groups) == len(entries):
            break
        entries = [_group(folder, group, taken, smaller) for group in groups]
        levels += 1
        body = _render(entries)
    return Tree(body, brief if levels == 1 else body, smaller, levels)


def _entry(concept: Concept, folder: str) -> Entry:
    kind = markdown.plain(concept.type) or UNTYPED
    area, topic = _subject(concept.id, folder)
    if not topic and (other := _speaks_of(concept)):
        area, topic = _subject(other, other.rpartition("/")[0]) if not area else (area, topic)
        topic = topic or _first_word(other)
    description = _cut(markdown.plain(concept.description), _DESCRIPTION_CHARS)
    brief = f"* {markdown.link(_cut(markdown.one_line(concept.title), _TITLE_CHARS), concept.path)}"
    line = brief + (f" - {description}" if description else "") + _also(concept)
    title = markdown.one_line(concept.title)
    return Entry(kind, area, topic, title, line, ((kind, 1),), (area, topic, title), brief)


def _also(concept: Concept) -> str:
    """The other words for a concept, as far as they fit."""
    synonyms = concept.frontmatter.get("synonyms")
    words = [markdown.plain(s) for s in synonyms if isinstance(s, str)] if isinstance(synonyms, list) else []
    return f" (also: {_cut(', '.join(words), _TOPICS_CHARS)})" if words else ""


def _subject(id: str, folder: str) -> tuple[str, str]:
    """(area, topic) that an id tells of: its subfolder or schema; the first word of a name with underscores."""
    inside = id[len(folder) :].strip("/")
    below, _, name = inside.rpartition("/")
    schema, dot, bare = name.partition(".")
    area = below or (schema if dot else "")
    return area, _first_word(bare or name) if "_" in name else ""


def _first_word(id: str) -> str:
    name = id.rpartition("/")[2].rpartition(".")[2]
    return next((word.lower() for word in _SPLIT_NAME.split(name) if word), "")


def _speaks_of(concept: Concept) -> str:
    """The id of the first concept in another folder that the body links to."""
    own = concept.id.rpartition("/")[0]
    ids = (path[1:-3] for path in markdown.links(concept.body))
    return next((id for id in ids if id.rpartition("/")[0] != own), "")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip("\\ ") + "…"


def _render(entries: Sequence[Entry], *, brief: bool = False) -> str:
    """The entries under a heading for each kind; `brief`, without their descriptions."""
    ordered = sorted(entries, key=lambda e: (e.kind == MIXED, e.kind))
    blocks = [
        f"# {kind}\n\n" + "\n".join(e.brief if brief else e.line for e in inside)
        for kind, inside in groupby(ordered, lambda e: e.kind)
    ]
    return "\n\n".join(blocks) + "\n" if blocks else ""


_KEYS: tuple[Callable[[Entry], str], ...] = (lambda e: e.kind, lambda e: e.area, lambda e: e.topic)


def _pack(entries: Sequence[Entry], room: int, depth: int = 0) -> Iterable[list[Entry]]:
    """Neighbours in groups of at most `room` bytes, cut where the kind changes, else the area, the topic, a title."""
    if _bytes(entries) <= room:
        yield list(entries)
    elif depth == len(_KEYS):
        yield from _chunks(entries, room)
    else:
        gathered: list[Entry] = []
        few_kinds = depth == 0 and len({e.kind for e in entries}) <= _FEW
        for _, run in groupby(entries, _KEYS[depth]):
            parts = list(_pack(list(run), room, depth + 1))
            if len(parts) == 1 and not few_kinds and _bytes(gathered) + _bytes(parts[0]) <= room:
                gathered += parts[0]
                continue
            if gathered:
                yield gathered
            gathered = parts.pop() if len(parts) == 1 else []
            yield from parts
        if gathered:
            yield gathered


def _bytes(entries: Sequence[Entry]) -> int:
    """Of the text they make, headings included."""
    return sum(e.bytes for e in entries) + sum(size(kind) + 6 for kind in {e.kind for e in entries})


def _chunks(entries: Sequence[Entry], room: int) -> Iterable[list[Entry]]:
    """Runs of about the same size, as few as fit."""
    room -= size(entries[0].kind) + 6
    total = sum(e.bytes for e in entries)
    aim = total / -(-total // room)
    chunk: list[Entry] = []
    filled = 0
    for entry in entries:
        if chunk and (filled + entry.bytes > room or filled >= aim):
            yield chunk
            chunk, filled = [], 0
        chunk.append(entry)
        filled += entry.bytes
    yield chunk


def _group(folder: str, entries: list[Entry], taken: dict[str, int], smaller: dict[str, str]) -> Entry:
    """One entry for a smaller index with these entries, whose text joins `smaller`."""
    first, last = entries[0], entries[-1].last
    kinds: Counter[str] = Counter()
    for entry in entries:
        kinds.update(dict(entry.kinds))
    kind = first.kind if all(e.kind == first.kind for e in entries) else MIXED
    name = _cut(_name(first, last), _NAME_CHARS)
    base = slug(name.replace("…", " ")) or "more"
    unnumbered = path = f"{CONTENTS}/{base}"
    number = 1
    while path in taken:
        number = taken[unnumbered] = taken[unnumbered] + 1
        path = f"{unnumbered}-{number}"
    taken[path] = 1
    path = f"{folder}/{path}/index.md".lstrip("/")
    smaller[path] = _render(entries)
    described = f"{counted(kinds)}: {_topics(entries)}"
    line = f"* {markdown.link(f'{name} {number}' if number > 1 else name, '/' + path)} - {described}"
    return Entry(kind, first.area, first.topic, first.title, line, tuple(kinds.items()), last)


def _name(first: Entry, last: tuple[str, str, str]) -> str:
    """What a smaller index is about: its topic, or from which one to which."""
    area, topic, title = last
    one = first.area if first.area != area else " ".join(filter(None, (first.area, first.topic)))
    other = area if first.area != area else " ".join(filter(None, (area, topic)))
    if one == other:
        return one or f"{_first_word(first.title)} … {_first_word(title)}"
    return f"{one or 'other'} … {other}"


def _topics(entries: Sequence[Entry]) -> str:
    """The topics in a smaller index as far as they fit on a line, or its first and last title."""
    topics = list(dict.fromkeys(e.topic for e in entries if e.topic))
    if len(topics) > 1:
        return _cut(", ".join(topics), _TOPICS_CHARS)
    first, last = (_cut(markdown.plain(t), 40) for t in (entries[0].title, entries[-1].last[2]))
    return f"{first} … {last}"


def counted(kinds: Counter[str]) -> str:
    """`10 PostgreSQL Table, 54 Business Rule`; of many kinds, the commonest."""
    shown = sorted(kinds.items()) if len(kinds) <= 6 else kinds.most_common(5)
    more = len(kinds) - len(shown)
    text = ", ".join(f"{count} {markdown.plain(_cut(kind, 40))}" for kind, count in shown)
    return text + (f" and {more} kinds more" if more else "")
