"""Text and CSV files as people keep them: any encoding, any delimiter, every row with its line."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from okf_compiler.errors import UserError
from okf_compiler.model import Problem

DELIMITERS = (",", ";", "\t", "|")
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How the workbooks of spreadsheet programs begin: .xlsx and .ods, and the older .xls."""


@dataclass(frozen=True, slots=True)
class Row:
    line: int
    """1-based line of the row's first cell."""
    cells: tuple[str, ...]


def read_text(path: Path, problems: list[Problem]) -> str:
    """The file's text with `\\n` line ends. What is not Unicode is read as Windows-1252, and that is reported.

    Raises:
        UserError: the file is missing, cannot be read, or is the workbook of a spreadsheet program.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Name a file that exists.", status=2) from None
    if data.startswith(WORKBOOKS):
        raise UserError(
            f"{path} is a workbook, which is not read. Save its sheet as CSV in your spreadsheet program, "
            "and name that file.",
            status=2,
        )
    encodings = ["utf-8-sig"]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encodings = ["utf-16"]
    elif b"\0" in data[:100]:  # a spreadsheet's text without its mark: ASCII fills every second byte
        encodings = ["utf-16-le" if data[1:2] == b"\0" else "utf-16-be"]
    for encoding in (*encodings, "cp1252", "latin-1"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding not in encodings:
            problems.append(Problem(f"is not UTF-8; it was read as {encoding}", str(path)))
        break
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rows(text: str, delimiter: str, file: str, problems: list[Problem]) -> Iterator[Row]:
    """Every row of a CSV text that has a cell with something in it; a broken one is a problem, and reading goes on.

    A quote that is never closed would take the rest of the file with it: reading starts again on the next line.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    start = 0
    while start < len(lines):
        reader = csv.reader(lines[start:], delimiter=delimiter, strict=True)
        restart = len(lines)
        while True:
            first = start + reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                problems.append(Problem(f"the row cannot be read: {error}", file, first + 1))
                if start + reader.line_num >= len(lines):
                    restart = first + 1
                    break
                continue
            if any(cell.strip() for cell in cells):
                yield Row(first + 1, tuple(cells))
        start = restart


def is_delimiter_line(row: Row) -> bool:
    """Whether the row is the `sep=;` line that a spreadsheet may write first."""
    return row.line == 1 and row.cells[0].strip().lower().startswith("sep=")
