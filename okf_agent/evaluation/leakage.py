"""Search everything that a model may read for the gold, the evidence and the questions of an evaluation's tasks.

Texts are compared as words in any letter case, so that line breaks, quotes, markdown and the layout of SQL hide
nothing. Words count as shared where at least RUN of them stand in a row in both texts. Two kinds of findings:

- A **leak** stops the evaluation: PART of a gold query's words with a FROM of it, MOST of them without, or MOST of the
  words of evidence, within a passage about as long as the secret itself. A rule that is written as SQL shares a CASE, a
  ratio or a threshold with gold that computes the same rule in a larger query, and less than that.
- What documents merely **share** is counted, and the report shows it: a run of LONG words of a question, gold or
  evidence, or a shorter question as a whole.

A text of fewer than SHORT words is not searched for: everybody writes `SELECT count(*) FROM customers`. What is
rephrased is not found. `benchmarks/leakage.py` measures the thresholds.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from okf_agent.wording import count
from okf_compiler.errors import UserError
from okf_compiler.inert import inert
from okf_compiler.sql_names import quoted

if TYPE_CHECKING:
    from okf_agent.evaluation.gold import Gold
    from okf_agent.evaluation.suites.model import Suite

RUN = 4
"""Words in a row that make two texts share them."""
PART = 0.5
"""Share of a gold query's words, a FROM among them, that is a good part of it."""
MOST = 0.75
"""Share of the words of evidence, or of a gold query without its FROM, that is a good part of it."""
WINDOW = 1.5
"""Length of the passage that is searched for a secret, in lengths of the secret."""
LONG = 16
"""Words in a row that a report counts as a shared phrase."""
SHORT = 7
"""Words below which a text is not searched for."""
QUESTION, GOLD, EVIDENCE, ENTRY = "question", "gold SQL", "evidence", "a task file's entry"
FIELDS = re.compile(r'"(?:sol_sql|external_knowledge|test_cases)"\s*:\s*(?:"[^"]|\[\s*[^\s\]])')
"""A field of LiveSQLBench's task files with a value: somebody put a whole entry there."""
SHOWN_HITS = 10
SHOWN_WORDS = 40
WORD = re.compile(r"[^\W_]+")
IGNORED = re.compile(r'\\[nrt]|\b[A-Za-z_]\w*"?\.(?="?[A-Za-z_])')
"""A line break as JSON writes it, and what qualifies a name: an alias, a table or a schema."""
FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
INNER_FROM = re.compile(r"\b(?:extract|substring|trim|overlay)\s*\([^()]*?\bfrom\b|\bdistinct\s+from\b", re.IGNORECASE)
"""A FROM that belongs to an expression."""
WORTHWHILE = 2 * SHORT
"""Characters that a cell of a SQLite file must have to hold SHORT words."""
DATABASES = (".sqlite", ".db")


@dataclass(frozen=True)
class Secret:
    """A text of a task that no model may read."""

    task_id: str
    kind: str
    """QUESTION, GOLD or EVIDENCE."""
    text: str


@dataclass(frozen=True)
class Finding:
    """A secret, or words of one, in a place that a model may read."""

    file: Path
    line: int
    """From 1; in a SQLite file, the row."""
    task_id: str
    kind: str
    share: float
    """Share of the secret's words, 0 to 1; of a phrase, that of its longest run."""
    text: str
    """The shared words, normalised."""
    leak: bool
    """Whether it stops the evaluation."""

    def __str__(self) -> str:
        shown = self.text if len(self.text) < 200 else f"{self.text[:199]}…"
        whose = f"{self.share:.0%} of the {self.kind} of task {self.task_id}" if self.task_id else self.kind
        return inert(f"{self.file}:{self.line}: {whose}: “{shown}”")


@dataclass(frozen=True)
class _Needle:
    """A secret as words."""

    secret: Secret
    words: tuple[str, ...]
    sources: frozenset[int]
    """Places of each FROM that names a table; none in a text that is no query."""


@dataclass(frozen=True)
class Passage:
    """The part of a document that shares most with a secret."""

    share: float = 0.0
    """Share of the secret's words, 0 to 1."""
    begin: int = 0
    """Its first word, from 0."""
    end: int = 0
    has_source: bool = False
    """Whether one of the query's FROM is among the shared words."""


def secrets(suite: Suite, gold: Mapping[str, Gold], asked: Collection[str]) -> list[Secret]:
    """The questions, gold queries and evidence of the tasks that are asked."""
    found = [Secret(task.id, QUESTION, task.question) for task in suite.tasks if task.id in asked]
    for task_id, answer in gold.items():
        if task_id in asked:
            found += [Secret(task_id, GOLD, sql) for sql in answer.sql]
            found += [Secret(task_id, EVIDENCE, answer.hint)] if answer.hint else []
    return found


def scan(hidden: Iterable[Secret], places: Iterable[Path]) -> list[Finding]:
    """Return what files and folders hold of the secrets, at most one finding for each secret and file.

    Text and SQLite files are read whole, other files as far as they hold text.
    """
    needles = [needle for secret in hidden if (needle := _needle(secret))]
    index = _index(needles)
    return [found for file in _files(places) for found in _in_file(file, needles, index)]


def stop_on(found: Sequence[Finding]) -> None:
    """Stop an evaluation whose answers can be read.

    Raises:
        UserError: there are leaks; names the first of them by file and line.
    """
    if leaks := [each for each in found if each.leak]:
        more = f"\n… and {len(leaks) - SHOWN_HITS} more." if len(leaks) > SHOWN_HITS else ""
        shown = "\n".join(f"  {leak}" for leak in leaks[:SHOWN_HITS])
        raise UserError(
            f"The evaluation does not start: a model could read the answers.\n{shown}{more}\n"
            "Take them out of these files (or of what they are made from), compile again, and run again. "
            "--despite-leaks goes on as it is, and every record and report says so."
        )


def remarks(facts: Mapping[str, Any]) -> list[str]:
    """Return what a report says of the findings in an eval.json, a sentence each."""
    found = []
    for what, says in (
        ("leaks", "A model could read the answers (--despite-leaks)"),
        ("shared", "Documents share words"),
    ):
        for kind, counts in (facts.get(what) or {}).items():
            tasks, files = count(counts["tasks"], "task"), count(counts["files"], "file")
            found.append(f"{says}: {kind} of {tasks} in {files}, such as {counts['longest']}")
    return found


def summary(found: Sequence[Finding]) -> dict[str, Any]:
    """Return what eval.json keeps of the findings: how many tasks and files, and the longest, of each kind."""
    kept: dict[str, Any] = {}
    for leak in (True, False):
        for kind in (QUESTION, GOLD, EVIDENCE, ENTRY):
            mine = [each for each in found if each.kind == kind and each.leak is leak]
            if mine:
                longest = max(mine, key=lambda each: len(each.text))
                counts = {"tasks": len({each.task_id for each in mine}), "files": len({each.file for each in mine})}
                kept.setdefault("leaks" if leak else "shared", {})[kind] = counts | {"longest": str(longest)}
    return kept


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, those that qualify a name left out; `_` separates words.

    >>> words("SELECT o.customer_id, 'ACTIVE'")
    ['select', 'customer', 'id', 'active']
    """
    return [word.casefold() for word in WORD.findall(_plain(text))]


def passage(secret: Secret, document: str) -> Passage:
    """Return the part of a document that shares most with one secret."""
    needle = _needle(secret)
    if needle is None:
        return Passage()
    hits = _hits(words(document), _index([needle]))
    return _densest(needle, hits.get(0, []))


def is_leak(kind: str, found: Passage) -> bool:
    """Whether a passage gives a secret away."""
    return kind != QUESTION and found.share >= (PART if found.has_source else MOST)


def _needle(secret: Secret) -> _Needle | None:
    found = tuple(words(secret.text))
    if len(found) < SHORT:
        return None
    inner = {match.end() for match in INNER_FROM.finditer(secret.text)}
    froms = [match for match in FROM.finditer(secret.text) if match.end() not in inner]
    places = (len(words(secret.text[: match.start()])) for match in froms)
    return _Needle(secret, found, frozenset(places) if secret.kind == GOLD else frozenset())


Index: TypeAlias = Mapping[tuple[str, ...], Sequence[tuple[int, int]]]
"""RUN words in a row -> the number of each secret that has them, and where."""
Hit: TypeAlias = tuple[int, int]
"""Where RUN shared words begin: in the document, in the secret."""


def _index(needles: Sequence[_Needle]) -> Index:
    index: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, needle in enumerate(needles):
        for start in range(len(needle.words) - RUN + 1):
            index[needle.words[start : start + RUN]].append((number, start))
    return index


def _hits(sequence: Sequence[str], index: Index) -> dict[int, list[Hit]]:
    """Return the hits of each secret by its number, in the document's order."""
    found: dict[int, list[Hit]] = defaultdict(list)
    for place in range(len(sequence) - RUN + 1):
        for number, start in index.get(tuple(sequence[place : place + RUN]), ()):
            found[number].append((place, start))
    return found


def _densest(needle: _Needle, hits: Sequence[Hit]) -> Passage:
    """Return the passage of at most WINDOW lengths of the secret that shares most of its words.

    A word of the document counts for one word of the secret: a clause that gold repeats is shared once.
    """
    size = len(needle.words)
    width = max(int(WINDOW * size), RUN)
    best, first = Passage(), 0
    there: Counter[int] = Counter()
    shared: Counter[int] = Counter()
    for place, start in hits:
        there.update(range(place, place + RUN))
        shared.update(range(start, start + RUN))
        while place + RUN - hits[first][0] > width:
            for counter, begin in zip((there, shared), hits[first], strict=True):
                counter.subtract(range(begin, begin + RUN))
                for each in range(begin, begin + RUN):
                    if not counter[each]:
                        del counter[each]
            first += 1
        share = min(len(there), len(shared)) / size
        has_source = not needle.sources.isdisjoint(shared)
        if (share, has_source) > (best.share, best.has_source):
            best = Passage(share, hits[first][0], place + RUN, has_source)
    return best


def _longest(hits: Sequence[Hit]) -> tuple[int, int]:
    """Return the first word in the document, and the number of words, of the longest run."""
    length: dict[Hit, int] = {}
    best = (0, 0)
    for place, start in hits:
        length[place, start] = length.get((place - 1, start - 1), RUN - 1) + 1
        best = max(best, (length[place, start], -(place + RUN - length[place, start])))
    return -best[1], best[0]


def _findings(
    sequence: Sequence[str], needles: Sequence[_Needle], index: Index
) -> Iterator[tuple[Secret, float, int, int, bool]]:
    """Yield secret, share, first word, word after the last, and whether it is a leak, for one text."""
    for number, hits in _hits(sequence, index).items():
        needle = needles[number]
        found = _densest(needle, hits)
        if is_leak(needle.secret.kind, found):
            yield needle.secret, found.share, found.begin, found.end, True
            continue
        begin, run = _longest(hits)
        if run >= min(LONG, len(needle.words)):
            yield needle.secret, run / len(needle.words), begin, begin + run, False


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and file.suffix not in (".lock", ".pyc"):
                yield file


def _in_file(file: Path, needles: Sequence[_Needle], index: Index) -> Iterable[Finding]:
    if file.suffix in DATABASES and (texts := _cells(file)) is not None:
        found = [each for number, text in texts for each in _in_text(file, text, needles, index, row=number)]
    else:
        text = file.read_bytes().decode("utf-8", "replace")
        found = _in_text(file, text, needles, index)
        for match in FIELDS.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Finding(file, line, "", ENTRY, 1.0, match[0], leak=True))
    best: dict[tuple[str, str], Finding] = {}
    for each in found:
        kept = best.setdefault((each.task_id, each.kind), each)
        if (each.leak, each.share) > (kept.leak, kept.share):
            best[each.task_id, each.kind] = each
    return best.values()


def _in_text(file: Path, text: str, needles: Sequence[_Needle], index: Index, row: int | None = None) -> list[Finding]:
    """Return the findings in one text; `row` stands in place of the line."""
    spots = [(match[0].casefold(), match.start()) for match in WORD.finditer(_plain(text))]
    sequence = [word for word, _ in spots]
    found = []
    for secret, share, begin, end, leak in _findings(sequence, needles, index):
        line = row or text.count("\n", 0, spots[begin][1]) + 1
        shown = " ".join(sequence[begin : min(end, begin + SHOWN_WORDS)])
        found.append(Finding(file, line, secret.task_id, secret.kind, share, shown, leak))
    return found


def _plain(text: str) -> str:
    """Return a text of the same length with blanks in place of what is ignored."""
    return IGNORED.sub(lambda match: " " * len(match[0]), text)


def _cells(file: Path) -> list[tuple[int, str]] | None:
    """Return the row's number in its table, and the text, of every cell of a SQLite file that may hold a secret.

    None for a file that is no SQLite database.
    """
    found: list[tuple[int, str]] = []
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        except sqlite3.DatabaseError:
            return None
        for table in tables:
            try:
                rows = connection.execute(f"SELECT * FROM {quoted(table)}")
            except sqlite3.DatabaseError:
                continue  # a virtual table of an extension that is not here; its content lies in plain tables
            for number, row in enumerate(rows, start=1):
                found += [(number, cell) for cell in row if isinstance(cell, str) and len(cell) > WORTHWHILE]
    return found
