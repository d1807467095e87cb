"""Entries of a task or gold file, each with its place: JSON lines, or one JSON array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert


@dataclass(frozen=True)
class Entry:
    """One object of a file."""

    file: Path
    number: int
    """Its line, from 1; in a file that is one array, its place there."""
    values: Mapping[str, Any]
    array: bool = False

    @property
    def where(self) -> str:
        return f"{self.file}, entry {self.number}" if self.array else f"{self.file}:{self.number}"

    def text(self, *names: str, default: str | None = None) -> str:
        """The first of these keys that it has, as text.

        Raises:
            UserError: it has none of them, or not as text; names the nearest key it has.
        """
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return str(value)
            if value is not None:
                raise UserError(f"{self.where}: {name} must be text, not {type(value).__name__}.", status=2)
        if default is not None:
            return default
        wanted = " or ".join(repr(name) for name in names)
        raise UserError(f"{self.where}: there is no {wanted}{did_you_mean(names[0], self.values)}", status=2)

    def name(self, *names: str, default: str | None = None) -> str:
        """The text of a key that names something, such as a task's id: it fits on a line of a terminal.

        Raises:
            UserError: as `text`; or it holds a line break, an escape sequence or the like.
        """
        value = self.text(*names, default=default)
        if inert(value) != value:
            raise UserError(
                f"{self.where}: {names[0]} {inert(value)!r} holds characters that no line can show.", status=2
            )
        return value


def read_entries(file: Path) -> Iterator[Entry]:
    """The objects of a file, in order.

    Raises:
        UserError: it cannot be read, or a line is no JSON object; names the line.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}. It must be a text file in UTF-8.", status=2) from None
    if text.lstrip().startswith("["):
        yield from _of_array(file, text)
        return
    # Only line feeds end a line of JSON: a question may hold other characters that splitlines() takes for one.
    yield from _objects(file, ((n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()))


def _objects(file: Path, lines: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    for number, line in lines:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{file}:{number}: not JSON: {error}. Each line is one object.", status=2) from None
        if not isinstance(values, dict):
            raise UserError(f"{file}:{number}: a JSON object was expected, not {line.strip()[:40]!r}.", status=2)
        yield Entry(file, number, values)


def _of_array(file: Path, text: str) -> Iterator[Entry]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not JSON: {error}.", status=2) from None
    for number, values in enumerate(content, 1):
        if not isinstance(values, dict):
            raise UserError(f"{file}, entry {number}: a JSON object was expected.", status=2)
        yield Entry(file, number, values, array=True)
