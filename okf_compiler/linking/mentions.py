"""The phrases of a rule's text that may speak of a column, and the values quoted beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

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
    r"(?P<word>[^\W\d]\w*)"
    r"""|(?P<quoted>(?<!\w)'[^'\n]{1,40}'(?!\w)|"[^"\n]{1,40}"|“[^”\n]{1,40}”|‘[^’\n]{1,40}’)"""
    r"|(?P<joint>'s\b|’s\b)|(?P<number>\d[\w.,%]*)|(?P<sign>[^\w\s-])"
)
"""Blanks and hyphens are none of them, and join what stands beside them."""
_INSIDE = listed("of the a an per between its")
"""Small words that may stand inside a phrase: `number of security incidents`."""
_STILL_SAYS = listed("is are was be in of a an the or and either one not with to")
"""Small words between a phrase and the value that it has."""
_LONGEST = 30
"""Words of a phrase; what goes on longer is a list, and each of its words would be held against each column."""
_Word = tuple[Literal["plain", "identifier", "still", "ends"], Sequence[str]]
"""What a word does in a phrase, and its levelled words."""


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
        if len(self.words) >= _LONGEST:
            self.close()
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


class Phrases:
    """Finds the phrases of texts. `split` takes identifiers apart; `names` are left out, and end a phrase."""

    def __init__(self, split: Callable[[str], Sequence[str]], names: Container[str]) -> None:
        self._split = split
        self._names = names
        self._known: dict[str, _Word] = {}

    def find(self, text: str, place: str) -> list[Mention]:
        """The phrases of a text, in order."""
        if "\\" in text or "_{" in text:
            text = _SUBSCRIPT.sub(r"\1_\2", text.replace("\\_", "_").replace("\\%", "%"))
            text = _LATEX_COMMAND.sub(" | ", _LATEX_TEXT.sub(" { ", text))
        reading = _Reading(_COMMENT.sub("", text), place)
        for match in _TOKEN.finditer(reading.text):
            kind, token = match.lastgroup, match[0]
            if kind == "word":
                role, words = self._known.get(token) or self._word(token)
                if role == "plain":
                    reading.add(words, match.start(), match.end())
                elif role == "identifier":
                    reading.close()
                    reading.add(words, match.start(), match.end())
                    reading.close()
                elif not (reading.words and token.lower() in _INSIDE):
                    if reading.words:
                        reading.close()
                    reading.pass_word(role == "still")
            elif kind == "quoted":
                reading.close()
                reading.value(token[1:-1].lower())
            elif kind != "joint":
                reading.close()
                reading.pass_word(kind == "sign" and token in "=,(:/!<>")
        reading.close()
        return reading.found

    def _word(self, token: str) -> _Word:
        """What a word is, as it is written: worked out once."""
        lower = token.lower()
        found: _Word
        if lower in STOP or lower in self._names:
            found = ("still" if lower in _STILL_SAYS else "ends", ())
        elif _is_identifier(token):
            found = ("identifier", self._split(token))
        else:
            found = ("plain", (level(lower),))
        self._known[token] = found
        return found


def _is_identifier(word: str) -> bool:
    """Whether the word is written as names in programs are: with underscores, or capitals inside.

    >>> [_is_identifier(w) for w in ("food_tons", "lightLux", "Food", "USA", "T_cell")]
    [True, True, False, False, True]
    """
    return "_" in word or (not word.isupper() and not word[1:].islower() and len(word) > 1)
