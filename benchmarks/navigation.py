"""Count what it costs a reader who makes no mistake to find a question's knowledge: model calls and input tokens.

`knowledge_modes.py` makes the README's table of all modes with the same reader.

    OKF_TEST_DATA=DIR python benchmarks/navigation.py

A scripted reader goes through the real loop (`agent.run`) with the real tools. It knows from the labels what a question
needs, and may open only what it has been shown: paths in the index, among the named matches, or in files it has read.
It asks for all it can at once, then runs one query and hands it in. The answers' queries are not run here: a made
result of five rows stands for theirs, so neither a database nor a model takes part.

* bundle: as shipped. It opens what it needs as soon as it sees the path, wherever that stands.
* bundle, led: as shipped, read with more care: a table, or a rule that another builds on, is opened when the matches
  or a file lead to it, and from the index only when nothing else is left.
* plain: one file a call, no index in the instructions and no matches named.
* search: as shipped. It searches for what the question names and no signpost does, by its title.
* raw: the three documents in the instructions; schema: the DDL alone; pack: one prompt and one reply.

Questions: the answerable ones of `data/shop` (rules from its gold, tables from its queries), and 47 of
LiveSQLBench-Base-Lite from `labels/tasks_base_lite.yaml`. Tokens are `okf_compiler.tokens` (bytes / 3.7) of everything
sent: the tools as JSON, each message's text and calls, and 4 a message for its frame. Outside the cached prefix is what
does not repeat the beginning of an earlier request, message by message, of the same run (`alone`) or of any run over
the same database, which are made one after the other (`in a row`).

From where a bundle is cheaper: the shop's documents are cut to what its first 1, 2, 4, … questions need, compiled and
asked these questions; where the lines of least squares through their tokens cross is the answer. For the other end,
databases of Base-Lite are made into one.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from navigation_sets import SHOP, Place, Task, cut, documents_in, place, shop_tasks, suite_tasks, together
from needs import test_data

from okf_agent import agent
from okf_agent.clock import today
from okf_agent.config import ModelSection
from okf_agent.events import Message, Usage
from okf_agent.knowledge import Knowledge, Sources, prepare
from okf_agent.llm import Model
from okf_agent.models.reply import Reply, ToolCall, sent_call
from okf_agent.run import Limits, Question
from okf_agent.sql.database import Cut, QueryResult
from okf_agent.tools import Context, read_file
from okf_compiler.tokens import tokens

FRAME_TOKENS = 4
RESULT = QueryResult(("name", "number", "share"), ("text", "bigint", "numeric"),
                     tuple(("some name", "1234", "0.5678") for _ in range(5)), 5, Cut(), 0.0)  # fmt: skip
PATH = re.compile(r"/[^\s()<>`\"]*?\.md\b")
CUT_FOR = (1, 2, 4, 8, 12, 18)
TOGETHER = (2, 4, 10)
SMALL = 12_000
"""Documents below it decide where the lines cross."""
PLAIN = "The knowledge about this database is a bundle of markdown files. Its index is /index.md; read it first."


@dataclass(frozen=True)
class Cost:
    calls: int = 0
    first: int = 0
    """Tokens of the first request."""
    input: int = 0
    alone: int = 0
    """Tokens outside the prefix that earlier requests of the run have cached."""
    in_a_row: int = 0
    """The same, with earlier runs over the database."""


class Reader(Model):
    """The reader, in the place of a model. `cached` holds prefixes of earlier requests."""

    def __init__(self, needs: tuple[list[str], list[str]], sql: str, place: Place, way: Way, cached: set[int]) -> None:
        super().__init__(ModelSection(name="scripted/reader"))
        self.named, self.reached = needs
        self.sql, self.place, self.way = sql, place, way
        self.cached_before, self.cached_here = cached, set[int]()
        self.opened: set[str] = set()
        self.searched: set[str] = set()
        self.cost = Cost()
        self.tried = False

    def complete(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **_options: Any) -> Reply:
        self._count([json.dumps(list(tools)) if tools else "", *map(_sent, messages)])
        offered = {tool["function"]["name"] for tool in tools}
        if not offered:  # one reply with SQL
            text = f"```sql\n{self.sql}\n```"
            return Reply(text, (), "stop", Usage(), {"role": "assistant", "content": text})
        calls = self._look(messages, offered) if "read_file" in offered else []
        if calls:
            return _reply(*calls)
        if not self.tried:
            self.tried = True
            return _reply(("run_sql", {"sql": self.sql}))
        return _reply(("submit_answer", {"sql": self.sql, "answer": "The rows show it."}))

    def _look(self, messages: Sequence[Message], offered: set[str]) -> list[tuple[str, dict[str, Any]]]:
        """The calls that look for what is needed and not seen yet; with search, all that can be made at once."""
        listed, led = _shown(messages)
        calls: list[tuple[str, dict[str, Any]]] = []
        rest = [p for p in (*self.named, *self.reached) if p not in self.opened]
        found = [p for p in rest if p in listed | led]
        if "search" in offered:
            wanted = [p for p in (rest if not found else self.named) if p in rest and p not in {*found, *self.searched}]
            self.searched.update(wanted)
            calls = [("search", {"query": self._title(path)}) for path in wanted]
            paths = found
        else:
            paths = self._next(listed, led)
        self.opened.update(paths)
        return [*([("read_file", {"paths": paths})] if paths else []), *calls]

    def _title(self, path: str) -> str:
        return next(c.title for c in self.place.concepts.values() if c.path == path)

    def _next(self, listed: set[str], led: set[str]) -> list[str]:
        """What to open now: what is needed and in sight; else the index, or the file, that leads on."""
        visible = listed | led
        rest = [p for p in (*self.named, *self.reached) if p not in self.opened]
        found = [p for p in rest if p in visible]
        if self.way.led:
            found = [p for p in rest if p in led or (p in listed and p in self.named)] or found
        if rest and not found:
            found = [self._towards(set(rest), visible - self.opened)]
        return found[: self.way.batch]

    def _towards(self, rest: set[str], visible: set[str]) -> str:
        """The visible file that is the fewest links away from something needed, an index before others."""
        near, seen = rest, set(rest)
        while near:
            before = {p for p in self._files() if near & set(PATH.findall(self._text(p)))} - seen
            if at_hand := before & visible:
                return min(at_hand, key=lambda p: (not p.endswith("index.md"), p))
            near, seen = before, seen | before
        raise LookupError(f"nothing in sight leads to {sorted(rest)}")

    def _files(self) -> Iterator[str]:
        return (f"/{f.relative_to(self.place.bundle).as_posix()}" for f in self.place.bundle.rglob("*.md"))

    def _text(self, path: str) -> str:
        return (self.place.bundle / path[1:]).read_text(encoding="utf-8")

    def _count(self, pieces: list[str]) -> None:
        pieces = [piece for piece in pieces if piece]
        sizes = [tokens(piece) + FRAME_TOKENS for piece in pieces]
        keys = [hash(tuple(pieces[:n])) for n in range(1, len(pieces) + 1)]
        self.cost = Cost(
            self.cost.calls + 1,
            self.cost.first or sum(sizes),
            self.cost.input + sum(sizes),
            self.cost.alone + sum(s for s, k in zip(sizes, keys, strict=True) if k not in self.cached_here),
            self.cost.in_a_row + sum(s for s, k in zip(sizes, keys, strict=True) if k not in self.cached_before),
        )
        self.cached_here.update(keys)
        self.cached_before.update(keys)


@dataclass(frozen=True)
class Way:
    """A way to get at the knowledge; `batch` files a call."""

    name: str
    knowledge: Callable[[str, Sources], Knowledge]
    batch: int = 1_000
    led: bool = False


def mode(name: str, *, led: bool = False) -> Way:
    """A mode as shipped."""
    return Way(f"{name}, led" if led else name, lambda question, sources: prepare(name, question, sources), led=led)


def _plain(_question: str, _sources: Sources) -> Knowledge:
    return Knowledge((PLAIN,), (read_file.tool(),))


WAYS = (mode("bundle"), mode("bundle", led=True), Way("plain", _plain, batch=1), mode("raw"))


class Rows:
    """In the place of a database."""

    def run(self, sql: str, *, max_rows: int | None = None) -> QueryResult:  # noqa: ARG002
        return RESULT


def ask(task: Task, place: Place, way: Way, cached: set[int]) -> Cost:
    """One question through the loop.

    Raises:
        RuntimeError: it did not end with an answer.
    """
    sources = Sources(place.documents.name, place.documents, place.bundle, place.profiles, values=place.profiles)
    reader = Reader(place.paths(task), task.sql, place, way, cached)
    if way.name == "plain":
        reader.named.insert(0, "/index.md")
    run = agent.run(
        Question(task.text, place.documents.name, today(None, None)),
        way.knowledge(task.text, sources),
        reader,
        Context(bundle=place.bundle, database=Rows(), profiles=place.profiles),
        Limits(max_steps=100),
        lambda _event: None,
    )
    if run.stop_reason != "submitted":
        raise RuntimeError(f"{task.text}: {run.stop_reason} {run.error}")
    return reader.cost


def _sent(message: Message) -> str:
    """What of a message costs tokens: its text and its calls."""
    calls = message.get("tool_calls") or ()
    return str(message["content"] or "") + "".join(c["function"]["name"] + c["function"]["arguments"] for c in calls)


def _shown(messages: Sequence[Message]) -> tuple[set[str], set[str]]:
    """Paths that the conversation shows: those of indexes, and those of matches and files."""
    listed, led = set(PATH.findall(str(messages[0]["content"]))) | {"/index.md"}, set[str]()
    for message in messages[1:]:
        text = str(message["content"] or "")
        if message["role"] == "user":
            led |= set(PATH.findall(text))
        for file in re.split(r"^=== ", text, flags=re.MULTILINE)[1:] if message["role"] == "tool" else ():
            path, _, content = file.partition(" ===\n")
            (listed if path.endswith("index.md") else led).update(PATH.findall(content))
        if message["role"] == "tool" and "<results>" in text:
            led |= set(PATH.findall(text))
    return listed, led


def _reply(*made: tuple[str, Mapping[str, Any]]) -> Reply:
    calls = tuple(ToolCall(f"call_{number}_{name}", name, json.dumps(args)) for number, (name, args) in enumerate(made))
    message = {"role": "assistant", "content": "", "tool_calls": [*map(sent_call, calls)]}
    return Reply("", calls, "tool_calls", Usage(), message)


# Figures.


@dataclass
class Figures:
    """Costs by way, of one group of questions. `size`: tokens of the documents, where there is one database."""

    size: int = 0
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    def add(self, other: Figures) -> None:
        for way, costs in other.costs.items():
            self.costs.setdefault(way, []).extend(costs)

    def mean(self, way: str, what: str = "input") -> float:
        return statistics.fmean([float(getattr(cost, what)) for cost in self.costs[way]])

    def middle(self, way: str, what: str = "input") -> float:
        return statistics.median([float(getattr(cost, what)) for cost in self.costs[way]])

    def show(self, title: str) -> None:
        print(f"\n{title}, {len(self.costs['raw'])} questions: mean (median)")
        heads = ("calls", "input tokens", "of raw", "outside the cache, alone", "in a row")
        print("  {:<12} {:>10} {:>17} {:>6} {:>24} {:>15}".format("", *heads))
        for way in self.costs:
            calls = f"{self.mean(way, 'calls'):.2f} ({self.middle(way, 'calls'):.0f})"
            share = f"{self.mean(way) / self.mean('raw'):.2f}"
            whole, alone, row = (
                f"{self.mean(way, what):,.0f} ({self.middle(way, what):,.0f})"
                for what in ("input", "alone", "in_a_row")
            )
            print(f"  {way:<12} {calls:>10} {whole:>17} {share:>6} {alone:>24} {row:>15}")


def measure(tasks: Sequence[Task], place: Place) -> Figures:
    """All tasks in every way, one after the other."""
    figures = Figures(place.tokens)
    for way in WAYS:
        cached: set[int] = set()
        figures.costs[way.name] = [ask(task, place, way, cached) for task in tasks]
    return figures


def main() -> None:
    root = test_data() / "livesqlbench-base-lite"
    with tempfile.TemporaryDirectory(prefix="okf-benchmark-") as folder:
        out = Path(folder)
        shop_documents, shop_asked = documents_in(SHOP.parent)["shop"], shop_tasks()
        shop = measure(shop_asked, place(shop_documents, out / "shop"))
        asked = suite_tasks(root)
        documents = {name: each for name, each in documents_in(root).items() if name in asked}
        lites = {name: measure(asked[name], place(documents[name], out / name)) for name in asked}
        lite, everything = Figures(), Figures()
        for each in lites.values():
            lite.add(each)
        everything.add(shop)
        everything.add(lite)
        shop.show("The shop")
        lite.show("LiveSQLBench-Base-Lite")
        everything.show("Both")

        sizes = {"shop": shop, **lites}
        for number in CUT_FOR:
            some = shop_asked[:number]
            here = place(cut(shop_documents, some, out / f"cut{number}"), out / f"shop{number}")
            sizes[f"shop, cut for {number}"] = measure(some, here)
        for number in TOGETHER:
            some_documents = dict(list(documents.items())[:number])
            made, questions = together(some_documents, asked, out / f"together{number}")
            sizes[f"{number} of Base-Lite"] = measure(questions, place(made, out / f"all{number}"))
        break_even(sizes)


def break_even(sizes: Mapping[str, Figures]) -> None:
    """Mean input tokens over the size of documents, and where the lines through them cross."""
    print("\nTokens of the documents, and mean input tokens of a question:")
    ordered = sorted(sizes.items(), key=lambda item: item[1].size)
    for name, figures in ordered:
        bundle, led, raw = (figures.mean(way) for way in ("bundle", "bundle, led", "raw"))
        shares = f"{bundle / raw:.2f}, {led / raw:.2f}"
        print(f"  {name:<18} {figures.size:>8,}  bundle {bundle:>7,.0f}, led {led:>7,.0f}, raw {raw:>8,.0f}: {shares}")
    small = [figures for _, figures in ordered if figures.size < SMALL]
    lines = {
        way: statistics.linear_regression([f.size for f in small], [f.mean(way) for f in small])
        for way in ("bundle", "bundle, led", "raw")
    }
    raw_line = lines.pop("raw")
    for way, line in lines.items():
        crossing = (line.intercept - raw_line.intercept) / (raw_line.slope - line.slope)
        print(f"{way} is cheaper than raw from about {crossing:,.0f} tokens of documents")


if __name__ == "__main__":
    main()
