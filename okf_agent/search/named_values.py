"""The values that a question names: which of its words stand in the data, as stored, and in which columns.

A value of several words is found in any case and with small slips of spelling. One of a single word counts only where
the question spells it as stored or puts it in quotation marks: "orders from open customers" names no value `Open`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from okf_agent.search.text import GRAMMAR, RESULT_WORDS
from okf_compiler.profiling.spelling import fold
from okf_compiler.profiling.values import Hit, ValueIndex

MAX_WORDS = 7
"""Words of one value that are looked for unquoted."""
MAX_NAMED = 12
"""Values of one question."""
MAX_HITS = 12
"""Columns and spellings of one value."""
MAX_NEAR = 40
"""Texts of one question that are looked for in near spellings, the longest first: each takes some milliseconds."""

MAX_CHARS = 200
"""Of a text that is looked for in near spellings: the index holds no value as long."""

_MARKS = ('""', "“”", "„“”", "””", "«»", "»«", "‹›", "›‹", "‚‘’", "「」", "『』", "《》", "〈〉", "＂＂", "``")
"""Quotation marks of all scripts: what opens, and what may close."""
_QUOTED = re.compile(
    "|".join(rf"{marks[0]}([^{marks}\n]{{1,80}})[{marks[1:]}]" for marks in _MARKS)
    + r"|(?<!\w)['‘]([^'’\n]{1,80}(?:['’]\w[^'’\n]{0,40})?)['’](?!\w)"
)
_WORD = re.compile(r"\w(?:[\w#+&@.'’/-]*[\w#+])?")
_POSSESSIVE = re.compile(r"['’]s$|(?<=s)['’]$")


@dataclass(frozen=True)
class Named:
    """What a question says, and the values it stands for, the best first."""

    text: str
    """In the question's words."""
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class _Run:
    """Words side by side in a question, from `start` to before `end`."""

    text: str
    start: int
    end: int
    words: int


def named_in(question: str, index: ValueIndex) -> list[Named]:
    """The values that a question names, in its order; of two that overlap, the longer one."""
    quoted = _quoted(question)
    runs = [*_runs(question, quoted)]
    spelled = index.spelled(dict.fromkeys([*(run.text for run in quoted), *(run.text for run in runs)]))
    found: list[tuple[_Run, Sequence[Hit]]] = []
    for run in quoted:
        found.append((run, spelled.get(run.text) or (index.find(run.text, MAX_HITS) if len(found) < MAX_NEAR else ())))
    near = _Near(index)
    taken = _marked([run for run, hits in found if hits], len(question))
    for run in sorted(runs, key=lambda run: run.start - run.end):
        if 1 not in taken[run.start : run.end] and (hits := _meant(run, spelled.get(run.text, []), near)):
            found.append((run, hits))
            taken[run.start : run.end] = b"\1" * (run.end - run.start)
    named = [Named(run.text, tuple(hits[:MAX_HITS])) for run, hits in sorted(found, key=lambda f: f[0].start) if hits]
    return list({each.text: each for each in named}.values())[:MAX_NAMED]


class _Near:
    """Values spelt nearly so: each text is looked for once, and no more of them than a question of a person names."""

    def __init__(self, index: ValueIndex) -> None:
        self.index = index
        self.found: dict[str, Sequence[Hit]] = {}

    def __call__(self, text: str) -> Sequence[Hit]:
        if text not in self.found and len(self.found) < MAX_NEAR:
            self.found[text] = self.index.near(text, MAX_HITS)
        return self.found.get(text, ())


def _meant(run: _Run, hits: Sequence[Hit], near: _Near) -> Sequence[Hit]:
    """The hits that count for an unquoted run."""
    if run.words == 1:
        says_nothing = run.text.islower() and (run.text in GRAMMAR or run.text in RESULT_WORDS)
        return [] if says_nothing else [hit for hit in hits if hit.how == "exact"]
    # A name spelt nearly so: looked for only where every word begins as names do, which keeps it rare.
    if not hits and all(word[:1].isupper() for word in run.text.split()) and 8 <= len(run.text) <= MAX_CHARS:
        return near(run.text)
    return hits


def _quoted(question: str) -> list[_Run]:
    found = []
    for match in _QUOTED.finditer(question):
        text = next(group for group in match.groups() if group is not None).strip()
        if text:
            found.append(_Run(text, match.start(), match.end(), len(fold(text).split())))
    return found


def _runs(question: str, quoted: Sequence[_Run]) -> Iterator[_Run]:
    """Every run of words that lies in one sentence and outside of quotation marks."""
    inside = _marked(quoted, len(question))
    words = [match for match in _WORD.finditer(question) if not inside[match.start()]]
    for first in range(len(words)):
        for last in range(first, min(first + MAX_WORDS, len(words))):
            start, end = words[first].start(), words[last].end()
            if last > first and re.search(r"[?!;:()\n]|\.\s", question[words[last - 1].end() : words[last].start()]):
                break
            text = question[start:end]
            yield _Run(text, start, end, len(fold(text).split()))
            if plain := _POSSESSIVE.sub("", text) if _POSSESSIVE.search(text) else "":
                yield _Run(plain, start, start + len(plain), len(fold(plain).split()))


def _marked(runs: Iterable[_Run], length: int) -> bytearray:
    """Each character of a question: 1 in one of the runs, else 0."""
    marked = bytearray(length)
    for run in runs:
        marked[run.start : run.end] = b"\1" * (run.end - run.start)
    return marked
