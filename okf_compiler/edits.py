"""What people wrote into the compiler's own sections, kept in one file beside the bundle before it is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from okf_compiler import swap
from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

_HEAD = """\
# Edits kept aside

Text that people wrote into sections which the compiler writes, as it stood before a compile put its own there again.
Nothing reads this file. What should stay belongs into the overlay of the database, or under a heading of its own.
"""


@dataclass(frozen=True, slots=True)
class Edit:
    path: str
    """Of the concept, with a leading `/`."""
    section: str
    """Its heading, or `frontmatter`."""
    text: str


def file_for(folder: Path) -> Path:
    """Where the edits of the bundle in `folder` are kept: `<name>.edits.md` beside it."""
    folder = swap.real(folder)
    return folder.with_name(f"{folder.name}.edits.md")


def keep(folder: Path, edits: Sequence[Edit], date: str) -> None:
    """Add the edits to the file, whole or not at all; one that is there already is not added again.

    Raises:
        UserError: the file cannot be written; then nothing may be replaced.
    """
    file = file_for(folder)
    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape") if file.is_file() else _HEAD
        for edit in edits:
            fence = "`" * (max((len(run) for run in edit.text.split() if set(run) == {"`"}), default=2) + 1)
            block = f"{edit.path} · {edit.section}\n\n{fence}markdown\n{edit.text}\n{fence}\n"
            if block not in text:
                text += f"\n## {date} · {block}"
        write_whole(file, text.encode("utf-8", "surrogateescape"), durable=True)
    except OSError as error:
        raise UserError(f"{file} cannot be written, so that edits would be lost: {error.strerror}.") from None
