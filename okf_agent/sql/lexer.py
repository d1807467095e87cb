"""SQL text in its pieces, as PostgreSQL's own lexer cuts it: what is a word, a literal, a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPACE = r"[\s\ufeff\u200b\u2060]"
_WORD_START = r"(?:[A-Za-z_]|[^\x00-\x7f\s\ufeff\u200b\u2060])"
_WORD_PART = r"(?:[A-Za-z0-9_$]|[^\x00-\x7f\s\ufeff\u200b\u2060])"
_GOES_ON = r"(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\f\v\n\r]|--[^\n\r]*[\n\r])*'"
"""Between two pieces of one literal; the second is read as the first is, a backslash in it included."""
_TOKEN = re.compile(
    rf"""
    (?P<space>{_SPACE}+)
    | (?P<comment>--[^\n\r]*)
    | (?P<block>/\*)
    | (?P<string>[eE]'(?:[^'\\]|\\.|''|'{_GOES_ON})*' | (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")+")
    | (?P<dollar>\$(?P<tag>(?:{_WORD_START}(?:[A-Za-z0-9_]|[^\x00-\x7f])*)?)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<word>{_WORD_START}{_WORD_PART}*)
    | (?P<number>\d+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CAPITALS = re.compile(r"[A-Z]+")
"""Only these are folded: É is another name than é."""
_NAME_BYTES = 63
_BLOCK_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Token:
    """A piece of SQL text: kind is a group of the lexer (`word`, `string`, `comment`, …), start an offset."""

    kind: str
    text: str
    start: int

    @property
    def name(self) -> str | None:
        """The identifier or keyword it is: folded and cut as PostgreSQL does, quotes and escapes resolved."""
        if self.kind == "word":
            return _kept(_CAPITALS.sub(lambda letters: letters.group().lower(), self.text))
        if self.kind != "quoted":
            return None
        if self.text[0] in "uU":
            return _kept(_unescape(self.text[3:-1].replace('""', '"')))
        return _kept(self.text[1:-1].replace('""', '"'))


def tokens(sql: str) -> Iterator[Token]:
    """The pieces of `sql`, in order, without a gap. Text PostgreSQL cannot read gives single characters."""
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        assert match is not None, "every character matches `other`"
        kind = match.lastgroup if match.lastgroup != "tag" else "dollar"
        end = match.end()
        if kind == "block":
            end = _block_end(sql, at)
            kind = "comment"
        yield Token(str(kind), sql[at:end], at)
        at = end


def significant(sql: str) -> list[Token]:
    """The pieces that are not white space or comments."""
    return [t for t in tokens(sql) if t.kind not in ("space", "comment")]


def _kept(name: str) -> str:
    """What PostgreSQL keeps of a name that is too long."""
    return name if len(name) * 4 <= _NAME_BYTES else name.encode()[:_NAME_BYTES].decode(errors="ignore")


def _block_end(sql: str, at: int) -> int:
    """Where the block comment that begins at `at` ends; PostgreSQL's comments nest."""
    depth = 0
    for edge in _BLOCK_EDGE.finditer(sql, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(sql)


def _unescape(text: str) -> str:
    """`\\0061` and `\\+000061` as the characters they stand for (U&"…" with its usual escape character)."""

    def character(match: re.Match[str]) -> str:
        point = int(match.group(1) or match.group(2), 16)
        return chr(point) if point <= 0x10FFFF else "\ufffd"

    return re.sub(r"\\(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6}))", character, text)
