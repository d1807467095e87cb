"""`verified`: a person's word that a concept says what is so."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from okf_compiler import frontmatter, swap
from okf_compiler.bundle import index_file, is_concept, save
from okf_compiler.errors import UserError
from okf_compiler.frontmatter import FormatError

_ACTOR = re.compile(r"human:[^\s,\[\]{}]+")


def verify(file: Path, by: str) -> str:
    """Add a mark of now by `human:<id>` to the concept in `file`; an older one of the same person gives way.

    Returns the time of the mark. The bundle is saved whole or not at all, as by a compile.

    Raises:
        UserError: not a person, not a concept, or the file cannot be read or written.
    """
    if not _ACTOR.fullmatch(by):
        raise UserError(f"--by takes a person, such as human:ann, not {by!r}.", status=2)
    if not file.is_file() or not is_concept(file.name):
        raise UserError(
            f"{file} is not a file with a concept. Name one, such as bundles/compiled/shop/…/x.md.", status=2
        )
    file = file.resolve()
    root = bundle_root(file)
    at = datetime.now(UTC).replace(microsecond=0).isoformat()
    with swap.lock(root):
        try:
            text = file.read_bytes().decode("utf-8")
            front, body, _ = frontmatter.split(text)
            if front is None:
                raise FormatError("there is no frontmatter")
            values = frontmatter.load(front)
        except (OSError, UnicodeDecodeError, FormatError) as error:
            raise UserError(f"{file} cannot be read: {error}.") from None
        marks = values.get("verified", [])
        marks = marks if isinstance(marks, list) else [marks]
        others = [m for m in marks if not isinstance(m, dict) or m.get("by") != by]
        lines = (
            front
            if "verified" not in values
            else frontmatter.dump({k: v for k, v in values.items() if k != "verified"})
        )
        lines += frontmatter.dump({"verified": [*others, {"by": by, "at": at}]})
        save(root, {file.relative_to(root).as_posix(): f"---\n{lines}---\n\n{body}"})
    return at


def bundle_root(file: Path) -> Path:
    """The bundle that a file lies in: the nearest folder above whose index names the format, else the top one."""
    indexed = [(folder, index) for folder in file.parents if (index := index_file(folder))]
    named = (folder for folder, index in indexed if index.read_bytes().startswith(b"---"))
    return next(named, indexed[-1][0] if indexed else file.parent)
