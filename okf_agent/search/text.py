"""Texts as the index sees them: names taken apart, words cut to stems."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from okf_compiler import frontmatter
from okf_compiler.frontmatter import FormatError
from okf_compiler.headings import NEIGHBOURS

if TYPE_CHECKING:
    import tantivy

TOKENIZER = "words"
WORD = re.compile(r"\w+")
WORD_BYTES = 200
"""The longest word that is indexed and looked for."""
_KEY = re.compile(r"^(?:title|description|synonyms):", re.MULTILINE)
_PLAIN = re.compile(
    r"^(title|description): (?:'((?:[^'\n]|'')*)'|([^\s'\"\[{|>&*!%@`#?-][^\n]*))$(?!\n\s)", re.MULTILINE
)
_COMMENT = re.compile(r"\s#|:\s")
_SECTION = re.compile(r"^(?=# )", re.MULTILINE)
_NEIGHBOURS = tuple(f"# {heading}\n" for heading in NEIGHBOURS)
_LINK_TARGET = re.compile(r"\]\((?:(?!\]\()[^)\s])*+\)")
GRAMMAR = frozenset(
    re.findall(
        r"\w+",
        """
        a all an and any are as at be between by decimals did do does each every find for from give had has have highest
        how i in into is it its largest least list lowest many me most much my of on or our out per rounded show
        smallest sort sorted than that the their them there these they this to us was we were what when where which who
        whose why will with you your
        """,
    )
)
"""Words of grammar, and those with which results are asked for."""
STOPS = GRAMMAR | frozenset(
    re.findall(
        r"\w+",
        """
        about after again also am been before being but came can come comes coming could didn doing don done down during
        else ever few get gets getting given gives go goes going gone got having he her here him his if itself just keep
        keeps kept let like likes ll lot lots made make makes making may might more must need needs never no nor not now
        off once one only other others over own please put really s same say says she should so some still such sure t
        take takes tell then thing things those through too took tried try under until up used uses using ve very want
        wants way well went while without would yet
        """,
    )
)
"""Words that say nothing of a subject: everyday verbs without one of their own besides."""
RESULT_WORDS = frozenset({"first", "last", "number", "round"})
"""Words with which results are asked for as well, and which names have: search looks for them, nothing else does."""
_PIECE = re.compile(r"[^\W\d_]+|\d{3,}")
"""Words, and numbers such as years; "2 decimals" says nothing of a subject."""
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins inside a camelCase name."""


def analyzer(*, stems: bool = True) -> tantivy.TextAnalyzer:
    """Return an analyzer: letters and digits apart, lower case, without accents; English stems by Snowball if `stems`.

    Longer words than `WORD_BYTES` are left out, because Snowball takes quadratic time for a word.
    """
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"\p{L}+|\d+"))
    builder = builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())
    builder = builder.filter(tantivy.Filter.remove_long(WORD_BYTES))
    return (builder.filter(tantivy.Filter.stemmer("english")) if stems else builder).build()


@functools.cache
def _analyzers() -> tuple[tantivy.TextAnalyzer, tantivy.TextAnalyzer]:
    return analyzer(), analyzer(stems=False)


def own(body: str) -> str:
    """A body without the sections in which the compiler lists its neighbours: their words are about others."""
    return "".join(part for part in _SECTION.split(body) if not part.startswith(_NEIGHBOURS))


def apart(text: str) -> str:
    """The text with camelCase in words; what stands in links' brackets says the same as their paths."""
    return CAMEL.sub(" ", _LINK_TARGET.sub("]", text))


def stems(text: str) -> list[str]:
    """The stems of a text's words, as the index has them.

    >>> stems("unit_cost_cents of returnedItems, 2nd half")
    ['unit', 'cost', 'cent', 'of', 'return', 'item', '2', 'nd', 'half']
    """
    return list(_analyzers()[0].analyze(CAMEL.sub(" ", text)))


def asked_words(text: str) -> list[str]:
    """The words of a question that say something, each once.

    >>> asked_words("How many avgBaskets are there?")
    ['avg', 'baskets']
    """
    found = dict.fromkeys(_analyzers()[1].analyze(CAMEL.sub(" ", text)))
    return [word for word in found if word not in STOPS]


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of one word."""
    return next(iter(_analyzers()[0].analyze(word)), word)


def key_stems(text: str) -> list[str]:
    """Return the stems of the words of a text that speak of a subject.

    >>> key_stems("unit_cost_cents of returnedItems in our first deliveries")
    ['unit', 'cost', 'cent', 'return', 'item', 'deliveri']
    """
    pieces = (piece.lower() for piece in _PIECE.findall(CAMEL.sub(" ", text)))
    return [stem(piece) for piece in pieces if piece not in STOPS and piece not in RESULT_WORDS]


@dataclass(frozen=True)
class Document:
    """What the index takes of a file."""

    title: str
    description: str
    synonyms: tuple[str, ...]
    body: str


def document(text: str, id: str) -> Document:
    """The parts of a concept's text; a file without frontmatter that can be read is all body."""
    front, body, _ = _split(text)
    values = _values(front)
    title, description = (
        "" if value is None or isinstance(value, list | dict) else str(value)
        for value in (values.get("title"), values.get("description"))
    )
    synonyms = values.get("synonyms")
    names = tuple(str(name) for name in synonyms) if isinstance(synonyms, list) else ()
    return Document(title or id.rpartition("/")[2], description, names, body)


def _split(text: str) -> tuple[str, str, int]:
    try:
        front, body, line = frontmatter.split(text)
    except FormatError:
        return "", text, 1
    return front or "", body, line


def _values(front: str) -> dict[str, object]:
    """Title, description and synonyms. The compiler's own way to write them is read without YAML, 10 times faster."""
    found: dict[str, object] = {}
    for key, quoted, plain in _PLAIN.findall(front):
        if not _COMMENT.search(plain):
            found[key] = plain.strip() or quoted.replace("''", "'")
    if len(found) == len(_KEY.findall(front)):
        return found
    try:
        return frontmatter.load(front)
    except FormatError:
        return {}


def lines(text: str) -> Iterator[tuple[int, str]]:
    """What a file says below its title, line by line with numbers from 1: description and synonyms, then its body."""
    front, body, first = _split(text)
    for number, line in enumerate(front.split("\n"), 2):
        if line.startswith(("description:", "synonyms:")):
            yield number, line
    for number, line in enumerate(body.split("\n"), first):
        if line.strip():
            yield number, line
