"""When two spellings are near: folding, edit distance, and segments by which near ones are found without a scan.

Segments: a text within k edits of another still holds one of its k + 1 pieces, moved by at most k places (Li, Deng,
Wang, Feng: Pass-Join, VLDB 2012).
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator

_GAPS = re.compile(r"[^\w+#]+|_+")


def fold(text: str) -> str:
    """The text without case, accents and punctuation; of a text that has nothing else, its own characters.

    >>> fold("  Café_au-Lait "), fold("C++"), fold("&"), fold("Straße")
    ('cafe au lait', 'c++', '&', 'strasse')
    """
    return _GAPS.sub(" ", unaccented(text)).strip() or " ".join(text.casefold().split())


def unaccented(text: str) -> str:
    """Return the text without case, accents and other combining marks.

    Each character is taken apart by itself: a normal form also sorts the marks behind a letter, which takes quadratic
    time for their number, and the marks are dropped.

    >>> unaccented("Descripción"), unaccented("ﬁ")
    ('descripcion', 'fi')
    """
    folded = text.casefold()
    return folded if folded.isascii() else "".join(map(_base, folded)).casefold()


@functools.lru_cache(1 << 12)
def _base(char: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c))


def edits(length: int) -> int:
    """How many edits a text of this length may be away and still be near.

    >>> [edits(n) for n in (3, 4, 7, 8, 40)]
    [0, 1, 1, 2, 2]
    """
    return 0 if length < 4 else 1 if length < 8 else 2


def distance(a: str, b: str, most: int) -> int:
    """Return the edits between two texts (insert, delete, replace, swap two neighbours); `most` + 1 for more.

    >>> distance("disaster", "dissaster", 2), distance("paris", "pairs", 2), distance("abc", "xyz", 2)
    (1, 1, 3)
    """
    from rapidfuzz.distance import OSA  # brings its compiled part: only where a text is not found as it is

    return OSA.distance(a, b, score_cutoff=most)


def segments(term: str) -> Iterator[str]:
    """The keys under which a folded term is kept to be found by near spellings; none for a short one."""
    for place, (start, end) in enumerate(_pieces(len(term))):
        yield _key(len(term), place, term[start:end])


def near_segments(term: str) -> Iterator[str]:
    """The keys that a term near to `term` may have been kept under, by `segments`."""
    for length in range(max(4, len(term) - 2), len(term) + 3):
        most = edits(length)
        if abs(length - len(term)) > most:
            continue
        for place, (start, end) in enumerate(_pieces(length)):
            for moved in range(max(0, start - most), min(start + most, len(term) - (end - start)) + 1):
                yield _key(length, place, term[moved : moved + end - start])


def swapped(term: str) -> Iterator[str]:
    """The term with two neighbours swapped: one edit to `distance`, two to the segments."""
    for i in range(len(term) - 1):
        if term[i] != term[i + 1]:
            yield term[:i] + term[i + 1] + term[i] + term[i + 2 :]


def _pieces(length: int) -> list[tuple[int, int]]:
    """Where a text of this length is cut, into one piece more than it may have edits."""
    most = edits(length)
    cuts = [length * i // (most + 1) for i in range(most + 2)]
    return list(itertools.pairwise(cuts)) if most else []


def _key(length: int, place: int, piece: str) -> str:
    return f"{length}:{place}:{piece}"
