"""`index.md` of each folder: what a reader of a bundle sees first. None is longer than a model can read at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from okf_compiler import index_tree, markdown, swap
from okf_compiler.bundle import Concept, files, index_file, load, save
from okf_compiler.index_tree import CONTENTS, UNTYPED, Tree
from okf_compiler.markdown import Part
from okf_compiler.tokens import BYTES_PER_TOKEN, size

OKF_VERSION = "0.2"
OWN_FOLDERS = ("tables", "knowledge")
"""The folders that the compiler writes, in the order in which the root names them."""
INDEX_TOKENS = 2_000
"""The longest that an index gets."""
_LIMIT = int(INDEX_TOKENS * BYTES_PER_TOKEN)
_HEAD = f'---\nokf_version: "{OKF_VERSION}"\n---\n\n'
_ENTRY = re.compile(r"^[*-] \[.*?(?<!\\)\]\((?:<([^<>]*)>|([^()\s]*))\)")
_SMALLER = re.compile(rf"(?:^|/){CONTENTS}/[^/]+/index\.md$")


def indexes(concepts: Iterable[Concept], own_folders: Sequence[str] = ()) -> dict[str, str]:
    """Relative path -> text: the root's index, one for each folder with concepts, and the smaller ones below them.

    The root names its folders, those of `own_folders` first, and shows what their indexes show as far as there is
    room. So every concept is within three reads of the root: a folder's index, a smaller one, and itself.
    """
    everything = list(concepts)
    inside: dict[str, list[Concept]] = {}
    for concept in everything:
        folder = concept.id.rpartition("/")[0]
        while folder:
            inside.setdefault(folder, []).append(concept)
            folder = folder.rpartition("/")[0]
    trees = {folder: index_tree.build(folder, found, _LIMIT) for folder, found in inside.items()}
    texts: dict[str, str] = {}
    for folder in sorted(trees):
        texts |= {f"{folder}/index.md": trees[folder].body, **trees[folder].smaller}
    top = sorted((f for f in inside if "/" not in f), key=lambda f: _order(f, own_folders))
    root = _root(everything, {f: inside[f] for f in top}, trees)
    return {"index.md": _HEAD + root.body, **root.smaller, **texts}


def _root(everything: Sequence[Concept], folders: Mapping[str, list[Concept]], trees: Mapping[str, Tree]) -> Tree:
    """The folders, the root's own concepts, and the folders' indexes: first what is far away, then what is short."""
    lines = [
        f"* {markdown.link(name, f'/{name}/index.md')} - "
        + index_tree.counted(Counter(markdown.plain(c.type) or UNTYPED for c in found))
        for name, found in folders.items()
    ]
    block = "# Folders\n\n" + "\n".join(lines) + "\n" if lines else ""
    far = [f for f in folders if trees[f].levels > 2]
    room = _LIMIT - size(_HEAD + block) - sum(size(trees[f].body) + 1 for f in far)
    if room < _LIMIT // 5:
        return index_tree.build("", everything, _LIMIT - size(_HEAD))
    own = index_tree.build("", (c for c in everything if "/" not in c.id), room)
    room -= size(own.body) + 1
    shown = set(far)
    for folder in sorted(set(folders) - shown, key=lambda f: (size(trees[f].body), f)):
        if size(trees[folder].body) < room:
            room -= size(trees[folder].body) + 1
            shown.add(folder)
    brief = set()
    for folder in sorted(set(folders) - shown, key=lambda f: (size(trees[f].brief), f)):
        if room - size(trees[folder].brief) > 0:
            room -= size(trees[folder].brief) + 1
            brief.add(folder)
    listed = [trees[f].body if f in shown else trees[f].brief for f in folders if f in shown | brief]
    body = "\n".join(text for text in (block, own.body, *listed) if text)
    return Tree(body, body, own.smaller, 1)


def _order(folder: str, own_folders: Sequence[str]) -> tuple[int, str]:
    return (own_folders.index(folder) if folder in own_folders else len(own_folders), folder)


def is_smaller_index(path: str) -> bool:
    """Whether the relative path is that of an index which a larger one leads to, in a folder for indexes alone."""
    return bool(_SMALLER.search(path))


def with_prose(root: Path, texts: Mapping[str, str], concepts: Iterable[Concept]) -> dict[str, str]:
    """Return the indexes with what people wrote into those that lie in the folder `root` now, in any letter case."""
    kinds = {c.path: markdown.plain(c.type) or UNTYPED for c in concepts}
    kept = dict(texts)
    for path, text in texts.items():
        file = index_file((root / path).parent)
        if file and not is_smaller_index(path):
            kept[path] = keep_prose(file.read_bytes().decode("utf-8", "replace"), text, kinds)
    return kept


def keep_prose(old: str, new: str, kinds: Mapping[str, str]) -> str:
    """The new text of an index with what people wrote into the old one: prose, and sections of their own.

    `kinds` has the heading under which each concept's path stands. A section of nothing but entries is an index's own
    if each of them leads to a concept of the section's kind, to another index, or nowhere any more.
    """
    if old.replace("\r\n", "\n") == new:
        return new
    head, fresh = (_HEAD, new[len(_HEAD) :]) if new.startswith(_HEAD) else ("", new)
    old = re.sub(r"\A---\n.*?\n---\n+", "", old.replace("\r\n", "\n"), flags=re.DOTALL)
    parts = {part.heading: part.text for part in markdown.sections(fresh)}
    lead: list[Part] = []
    kept: list[Part] = []
    for part in markdown.sections(old):
        lines = part.text.split("\n")
        prose = "\n".join(line for line in lines if not _ENTRY.match(line)).strip()
        if part.heading in parts:
            parts[part.heading] = "\n\n".join(filter(None, (prose, parts[part.heading])))
        elif prose or not all(_is_own(line, part.heading, kinds) for line in lines if line):
            (kept if part.heading else lead).append(part)
    return head + markdown.join([*lead, *(Part(heading, text) for heading, text in parts.items()), *kept])


def _is_own(line: str, heading: str, kinds: Mapping[str, str]) -> bool:
    entry = _ENTRY.match(line)
    path = (entry[1] or entry[2]) if entry else ""
    return path.endswith("/index.md") or kinds.get(path, heading) == heading


def due(folder: Path, concepts: Sequence[Concept]) -> tuple[dict[str, str], frozenset[str]]:
    """The indexes that these concepts give the bundle in `folder`, with what people wrote into those that lie there,
    and the smaller ones there that nothing leads to any more."""
    texts = with_prose(folder, indexes(concepts, OWN_FOLDERS), concepts)
    there = [path for path in files(folder) if path not in texts] if folder.is_dir() else []
    spelled = {path.lower() for path in texts}
    return texts, frozenset(
        path
        for path in there
        if is_smaller_index(path) or (path.rpartition("/")[2].lower() == "index.md" and path.lower() in spelled)
    )


def outdated(folder: Path) -> list[tuple[str, str]]:
    """(`missing`, `changed` or `superfluous`, relative path) of each index that is not what the concepts give."""
    texts, gone = due(folder, list(load(folder).concepts.values()))
    there = {path: folder / path for path in texts if (folder / path).is_file()}
    differs = [path for path, file in there.items() if file.read_bytes() != texts[path].encode("utf-8")]
    return [
        *(("missing", path) for path in texts if path not in there),
        *(("changed", path) for path in differs),
        *(("superfluous", path) for path in sorted(gone)),
    ]


def write(folder: Path) -> list[tuple[str, str]]:
    """Bring the indexes of any bundle up to date, whole or not at all; returns what `outdated` gave before.

    A bundle whose indexes are up to date is not touched, and need not be writable.
    """
    changes = outdated(folder)
    if changes:
        with swap.lock(folder):
            changes = outdated(folder)
            save(folder, *due(folder, list(load(folder).concepts.values())))
    return changes
