"""Links that the source itself states: what a rule lists, and the columns, fields and rules that it names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from okf_compiler.linking.links import Link, Target, shown
from okf_compiler.linking.rule_names import Spoken
from okf_compiler.linking.terms import is_term
from okf_compiler.linking.vocabulary import Vocabulary
from okf_compiler.model import Column, Database, Rule, Table

_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"\b\w++(?:(?:\.|->>?)'?\w++'?)+")
_STEP = re.compile(r"\.|->>?")
_HAS_STEP = re.compile(r"(?:\.|->>?)'?\w")


def dependencies(database: Database) -> Iterator[Link]:
    """What the source lists as a rule's children."""
    known = {rule.id for rule in database.rules}
    for rule in database.rules:
        for other in rule.depends_on:
            if other in known:
                yield Link(rule.id, Target(rule=other), "stated", "the source lists it", 1.0)


def named_rules(database: Database, spoken: Spoken) -> Iterator[Link]:
    """Rules whose title, or an abbreviation that they define, stands in another rule's definition."""
    for rule in database.rules:
        for named in spoken[rule.id]:
            if named.rule != rule.id:
                evidence = f"`{rule.definition[named.start : named.end]}` in the definition"
                yield Link(rule.id, Target(rule=named.rule), "stated", evidence, 1.0)


def named_columns(database: Database, names: Names, definitions: Mapping[str, str]) -> Iterator[Link]:
    """Yield links to the columns and fields that a rule's title or definition names, alone or as the end of a path.

    A name that is an ordinary word too counts where it stands as a name does: in quotes, or beside an operator. A name
    that several tables have counts for those that the rule says something else of. `definitions` are those of the
    rules, by id, without the names of rules.
    """
    for rule in database.rules:
        definition = definitions[rule.id].replace("\\_", "_")
        found: dict[Target, str] = {}
        shared: dict[tuple[tuple[Target, ...], str], None] = {}
        for place, text in (("title", rule.name), ("definition", definition)):
            covered: set[int] = set()
            for start, targets, written in names.paths(text):
                covered.update(range(start, start + len(written)))
                if len(targets) == 1:
                    found.setdefault(targets[0], f"`{shown(written)}` in the {place}")
                else:
                    shared[tuple(targets), f"`{shown(written)}` in the {place}"] = None
            for start, targets, _ in names.words(text):
                if start in covered:
                    continue
                if len(targets) == 1:
                    found.setdefault(targets[0], f"named in the {place}")
                else:
                    shared[tuple(targets), f"named in the {place}"] = None
        yield from (Link(rule.id, target, "stated", evidence, 1.0) for target, evidence in found.items())
        if shared:
            yield from _choose(rule, names, shared, {target.table for target in found})


def _choose(
    rule: Rule, names: Names, shared: Iterable[tuple[Sequence[Target], str]], tables: set[str]
) -> Iterator[Link]:
    """Links for names that several tables have: to those tables that the rule names or links into anyway."""
    words = {word.lower() for word in _WORD.findall(f"{rule.name} {rule.definition} {rule.description}")}
    for targets, evidence in shared:
        spoken_of = [t for t in targets if names.table_words[t.table] & words]
        kept = [t for t in targets if t.table in tables] or (spoken_of if len(spoken_of) < len(targets) else [])
        for target in kept:
            reason = f"{evidence}; of the {len(targets)} tables that have it, this is one the rule speaks of"
            yield Link(rule.id, target, "stated", reason, 1 / len(kept))


class Names:
    """Columns and fields by what rules call them, in lower case."""

    def __init__(self, database: Database, words: Vocabulary) -> None:
        self._vocabulary = words
        self._columns: dict[str, list[tuple[Table, Column]]] = defaultdict(list)
        self._by_word: dict[str, list[Target]] = defaultdict(list)
        self._phrases: dict[str, set[str]] = defaultdict(set)
        self._starts: set[str] = set()
        self._plain: dict[str, bool] = {}
        self.table_words: dict[str, set[str]] = {}
        for table in database.tables:
            self.table_words[table.qualified_name] = _spellings(table.name)
            for column in table.columns:
                self._columns[column.name.lower()].append((table, column))
                self._add(column.name, Target(table=table.qualified_name, column=column.name))
                for field in column.fields:
                    if not self._is_plain(field.path[-1].lower()):
                        target = Target(table=table.qualified_name, column=column.name, path=field.path)
                        self._add(field.path[-1], target)

    def _add(self, name: str, target: Target) -> None:
        lower = name.lower()
        self._by_word[lower].append(target)
        words = _WORD.findall(lower)
        if words and lower != words[0]:
            self._phrases[words[0]].add(lower)
        self._starts.update(words[:1])

    def words(self, text: str) -> Iterator[tuple[int, Sequence[Target], str]]:
        """(position, what has the name, as it is written) for each name in the text that stands alone."""
        lower = text.lower()
        for match in _WORD.finditer(text):
            word = match[0].lower()
            if word not in self._starts:
                continue
            targets = self._by_word.get(word)
            if targets and self._is_name(match, word, text):
                yield match.start(), targets, match[0]
            for phrase in self._phrases.get(word, ()):
                end = match.start() + len(phrase)
                goes_on = lower[end : end + 1].isalnum() and phrase[-1].isalnum()
                if lower.startswith(phrase, match.start()) and not goes_on:
                    yield match.start(), self._by_word[phrase], text[match.start() : end]

    def paths(self, text: str) -> Iterator[tuple[int, Sequence[Target], str]]:
        """The same for dotted paths: `[schema.][table.]column[.field…]`, also with arrows."""
        for match in _DOTTED.finditer(text) if _HAS_STEP.search(text) else ():
            steps = [step.strip("'") for step in _STEP.split(match[0])]
            found = list(dict.fromkeys(self._follow(steps)))
            if found:
                yield match.start(), found, match[0]

    def _is_name(self, match: re.Match[str], word: str, text: str) -> bool:
        written = match[0]
        if not written.isalpha() or not (written.islower() or written.istitle()):
            return True
        if not self._is_plain(word):
            return True
        return is_term(text, match.start(), match.end())

    def __contains__(self, word: object) -> bool:
        """Whether a word, in lower case, can only be a name."""
        return isinstance(word, str) and word in self._by_word and not self._is_plain(word)

    def _is_plain(self, word: str) -> bool:
        """Whether a name is one ordinary word too, as far as can be told: one that is not put together."""
        if word not in self._plain:
            self._plain[word] = word.isalpha() and len(self._vocabulary.compound(word)) == 1
        return self._plain[word]

    def _follow(self, steps: Sequence[str]) -> Iterator[Target]:
        for position, step in enumerate(steps):
            places = self._columns.get(step.lower(), ())
            for table, column in places:
                if position and steps[position - 1].lower() != table.name.lower():
                    continue
                path = _field_path(column, steps, position + 1)
                if path or position or "json" in column.type.lower():
                    yield Target(table=table.qualified_name, column=column.name, path=path)


def _spellings(name: str) -> set[str]:
    """A table's name as words of a text: as it stands, and in the singular or plural.

    >>> sorted(_spellings("orders")), sorted(_spellings("Category"))
    (['order', 'orders'], ['categories', 'category', 'categorys'])
    """
    lower = name.lower()
    found = {lower, f"{lower}s"}
    if lower.endswith("y"):
        found.add(f"{lower[:-1]}ies")
    if lower.endswith("ies"):
        found.add(f"{lower[:-3]}y")
    elif lower.endswith("s"):
        found = {lower, lower[:-1]}
    return found


def _field_path(column: Column, steps: Sequence[str], start: int) -> tuple[str, ...]:
    """Return the longest documented path of the column that the steps from `start` on spell, as it spells it."""
    deepest = max((len(field.path) for field in column.fields), default=0)
    spelled = tuple(step.lower() for step in steps[start : start + deepest])
    for length in range(len(spelled), 0, -1):
        wanted = spelled[:length]
        for field in column.fields:
            if tuple(part.lower() for part in field.path[:length]) == wanted:
                return field.path[:length]
    return ()
