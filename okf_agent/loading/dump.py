"""Read a plain SQL dump as psql would: statement by statement, and the rows of COPY … FROM stdin.

Everything is bytes, so that the server decodes the file as its own `SET client_encoding` says. psql's backslash
commands are never run: harmless ones are passed over, the others end the reading (`\\!` would run a program).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

HARMLESS = frozenset(
    [b"restrict", b"unrestrict", b"connect", b"c", b"set", b"unset", b"pset", b"timing", b"echo", b"qecho"]
)
"""psql commands a dump may hold that mean nothing here."""
OTHER_FORMATS = {
    b"PGDMP": "pg_dump's custom format: make it text with `pg_restore -f dump.sql FILE`",
    b"\x1f\x8b": "compressed: unpack it with `gunzip`",
    b"PK\x03\x04": "a zip archive: unpack it",
    b"\xff\xfe": "UTF-16: save it as UTF-8",
    b"\xfe\xff": "UTF-16: save it as UTF-8",
    b"SQLite format 3": "a SQLite database: convert it to PostgreSQL's SQL",
}
WORDS_KEPT = 12

_TOKEN = re.compile(
    rb"""--[^\n]* | /\* | [eE]?' | " | \$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$ | [();\\]
         | [A-Za-z_\x80-\xff][\w$\x80-\xff]*""",
    re.VERBOSE,
)
_WORD_START = re.compile(rb"[A-Za-z_\x80-\xff]")
_REST_OF_STRING = re.compile(rb"(?:[^']++|'')*+'")
_REST_OF_ESCAPE_STRING = re.compile(rb"(?:[^'\\]++|\\.|'')*+'", re.DOTALL)
_REST_OF_NAME = re.compile(rb'(?:[^"]++|"")*+"')
_COMMENT_MARK = re.compile(rb"/\*|\*/")
_FUNCTION = re.compile(rb"CREATE (OR REPLACE )?(FUNCTION|PROCEDURE)\b")


class DumpError(ValueError):
    """The dump cannot be read any further. `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Statement:
    """One statement of a dump."""

    line: int
    """Where it begins, from 1."""
    sql: bytes
    """With its semicolon; comments before it included."""
    words: tuple[bytes, ...]
    """Its first words outside quotes, in upper case (of a COPY: all of them)."""
    rows: Iterator[bytes] | None
    """The lines below a COPY … FROM stdin; to be used up before the next statement is asked for."""


class _Lines:
    """The lines of a file, counted."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self.number += 1
            yield line.removeprefix(b"\xef\xbb\xbf") if self.number == 1 else line

    def copy_rows(self) -> Iterator[bytes]:
        first = self.number
        for line in self:
            if line.rstrip(b"\r\n") == b"\\.":
                return
            yield line
        raise DumpError(first, "the rows of this COPY have no end (`\\.`): the file is cut off")


class _Scanner:
    """Where one statement is: what it is inside of, and how deep."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.line = 0
        self.parentheses = 0
        self.blocks = 0
        """Depth of BEGIN … END in a function body that is not quoted."""
        self.comments = 0
        self.inside: re.Pattern[bytes] | bytes | None = None
        """What ends the literal we are in: a pattern, or a dollar tag."""

    def word(self, word: bytes, line: int) -> None:
        word = word.upper()
        self.line = self.line or line
        if len(self.words) < WORDS_KEPT or self.words[0] == b"COPY":
            self.words.append(word)
        if word in (b"BEGIN", b"CASE", b"END") and _FUNCTION.match(b" ".join(self.words[:4])):
            if word == b"END":
                self.blocks = max(0, self.blocks - 1)
            elif word == b"BEGIN" or self.blocks:
                self.blocks += 1

    def skip(self, text: bytes, position: int) -> int:
        """The position after the literal or comment we are in; the text's end if it goes on."""
        if self.comments:
            mark = _COMMENT_MARK.search(text, position)
            if mark is None:
                return len(text)
            self.comments += 1 if mark[0] == b"/*" else -1
            return mark.end()
        if isinstance(self.inside, bytes):
            end = text.find(self.inside, position)
            end = end if end < 0 else end + len(self.inside)
        else:
            assert self.inside is not None
            match = self.inside.match(text, position)
            end = match.end() if match else -1
        if end < 0:
            return len(text)
        self.inside = None
        return end

    def enter(self, token: bytes) -> None:
        """Note what a token opens or closes."""
        if token == b"(":
            self.parentheses += 1
        elif token == b")":
            self.parentheses = max(0, self.parentheses - 1)
        elif token == b"/*":
            self.comments = 1
        elif token == b"'":
            self.inside = _REST_OF_STRING
        elif token[-1:] == b"'":
            self.inside = _REST_OF_ESCAPE_STRING
        elif token == b'"':
            self.inside = _REST_OF_NAME
        elif token[:1] == b"$":
            self.inside = token

    @property
    def whole(self) -> bool:
        """Whether a semicolon here ends the statement."""
        return not self.parentheses and not self.blocks


def statements(file: IO[bytes]) -> Iterator[Statement]:
    """The statements of a dump in order, read as they are asked for.

    Raises:
        DumpError: not plain SQL, a psql command that would do something, or a file that is cut off.
    """
    start = file.read(16)
    for magic, what in OTHER_FORMATS.items():
        if start.startswith(magic):
            raise DumpError(1, f"this is not plain SQL but {what}")
    file.seek(0)
    lines, scanner, text = _Lines(file), _Scanner(), bytearray()
    for line in lines:
        position = kept = 0
        while position < len(line):
            if scanner.comments or scanner.inside:
                position = scanner.skip(line, position)
                continue
            token = _TOKEN.search(line, position)
            if token is None:
                break
            position, found = token.end(), token[0]
            if found[:2] == b"--":
                continue
            if found == b"\\":
                _pass_over(line[position:], lines.number, bool(scanner.words))
                line = line[: position - 1] + b"\n"
                break
            if found == b";" and scanner.whole:
                text += line[kept:position]
                kept = position
                if scanner.words:
                    yield _statement(scanner, bytes(text), lines)
                scanner, text = _Scanner(), bytearray()
            elif _WORD_START.match(found) and found[-1:] != b"'":
                scanner.word(found, lines.number)
            else:
                scanner.enter(found)
        text += line[kept:]
    if scanner.words:
        raise DumpError(scanner.line, "this statement has no end: the file is cut off")


def _statement(scanner: _Scanner, sql: bytes, lines: _Lines) -> Statement:
    words = tuple(scanner.words)
    takes_rows = words[0] == b"COPY" and (b"FROM", b"STDIN") in itertools.pairwise(words)
    return Statement(scanner.line, sql, words, lines.copy_rows() if takes_rows else None)


def _pass_over(command: bytes, line: int, in_statement: bool) -> None:
    name = re.match(rb"[a-z]*|.", command)
    if in_statement or name is None or name[0] not in HARMLESS or b"`" in command:
        shown = command.split()[0].decode("utf-8", "replace")[:20] if command.strip() else ""
        raise DumpError(line, f"the psql command \\{shown} is not run here: take it out of the file")
