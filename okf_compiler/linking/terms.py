"""Words that a rule's formula uses as names, and those of its dotted names that lead to no column."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from okf_compiler.linking.words import listed
from okf_compiler.model import Rule, Table

_BEFORE = re.compile(r"(?:[-=<>+*/^(`\"|]|\\times|\\cdot|\\frac\{|\\text\{|\bWHERE|\bAND|\bOR|\bSUM\(|\bAVG\()\s{0,9}$")
_AFTER = re.compile(
    r"\s{0,9}(?:[=<>≥≤+*^`\"|]|/ |- |\\times|\\cdot|(?:is|are) (?:not )?(?:'|NULL\b|null\b|true\b|false\b)|IN \(|!=)"
)
_NEAR = 10
"""Characters before a word in which an operator may stand."""
_STEP = re.compile(r'\w++|"[^"\n]{1,63}"|`[^`\n]{1,63}`')
_DOTTED = re.compile(rf"(?<![\w.'/@-])(?:{_STEP.pattern})(?:\.(?:{_STEP.pattern}))++(?![\w(])")
_ENDINGS = listed("csv json jsonl xml xlsx txt md pdf sql py yaml yml parquet com org net io")
"""What stands behind the dot of a file or of a host, and names no column."""


def is_term(text: str, start: int, end: int) -> bool:
    """Return whether what stands from `start` to `end` is used as names are: in quotes, or beside an operator."""
    return bool(_AFTER.match(text, end) or _BEFORE.search(text[max(0, start - _NEAR) : start]))


def missing_columns(rules: Iterable[Rule], tables: Iterable[Table]) -> Iterator[tuple[Rule, Table, str]]:
    """Yield each name that rules write as `[schema.]table.column` of a table that has no such column."""
    known: dict[str, list[Table]] = defaultdict(list)
    json = set()
    for table in tables:
        known[table.name.lower()].append(table)
        json |= {column.name.lower() for column in table.columns if "json" in column.type.lower()}
    for rule in rules:
        for written in dict.fromkeys(_DOTTED.findall(rule.definition.replace("\\_", "_"))):
            steps = [step.strip('"`') for step in _STEP.findall(written)]
            named = None if steps[0].lower() in json else _missing(steps, known)
            if named:
                yield rule, *named


def _missing(steps: list[str], known: dict[str, list[Table]]) -> tuple[Table, str] | None:
    """Return the table and the name of a column that it lacks, if the steps name one."""
    first, second = steps[0].lower(), steps[1].lower()
    inside = [table for table in known.get(second, ()) if (table.schema or "public").lower() == first]
    tables, rest = (inside, steps[2:]) if inside else (known.get(first, []), steps[1:])
    if not tables or not rest or not all(table.columns for table in tables):
        return None
    column = rest[0]
    names = [name.name for table in tables for name in table.columns]
    if column.lower() in map(str.lower, names) or column.isdigit() or column.lower() in _ENDINGS:
        return None
    if column.istitle() and column.isalpha() and not any(name[:1].isupper() for name in names):
        return None  # the next sentence, without a blank before it
    return tables[0], column
