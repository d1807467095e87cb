"""The value index: what it finds, in which spelling, and how soon."""

from __future__ import annotations

import random
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from okf_compiler.profiling import spelling, values
from okf_compiler.profiling.values import IndexedColumn, ValueIndex

COLUMNS = [
    IndexedColumn("customers", "country", False, [("DE", 90), ("Germany", 40), ("germany", 2), ("Österreich", 5)]),
    IndexedColumn(
        "customers", "city", False, [("San Francisco", 7), ("San Jose", 3), ("Paris", 9), ("Sankt Pölten", 1)]
    ),
    IndexedColumn("orders", "state", True, [("in_progress", 100), ("Shipped", 50), ("shipped ", 1)]),
    IndexedColumn("orders", "note", False, [('100% "fine"; DROP TABLE x --', 1), ("&", 2), ("C++", 3), ("C#", 4)]),
    IndexedColumn("sales.Order", "doc.kind", False, [("Germany", 8)]),
]

FOUND = {
    "Germany": ["exact customers.country Germany 40", "exact sales.Order.doc.kind Germany 8",
                "case customers.country germany 2"],
    "GERMANY": ["case customers.country Germany 40", "case sales.Order.doc.kind Germany 8",
                "case customers.country germany 2"],
    "Germny": ["near customers.country Germany 40", "near sales.Order.doc.kind Germany 8",
               "near customers.country germany 2"],
    "Gemrany": ["near customers.country Germany 40", "near sales.Order.doc.kind Germany 8",
                "near customers.country germany 2"],
    "osterreich": ["near customers.country Österreich 5"],
    "In Progress": ["near orders.state in_progress None"],
    "shipped": ["case orders.state Shipped None", "near orders.state shipped  None"],
    "Pairs": ["near customers.city Paris 9"],
    "san fransisco": ["near customers.city San Francisco 7"],
    "francisco": ["word customers.city San Francisco 7"],
    "san": ["word customers.city San Francisco 7", "word customers.city San Jose 3"],
    "Francisco San": ["word customers.city San Francisco 7"],
    "d": [],
    "DF": [],
    "&": ["exact orders.note & 2"],
    "c++": ["case orders.note C++ 3"],
    "": [],
    "' OR 1=1 --": [],
    "Atlantis": [],
}  # fmt: skip


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ValueIndex]:
    assert values.write(tmp_path, COLUMNS) == 16
    found = values.open(tmp_path)
    assert found is not None
    with found:
        yield found


def test_texts_are_found_as_stored_in_any_case_and_nearly_so(index: ValueIndex) -> None:
    for text, expected in FOUND.items():
        hits = [f"{h.how} {h.table}.{h.column} {h.value} {h.rows}" for h in index.find(text)]
        assert hits == expected, text


def test_many_texts_are_looked_up_at_once(index: ValueIndex) -> None:
    words = ["how", "many", "customers", "from", "germany", "in", "Paris", "are", "in", "progress"]
    runs = [" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
    found = index.spelled(runs * 20)
    assert {text: [h.value for h in hits] for text, hits in found.items()} == {
        "germany": ["germany", "Germany", "Germany"],
        "Paris": ["Paris"],
        "in progress": ["in_progress"],
    }


def test_limits_hold(index: ValueIndex) -> None:
    assert [len(index.find("san", limit)) for limit in (0, 1, 9)] == [0, 1, 2]


def test_nobody_else_reads_it(tmp_path: Path) -> None:
    values.write(tmp_path, COLUMNS)
    assert stat.S_IMODE((tmp_path / "values.sqlite").stat().st_mode) == 0o600


def test_an_index_that_fails_midway_leaves_the_old_one(tmp_path: Path) -> None:
    values.write(tmp_path, COLUMNS)
    before = (tmp_path / "values.sqlite").read_bytes()

    def broken() -> Iterator[IndexedColumn]:
        yield COLUMNS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        values.write(tmp_path, broken())
    assert (tmp_path / "values.sqlite").read_bytes() == before


def test_every_near_spelling_is_found_among_many() -> None:
    """The segments lose nothing: the same as comparing with every term, for edits at any place."""
    drawn = random.Random(7)
    terms = {"".join(drawn.choice("abcde") for _ in range(drawn.randint(3, 12))) for _ in range(400)}
    kept: dict[str, set[str]] = {}
    for term in terms:
        for key in spelling.segments(term):
            kept.setdefault(key, set()).add(term)
    compared = 0
    for term in sorted(terms)[:60]:
        place = drawn.randrange(len(term))
        for typed in (
            term[:place] + term[place + 1 :],
            term[:place] + "x" + term[place:],
            term[:place] + "e" + term[place + 1 :],
        ):
            near = {t for t in terms if 0 < spelling.distance(typed, t, 2) <= spelling.edits(min(len(t), len(typed)))}
            candidates = {t for key in spelling.near_segments(typed) for t in kept.get(key, ())}
            swapped = set(spelling.swapped(typed))
            assert near <= candidates | swapped, typed
            compared += len(near)
    assert compared > 100


@pytest.mark.slow
def test_hundreds_of_thousands_of_values_answer_at_once(tmp_path: Path) -> None:
    drawn = random.Random(1)
    words = [
        "".join(drawn.choice("abcdefghijklmnoprstuvwz") for _ in range(drawn.randint(3, 9))) for _ in range(20_000)
    ]
    columns = [
        IndexedColumn(
            "t", f"c{n}", False, [(" ".join(drawn.sample(words, drawn.randint(1, 4))), 1) for _ in range(5_000)]
        )
        for n in range(40)
    ]
    assert values.write(tmp_path, columns) == 200_000
    with values.open(tmp_path) as index:  # type: ignore[union-attr]
        seconds = []
        for _ in range(100):
            value = drawn.choice(drawn.choice(columns).values)[0]
            typed = value[:2] + value[3:]
            started = time.perf_counter()
            index.find(value), index.find(typed)
            seconds.append(time.perf_counter() - started)
        # Milliseconds each on a quiet machine; a scan of all values takes a hundred times as long.
        assert sorted(seconds)[50] < 0.1
