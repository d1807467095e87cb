"""The rules of several sources as one glossary: ids that are unique, dependencies that are found, no name twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

from okf_compiler.draft import same_text, shorten
from okf_compiler.errors import did_you_mean
from okf_compiler.model import Database, Place, Problem, Rule

_SUGGESTIONS = 20
"""Near names are looked for while there are fewer problems than this; it takes long among many rules."""


def index(rules: Sequence[Rule]) -> dict[str, str]:
    """Rule ids by what a dependency may call them, in lower case: an id before a name, a name before a synonym."""
    by_id = {rule.id.casefold(): rule.id for rule in reversed(rules)}
    by_name = {rule.name.casefold(): rule.id for rule in reversed(rules)}
    by_synonym = {s.casefold(): rule.id for rule in reversed(rules) for s in rule.synonyms}
    return {**by_synonym, **by_name, **by_id}


def combine_rules(databases: Sequence[Database]) -> tuple[tuple[Rule, ...], list[Problem]]:
    """Every rule of every source, in order, and what does not fit.

    Of one name in two sources the later rule stands where the definitions differ; where they do not, the two become
    one. Within one source both stand, unless one builds on the other.
    """
    glossary = _Glossary()
    for database in databases:
        glossary.add(database)
    return tuple(glossary.finish()), glossary.problems


class _Glossary:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.rules: dict[str, Rule] = {}
        self.owners: dict[str, str] = {}
        """Title of the source that each rule comes from."""
        self.places: dict[str, Place] = {}
        self.by_name: dict[str, str] = {}
        self.replaced: dict[str, str] = {}
        """Id of the rule that stands in another one's place."""

    def add(self, database: Database) -> None:
        """Add one source's rules: their ids change where another source has them."""
        known = [s.id for s in database.sources]
        fallback = "kb" if "kb" in known else "".join(known[-1:])
        ids = {rule.id: self._free(rule.id, rule.source or fallback) for rule in database.rules}
        names: dict[str, str] = {}
        for rule in database.rules:
            source = rule.source or fallback
            title = next((s.title for s in database.sources if s.id == source), database.name)
            own = replace(
                rule, id=ids[rule.id], source=source, depends_on=tuple(ids.get(d, d) for d in rule.depends_on)
            )
            place = database.places.get((rule.id,), Place(title))
            self._within(own, names, place)
            self._across(own, title, place)
        self.by_name.update({k: v for k, v in names.items() if v in self.rules})

    def _free(self, id: str, source: str) -> str:
        if id not in self.rules:
            return id
        others = chain([f"{source}-{id}"], (f"{source}-{id}-{n}" for n in count(2)))
        return next(other for other in others if other not in self.rules)

    def _within(self, rule: Rule, names: dict[str, str], place: Place) -> None:
        """Report a name that one source gives to two rules which say different things."""
        name = _key(rule.name)
        first = self.rules.get(names.setdefault(name, rule.id))
        if first is None or first.id == rule.id or rule.id in first.depends_on or first.id in rule.depends_on:
            return
        if not same_text(_content(first), _content(rule)):
            self.problems.append(
                Problem(
                    f"two rules are called {rule.name!r} and say different things, {shorten(_content(first))} (rule "
                    f"{first.id}) and {shorten(_content(rule))} (rule {rule.id}); both stand",
                    place.file,
                    place.line,
                )
            )

    def _across(self, rule: Rule, title: str, place: Place) -> None:
        """Keep the rule; the one of an earlier source with its name goes, and passes on what only it says."""
        old = self.rules.get(self.by_name.get(_key(rule.name), ""))
        if old is not None and old.source != rule.source:
            if old.definition and rule.definition and not same_text(old.definition, rule.definition):
                self.problems.append(
                    Problem(
                        f"rule {rule.name!r} has two definitions: {shorten(old.definition)} in {self.owners[old.id]}, "
                        f"and {shorten(rule.definition)} in {title}, which stands",
                        place.file,
                        place.line,
                    )
                )
                rule = replace(rule, synonyms=_both(old.synonyms, rule.synonyms))
            else:
                if old.description and rule.description and not same_text(old.description, rule.description):
                    self.problems.append(
                        Problem(
                            f"rule {rule.name!r} has two descriptions: {shorten(old.description)} in "
                            f"{self.owners[old.id]}, and {shorten(rule.description)} in {title}, which stands",
                            place.file,
                            place.line,
                        )
                    )
                rule = replace(
                    rule,
                    definition=rule.definition or old.definition,
                    description=rule.description or old.description,
                    depends_on=_both(old.depends_on, rule.depends_on),
                    synonyms=_both(old.synonyms, rule.synonyms),
                )
            del self.rules[old.id]
            self.replaced[old.id] = rule.id
        self.rules[rule.id] = rule
        self.owners[rule.id] = title
        self.places[rule.id] = place

    def finish(self) -> list[Rule]:
        """The rules with every dependency found; one that no source has is reported and left out."""
        known = index(list(self.rules.values()))
        return [replace(r, depends_on=tuple(self._dependencies(r, known))) for r in self.rules.values()]

    def _dependencies(self, rule: Rule, known: dict[str, str]) -> list[str]:
        found: list[str] = []
        for wanted in rule.depends_on:
            while wanted in self.replaced:
                wanted = self.replaced[wanted]
            id = wanted if wanted in self.rules else known.get(wanted.casefold())
            if id is None:
                names = [r.name for r in self.rules.values()] if len(self.problems) < _SUGGESTIONS else []
                message = f"rule {rule.name!r} depends on {wanted!r}, which no source has{did_you_mean(wanted, names)}"
                place = self.places[rule.id]
                self.problems.append(Problem(message, place.file, place.line))
            elif id != rule.id and id not in found:
                found.append(id)
        return found


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()


def _content(rule: Rule) -> str:
    return rule.definition or rule.description


def _both(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
