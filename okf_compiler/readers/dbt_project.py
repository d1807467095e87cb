"""What the parts of the dbt reader share: the project's names, its doc blocks, and what is reported of it once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from okf_compiler.draft import Draft, shorten
from okf_compiler.model import Place, Problem
from okf_compiler.yaml_text import Entry

JINJA = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}|\{%(?:(?!\{%).)*?%\}", re.DOTALL)
_DOC = re.compile(r"""\{\{-?\s*doc\(\s*(?:['"]\w+['"]\s*,\s*)?['"](\w+)['"]\s*\)\s*-?\}\}""")
_REF = re.compile(r"""^(?:\{\{)?\s*ref\(\s*(?:['"][\w.-]+['"]\s*,\s*)?['"]([\w.-]+)['"].*\)\s*(?:\}\})?$""")
_SOURCE = re.compile(r"""^(?:\{\{)?\s*source\(\s*['"]([\w .-]+)['"]\s*,\s*['"]([\w .-]+)['"]\s*\)\s*(?:\}\})?$""")


@dataclass
class Project:
    path: Path
    draft: Draft
    problems: list[Problem]
    docs: dict[str, str] = field(default_factory=dict)
    """Doc blocks by name."""
    relations: dict[str, tuple[str, str]] = field(default_factory=dict)
    """(schema, table) by model name, and by `source.table`; the schema is empty where the project does not say."""
    rule_places: dict[tuple[str, ...], Place] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)
    """Keys that carry nothing we read."""
    unread_tests: Counter[str] = field(default_factory=Counter)
    jinja: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Per file, the lines whose Jinja stands as it is written."""

    def problem(self, message: str, place: Place) -> None:
        self.problems.append(Problem(message, place.file, place.line))

    def note_jinja(self, text: str, place: Place) -> None:
        self.jinja.setdefault(place.file, []).append((place.line, text))

    def text(self, value: Any, place: Place) -> str:
        """A text with its doc blocks in place; other Jinja stands as it is written and is reported."""
        if not isinstance(value, str):
            if value is not None:
                self.problem(f"a text was expected, not {shorten(str(value))}", place)
            return ""
        for name in _DOC.findall(value):
            if name not in self.docs:
                self.problem(f"there is no doc block {name!r}", place)
        text = _DOC.sub(lambda m: self.docs.get(m[1], m[0]), value).strip()
        if JINJA.search(_DOC.sub("", text)):
            self.note_jinja(text, place)
        return text

    def relation(self, text: Any) -> tuple[str, str] | None:
        """(schema, table) of `ref('…')` or `source('…', '…')`; None where the text is neither."""
        if not isinstance(text, str):
            return None
        if match := _REF.match(text.strip()):
            return self.relations.get(match[1], ("", match[1]))
        if match := _SOURCE.match(text.strip()):
            return self.relations.get(f"{match[1]}.{match[2]}", ("", match[2]))
        return None

    def report(self) -> None:
        """One problem for each kind of thing that is not read, instead of one for each time."""
        for file, found in self.jinja.items():
            line, text = found[0]
            more = f", as do {len(found) - 1} more" if found[1:] else ""
            message = f"Jinja is not evaluated; this stands as it is written{more}: {shorten(text)}"
            self.problem(message, Place(file, line))
        for what, counter in (("keys", self.unread), ("tests", self.unread_tests)):
            if counter:
                names = ", ".join(f"{name} ({n})" for name, n in sorted(counter.items()))
                self.problem(f"{what} that are not read, and how often they stand: {names}", Place(str(self.path)))


def entries(project: Project, parent: Entry, key: str, file: str) -> Iterator[Entry]:
    """The mappings with a name in a list; anything else in it is a problem, the first time it is met."""
    value = parent.get(key)
    items = value if isinstance(value, list) else [] if value is None else [value]
    for position, item in enumerate(items):
        name = item.get("name") if isinstance(item, Entry) else None
        if isinstance(item, Entry) and isinstance(name, str) and name.strip():
            yield item
            continue
        lines = getattr(items, "lines", ())
        fault = Problem(f"{key} has an entry without a name", file, lines[position] if lines else parent.line)
        if fault not in project.problems:
            project.problems.append(fault)


def flag(value: Any) -> bool | None:
    """True or false as YAML spells them; None for anything else."""
    word = str(value).lower()
    return True if word in ("true", "yes", "on") else False if word in ("false", "no", "off") else None
