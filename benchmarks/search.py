"""Ask search what people type, and time it: on queries made by hand, and on a made bundle of 100,000 concepts.

    OKF_TEST_DATA=DIR python benchmarks/search.py [--misses] [--scale [N]]

The 112 queries are those of `labels/search_queries.yaml`, over six databases compiled as they are shipped. A query
counts as found if one of the concepts that answer it is among the first five; `first` is at the first place, `mean
1/rank` is over all places. Search may be tuned by the queries of three databases; those of the other three are held
out: figures are given, misses are not shown. The 364 of `labels/search_queries_more.yaml`, over 17 others, are there to
tune by, and count for nothing.

Signposts are counted on the answerable questions of the shop and on the labelled ones of Base-Lite: how many of the
rules and tables that a question needs stand beside it, and how many paths that takes.

`--scale` makes N concepts (default 100,000) from the six bundles, each with a title word of its own, in a temporary
folder, and times building, opening, answering and one changed file.
"""

from __future__ import annotations

import functools
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from navigation_sets import RULE_ID, Place, Task, documents_in, place, shop_tasks, suite_tasks
from needs import test_data

from okf_agent.search import index as search_index
from okf_agent.search import signposts
from okf_compiler.bundle import Concept

LABELS = Path(__file__).parent / "labels" / "search_queries.yaml"
MORE = LABELS.with_name("search_queries_more.yaml")
SHIPPED = Path(__file__).parents[1] / "data"
TUNED, HELD_OUT = ("shop", "solar", "virtual_idol"), ("disaster", "disaster_relief", "solar_panel")
LITE, FULL = "livesqlbench-base-lite", "livesqlbench-base-full-v1"
OF_FULL = ("virtual_idol", "disaster_relief", "solar_panel", "households", "cross_border", "exchange_traded_funds")
FIRST = 5


@dataclass(frozen=True)
class Query:
    text: str
    needed: frozenset[str]
    """Paths of concepts; any of them answers it."""


def main() -> None:
    arguments = sys.argv[1:]
    root = test_data()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}\n")
    with tempfile.TemporaryDirectory() as folder:
        places = {name: _place(root, name, Path(folder)) for name in (*TUNED, *HELD_OUT)}
        misses = "--misses" in arguments
        if "--scale" in arguments:
            number = arguments[-1] if arguments[-1].isdigit() else "100000"
            scale(places, int(number), Path(folder) / "made")
            return
        total = [0, 0]
        for name, databases in (("tuned by", TUNED), ("held out", HELD_OUT)):
            found, of = rank_all(name, places, databases, misses and databases == TUNED)
            total = [total[0] + found, total[1] + of]
        print(f"all       {total[0]} of {total[1]} ({total[0] / total[1]:.1%}) among the first {FIRST}\n")
        more = sorted({label["database"] for label in _labels(MORE)})
        rank_all("also", {name: _place(root, name, Path(folder)) for name in more}, more, misses)
        count_signposts(root, Path(folder))


def _place(root: Path, name: str, folder: Path) -> Place:
    source = SHIPPED if name == "shop" else root / (FULL if name in OF_FULL else LITE)
    return place(documents_in(source)[name], folder / name)


def queries(name: str, concepts: Mapping[str, Concept]) -> Iterator[Query]:
    """The labelled queries of one database."""
    paths = {c.title.lower(): c.path for c in concepts.values() if c.type == "PostgreSQL Table"}
    for concept in concepts.values():
        if found := RULE_ID.search(str((concept.frontmatter.get("sources") or [{}])[-1].get("title"))):
            paths[found[1]] = concept.path
    for label in (*_labels(LABELS), *_labels(MORE)):
        if label["database"] == name:
            ids = [*label["rules"], *label["tables"]]
            yield Query(label["query"], frozenset(paths[str(id).lower()] for id in ids))


@functools.cache
def _labels(file: Path) -> list[dict[str, Any]]:
    """The queries of a file with `rules` and `tables`, each a list of ids of which any answers."""
    labels = yaml.safe_load(file.read_text(encoding="utf-8"))["queries"]
    return [{"tables": [], **label, **label.get("needed", {})} for label in labels]


def rank_all(name: str, places: Mapping[str, Place], databases: Sequence[str], misses: bool) -> tuple[int, int]:
    """Print how the databases' queries fare; gives how many are found, and of how many."""
    ranks: list[int] = []
    for database in databases:
        index, own = search_index.Index(places[database].bundle), list[int]()
        for query in queries(database, places[database].concepts):
            paths = [path for path, _ in index.rank(query.text, len(places[database].concepts))]
            own.append(min((paths.index(p) + 1 for p in query.needed if p in paths), default=0))
            if misses and not 0 < own[-1] <= FIRST:
                print(f"  {database}: {query.text!r} at {own[-1] or 'no place'}; first {paths[:3]}")
        print(f"  {database:22} {_found(own)} of {len(own)}")
        ranks += own
    inverse = statistics.mean(1 / rank if rank else 0 for rank in ranks)
    print(f"{name:9} {_found(ranks)} of {len(ranks)} ({_found(ranks) / len(ranks):.1%}) among the first {FIRST}, "
          f"{ranks.count(1)} first, mean 1/rank {inverse:.2f}\n")  # fmt: skip
    return _found(ranks), len(ranks)


def _found(ranks: Sequence[int]) -> int:
    return sum(0 < rank <= FIRST for rank in ranks)


def count_signposts(root: Path, folder: Path) -> None:
    """Print what of the labelled questions' needs the signposts name."""
    lite = root / LITE
    asked = {"shop": {"shop": shop_tasks()}, "Base-Lite": suite_tasks(lite)}
    for name, databases in asked.items():
        counts = [0, 0, 0, 0, 0]
        for database, tasks in databases.items():
            source = SHIPPED if database == "shop" else lite
            at = place(documents_in(source)[database], folder / "signposts" / database)
            for task in tasks:
                counts = [a + b for a, b in zip(counts, _named(task, at), strict=True)]
        questions = sum(map(len, databases.values()))
        print(f"signposts, {name}: {counts[0]} of {counts[1]} rules, {counts[2]} of {counts[3]} tables, "
              f"{counts[4] / questions:.1f} paths a question, {questions} questions")  # fmt: skip


def _named(task: Task, at: Place) -> list[int]:
    """Rules named and needed, tables named and needed, paths."""
    ranked = search_index.Index(at.bundle).rank(task.text, signposts.MAX_MATCHES)
    found = signposts.matches(ranked, at.concepts)
    paths = {at.concepts[id].path for id in (*found, *signposts.tables(found, at.concepts))}
    needed = {path for part in at.paths(task) for path in part}
    tables = {path for path in needed if path.startswith("/tables/")}
    rules = needed - tables
    return [len(rules & paths), len(rules), len(tables & paths), len(tables), len(paths)]


def scale(places: Mapping[str, Place], number: int, folder: Path) -> None:
    """Time a made bundle of `number` concepts."""
    texts = [f.read_text(encoding="utf-8") for p in places.values() for f in sorted(p.bundle.rglob("*.md"))
             if f.name not in ("index.md", "log.md")]  # fmt: skip
    (folder / "knowledge").mkdir(parents=True)
    for n in range(number):
        text = texts[n % len(texts)].replace("title: ", f"title: Word{n} ", 1)
        (folder / "knowledge" / f"c{n}.md").write_text(text, encoding="utf-8", newline="\n")
    size = sum(map(len, texts)) / len(texts)
    time.sleep(2.5)  # what was written just now is looked at twice
    print(f"{number:,} concepts of {size:,.0f} characters")
    _time("build", lambda: search_index.Index(folder), 1)
    index = search_index.Index(folder)
    _time("open", lambda: search_index.Index(folder), 3)
    asked = [query.text for name, at in places.items() for query in queries(name, at.concepts)]
    turn = iter(asked * 4)
    _time("search, ten results with lines", lambda: index.search(next(turn)), 2 * len(asked))
    _time("search, paths alone", lambda: index.rank(next(turn)), len(asked))
    changed = folder / "knowledge" / "c7.md"
    changed.write_text("---\ntype: Rule\ntitle: Quagga\n---\n\nquagga\n", encoding="utf-8", newline="\n")
    _time("open and find a changed file", lambda: _expect(search_index.Index(folder).rank("quagga"), "c7"), 1)
    held = sum(f.stat().st_size for f in (folder.parent / f".{folder.name}.search").rglob("*") if f.is_file())
    print(f"index on disk: {held / 1e6:,.0f} MB")


def _expect(found: Sequence[tuple[str, float]], name: str) -> None:
    assert [path for path, _ in found] == [f"/knowledge/{name}.md"], found


def _time(what: str, run: Callable[[], object], times: int) -> None:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    tail = f", 95 % within {statistics.quantiles(taken, n=20)[-1] * 1e3:,.1f} ms" if times > 20 else ""
    print(f"{what}: median {statistics.median(taken) * 1e3:,.1f} ms{tail}")


if __name__ == "__main__":
    main()
