"""Where each table and rule lies in a bundle: ids that are unique in any letter case, on every file system."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from okf_compiler.model import Database

RESERVED = frozenset({"index", "log"})
"""File names that are never concepts."""
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))})
_LONGEST = 150
"""Bytes of a file name before `.md`; file systems stop at 255."""
_READ = 2_000
"""Characters of a name that are read: a normal form takes quadratic time for the marks behind one letter."""
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_DEEPEST = 20
"""Brackets inside one another that are dropped from a name; each depth is one more pass over it."""


@dataclass(frozen=True)
class Ids:
    """Concept ids, which are paths in the bundle without `.md`."""

    tables: dict[str, str]
    """By qualified table name."""
    rules: dict[str, str]
    """By rule id."""

    def table_path(self, qualified_name: str) -> str:
        return f"/{self.tables[qualified_name]}.md"

    def rule_path(self, rule_id: str) -> str:
        return f"/{self.rules[rule_id]}.md"


def assign(database: Database) -> Ids:
    """One id for every table and rule, whatever they are called."""
    taken: dict[str, int] = {}
    tables = {}
    # A table with a dot in its name gives way to the one of that name in that schema.
    for number, table in sorted(enumerate(database.tables, 1), key=lambda each: '"' in each[1].qualified_name):
        name = _usable(_file_name(table.qualified_name), "table", str(number))
        tables[table.qualified_name] = _free(f"tables/{name}", str(number), taken)
    rules = {}
    for rule in database.rules:
        name = _usable(slug(rule.name), "rule", slug(rule.id))
        rules[rule.id] = _free(f"knowledge/{name}", slug(rule.id) or "x", taken)
    return Ids(tables, rules)


def slug(name: str) -> str:
    """The name in lower case, without what stands in brackets; other characters become `-`.

    >>> slug("Resource Utilization Ratio (RUR)"), slug("Größe 2"), slug("[x]")
    ('resource-utilization-ratio', 'größe-2', '')
    """
    name = name[:_READ]
    for _ in range(_DEEPEST):
        name, dropped = _BRACKETS.subn(" ", name)
        if not dropped:
            break
    return _cut("-".join(_words(unicodedata.normalize("NFC", name.lower()), "")))


def _file_name(name: str) -> str:
    """A table's name as a file name: as it stands where that is safe in a path and in a link.

    >>> _file_name("DataFlow"), _file_name("sales.order items")
    ('DataFlow', 'sales.order-items')
    """
    return _cut("-".join(_words(unicodedata.normalize("NFC", name[:_READ]), "_.-")).strip("."))


def _words(name: str, also: str) -> list[str]:
    """Runs of letters, marks and digits of any script, and of the characters in `also`."""
    return "".join(c if c in also or unicodedata.category(c)[0] in "LMN" else " " for c in name).split()


def _cut(name: str) -> str:
    return name.encode("utf-8")[:_LONGEST].decode("utf-8", "ignore").rstrip("-")


def _usable(name: str, kind: str, number: str) -> str:
    """The name, with a suffix where it is empty, reserved, or a device on Windows."""
    if not name:
        return f"{kind}-{number}"
    base = name.split(".")[0].casefold()
    return f"{name}-{kind}" if name.casefold() in RESERVED or base in _DEVICES else name


def _free(id: str, number: str, taken: dict[str, int]) -> str:
    """Return the id, with the number and then a counter behind it if another concept has it in any letter case.

    `taken` holds how far has been counted behind each id, so that many of one name take no longer than others.
    """
    numbered = f"{id}-{number}"
    candidate = id if _folded(id) not in taken else numbered
    while _folded(candidate) in taken:
        taken[_folded(numbered)] += 1
        candidate = f"{numbered}-{taken[_folded(numbered)]}"
    taken[_folded(candidate)] = 1
    return candidate


def _folded(id: str) -> str:
    return unicodedata.normalize("NFKC", id).casefold()
