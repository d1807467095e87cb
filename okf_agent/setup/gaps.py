"""Which columns without a meaning matter most: those a question is most likely to need and a model to misread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from okf_compiler.model import Column, Database, Table

_VAGUE_WORDS = """
    active amount attribute category class code condition count data duration extra factor field flag group
    indicator info item key kind label level mode number option other param period phase position priority qty
    quantity rank rate rating ratio reason ref result role score source stage state status sum tag target term total
    type unit units value version weight
"""
VAGUE = frozenset(_VAGUE_WORDS.split())
"""Words that say what kind of thing a column holds and leave open which."""
_SHORT_WORDS = """
    act add age aid all and any art as at bed big bid box bus buy by car cut day dry due end eye far fax fee fit for gas
    go has hot id in ip is iso job key kit lab law lat leg lon lot low map max min net new no of oil old on or out own
    pay pet per ph pin raw red row run sea sex sku sub sun tag tax tip to top two up url use via vip war way web xml zip
"""
ABBREVIATED = re.compile(rf"^(?!(?:{'|'.join(_SHORT_WORDS.split())})$)(?:[^aeiouy\d]{{2,}}|[a-z]{{1,3}})$")
"""A word without a vowel, or a short one that is no word."""
FEW = 12
"""So many different values at most are labels, whose meanings somebody knows."""
LEAST = 2.0

Labels = Mapping[tuple[str, str, str], int]
"""(schema, table, column) -> how many different values a sample of it holds."""


@dataclass(frozen=True)
class Gap:
    """A column that nobody has described, and why it should be."""

    table: Table
    column: Column
    score: float
    reasons: tuple[str, ...]
    labels: int = 0
    """How many different values it seems to have; 0 where nobody counted."""

    @property
    def path(self) -> str:
        return f"{self.table.qualified_name}.{self.column.name}"


def gaps(database: Database, labels: Labels) -> list[Gap]:
    """Columns without a meaning that are worth a sentence, those that matter most first."""
    bases = [table for table in database.tables if "view" not in table.kind]
    leading = Counter(
        (key.ref_schema, key.ref_table, column)
        for table in bases
        for key in table.foreign_keys
        for column in key.ref_columns
    )
    named = Counter(column.name.lower() for table in bases for column in table.columns)
    found = []
    for table in bases:
        for column in table.columns:
            if column.meaning or column.fields or (1 < named[column.name.lower()] > len(bases) / 2):
                continue  # described, or in most tables, as `last_update` is
            reasons = list(_reasons(table, column, leading, named, labels))
            if (score := sum(weight for weight, _ in reasons)) >= LEAST:
                found.append(
                    Gap(table, column, score, tuple(text for _, text in reasons), _count(table, column, labels))
                )
    return sorted(found, key=lambda gap: (-gap.score, gap.path))


def _count(table: Table, column: Column, labels: Labels) -> int:
    return len(column.enum_labels) or labels.get((table.schema, table.name, column.name), 0)


def _is_key(table: Table, column: Column, named: Counter[str]) -> bool:
    """Whether it identifies a row, here or, declared or not, in another table."""
    keys = {*table.primary_key, *(name for key in table.foreign_keys for name in key.columns)}
    return column.name in keys or (column.name.lower().endswith("_id") and named[column.name.lower()] > 1)


def _reasons(
    table: Table, column: Column, leading: Counter[tuple[str, str, str]], named: Counter[str], labels: Labels
) -> Iterator[tuple[float, str]]:
    """Weights and words."""
    keys = leading[table.schema, table.name, column.name]
    if keys > 1:
        yield min(0.5 * keys, 4), f"{keys} foreign keys lead here"
    if _is_key(table, column, named):
        return
    if column.enum_labels:
        yield 4, f"{len(column.enum_labels)} labels: {', '.join(column.enum_labels[:5])}"
    elif 1 < (count := _count(table, column, labels)) <= FEW:
        yield 4, f"only {count} different values"
    words = re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.name).lower())
    if words and (VAGUE.issuperset(words) or words[0] in ("is", "has")):
        yield 2, "a name that leaves open what it means"
    elif any(ABBREVIATED.match(word) for word in words):
        yield 2, "an abbreviated name"
    others = named[column.name.lower()] - 1
    if others:
        yield min(0.5 + 0.5 * others, 2), f"the same name in {others} other table{'s' * (others > 1)}"
