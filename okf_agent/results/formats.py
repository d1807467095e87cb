"""The formats that rows are written in, and the names of files that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from okf_compiler.errors import UserError, did_you_mean

Format = Literal["table", "csv", "json", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: Mapping[str, Format] = {
    ".csv": "csv", ".json": "json", ".md": "markdown", ".markdown": "markdown", ".txt": "table",
}  # fmt: skip


@dataclass(frozen=True)
class Written:
    """How rows are written."""

    format: Format
    guard_formulas: bool = False
    """Put a ' before CSV cells that a spreadsheet would run (=, +, -, @, but not numbers)."""


def format_of(file: Path) -> Format:
    """The format that a file's name asks for.

    Raises:
        UserError: its suffix is none of those that are known.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        hint = "" if not suffix else did_you_mean(suffix, SUFFIXES)
        raise UserError(f"{file}: its name does not say a format ({known}){hint or '.'} Name one of these.", status=2)
    return SUFFIXES[suffix]
