"""The phrases of a rule's text that may speak of a column, and the values quoted beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from okf_compiler.linking.words import STOP, level, listed

_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mathit|textbf|operatorname)\s*\{")
_COMMENT = re.compile(
    r",\s*(?:thus |thereby |which )?(?!including|considering|combining|using|comparing|excluding|accounting|being)"
    r"(?:[a-z]+ing\b|suggests?\b|indicates?\b)[^.;]*"
    r"|(?:(?<=[.;,] )|(?<=\{))\s*(?:where )?(?:an? )?(?:higher|lower|values?|positive|negative)\b[^.;}]*(?=[.;}]|$)",
    re.IGNORECASE,
)
"""What only explains: `, indicating …`, `Higher values mean …`."""
_SUBSCRIPT = re.compile(r"([A-Za-z])_\{?(?:\\text\{)?([A-Za-z]{2,})\}*")
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+")
_TOKEN = re.compile(
    r"""(?P<quoted>(?<![\w])'[^'\n]{1,40}'(?!\w)|"[^"\n]{1,40}"|“[^”\n]{1,40}”|‘[^’\n]{1,40}’)"""
    r"|(?P<word>[^\W\d]\w*)|(?P<joint>'s\b|’s\b|[-\s]+)|(?P<number>\d[\w.,%]*)|(?P<sign>[^\w\s])"
)
_INSIDE = listed("of the a an per between its")
"""Small words that may stand inside a phrase: `number of security incidents`."""
_STILL_SAYS = listed("is are was be in of a an the or and either one not with to")
"""Small words between a phrase and the value that it has."""


@dataclass(slots=True)
class Mention:
    """A phrase of a rule."""

    text: str
    """As it stands in the rule."""
    words: list[str]
    """Levelled."""
    values: list[str]
    """Quoted values that follow it, in lower case: `funding state is 'Critical'`."""
    place: str
    """`title`, `definition` or `description`."""


class _Reading:
    """The phrases found so far, and the one that is being read."""

    def __init__(self, text: str, place: str) -> None:
        self.text, self.place = text, place
        self.found: list[Mention] = []
        self.words: list[str] = []
        self.start = self.end = 0
        self.before: list[str] = []
        self.takes_values = False

    def add(self, words: Iterable[str], start: int, end: int) -> None:
        if not self.words:
            self.start = start
        self.words += words
        self.end = end

    def close(self) -> None:
        if self.words:
            self.found.append(Mention(self.text[self.start : self.end], self.words, self.before, self.place))
            self.words, self.before, self.takes_values = [], [], True

    def value(self, value: str) -> None:
        if self.takes_values:
            self.found[-1].values.append(value)
        else:
            self.before.append(value)

    def pass_word(self, still: bool) -> None:
        self.takes_values = self.takes_values and still
        if not still:
            self.before = []


def mentions(text: str, place: str, split: Callable[[str], Iterable[str]], names: Container[str]) -> list[Mention]:
    """The phrases of a text, in order. `split` takes identifiers apart; `names` are left out, and end a phrase."""
    if "\\" in text or "_{" in text:
        text = _SUBSCRIPT.sub(r"\1_\2", text.replace("\\_", "_").replace("\\%", "%"))
        text = _LATEX_COMMAND.sub(" | ", _LATEX_TEXT.sub(" { ", text))
    reading = _Reading(_COMMENT.sub("", text), place)
    for match in _TOKEN.finditer(reading.text):
        kind, token = match.lastgroup, match[0]
        if kind == "word":
            lower = token.lower()
            if lower in _INSIDE and reading.words:
                continue
            if lower in STOP or lower in names:
                reading.close()
                reading.pass_word(lower in _STILL_SAYS)
            elif _is_identifier(token):
                reading.close()
                reading.add(split(token), match.start(), match.end())
                reading.close()
            else:
                reading.add([level(lower)], match.start(), match.end())
        elif kind == "quoted":
            reading.close()
            reading.value(token[1:-1].lower())
        elif kind != "joint":
            reading.close()
            reading.pass_word(kind == "sign" and token in "=,(:/!<>")
    reading.close()
    return reading.found


def _is_identifier(word: str) -> bool:
    """Whether the word is written as names in programs are: with underscores, or capitals inside.

    >>> [_is_identifier(w) for w in ("food_tons", "lightLux", "Food", "USA", "T_cell")]
    [True, True, False, False, True]
    """
    return "_" in word or (not word.isupper() and not word[1:].islower() and len(word) > 1)
