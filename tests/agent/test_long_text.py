"""What others wrote may be long and hostile: whatever reads it takes time in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from okf_agent.bundles import reading
from okf_agent.bundles.cards import ColumnCard, RuleCard, TableCard
from okf_agent.knowledge.schema import create_table
from okf_agent.packing import shape
from okf_agent.packing.write import Writer
from okf_agent.prompts import framing
from okf_agent.search import text, words
from okf_agent.search.named_values import named_in
from okf_agent.tools import Context, find_value
from okf_agent.tools.grounding import Evidence
from okf_compiler.profiling import values
from okf_compiler.profiling.values import IndexedColumn

CHARS = 100_000
SECONDS = 5.0
"""Of the processor, for one function and one text. What grows with the square of the length takes minutes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("values")
    values.write(made, [IndexedColumn("city", "name", False, (("New York", 9), ("Anna", 2)))])
    return made


@pytest.fixture(scope="module")
def named(folder: Path) -> Iterator[Callable[[str], object]]:
    index = values.open(folder)
    assert index is not None
    with index:
        yield lambda question: named_in(question, index)


def _head_and_body(content: str) -> str:
    return f"---\ntype: Rule\ntitle: {content}\n---\n{content}"


def _missing(content: str) -> object:
    evidence = Evidence()
    evidence.add_rows([[content]])
    return evidence.missing(f"There are 12{content}")


def _brief(content: str) -> object:
    return reading.brief(_head_and_body(content))


def _create_table(content: str) -> object:
    return create_table(_table(content))


def _table(content: str) -> TableCard:
    column = ColumnCard(content, content, content)
    return TableCard("/tables/t.md", "t", "t", content, (column,), (column,), (("/tables/u.md", content),))


def _written(content: str) -> object:
    writer = Writer(shape.SMALL)
    return writer.table(_table(content)), writer.rule(RuleCard("/k/r.md", "r", content, content, {}, ()))


FRAMES = [("<", " "), ("<", "\n"), ("", "< "), ("", "</"), ("", "<|"), ("", "<function=a"), ("", "=== "), ("", "~~~\n")]
CASES: list[tuple[Callable[[str], object], Sequence[tuple[str, str]]]] = [
    (partial(framing.framed, "rules"), FRAMES),
    (framing.beneath, FRAMES),
    (framing.one_line, FRAMES),
    (framing.fenced, FRAMES),
    (framing.in_json, FRAMES),
    (framing.changed_lines, [("&lt;", " "), ("&lt;", "\n"), ("", "&lt; "), ("", "&#91;/")]),
    (_missing, [("", "1"), ("", ",111"), ("", "1.1 "), ("", "1. "), ("", " "), ("", "a1 ")]),
    (_brief, [("", "[a](/"), ("", "["), ("", "[a "), ("", " ("), ("", "(a) "), ("", "\n-"), ("", "sources: a\n ")]),
    (partial(text.document, id="x"), [("---\n", "title: ''"), ("---\ntitle: '", "''"), ("---\n", "\n "), ("", "# \n")]),
    (text.apart, [("", "]("), ("", "[a](/"), ("", "[a](("), ("", "aB")]),
    (words.asked, [("", "a "), ("", "aB"), ("", "1a")]),
    (text.key_stems, [("", "a "), ("", "aB"), ("", "1a")]),
    (_create_table, [("", ", default a"), ("a, one of '", "b', "), ("", ", one of 'a"), ("", "a."), ('"', '""')]),
    (_written, [("text", " a"), ("text(", "("), ("", "a referencing a("), ("", "\\frac{"), ("", "->'"), ("->'", "''")]),
    (_written, [("\\frac{" * 9_000 + "1", "}{2}")]),
]


@pytest.mark.parametrize(
    ("read", "beginning", "unit"), [(read, *content) for read, contents in CASES for content in contents]
)
def test_time_grows_with_the_length(read: Callable[[str], object], beginning: str, unit: str) -> None:
    content = (beginning + unit * (CHARS // len(unit)))[:CHARS] + "!"
    begin = time.process_time()
    read(content)
    assert time.process_time() - begin < SECONDS


@pytest.mark.parametrize("unit", ["'a' ", "‘a ", "a's ", "A-", "“", "Anna "])
def test_a_question_of_any_length(named: Callable[[str], object], unit: str) -> None:
    begin = time.process_time()
    named(unit * (CHARS // len(unit)))
    assert time.process_time() - begin < SECONDS


def test_a_value_of_any_length_is_looked_for(folder: Path) -> None:
    long = ["a" * CHARS, "a b " * (CHARS // 4), "a" * 150, "a" + "\u0301\u0327" * (CHARS // 2)]
    begin = time.process_time()
    found = find_value.tool().run({"values": long}, Context(values=folder))
    assert time.process_time() - begin < SECONDS
    assert found.failed and found.text.count("no column that is known has it") == 4
