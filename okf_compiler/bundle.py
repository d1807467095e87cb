"""Concepts and files: read a bundle, find a path in it, save it whole or not at all. Shared with the agent."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from okf_compiler import frontmatter, markdown, swap
from okf_compiler.errors import UserError, near_names
from okf_compiler.frontmatter import FormatError
from okf_compiler.names import RESERVED

_T = TypeVar("_T")
LARGEST_FILE = 5_000_000
"""Bytes of a file that is read; of a larger one only the beginning is, which has its frontmatter."""
_RULE_ID = re.compile(r", rule (.+)$")


@dataclass(frozen=True)
class Concept:
    """One file: `id` is its path without `.md`; the body is everything below the frontmatter."""

    id: str
    frontmatter: Mapping[str, Any]
    body: str

    @property
    def path(self) -> str:
        """As links and `read_file` have it: from the bundle's root, with `.md`."""
        return f"/{self.id}.md"

    @property
    def type(self) -> str:
        return self._text("type")

    @property
    def title(self) -> str:
        """The title, or the last part of the id where there is none."""
        return self._text("title") or self.id.rpartition("/")[2]

    @property
    def description(self) -> str:
        return self._text("description")

    @property
    def is_table(self) -> bool:
        """Whether its type says so, by whoever it was written: `PostgreSQL Table`, `Table`. All others are rules."""
        return self.type.lower().split()[-1:] == ["table"]

    @property
    def sections(self) -> dict[str, str]:
        """The texts of the body by heading; "" for what stands before the first."""
        parts: dict[str, str] = {}
        for part in markdown.sections(self.body):
            parts[part.heading] = "\n\n".join(filter(None, (parts.get(part.heading), part.text)))
        return parts

    def links(self, *headings: str) -> list[str]:
        """Paths of what is linked under the headings, each once."""
        parts = self.sections
        return markdown.links("\n".join(parts.get(heading, "") for heading in headings))

    @property
    def rule_ids(self) -> list[str]:
        """The ids that a rule has in its sources, whose titles end in them: `Business rules, rule 12`."""
        sources = self.frontmatter.get("sources")
        named = [s for s in sources if isinstance(s, Mapping)] if isinstance(sources, list) else []
        return [found[1] for source in named if (found := _RULE_ID.search(str(source.get("title", ""))))]

    def _text(self, key: str) -> str:
        value = self.frontmatter.get(key)
        return "" if value is None or isinstance(value, list | dict) else str(value)


@dataclass(frozen=True)
class Bundle:
    root: Path
    concepts: Mapping[str, Concept]
    """By id, sorted."""

    @property
    def tables(self) -> list[Concept]:
        return [concept for concept in self.concepts.values() if concept.is_table]

    @property
    def rules(self) -> list[Concept]:
        return [concept for concept in self.concepts.values() if not concept.is_table]


def render(concept: Concept) -> str:
    """The text of the concept's file."""
    return f"---\n{frontmatter.dump(concept.frontmatter)}---\n\n{concept.body}"


def parse(text: str, id: str) -> Concept:
    """The concept in a file's text.

    Raises:
        FormatError: no frontmatter, not YAML, or not a mapping.
    """
    front, body, _ = frontmatter.split(text)
    if front is None:
        raise FormatError("there is no frontmatter: the first line must be `---`")
    return Concept(id, frontmatter.load(front), body)


def files(root: Path) -> Iterator[str]:
    """Relative paths (with `/`) of a bundle's files, sorted; hidden ones, and what is no regular file, are left out."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(".")]
        base = Path(folder).relative_to(root).as_posix()
        prefix = "" if base == "." else base + "/"
        found += [prefix + name for name in names if not name.startswith(".")]
    return (path for path in sorted(found) if _is_regular(root / path))


def _is_regular(path: Path) -> bool:
    """Not a symbolic link, nor a pipe that would be waited for; what has vanished counts, for whoever reads it."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True


def is_concept(path: str) -> bool:
    """Whether this file of a bundle is a concept: markdown with a name that is not reserved."""
    name = path.rpartition("/")[2]
    return name.lower().endswith(".md") and name[:-3].lower() not in RESERVED


def index_file(folder: Path) -> Path | None:
    """Return the index of a folder, in any letter case; None if there is none, or it is no regular file."""
    try:
        names = [file.name for file in folder.iterdir() if file.name.lower() == "index.md"]
    except OSError:
        return None
    files = (folder / name for name in sorted(names, reverse=True))  # small letters first
    return next((file for file in files if stat.S_ISREG(file.lstat().st_mode)), None)


def load(folder: Path) -> Bundle:
    """The bundle in a folder, as it was before or after any save that runs meanwhile.

    A file that is not a concept is kept with empty frontmatter; `validate` says what is wrong with it.

    Raises:
        UserError: there is no such folder, or a file cannot be read.
    """

    def read() -> Bundle:
        concepts = {}
        for path in filter(is_concept, files(folder)):
            id = path[:-3]
            with (folder / path).open("rb") as file:
                text = file.read(LARGEST_FILE).decode("utf-8", "replace")
            try:
                concepts[id] = parse(text, id)
            except FormatError:
                concepts[id] = Concept(id, {}, text)
        return Bundle(folder, concepts)

    return _settled(folder, read)


def bundle_hash(folder: Path) -> str:
    """SHA-256 over the sorted relative paths and contents of the bundle's files."""

    def read() -> str:
        digest = hashlib.sha256()
        for path in files(folder):
            content = (folder / path).read_bytes()
            digest.update(f"{path}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()

    return _settled(folder, read)


def _settled(folder: Path, read: Callable[[], _T]) -> _T:
    """What `read` gives while one state of the folder stands: a save puts another folder in its place."""
    for _ in range(50):
        swap.repair(folder)
        try:
            with _held(folder):
                before = folder.stat()
                result = read()
                after = folder.stat()
        except FileNotFoundError:
            if not folder.exists() and not swap.unfinished(folder):
                raise UserError(missing(folder), status=2) from None
            continue
        except OSError as error:
            raise UserError(f"The bundle in {folder} cannot be read: {error}.") from None
        if (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino):
            return result
    raise UserError(f"The bundle in {folder} keeps changing. Wait for the compiler and try again.")


def missing(folder: Path) -> str:
    """Return what is said of a folder that is not there."""
    return f"There is no bundle in {folder}. `okf-compiler compile all` makes them."


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep the folder's inode number from being given to the next one."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield
    finally:
        os.close(handle)


def save(folder: Path, changed: Mapping[str, str], removed: frozenset[str] = frozenset()) -> bool:
    """Write files (relative path -> text) and remove others, whole or not at all; the rest of the folder stays.

    Returns False, and touches nothing, where the folder is like that already: it need not be writable then.

    Raises:
        UserError: the folder cannot be written; it is then what it was before.
    """
    if not swap.is_writable(folder) and not would_save(folder, changed, removed):
        return False
    with swap.lock(folder):
        pending, gone = _pending(folder, changed, removed)
        if folder.is_dir() and not pending and not gone:
            return False
        swap.replace(folder, pending, gone)
        return True


def would_save(folder: Path, changed: Mapping[str, str], removed: frozenset[str] = frozenset()) -> bool:
    """Whether `save` would touch the folder."""
    return not folder.is_dir() or any(_pending(folder, changed, removed))


def _pending(
    folder: Path, changed: Mapping[str, str], removed: frozenset[str]
) -> tuple[dict[str, bytes], frozenset[str]]:
    """What of a save is not so already."""
    pending = {path: text.encode("utf-8") for path, text in changed.items()}
    if folder.is_dir():
        pending = {path: data for path, data in pending.items() if _content(folder / path) != data}
    return pending, frozenset(path for path in removed if (folder / path).is_file())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def resolve(root: Path, path: str) -> Path:
    """The markdown file that a bundle path names: `/tables/a.md`, `tables/a`, or a folder for its index.

    A folder without an index is returned itself. What links carry is understood: `#part`, `%20`, `<…>`.

    Raises:
        LookupError: not inside the bundle, not markdown, or not there; the message names near paths.
    """
    name = path.strip().removeprefix("<").removesuffix(">").partition("#")[0]
    candidates = [name, unquote(name)]
    for candidate in dict.fromkeys([*candidates, *(c.rstrip("/") + ".md" for c in candidates)]):
        parts = [part for part in candidate.split("/") if part not in ("", ".")]
        if any(part.startswith(".") or set(part) & set("\0\\") or ":" in part for part in parts):
            raise LookupError(f"{path!r} is not a path of this bundle. Paths look like /tables/name.md.")
        found = _inside(root, parts)
        if found:
            return found
    raise LookupError(f"There is no {path!r} in this bundle{_near(root, name)}")


def _inside(root: Path, parts: list[str]) -> Path | None:
    """The regular file or folder at the end of the parts, if no part is a symbolic link."""
    place = root
    mode = stat.S_IFDIR
    for part in parts:
        place = place / part
        try:
            mode = place.lstat().st_mode
        except (OSError, ValueError):
            return index_file(place.parent) if part is parts[-1] and part.lower() == "index.md" else None
        if stat.S_ISLNK(mode):
            raise LookupError(f"/{'/'.join(parts)} is a symbolic link, and links are not followed.")
    if stat.S_ISDIR(mode):
        return index_file(place) or place
    return place if stat.S_ISREG(mode) and place.suffix.lower() == ".md" else None


def _near(root: Path, name: str) -> str:
    """The bundle's paths that look most like the name, by their last part and as a whole."""
    wanted = name.strip("/").removesuffix(".md").lower()
    by_name: dict[str, str] = {}
    for path in files(root):
        if path.endswith(".md"):
            by_name.setdefault(path[:-3].lower(), path)
            if is_concept(path):
                by_name.setdefault(path.rpartition("/")[2][:-3].lower(), path)
    near = [*near_names(wanted.rpartition("/")[2], by_name, 3), *near_names(wanted, by_name, 3)]
    paths = list(dict.fromkeys(f"/{by_name[n]}" for n in near))[:3]
    return f"; did you mean {' or '.join(paths)}?" if paths else ". /index.md lists what there is."
