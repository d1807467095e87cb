"""How a run moved through a bundle: what a task needs, what was read of it, failed reads and detours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from okf_agent.evaluation.sql_shape import parse
from okf_compiler.bundle import Bundle


@dataclass(frozen=True)
class Needed:
    """The concepts that a task cannot be answered without, as bundle paths."""

    rules: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Navigation:
    """One run's reads. Indexes are no concepts: they are neither needed nor a detour."""

    reads: int
    """Of concepts, repeated ones too."""
    failed: int
    detours: tuple[str, ...]
    """Concepts that were read and not needed."""
    missed: tuple[str, ...]
    """Concepts that were needed and not read."""
    needed: int

    @property
    def reads_per_needed(self) -> float | None:
        """1.0 is the straight way; None where nothing is known to be needed."""
        return self.reads / self.needed if self.needed else None


def needed_concepts(bundle: Bundle, rules: Iterable[int | str], gold_sql: Sequence[str]) -> Needed:
    """The concepts of the rules with these ids, and of the tables in the first gold query that can be parsed."""
    by_rule = rules_of(bundle)
    shape = next((found for sql in gold_sql if (found := parse(sql))), None)
    tables = [_table_path(bundle, name) for name in sorted(shape.tables)] if shape else []
    return Needed(
        tuple(by_rule[str(rule)] for rule in rules if str(rule) in by_rule),
        tuple(path for path in tables if path),
    )


def rules_of(bundle: Bundle) -> dict[str, str]:
    """The rule's id in its source -> its path, of every concept that has one."""
    return {id: concept.path for concept in bundle.concepts.values() for id in concept.rule_ids}


def navigate(record: Mapping[str, Any], needed: Needed) -> Navigation:
    """The reads of one run against what its task needs."""
    opened = [path for path in record.get("files_opened") or () if not path.endswith(("/index.md", "/log.md"))]
    wanted = [*dict.fromkeys((*needed.rules, *needed.tables))]
    return Navigation(
        reads=len(opened),
        failed=int(record.get("failed_reads") or 0),
        detours=tuple(path for path in dict.fromkeys(opened) if path not in wanted) if wanted else (),
        missed=tuple(path for path in wanted if path not in opened),
        needed=len(wanted),
    )


def _table_path(bundle: Bundle, name: str) -> str:
    """The concept of a table, in whatever schema: `tables/orders.md`, `tables/sales.orders.md`; "" if there is none."""
    found = (table.path for table in bundle.tables if table.id.lower().rpartition("/")[2].rpartition(".")[2] == name)
    return next(found, "")
