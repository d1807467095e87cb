"""Find a bundle's concepts by words: `shared(bundle).search("late parcels")`. BM25, no model.

The index lies outside the bundle: beside it in `.<name>.search`, else in the user's cache folder, else in memory.
It follows the bundle: how its files stand is looked at before a search, as often as that takes a twentieth of the time.
"""

from __future__ import annotations

import functools
import hashlib
import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import tantivy
from filelock import Timeout

from okf_agent import DISTRIBUTION
from okf_agent.search import text, words
from okf_agent.search.store import FIELDS, BrokenIndex, Stamp, Store, guarded, scan
from okf_compiler import swap
from okf_compiler.errors import UserError, near_names
from okf_compiler.inert import inert

TITLE_BOOST = 2.0
"""What a word counts for in a title."""
LINE_CHARS = 200
"""Of a line that matched, in a result."""
_LOOKING_SHARE = 20
MAX_NAMES = 24
"""Other names of one word that are looked for, of those the index has; the likeliest first."""
_NEAR_FROM = 4
"""Letters from which a word that the index does not have may be a misspelt one."""
_NEAR_AMONG = 5_000
_NEAR_MOST, _NEAR_LEAST = 3, 0.8
"""Stems that one may be misspelt for, and what is the same at least; see `near_names`."""
_NEAR_WEIGHT = 0.6


@dataclass(frozen=True)
class Match:
    """A concept that matched."""

    path: str
    """As read_file takes it: `/knowledge/late-delivery.md`."""
    title: str
    """Printable, on one line."""
    line: int
    """The number of the line below its title that matched best, from 1; 0 where there is none."""
    text: str
    """What stands there, printable and cut."""
    score: float
    near: bool = False
    """Nothing has a word of the question; this has words that are spelt nearly like them."""


@functools.lru_cache(maxsize=8)
def shared(bundle: Path) -> Index:
    """The index of a bundle, one for all questions of this process: a large bundle is not read at each of them.

    Raises:
        UserError: there is no such bundle, or it cannot be read.
    """
    return Index(bundle)


class Index:
    """Searches one bundle; several threads may. What the index on disk lacks is added when it is made."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self._store = Store(bundle, _folder(bundle))
        self._lock = threading.Lock()
        self._next_look = 0.0
        self._searcher()

    def search(self, query: str, limit: int = 10) -> list[Match]:
        """The concepts that match best, the best first, each with its best line.

        Raises:
            UserError: the bundle is gone or cannot be read.
        """
        answer = self._answer(query, limit)
        found = []
        for path, title, score in answer.hits:
            number, line = _best_line(self.bundle / path, answer.asked)
            found.append(Match(f"/{path}", inert(title), number, line, score, answer.near))
        return found

    def rank(self, query: str, limit: int = 10) -> list[tuple[str, float]]:
        """Paths and scores alone, without a look into the files; raises as `search`."""
        return [(f"/{path}", score) for path, _, score in self._answer(query, limit).hits]

    def _answer(self, query: str, limit: int) -> _Answer:
        asked = words.asked(query)
        if limit < 1 or not asked:
            return _Answer(asked, False, ())
        try:
            return _answer(*self._searcher(), asked, limit)
        except BrokenIndex:
            with self._lock:
                self._store.forget()
                self._next_look = 0.0
            return _answer(*self._searcher(), asked, limit)

    def _searcher(self) -> tuple[tantivy.Index, tantivy.Searcher]:
        """The index as the bundle's files stand, or stood a moment ago."""
        with self._lock:
            if self._store.index is None or time.monotonic() >= self._next_look:
                begin = time.monotonic()
                stamps = self._scan()
                cost = time.monotonic() - begin
                self._follow(stamps)
                self._next_look = time.monotonic() + _LOOKING_SHARE * cost
            assert self._store.index is not None
            return self._store.index, self._store.index.searcher()

    def _follow(self, stamps: Mapping[str, Stamp]) -> None:
        try:
            self._store.follow(stamps)
        except (OSError, Timeout, BrokenIndex):
            # Nowhere to write, or another process does not come to an end: this process's own index then.
            self._store = Store(self.bundle, None)
            self._store.follow(stamps)

    def _scan(self) -> dict[str, Stamp]:
        try:
            try:
                return scan(self.bundle)
            except FileNotFoundError:
                swap.repair(self.bundle)  # a save may have stopped half-way
                return scan(self.bundle)
        except OSError as error:
            raise UserError(f"The bundle in {self.bundle} cannot be read: {error}.") from None


def _folder(bundle: Path) -> Path | None:
    """Where the index may lie: the first place that can be written; None for memory."""
    real = bundle.resolve()
    key = hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    cache = Path(platformdirs.user_cache_dir(DISTRIBUTION, appauthor=False)) / "search" / f"{real.name}-{key}"
    for place in (real.parent / f".{real.name}.search", cache):
        try:
            place.mkdir(parents=True, exist_ok=True)
            ignored = place / ".gitignore"
            if not ignored.exists() or not ignored.stat().st_size:
                ignored.write_text("*\n", encoding="utf-8", newline="\n")
            with (place / ".lock").open("a"):
                return place
        except OSError:
            continue
    return None


@dataclass(frozen=True)
class _Answer:
    asked: words.Asked
    """What was looked for, as far as the index has it."""
    near: bool
    hits: Sequence[tuple[str, str, float]]
    """Relative path, title, score."""


def _answer(index: tantivy.Index, searcher: tantivy.Searcher, asked: words.Asked, limit: int) -> _Answer:
    with guarded():
        held = [_held(searcher, names) for names in asked]
        spelt = [names or _near(searcher, asked[n][0][0]) for n, names in enumerate(held)]
        names = [each for each in spelt if each]
        if not names:
            return _Answer(asked, False, ())
        hits = searcher.search(_query(index.schema, searcher, names), limit, count=False).hits
        documents = [(searcher.doc(address), float(score)) for score, address in hits]
        found = [(str(d.get_first("path")), str(d.get_first("name")), score) for d, score in documents]
        return _Answer(names, not any(held), found)


def _query(schema: tantivy.Schema, searcher: tantivy.Searcher, asked: words.Asked) -> tantivy.Query:
    """Every word adds what its best name in a file is worth: its own stem, or another word for the same."""
    parts = []
    for names in asked:
        rarities = [_rarity(searcher, stem) for stem, _ in names]
        options = []
        for (stem, weight), rarity in zip(names, rarities, strict=True):
            # Else the rarest synonym would lead, since BM25 takes what is rare for what was meant.
            held_back = math.sqrt(min(rarities) / rarity) if weight < 1 else 1.0
            options.append(_one(schema, stem, weight * held_back, _fields(searcher, stem)))
        parts.append(options[0] if len(options) == 1 else tantivy.Query.disjunction_max_query(options))
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])


def _rarity(searcher: tantivy.Searcher, stem: str) -> float:
    """BM25's measure of how much it says that a file has this stem; above 0."""
    holders = max(searcher.doc_freq(field, stem) for field in FIELDS)
    return math.log(1 + (searcher.num_docs - holders + 0.5) / (holders + 0.5))


def _held(searcher: tantivy.Searcher, names: words.Names) -> words.Names:
    return [name for name in names if _fields(searcher, name[0])][:MAX_NAMES]


def _fields(searcher: tantivy.Searcher, stem: str) -> list[str]:
    return [field for field in FIELDS if searcher.doc_freq(field, stem)]


def _near(searcher: tantivy.Searcher, stem: str) -> list[tuple[str, float]]:
    """Stems of the index that a word which it does not have may be misspelt for."""
    if len(stem) < _NEAR_FROM:
        return []
    known = {term for field in FIELDS for term, _ in searcher.terms_with_prefix(field, stem[:2], limit=_NEAR_AMONG)}
    return [(term, _NEAR_WEIGHT) for term in near_names(stem, sorted(known), _NEAR_MOST, _NEAR_LEAST)]


def _one(schema: tantivy.Schema, stem: str, weight: float, fields: Sequence[str]) -> tantivy.Query:
    terms = [
        tantivy.Query.boost_query(
            tantivy.Query.term_query(schema, field, stem, "freq"), weight * (TITLE_BOOST if field == "title" else 1.0)
        )
        for field in fields
    ]
    if len(terms) == 1:
        return terms[0]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])


def _best_line(file: Path, asked: words.Asked) -> tuple[int, str]:
    """The first of the lines with the most of what was asked, its first line where none has any; (0, "") for none."""
    try:
        content = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return 0, ""
    best = (-1.0, 0, "")
    for number, line in text.lines(content):
        score = _worth(text.stems(line), asked)
        if score > best[0]:
            best = (score, number, line)
    return best[1], _cut(best[2], asked)


def _worth(stems: Iterable[str], asked: words.Asked) -> float:
    held = set(stems)
    return sum(max((weight for stem, weight in names if stem in held), default=0.0) for names in asked)


def _cut(line: str, asked: words.Asked) -> str:
    """At most LINE_CHARS of a line, from where a word of the question stands, printable."""
    line = line.strip()
    if len(line) > LINE_CHARS:
        wanted = {stem for names in asked for stem, _ in names}
        starts = [m.start() for m in text.WORD.finditer(line) if wanted & set(text.stems(m[0]))]
        first = starts[0] if starts else 0
        begin = 0 if first < LINE_CHARS * 3 // 4 else first - 20
        part = line[begin : begin + LINE_CHARS]
        line = f"{'…' if begin else ''}{part}{'…' if begin + LINE_CHARS < len(line) else ''}"
    return inert(line)
