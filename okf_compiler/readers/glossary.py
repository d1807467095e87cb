"""A glossary of business rules in YAML, JSON or CSV: names, definitions, synonyms and what they depend on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from okf_compiler.errors import UserError
from okf_compiler.model import Database, Place, Problem, Rule, Source
from okf_compiler.names import slug
from okf_compiler.rules import index
from okf_compiler.text_files import DELIMITERS, Row, is_delimiter_line, read_text, rows
from okf_compiler.yaml_text import Entry, Items, YamlError, parse

SOURCE_ID = "glossary"
DEFAULT_TYPE = "business_rule"

# What keys and headers call a rule's facts, reduced to letters and digits; the best name of each comes first.
_KEYS = {
    "id": "id ruleid termid identifier key code number no",
    "name": "name term title rule concept metric businessterm word label knowledge entry begriff",
    "description": "description desc summary explanation meaning whatitmeans whatdoesitmean context beschreibung",
    "definition": "definition formula calculation expression sql logic computation businessdefinition businessrule "
    "text value bedeutung",
    "type": "type kind category ruletype",
    "depends_on": "dependson depends dependencies dependency requires uses buildson childrenknowledge children",
    "synonyms": "synonyms synonym aliases alias alsoknownas aka abbreviations abbreviation acronym acronyms othernames",
}
_ROLES = {word: (role, rank) for role, words in _KEYS.items() for rank, word in enumerate(words.split())}
_FORMULAS = ("formula", "calculation", "expression", "sql", "logic", "computation")
"""Keys that say how a rule is computed, and not when it holds: beside words, the words define it too."""
_HEADINGS_WITHIN = 20
"""Rows of a sheet among which its headings are looked for: a title and notes may stand above them."""
_LISTS = ("terms", "rules", "glossary", "entries", "definitions", "metrics", "concepts", "business_rules")
"""Keys under which a glossary may keep its entries."""


@dataclass(frozen=True)
class _Raw:
    """One entry as the file has it: its own keys, and the line it starts on."""

    facts: dict[str, Any]
    line: int


def read(path: Path) -> Database:
    """The rules of one glossary file, or of every one in a folder; ids are given or made from the names.

    `depends_on` names ids where the file has the rule, by id, name or synonym; what it does not have stays as it is
    written, for another source to know. Entries and keys that cannot be read are problems. A glossary that has only
    begun, `rules:` with nothing below, has no rules.

    Raises:
        UserError: the file is missing, cannot be read at all, or has neither an entry nor a list for them.
    """
    problems: list[Problem] = []
    places: dict[tuple[str, ...], Place] = {}
    suffixes = (".yaml", ".yml", ".json", ".csv", ".tsv")
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in suffixes) if path.is_dir() else [path]
    rules: dict[str, Rule] = {}
    counted: dict[str, int] = {}
    begun = False
    for file in files:
        for raw in _entries(file, problems):
            if raw is None:
                begun = True
                continue
            rule = _rule(raw, str(file), problems)
            if rule is not None:
                rule = _with_free_id(rule, rules, counted, Place(str(file), raw.line), problems)
                rules[rule.id] = rule
                places[(rule.id,)] = Place(str(file), raw.line)
    if not rules and not begun:
        raise UserError(
            f"{path} has no business rule that can be read. Each needs a name ({_known('name')}) and what it says "
            f"({_known('definition')}): headings of a CSV, or keys of a list's entries."
            + "".join(f"\n{p}" for p in problems[:3]),
            status=2,
        )
    return Database(
        name=path.stem,
        tables=(),
        rules=tuple(_resolved(list(rules.values()))),
        sources=(Source(SOURCE_ID, path.name, f"Glossary {path.name}"),),
        problems=tuple(problems),
        places=places,
    )


def _entries(path: Path, problems: list[Problem]) -> Iterator[_Raw | None]:
    """The entries of a file; None for a list that has none yet."""
    text = read_text(path, problems)
    if path.suffix.lower() in (".csv", ".tsv"):
        yield from _csv_entries(text, str(path), problems)
        return
    try:
        documents = parse(text, str(path), problems)
    except YamlError as error:
        raise UserError(f"{path}:{error.line}: {error}. Correct the file and compile again.") from None
    for document in documents:
        yield from _yaml_entries(document, str(path), problems)


def _csv_entries(text: str, file: str, problems: list[Problem]) -> Iterator[_Raw]:
    def known(delimiter: str) -> int:
        first = [r for r in rows(head, delimiter, "", []) if not is_delimiter_line(r)][:_HEADINGS_WITHIN]
        return sum(_role(cell) is not None for cell in first[_headings(first)].cells) if first else 0

    head = "\n".join(text.split("\n")[:200])
    delimiter = max(DELIMITERS, key=known)
    entries = [r for r in rows(text, delimiter, file, problems) if not is_delimiter_line(r)]
    if not entries:
        return
    above = _headings(entries[:_HEADINGS_WITHIN])
    header, *rest = entries[above:]
    if above:
        problems.append(Problem("what stands above these headings is not read", file, header.line))
    problems.extend(
        Problem(f"the column {name.strip()!r} is not read", file, header.line)
        for name in header.cells
        if name.strip() and _role(name) is None
    )
    for row in rest:
        if any(cell.strip() for cell in row.cells[len(header.cells) :]):
            problems.append(
                Problem(
                    f"the row has {len(row.cells)} cells and the header {len(header.cells)}, so it is not read; "
                    "a text that holds the delimiter must stand in quotes",
                    file,
                    row.line,
                )
            )
        else:
            cells = zip(header.cells, row.cells, strict=False)
            facts = {k.strip(): v.strip() for k, v in cells if v.strip() and _role(k) is not None}
            yield _Raw(facts, row.line)


def _headings(first: Sequence[Row]) -> int:
    """Which of the rows has headings: the first with one for names and one for what they mean, else the first."""
    for number, row in enumerate(first):
        roles = {_role(cell) for cell in row.cells}
        if "name" in roles and roles & {"definition", "description"}:
            return number
    return 0


def _yaml_entries(node: Any, file: str, problems: list[Problem]) -> Iterator[_Raw | None]:
    """Entries of a list, of a list under a known key, or of a mapping from names to definitions; None as above."""
    if isinstance(node, Items):
        for item, line in zip(node, node.lines, strict=True):
            if isinstance(item, Entry):
                yield _Raw(_named(item), line)
            else:
                problems.append(Problem(f"an entry is not a mapping: {str(item)[:80]!r}", file, line))
        return
    if not isinstance(node, Entry):
        problems.append(Problem("a list of entries was expected", file))
        return
    inner = [key for key in node if key.lower() in _LISTS and isinstance(node[key], Items | Entry | None)]
    for key in inner:
        if not node[key]:
            yield None
            continue
        yield from _yaml_entries(node[key], file, problems)
    for key, value in node.items():
        if inner and key not in inner:
            problems.append(Problem(f"the key {key!r} is not read", file, node.line))
        elif not inner and isinstance(value, Entry):
            yield _Raw({"name": key, **value}, value.line)
        elif not inner:
            yield _Raw({"name": key, "definition": value}, node.line)


def _named(item: Entry) -> dict[str, Any]:
    """The entry `- Active customer: a customer who …` has its name for a key."""
    if len(item) == 1 and _role(next(iter(item))) is None:
        ((name, value),) = item.items()
        return {"name": name, **value} if isinstance(value, Entry) else {"name": name, "definition": value}
    return item


def _role(key: str) -> str | None:
    return _ROLES.get(_reduce(key), (None, 0))[0]


def _known(role: str) -> str:
    """The first words that a file may use for a role, for a message."""
    return ", ".join(word.capitalize() for word in _KEYS[role].split()[:3])


def _reduce(key: str) -> str:
    """Letters and digits alone; `Definition (what it means)` is called what stands before its remark."""
    return re.sub(r"[\W_]+", "", (key.partition("(")[0].strip() or key).casefold())


def _rule(raw: _Raw, file: str, problems: list[Problem]) -> Rule | None:
    """The entry as a rule, with its dependencies as they are written; None where it has no name or says nothing."""

    def problem(message: str) -> None:
        problems.append(Problem(message, file, raw.line))

    facts, unread = _facts(raw, problem)
    name = facts.get("name", "")
    for key in unread:
        problem(f"{name or 'an entry'}: the key {key!r} is not read")
    if not name.strip():
        problem("an entry has no name, so it is not read")
        return None
    if not (facts.get("definition") or facts.get("description")):
        problem(f"{name}: has neither a definition nor a description, so it is not read (heading or key: Definition)")
        return None
    keys = [k for k in raw.facts if _role(k) == "definition" and raw.facts[k] not in (None, "", [])]
    if facts.get("description") and keys and all(_reduce(k) in _FORMULAS for k in keys):
        first = min(keys, key=lambda k: _ROLES[_reduce(k)][1])
        facts["definition"] = f"{facts.pop('description')}\n{first}: {facts['definition']}"
    if not facts.get("definition"):  # links are taken from what defines a rule, whatever its heading is called
        facts["definition"] = facts.pop("description")
    return Rule(
        id=facts.get("id", ""),
        name=name.strip(),
        type=facts.get("type") or DEFAULT_TYPE,
        description=facts.get("description", ""),
        definition=facts.get("definition", ""),
        depends_on=tuple(dict.fromkeys(facts.get("depends_on", ()))),
        synonyms=tuple(s for s in dict.fromkeys(facts.get("synonyms", ())) if s != name),
        source=SOURCE_ID,
    )


def _facts(raw: _Raw, problem: Callable[[str], None]) -> tuple[dict[str, Any], list[str]]:
    """What an entry says in each role, texts and lists of them; and the keys that are not read."""
    facts: dict[str, Any] = {}
    unread = []
    for role in _KEYS:
        keys = [k for k in raw.facts if _role(k) == role and raw.facts[k] not in (None, "", [])]
        keys.sort(key=lambda k: _ROLES[_reduce(k)][1])
        for key in keys:
            if role in ("depends_on", "synonyms"):
                facts.setdefault(role, []).extend(_texts(raw.facts[key], ";|\n," if role == "synonyms" else ";|\n"))
            elif role not in facts:
                facts[role] = _text(raw.facts[key], key, problem)
            elif role == "definition":
                facts[role] += f"\n{key}: {_text(raw.facts[key], key, problem)}"
            elif role == "name":
                facts.setdefault("synonyms", []).append(_text(raw.facts[key], key, problem))
            else:
                unread.append(key)
    return facts, unread + [k for k in raw.facts if _role(k) is None]


def _text(value: Any, key: str, problem: Callable[[str], None]) -> str:
    if isinstance(value, str):
        return value
    problem(f"{key} is not a text; it is kept as JSON")
    return json.dumps(value, ensure_ascii=False)


def _texts(value: Any, between: str) -> list[str]:
    """The items of a list, given as one or as a text with one of the signs `between` them."""
    items = value if isinstance(value, list) else re.split(f"[{between}]", value) if isinstance(value, str) else [value]
    texts = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items if item)
    return [text.strip() for text in texts if text.strip()]


def _with_free_id(
    rule: Rule, taken: Collection[str], counted: dict[str, int], place: Place, problems: list[Problem]
) -> Rule:
    """Return the rule with an id of its own: the given one, else one made from the name.

    `counted` holds how far has been counted behind each id, so that many of one id take no longer than others.
    """
    free = wanted = rule.id or slug(rule.name) or "rule"
    while free in taken:
        counted[wanted] = counted.get(wanted, 1) + 1
        free = f"{wanted}-{counted[wanted]}"
    if rule.id and free != wanted:
        problems.append(Problem(f"id {wanted} stands twice; this one became {free}", place.file, place.line))
    return replace(rule, id=free)


def _resolved(rules: Sequence[Rule]) -> Iterator[Rule]:
    """The rules with ids for their dependencies; a list in one text is taken apart where it is no name itself."""
    ids = index(rules)
    for rule in rules:
        found: list[str] = []
        for text in rule.depends_on:
            parts = [text] if text.casefold() in ids else [p.strip() for p in text.split(",")]
            found += [ids.get(p.casefold(), p) for p in parts if p]
        yield replace(rule, depends_on=tuple(d for d in dict.fromkeys(found) if d != rule.id))
