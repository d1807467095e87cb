"""What a database's sources hold: its tables, what is described, its rules, how its tables are joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from okf_compiler.concepts import rule_type
from okf_compiler.model import Database, Table


def facts(database: Database) -> dict[str, Any]:
    """Counts and names, as plain values."""
    joins: Counter[str] = Counter()
    for table in database.tables:
        for key in table.foreign_keys:
            target = database.table(key.ref_table, key.ref_schema)
            joins.update({table.qualified_name, *([target.qualified_name] if target else [])})
    return {
        "database": database.name,
        "sources": {source.id: source.resource for source in database.sources},
        "tables": {t.qualified_name: _table(t, joins[t.qualified_name]) for t in database.tables},
        "rules": dict(sorted(Counter(rule_type(rule.type) for rule in database.rules).items())),
        "problems": [str(problem) for problem in database.problems],
    }


def _table(table: Table, joins: int) -> dict[str, Any]:
    return {
        "columns": len(table.columns),
        "without_meaning": [c.name for c in table.columns if not c.meaning and not c.fields],
        "joins": joins,
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The facts as a person reads them: a line for each table."""
    tables = found["tables"]
    columns = sum(t["columns"] for t in tables.values())
    missing = sum(len(t["without_meaning"]) for t in tables.values())
    rules = found["rules"]
    yield (
        f"{found['database']}: {len(tables)} tables, {columns} columns, {missing} of them without a meaning, "
        f"{sum(rules.values())} rules ({', '.join(f'{count} {kind}' for kind, count in rules.items()) or 'none'})"
    )
    width = max((len(name) for name in tables), default=0)
    for name, table in tables.items():
        text = f"  {name:<{width}}  {table['columns']:>4} columns  {table['joins']:>3} joins"
        yield text + (f"  without a meaning: {', '.join(table['without_meaning'])}" if table["without_meaning"] else "")
    yield from (f"  {problem}" for problem in found["problems"])
