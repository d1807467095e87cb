"""People's corrections to what the sources say: `bundles/overlays/<db>.yaml`, applied in every compile.

A table is named as its concept is titled, a rule by its name or id. What no longer fits is a problem with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from okf_compiler import markdown, yaml_text
from okf_compiler.bundle import Concept
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.headings import SECTIONS
from okf_compiler.link import Link, Links, Target
from okf_compiler.markdown import Part
from okf_compiler.model import Database, Problem, Rule, Source, Table
from okf_compiler.names import Ids
from okf_compiler.settings import Settings
from okf_compiler.sql_names import name_parts
from okf_compiler.text_files import read_text
from okf_compiler.yaml_text import Entry

SOURCE = "overlay"
_KINDS = ("tables", "rules")
_KEYS = {"tables": ("description", "synonyms", "sections"), "rules": ("description", "synonyms", "sections", "links")}
_EVIDENCE = "a person says so"


@dataclass(frozen=True)
class Correction:
    """What the overlay says of one table or rule."""

    kind: str
    """`tables` or `rules`."""
    name: str
    line: int
    description: str = ""
    synonyms: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    add: Mapping[str, str] = field(default_factory=dict)
    """Target -> why the rule is linked to it."""
    forbid: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where each target stands."""


@dataclass
class Overlay:
    """The corrections of one file while they are applied: `describe`, `link` and `finish`, and last `report`."""

    file: Path | None
    corrections: list[Correction] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """What cannot be read, and what was found not to fit so far."""

    def describe(self, database: Database) -> Database:
        """The database with the overlay's descriptions and synonyms, and the overlay among its sources."""
        if not self.corrections:
            return database
        tables = {t.qualified_name: t for t in database.tables}
        rules = {r.id: r for r in database.rules}
        for correction, thing in self._fitting(database):
            if correction.description and thing.description == correction.description:
                self.problem("the description is the source's own by now", correction.line)
            synonyms = tuple(dict.fromkeys((*thing.synonyms, *correction.synonyms)))
            description = correction.description or thing.description or ""
            if isinstance(thing, Table):
                tables[thing.qualified_name] = replace(thing, description=description or None, synonyms=synonyms)
            else:
                rules[thing.id] = replace(thing, description=description, synonyms=synonyms)
        return replace(database, tables=tuple(tables.values()), rules=tuple(rules.values()))

    def link(self, database: Database, links: Links) -> Links:
        """The links without those that are forbidden, and with those that are added."""
        if not any(c.add or c.forbid for c in self.corrections):
            return links
        targets = _Targets(database)
        found = {(link.rule, link.target): link for link in links.links}
        for correction, rule in self._fitting(database):
            if isinstance(rule, Table):
                continue
            for name in correction.forbid:
                target = self._target(targets, name, correction)
                gone = [key for key in found if key[0] == rule.id and target and _covers(target, key[1])]
                for key in gone:
                    del found[key]
                if target and not gone:
                    self.problem(
                        f"{correction.name} is not linked to {name}: nothing to forbid", correction.lines[name]
                    )
            for name, why in correction.add.items():
                target = self._target(targets, name, correction)
                if target and (old := found.get((rule.id, target))) and old.kind == "stated":
                    self.problem(f"{correction.name} is linked to {name} without this", correction.lines[name])
                elif target:
                    found[rule.id, target] = Link(rule.id, target, "stated", why or _EVIDENCE, 1.0)
        return replace(links, links=tuple(found.values()))

    def finish(self, database: Database, ids: Ids, concepts: Iterable[Concept]) -> list[Concept]:
        """The concepts with the overlay's sections; text for one of the compiler's sections stands at its end."""
        by_id = {concept.id: concept for concept in concepts}
        for correction, thing in self._fitting(database):
            id = ids.tables[thing.qualified_name] if isinstance(thing, Table) else ids.rules[thing.id]
            by_id[id] = _corrected(by_id[id], correction, self._source())
        return list(by_id.values())

    def report(self, database: Database) -> Database:
        """The database with what of the overlay does not fit among its problems."""
        unique = tuple(dict.fromkeys(self.problems))
        return replace(database, problems=(*database.problems, *unique)) if unique else database

    def _fitting(self, database: Database) -> Iterator[tuple[Correction, Table | Rule]]:
        """Each correction with what it is about; one that is about nothing is a problem."""
        tables = {table.qualified_name: table for table in database.tables}
        rules = {name: rule for rule in database.rules for name in (markdown.one_line(rule.name), rule.id)}
        known: Mapping[str, Mapping[str, Table | Rule]] = {"tables": tables, "rules": rules}
        for correction in self.corrections:
            thing = known[correction.kind].get(correction.name)
            if thing:
                yield correction, thing
            else:
                kind = correction.kind[:-1]
                near = did_you_mean(correction.name, known[correction.kind])
                self.problem(f"there is no {kind} {correction.name!r}{near}", correction.line)

    def _target(self, targets: _Targets, name: str, correction: Correction) -> Target | None:
        target = targets.find(name)
        if target is None:
            self.problem(f"{name!r} is no table, column or rule", correction.lines[name])
        return target

    def problem(self, message: str, line: int) -> None:
        self.problems.append(Problem(message, str(self.file), line))

    def _source(self) -> Source:
        assert self.file is not None  # there are corrections
        return Source(SOURCE, "/".join(self.file.resolve().parts[-3:]), "Corrections by people")


def overlay_file(settings: Settings, name: str) -> Path:
    """Where the corrections to a database lie, beside its compiled bundle."""
    return settings.bundles.parent / "overlays" / f"{name}.yaml"


def read(file: Path | None) -> Overlay:
    """The overlay in a file; an empty one where there is no file or none is named.

    Raises:
        UserError: it is not YAML, or not a mapping.
    """
    overlay = Overlay(file)
    if file is None or not file.is_file():
        return overlay
    try:
        documents = yaml_text.parse(read_text(file, overlay.problems), str(file), overlay.problems)
    except yaml_text.YamlError as error:
        raise UserError(f"{file}:{error.line}: {error}. Correct it, or move it away.") from None
    content = documents[0] if documents else Entry()
    if not isinstance(content, Entry):
        raise UserError(f"{file}: must be a mapping with `tables:` and `rules:`.")
    for kind, things in content.items():
        if kind not in _KINDS or not isinstance(things, Entry | None):
            advice = did_you_mean(kind, _KINDS) if kind not in _KINDS else ": it must be a mapping of names"
            overlay.problem(f"{kind!r} is not read{advice}", content.lines.get(kind, 1))
            continue
        for name, values in (things or Entry()).items():
            overlay.corrections.append(_correction(overlay, kind, name, values, (things or Entry()).lines[name]))
    return overlay


def _correction(overlay: Overlay, kind: str, name: str, values: Any, line: int) -> Correction:
    if not isinstance(values, Entry):
        overlay.problem(f"{name!r} must be a mapping of {', '.join(_KEYS[kind])}", line)
        return Correction(kind, name, line)
    for key in values.keys() - set(_KEYS[kind]):
        overlay.problem(f"{name}: {key!r} is not read{did_you_mean(key, _KEYS[kind])}", values.lines[key])
    links = values.get("links") if kind == "rules" else None
    links = links if isinstance(links, Entry) else Entry()
    add, add_lines = _named_texts(links.get("add"), links.lines.get("add", line))
    forbid, forbid_lines = _named_texts(links.get("forbid"), links.lines.get("forbid", line))
    return Correction(
        kind,
        name,
        line,
        description=markdown.one_line(_text(values.get("description"))),
        synonyms=tuple(_named_texts(values.get("synonyms"), line)[0]),
        sections={h: t.strip("\n") for h, t in _named_texts(values.get("sections"), line)[0].items() if t},
        add=add,
        forbid=tuple(forbid),
        lines={**add_lines, **forbid_lines},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named_texts(value: Any, line: int) -> tuple[dict[str, str], dict[str, int]]:
    """Name -> text and name -> line, of a mapping, a list of names, or one name."""
    if isinstance(value, Entry):
        return {name: _text(text) for name, text in value.items()}, dict(value.lines)
    if isinstance(value, list):
        lines: Sequence[int] = getattr(value, "lines", ())
        return dict.fromkeys(map(_text, value), ""), dict(zip(map(_text, value), lines, strict=False))
    return ({value: ""}, {value: line}) if isinstance(value, str) and value else ({}, {})


class _Targets:
    """What a link can point at, by the name a person writes."""

    def __init__(self, database: Database) -> None:
        self.rules = {name: rule.id for rule in database.rules for name in (rule.id, markdown.one_line(rule.name))}
        self.tables = {tuple(name_parts(table.qualified_name.lower())): table for table in database.tables}

    def find(self, name: str) -> Target | None:
        """A table, `table.column` or `table.column.field…`; else the rule of this name or id."""
        parts = name_parts(name)
        for length in (2, 1):  # a schema may stand before the table
            table = self.tables.get(tuple(map(str.lower, parts[:length])))
            if table is None or length > len(parts):
                continue
            rest = parts[length:]
            column = table.column(rest[0]) if rest else None
            if not rest:
                return Target(table=table.qualified_name)
            if column and (len(rest) == 1 or any(f.path[: len(rest) - 1] == tuple(rest[1:]) for f in column.fields)):
                return Target(table=table.qualified_name, column=column.name, path=tuple(rest[1:]))
        return Target(rule=self.rules[name]) if name in self.rules else None


def _covers(wide: Target, narrow: Target) -> bool:
    """Whether a target is another one or inside it: a table covers its columns."""
    if wide.rule or narrow.rule:
        return wide == narrow
    return (
        wide.table == narrow.table and wide.column in ("", narrow.column) and narrow.path[: len(wide.path)] == wide.path
    )


def _corrected(concept: Concept, correction: Correction, source: Source) -> Concept:
    parts = {part.heading: part.text for part in markdown.sections(concept.body)}
    for heading, text in correction.sections.items():
        text = markdown.verbatim(text) if any(line.startswith("# ") for line in text.split("\n")) else text
        own = parts.get(heading, "") if heading in SECTIONS else ""
        parts[heading] = f"{own}\n\n{text}" if own else text
    entry = {"id": source.id, "resource": source.resource, "title": source.title}
    sources = [*concept.frontmatter.get("sources", ()), entry]
    body = markdown.join(Part(heading, text) for heading, text in parts.items())
    return replace(concept, frontmatter={**concept.frontmatter, "sources": sources}, body=body)
