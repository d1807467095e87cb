"""The value index: in which columns a text occurs, as stored, in any case, or spelt nearly so. A SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from okf_compiler.profiling.spelling import distance, edits, fold, near_segments, segments, swapped
from okf_compiler.profiling.store import VALUES, shows

How = Literal["exact", "case", "near", "word"]
VERSION = 1
_SCHEMA = """
    CREATE TABLE columns (id INTEGER PRIMARY KEY, tab TEXT NOT NULL, col TEXT NOT NULL, sampled INTEGER NOT NULL);
    CREATE TABLE terms (id INTEGER PRIMARY KEY, term TEXT NOT NULL);
    CREATE TABLE cells (term INTEGER NOT NULL, id INTEGER NOT NULL, col INTEGER NOT NULL, value TEXT NOT NULL,
                        amount INTEGER NOT NULL, PRIMARY KEY (term, id)) WITHOUT ROWID;
    CREATE TABLE words (term INTEGER NOT NULL, cell_term INTEGER NOT NULL,
                        PRIMARY KEY (term, cell_term)) WITHOUT ROWID;
    CREATE TABLE segments (key TEXT NOT NULL, term INTEGER NOT NULL, PRIMARY KEY (key, term)) WITHOUT ROWID;
"""
"""A term is a folded value or a folded word of one; cells are the values as stored, by their term."""
_BATCH = 400
"""Keys in one query; SQLite of old takes no more than 999."""
_CANDIDATES = 2_000
"""Cells of one term that are looked at: a text may stand in any number of columns."""

Broken = sqlite3.DatabaseError
"""Raised by look-ups in an index whose file is broken in the middle."""


@dataclass(frozen=True, slots=True)
class Hit:
    table: str
    column: str
    """A column or a JSON path, named as in the profile."""
    value: str
    """As stored."""
    how: How
    """`exact`; `case`: but for upper and lower case; `near`: but for accents, punctuation or one or two letters;
    `word`: the text is one word, or some words, of the value."""
    rows: int | None
    """Rows that hold the value; None where the column was sampled."""


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """The different texts of one column, each with its rows."""

    table: str
    column: str
    sampled: bool
    values: Sequence[tuple[str, int]]


def open(folder: Path, hide: Sequence[str] = ()) -> ValueIndex | None:
    """The value index of a database's profile, without the columns that `hide` keeps back by now; None without one."""
    file = folder / VALUES
    if not file.is_file():
        return None
    try:
        return ValueIndex(file, hide)
    except sqlite3.DatabaseError:
        return None


class ValueIndex:
    """Look-ups in one value index, usable from several threads; close it, or use it in a `with`."""

    def __init__(self, file: Path, hide: Sequence[str] = ()) -> None:
        """Raises sqlite3.DatabaseError: not an index of this version."""
        uri = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
        self._sql = sqlite3.connect(uri, uri=True, check_same_thread=False)
        try:
            if self._sql.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                raise sqlite3.DatabaseError(f"{file} is no value index of this version")
            self._columns = {
                number: (table, column, bool(sampled))
                for number, table, column, sampled in self._sql.execute("SELECT id, tab, col, sampled FROM columns")
                if shows(hide, table, column)
            }
        except sqlite3.DatabaseError:
            self._sql.close()
            raise

    def find(self, text: str, limit: int = 20) -> list[Hit]:
        """The values that `text` may mean, the best first: exact, in another case, nearly so spelt, as a word inside.

        Near spellings are looked for only where nothing is exact or differs in case alone.
        """
        hits = list(self.spelled([text]).get(text, ()))
        if not any(hit.how in ("exact", "case") for hit in hits):
            hits += self.near(text, limit)
        hits += self.containing(text, limit)
        best: dict[tuple[str, str, str], Hit] = {}
        for hit in hits:
            best.setdefault((hit.table, hit.column, hit.value), hit)
        return list(best.values())[:limit]

    def spelled(self, texts: Iterable[str]) -> dict[str, list[Hit]]:
        """The values equal to each text: exact, but for case, or (`near`) but for accents and punctuation.

        Made for many texts at once, such as all runs of words of a question; texts without a hit are left out.
        """
        folded = {text: fold(text) for text in texts}
        terms = self._terms(set(folded.values()))
        found: dict[str, list[Hit]] = {}
        for text, term in folded.items():
            if term in terms:
                hits = [self._hit(cell, _how(text, cell[2])) for cell in self._cells([terms[term]])]
                if hits:
                    found[text] = sorted(hits, key=_rank)
        return found

    def near(self, text: str, limit: int = 20) -> list[Hit]:
        """Values one edit away from a text of 4 to 7 characters, or up to two from a longer one; nearest first."""
        term = fold(text)
        found = sorted((far, self._terms([near])[near]) for near, far in self._near_terms(term))
        hits = (self._hit(cell, "near") for _, number in found for cell in self._cells([number]))
        return [hit for hit, _ in zip(hits, range(limit), strict=False)]

    def containing(self, text: str, limit: int = 20) -> list[Hit]:
        """Values of several words, of which all words of `text` are some; those with the most rows first."""
        words = sorted(set(fold(text).split()))
        numbers = self._terms(words)
        if not words or len(numbers) < len(words):
            return []
        marks = ", ".join("?" * len(words))
        cells = self._sql.execute(
            "SELECT c.id, c.col, c.value, c.amount FROM cells c JOIN (SELECT cell_term FROM words "
            f"WHERE term IN ({marks}) GROUP BY cell_term HAVING count(*) = ?) w ON c.term = w.cell_term "
            "ORDER BY c.amount DESC, c.id LIMIT ?",
            [*numbers.values(), len(words), limit * 2],
        )
        return [self._hit(cell, "word") for cell in cells if cell[1] in self._columns][:limit]

    def close(self) -> None:
        self._sql.close()

    def __enter__(self) -> ValueIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _near_terms(self, term: str) -> Iterator[tuple[str, int]]:
        """Terms of whole values near to one, and how far each is."""
        keys = list(dict.fromkeys(near_segments(term)))
        candidates = set(swapped(term)) if len(term) >= 4 else set()
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            candidates.update(
                row[0]
                for row in self._sql.execute(
                    "SELECT DISTINCT t.term FROM segments s JOIN terms t ON t.id = s.term "
                    f"WHERE s.key IN ({', '.join('?' * len(batch))})",
                    batch,
                )
            )
        for candidate in candidates:
            most = edits(min(len(candidate), len(term)))
            far = distance(term, candidate, most)
            if 0 < far <= most and candidate in self._terms([candidate]):
                yield candidate, far

    def _terms(self, terms: Iterable[str]) -> dict[str, int]:
        """The numbers of the terms that there are."""
        found: dict[str, int] = {}
        wanted = list(terms)
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            marks = ", ".join("?" * len(batch))
            found.update(self._sql.execute(f"SELECT term, id FROM terms WHERE term IN ({marks})", batch))
        return found

    def _cells(self, terms: Sequence[int]) -> list[tuple[int, int, str, int]]:
        """The cells of some terms, in shown columns."""
        marks = ", ".join("?" * len(terms))
        cells = self._sql.execute(
            f"SELECT id, col, value, amount FROM cells WHERE term IN ({marks}) ORDER BY amount DESC, id LIMIT ?",
            [*terms, _CANDIDATES],
        )
        return [cell for cell in cells if cell[1] in self._columns]

    def _hit(self, cell: tuple[int, int, str, int], how: How) -> Hit:
        table, column, sampled = self._columns[cell[1]]
        return Hit(table, column, cell[2], how, None if sampled else cell[3])


_ORDER: Sequence[How] = ("exact", "case", "near", "word")


def _rank(hit: Hit) -> tuple[int, int, str, str, str]:
    return _ORDER.index(hit.how), -(hit.rows or 0), hit.table, hit.column, hit.value


def _how(text: str, value: str) -> How:
    return "exact" if text == value else "case" if text.casefold() == value.casefold() else "near"


def write(folder: Path, columns: Iterable[IndexedColumn]) -> int:
    """Make the index anew, whole or not at all, readable by its owner alone; how many values it holds."""
    aside = folder / f".{VALUES}.new"
    aside.unlink(missing_ok=True)
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    sql = sqlite3.connect(aside)
    try:
        sql.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _SCHEMA)
        amount = _fill(sql, columns)
        sql.executescript(f"CREATE UNIQUE INDEX terms_by_term ON terms (term); PRAGMA user_version = {VERSION};")
        sql.commit()
    finally:
        sql.close()
    aside.replace(folder / VALUES)
    return amount


def _fill(sql: sqlite3.Connection, columns: Iterable[IndexedColumn]) -> int:
    numbers: dict[str, int] = {}
    amount = 0

    def number(term: str, *, whole: bool) -> int:
        """The term's number; a whole value's is kept by its segments too, once."""
        found = numbers.setdefault(term, len(numbers) + 1)
        if found == len(numbers) and term not in seen:
            sql.execute("INSERT INTO terms VALUES (?, ?)", (found, term))
            seen.add(term)
        if whole and found not in cut:
            cut.add(found)
            sql.executemany("INSERT OR IGNORE INTO segments VALUES (?, ?)", ((key, found) for key in segments(term)))
        return found

    seen: set[str] = set()
    cut: set[int] = set()
    for place, column in enumerate(columns):
        sql.execute("INSERT INTO columns VALUES (?, ?, ?, ?)", (place, column.table, column.column, column.sampled))
        for value, rows in column.values:
            amount += 1
            term = fold(value)
            cell = number(term, whole=True)
            sql.execute("INSERT INTO cells VALUES (?, ?, ?, ?, ?)", (cell, amount, place, value, rows))
            words = set(term.split())
            if len(words) > 1:
                sql.executemany(
                    "INSERT OR IGNORE INTO words VALUES (?, ?)", [(number(word, whole=False), cell) for word in words]
                )
    return amount
