"""What of a bundle goes into a pack: all of it where it fits, else what the question needs and what that needs in turn.

What something takes is counted for each table and rule by itself, so that thousands of them are no trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from okf_agent import prompts
from okf_agent.bundles.cards import Cards, ColumnCard, RuleCard, TableCard
from okf_agent.packing import ways
from okf_agent.packing.rank import Scores
from okf_agent.packing.shape import Shape
from okf_agent.packing.write import Writer
from okf_agent.search.text import key_stems
from okf_compiler.tokens import tokens

RULES_SHARE = 0.4
"""Of the tokens, what rules may take where not everything fits; those that the question names may take more."""
NAMED_SHARE = 0.9
"""The same for rules that the question names, and where neighbours do not fill the rest."""
MAX_TABLES = 2
"""Tables taken for their score where neither a rule nor the question names one, by a shape that does not fill."""
PLAIN = 0.5
"""What a column counts for its table if its name is an ordinary word, which a rule may use without meaning it."""
TRIES = 200
"""Tables that are looked at to fill the room that is left."""


Shown: TypeAlias = tuple[TableCard, int]
"""A table with the columns that are shown, and how many are not."""


@dataclass(frozen=True)
class Chosen:
    """What goes into the prompt, in the order of the prompt."""

    tables: tuple[Shown, ...]
    rules: tuple[RuleCard, ...]


class Chooser:
    """Chooses for one question. `budget` is in tokens, for tables, joins and rules together."""

    def __init__(self, known: Cards, question: str, scores: Scores, writer: Writer, budget: int) -> None:
        self.known = known
        self.question = question
        self.scores = scores
        self.writer = writer
        self.shape: Shape = writer.shape
        self.budget = budget
        self._costs: dict[str, int] = {}

    def choose(self, value_tables: Sequence[str] = (), *, with_rules: bool = True) -> Chosen:
        """The tables and rules; `value_tables`: paths of tables with values that the question names."""
        rules = self._rules() if with_rules else []
        left = self.budget - self._rules_cost(rules)
        every = [*self.known.tables]
        if self._cost(every) <= min(left, self.shape.table_tokens):
            return Chosen(tuple((self.known.tables[path], 0) for path in every), tuple(rules))
        return Chosen(tuple(self._fitting(rules, value_tables, left)), tuple(rules))

    # Rules.

    def _rules(self) -> list[RuleCard]:
        """All of them where they fit beside the tables, else those that match and what they build on."""
        every = [*self.known.rules.values()]
        room = min(self.shape.rule_tokens, self.budget)
        if self.shape.fill:  # all rules push out no table
            room = min(room, self.budget - min(self._cost(self.known.tables), int(self.budget * (1 - RULES_SHARE))))
        if self._rules_cost(every) <= room:
            return every
        taken: list[RuleCard] = []
        named = [path for path in self.scores.named_rules if path in self.known.rules]
        for path in (*named, *self._near_rules(len(named))):
            wider = ways.with_dependencies(self.known, [*(rule.path for rule in taken), path])
            share = NAMED_SHARE if path in named or not self.shape.fill else RULES_SHARE
            if self._rules_cost(wider) <= self.budget * share:
                taken = wider
        if named and not any(rule.path in named for rule in taken):
            taken = [self._cut_rule(self.known.rules[named[0]]), *taken]
        return taken

    def _cut_rule(self, rule: RuleCard) -> RuleCard:
        """A rule that does not fit with what it builds on, itself cut where it must be: else it would be guessed."""
        kept = rule.definition
        while kept and tokens(self.writer.rule(replace(rule, definition=kept))) > self.budget * NAMED_SHARE / 2:
            kept = kept[: len(kept) * 3 // 4]
        if left_out := len(rule.definition) - len(kept):
            kept += " " + prompts.say("pack_rule_cut", count=f"{left_out:,}")
        return replace(rule, path=f"{rule.path}#cut", definition=kept)

    def _near_rules(self, named: int) -> list[str]:
        """Rules that the question does not name and that are near it, fewer of them the more are named."""
        most = self.shape.max_rules if self.shape.fill else max(0, self.shape.max_rules - 2 * named)
        found = _near(self.scores.rules, self.shape.near)[:most]
        searched = [path for path in self.scores.searched if path in self.known.rules]
        return [*dict.fromkeys(_alternating(found, searched[:most]))]

    def _rules_cost(self, rules: Iterable[RuleCard]) -> int:
        return sum(self._memo(rule.path, partial(self.writer.rule, rule)) for rule in rules)

    # Tables.

    def _fitting(self, rules: Sequence[RuleCard], value_tables: Sequence[str], left: int) -> list[Shown]:
        """The tables that the question needs, then what else is near, as far as they fit, in the bundle's order.

        Where those needed do not fit, columns that neither a rule nor the question speaks of lose their meanings,
        then they are left out, then the tables that are needed least.
        """
        needed = self._needed(rules, value_tables)
        spoken = " ".join([self.question, *(rule.definition for rule in rules)])
        subject = frozenset(key_stems(spoken))
        taken: dict[str, Shown] = {}
        for version in (_whole, _trimmed, _narrowed):
            taken = {path: version(self.known.tables[path], subject) for path in needed}
            if self._taken_cost(taken) <= left:
                break
        else:
            taken = self._as_far_as_fits(taken, left)
        if self.shape.fill:
            self._fill(taken, left)
        order = {path: place for place, path in enumerate(self.known.tables)}
        return [taken[path] for path in sorted(taken, key=order.__getitem__)]

    def _as_far_as_fits(self, tables: Mapping[str, Shown], left: int) -> dict[str, Shown]:
        """The first of the tables and those after it that fit; of a first that is too large, the columns that do."""
        taken: dict[str, Shown] = {}
        spent = 0
        for path, (table, left_out) in tables.items():
            cost = self._card_cost(table)
            if not taken and cost > left:
                table, more = self._first_columns(table, left)
                taken[path] = (table, left_out + more)
                return taken
            if spent + cost <= left:
                taken[path] = (table, left_out)
                spent += cost
        return taken

    def _first_columns(self, table: TableCard, left: int) -> Shown:
        kept = len(table.columns)
        while kept > 1 and self._card_cost(_cut(table, kept)) > left:
            kept = kept * 3 // 4
        return _cut(table, kept), len(table.columns) - kept

    def _fill(self, taken: dict[str, Shown], left: int) -> None:
        """Neighbours by foreign key of what is taken, then other tables that match, while there is room."""
        spent = self._taken_cost(taken)
        neighbours = [other for path in taken for other, _ in self.known.tables[path].joins]
        ranked = [path for path in self.scores.searched if path in self.known.tables]
        near = _near(self.scores.tables, 0.0)
        wanted = (*neighbours, *_alternating(ranked, near))
        others = dict.fromkeys(path for path in wanted if path in self.known.tables and path not in taken)
        for path in [*others][:TRIES]:
            cost = self._cost([path])
            if spent + cost <= left:
                taken[path] = (self.known.tables[path], 0)
                spent += cost

    def _needed(self, rules: Sequence[RuleCard], value_tables: Sequence[str]) -> list[str]:
        """Tables in order of need, with those between them, so that each can be joined with one before it."""
        return ways.connected(self.known, self._matching(rules, value_tables))

    def _matching(self, rules: Sequence[RuleCard], value_tables: Sequence[str]) -> list[str]:
        """Those the rules use, those the question names, those with its values; else those that match it."""
        weights: dict[str, float] = {}
        for rule in rules:
            for name, paths in ways.uses(self.known, rule):
                if len(paths) == 1:
                    weights[paths[0]] = weights.get(paths[0], 0.0) + (PLAIN if name.isalpha() else 1.0)
        needed = {path: None for path, weight in weights.items() if weight >= 1.0}
        for rule in rules:
            paths = [path for path in rule.tables if path in self.known.tables]
            if paths and not any(path in needed for path in paths):
                needed[max(paths, key=lambda path: self.scores.tables.get(path, 0.0))] = None
        near = _near(self.scores.tables, self.shape.near)
        searched = [path for path in self.scores.searched if path in self.known.tables]
        named = [path for path in near if path in self.scores.named_tables]
        if self.shape.fill:
            first = [*dict.fromkeys(_alternating(searched[:4], near[:4]))]
            return [*dict.fromkeys([*named, *first, *needed, *value_tables])]
        # Of tables that only hold a value, the nearest: many columns may have the same word.
        best = max(value_tables, key=lambda path: self.scores.tables.get(path, 0.0), default=None)
        found = [*dict.fromkeys([*needed, *named, *([best] if best and best not in needed else [])])]
        return [*dict.fromkeys([*found, *near[:1]])] if found else near[:MAX_TABLES]

    def _cost(self, paths: Iterable[str]) -> int:
        tables = self.known.tables
        return sum(self._memo(path, partial(self._text, tables[path])) for path in paths)

    def _taken_cost(self, taken: Mapping[str, Shown]) -> int:
        return sum(self._card_cost(table) for table, _ in taken.values())

    def _card_cost(self, table: TableCard) -> int:
        whole = self.known.tables.get(table.path)
        return self._cost([table.path]) if table is whole else tokens(self._text(table)) + 1

    def _text(self, table: TableCard) -> str:
        """The table and its joins: each is counted with both of its tables, on the safe side."""
        joins = (f"{condition} -- {self.writer.join_facts.get(condition, '')}" for _, condition in table.joins)
        return "\n".join([self.writer.table(table, 1), *joins])

    def _memo(self, path: str, write: Callable[[], str]) -> int:
        if path not in self._costs:
            self._costs[path] = tokens(write()) + 1
        return self._costs[path]


def _near(scores: Mapping[str, float], near: float) -> list[str]:
    """What comes near the best, nearest first."""
    best = max(scores.values(), default=0.0)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [path for path, score in ordered if score >= near * best]


def _alternating(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    """One of each in turn, so that neither order pushes the other out."""
    for place in range(max(len(first), len(second))):
        yield from first[place : place + 1]
        yield from second[place : place + 1]


def _whole(table: TableCard, _subject: frozenset[str]) -> Shown:
    return table, 0


def _trimmed(table: TableCard, subject: frozenset[str]) -> Shown:
    """Without the meanings, and without the JSON fields, that share no word with the subject."""
    fields = tuple(f for f in table.fields if subject & set(key_stems(f.name)[1:]))
    columns = tuple(c if _speaks(c, subject) else replace(c, meaning="") for c in table.columns)
    return replace(table, columns=columns, fields=fields), 0


def _narrowed(table: TableCard, subject: frozenset[str]) -> Shown:
    """Only the keys and the columns that share a word with the subject."""
    trimmed, _ = _trimmed(table, subject)
    conditions = " ".join(condition for _, condition in table.joins)
    kept = tuple(c for c in trimmed.columns if "primary key" in c.type or c.name in conditions or _speaks(c, subject))
    kept = kept or trimmed.columns[:1]
    return replace(trimmed, columns=kept), len(table.columns) - len(kept)


def _cut(table: TableCard, kept: int) -> TableCard:
    return replace(table, columns=table.columns[:kept], fields=())


def _speaks(column: ColumnCard, subject: frozenset[str]) -> bool:
    return bool(subject & set(key_stems(column.name)))
