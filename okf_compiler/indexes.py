"""`index.md` of each folder and `log.md`: what a reader of a bundle sees first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from okf_compiler import markdown
from okf_compiler.bundle import Concept, load

OKF_VERSION = "0.2"
INDEX_TOKENS = 2_000
"""About how large the root index may get by listing a folder's concepts itself."""
_CHARS_PER_TOKEN = 4
_NAMES_IN_LOG = 20
_DAY = re.compile(r"^## ", re.MULTILINE)


def indexes(concepts: Iterable[Concept], own_folders: Sequence[str]) -> dict[str, str]:
    """Relative path -> text: the root's index, and one for each of the compiler's folders that has concepts."""
    by_folder: dict[str, list[Concept]] = {}
    for concept in concepts:
        by_folder.setdefault(concept.id.rpartition("/")[0], []).append(concept)
    texts = {f"{folder}/index.md": folder_index(by_folder[folder]) for folder in own_folders if folder in by_folder}
    return {"index.md": _root_index(by_folder, own_folders), **texts}


def folder_index(concepts: Iterable[Concept]) -> str:
    """Entries under a heading for each type, sorted by title: `* [title](/path.md) - description`."""
    return "\n\n".join(_sections(concepts)) + "\n"


def make_index(root: Path, folder: str = "") -> str:
    """An index for a folder that has none, made from its files' frontmatter; subfolders come as folders."""
    prefix = folder.strip("/") + "/" if folder.strip("/") else ""
    inside = [c for c in load(root).concepts.values() if c.id.startswith(prefix)]
    here = [c for c in inside if "/" not in c.id[len(prefix) :]]
    below: dict[str, list[Concept]] = {}
    for concept in inside:
        name, slash, _ = concept.id[len(prefix) :].partition("/")
        if slash:
            below.setdefault(prefix + name, []).append(concept)
    return "\n\n".join([*_folders(below), *_sections(here)]) + "\n"


def _root_index(by_folder: Mapping[str, list[Concept]], own_folders: Sequence[str]) -> str:
    """The folders, and their concepts as far as the whole stays readable: the smallest folders first."""
    folders = {name: by_folder[name] for name in sorted(by_folder, key=lambda f: _order(f, own_folders)) if name}
    blocks = [*_folders(folders), *_sections(by_folder.get("", ()))]
    room = INDEX_TOKENS * _CHARS_PER_TOKEN - len("\n\n".join(blocks))
    listed = {name: "\n\n".join(_sections(concepts)) for name, concepts in folders.items()}
    shown = set()
    for name in sorted(listed, key=lambda n: len(listed[n])):
        room -= len(listed[name]) + 2
        if room >= 0:
            shown.add(name)
    blocks += [text for name, text in listed.items() if name in shown]
    return f'---\nokf_version: "{OKF_VERSION}"\n---\n\n' + "\n\n".join(blocks) + "\n"


def _order(folder: str, own_folders: Sequence[str]) -> tuple[int, str]:
    return (own_folders.index(folder) if folder in own_folders else len(own_folders), folder)


def _folders(folders: Mapping[str, list[Concept]]) -> list[str]:
    lines = []
    for name, concepts in folders.items():
        counts = Counter(c.type or "Untyped" for c in concepts)
        lines.append(f"* {markdown.link(name, f'/{name}/index.md')} - {_counted(counts)}")
    return ["# Folders\n\n" + "\n".join(lines)] if lines else []


def _counted(counts: Mapping[str, int]) -> str:
    """`10 PostgreSQL Table, 54 Business Rule`."""
    return ", ".join(f"{count} {markdown.plain(kind)}" for kind, count in sorted(counts.items()))


def _sections(concepts: Iterable[Concept]) -> list[str]:
    by_type: dict[str, list[Concept]] = {}
    for concept in sorted(concepts, key=lambda c: (c.title.casefold(), c.id)):
        by_type.setdefault(markdown.plain(concept.type) or "Untyped", []).append(concept)
    return [f"# {kind}\n\n" + "\n".join(map(_entry, by_type[kind])) for kind in sorted(by_type)]


def _entry(concept: Concept) -> str:
    description = markdown.plain(concept.description)
    return f"* {markdown.link(concept.title, concept.path)}" + (f" - {description}" if description else "")


def log_entry(created: str | None, changes: Mapping[str, Sequence[Concept]]) -> str:
    """A line of the log: what a new bundle holds, or what was added, changed and removed."""
    if created:
        return f"* **Creation**: {created}"
    said = []
    for what, concepts in changes.items():
        links = [
            markdown.code(c.title) if what == "removed" else markdown.link(c.title, c.path)
            for c in concepts[:_NAMES_IN_LOG]
        ]
        if len(concepts) > _NAMES_IN_LOG:
            links.append(f"{len(concepts) - _NAMES_IN_LOG} more")
        if links:
            said.append(f"{what} {', '.join(links)}")
    return f"* **Update**: {'; '.join(said)}."


def add_to_log(log: str | None, date: str, entry: str) -> str:
    """The log with the entry as the first one of its day (`YYYY-MM-DD`), days newest first; nothing else moves."""
    if not log or not log.strip():
        return f"# Log\n\n## {date}\n\n{entry}\n"
    log = log.replace("\r\n", "\n")
    first = _DAY.search(log)
    if not first:
        return f"{log.rstrip()}\n\n## {date}\n\n{entry}\n"
    heading, _, rest = log[first.start() :].partition("\n")
    if heading.strip() == f"## {date}":
        return f"{log[: first.start()]}{heading}\n\n{entry}\n{rest.lstrip(chr(10))}"
    return f"{log[: first.start()]}## {date}\n\n{entry}\n\n{log[first.start() :]}"
