"""Files of a bundle as the model gets them: by any path it may write, without what costs tokens and says nothing.

Where a concept comes from and when it was made (`sources`, `generated`) is left out, and a link stands as its path
where the path says the title too. Long files come in pieces.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from okf_agent import prompts
from okf_compiler import bundle as bundles
from okf_compiler import markdown
from okf_compiler.bundle import Concept
from okf_compiler.frontmatter import FormatError

PIECE_CHARS = 40_000
"""Of one file in one result, about 10,000 tokens; what is longer is read in pieces."""
PIECE = re.compile(r"^(?P<path>.*)#(?P<start>\d{1,9})$", re.DOTALL)
_HEAD = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_PROVENANCE = re.compile(r"^(?:generated|sources):.*\n(?:[ \t-].*\n)*", re.MULTILINE)
_SHORT_FORM = re.compile(r"(?P<title>.+) (?P<short>\([^()]+\))")


@dataclass(frozen=True)
class Reading:
    """One path that was asked for. `path` is the bundle path of the file, or what was asked if there is none."""

    path: str
    text: str
    failed: bool = False
    start: int = 0
    table: str = ""
    """The table that the file is about, as the catalogue names it; "" for other files, and for later pieces."""

    @property
    def is_index(self) -> bool:
        """Whether it only says what there is."""
        return self.path.rpartition("/")[2].lower() in ("index.md", "log.md", "")

    @property
    def key(self) -> str:
        """What tells this piece of this file from others."""
        return f"{self.path}#{self.start}"


def read(root: Path, asked: str) -> Reading:
    """The file that `asked` means, which may end in `#N` to read on from character N. Never raises for a path."""
    piece = PIECE.match(asked)
    path, start = (piece["path"], int(piece["start"])) if piece else (asked, 0)
    try:
        file = bundles.resolve(root, path)
        text = _text(file)
    except LookupError as error:
        return Reading(asked, str(error.args[0] if error.args else error), failed=True)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        return Reading(asked, prompts.say("file_unreadable", problem=problem), failed=True)
    bundle_path = f"/{file.relative_to(root).as_posix()}".removesuffix("/.") or "/"
    concept = None if start else _concept(text)
    table = concept.title if concept and concept.is_table else ""
    return Reading(bundle_path, _piece(bundle_path, brief(text), start), start=start, table=table)


def brief(text: str) -> str:
    """A file without its provenance, and without the titles of links that their paths repeat.

    >>> brief("---\\ntype: Rule\\ngenerated: {by: me}\\n---\\n* [Big Order (BO)](/rules/big-order.md), [it](/x.md)")
    '---\\ntype: Rule\\n---\\n* /rules/big-order.md (BO), [it](/x.md)'
    """
    head = _HEAD.match(text)
    if head:
        text = text[: head.start(1)] + _PROVENANCE.sub("", head[1]) + text[head.end(1) :]
    return markdown.replace_links(text, _path_alone)


def _concept(text: str) -> Concept | None:
    """The concept that a file is, without an id; None for an index or what is no concept."""
    try:
        return bundles.parse(text, "")
    except FormatError:
        return None


def _path_alone(link: re.Match[str]) -> str:
    title, path = link["title"], link["path"]
    *folders, name = path.removesuffix(".md").split("/")
    said = _key(folders[-1] if name == "index" else name)
    if _key(title) == said:
        return path
    named = _SHORT_FORM.fullmatch(title)
    return f"{path} {named['short']}" if named and _key(named["title"]) == said else link[0]


def _key(name: str) -> str:
    """What two names share if one is the other as a file is called; a dot (`orders.channel`) says more than a `-`."""
    return re.sub(r"[\s_-]+", "-", name.lower())


def _text(file: Path) -> str:
    """The text of a markdown file; of a folder, an index made from its files.

    Raises:
        LookupError: not a text file, or too large; says which.
        OSError: it cannot be read.
    """
    status = file.stat()
    if stat.S_ISDIR(status.st_mode):
        return _folder_index(file)
    if file.suffix.lower() != ".md" or not stat.S_ISREG(status.st_mode):
        raise LookupError(prompts.say("file_not_markdown"))
    if status.st_size > bundles.LARGEST_FILE:
        raise LookupError(prompts.say("file_too_large", size=status.st_size))
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise LookupError(prompts.say("file_not_text"))
    return text


def _piece(path: str, text: str, start: int) -> str:
    end = start + PIECE_CHARS
    if start == 0 and end >= len(text):
        return text
    note = prompts.say("file_cut", start=start, end=end, total=len(text), path=path)
    return f"{text[start:end]}\n{note}" if end < len(text) else text[start:]


def _folder_index(folder: Path) -> str:
    """What an index of `folder` would say, from the frontmatter of its files."""
    lines = [prompts.say("folder_index")]
    for file in sorted(folder.iterdir()):
        if file.is_dir() and not file.is_symlink():
            lines.append(f"* {file.name}/")
        elif file.suffix == ".md" and stat.S_ISREG(file.lstat().st_mode):
            lines.append(f"* {file.name}{_summary(file)}")
    return "\n".join(lines)


def _summary(file: Path) -> str:
    """` - title: description` from a file's frontmatter, as far as it has them."""
    concept = _concept(file.read_text(encoding="utf-8", errors="replace"))
    words = ": ".join(filter(None, (concept.title, concept.description))) if concept else ""
    return f" - {words}" if words else ""
