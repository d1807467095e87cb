"""dbt's tests and contracts as facts of tables: never null, unique, accepted values, foreign keys, checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from okf_compiler.draft import DraftTable
from okf_compiler.model import Column, ForeignKey, Place
from okf_compiler.readers.dbt_project import JINJA, Project, flag
from okf_compiler.yaml_text import Entry

_BESIDE_A_TEST = frozenset({"name", "config", "description", "where", "tags", "meta"})


def add_tests(project: Project, table: DraftTable, column: str | None, entry: Entry, place: Place) -> None:
    """Add what the tests of a column (None: of the table) say. One that holds for some rows only says nothing here."""
    for name, arguments in _tests(entry):
        settings = {**(arguments.get("config") or {}), **arguments}
        if flag(settings.get("enabled")) is False:
            continue
        inner = arguments.get("arguments")
        facts = {**settings, **inner} if isinstance(inner, dict) else settings
        if settings.get("where"):
            project.unread_tests[f"{name} with where"] += 1
        elif not _add_test(project, table, column or facts.get("column_name"), name.rpartition(".")[2], facts, place):
            project.unread_tests[name] += 1


def _tests(entry: Entry) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments of every test, under its old key and its new one."""
    for key in ("tests", "data_tests"):
        tests = entry.get(key)
        for test in tests if isinstance(tests, list) else []:
            if isinstance(test, str):
                yield test, {}
            elif isinstance(test, Entry):
                beside = {k: v for k, v in test.items() if k in _BESIDE_A_TEST}
                named = test.get("test_name")
                if isinstance(named, str):
                    yield named, {k: v for k, v in test.items() if k != "test_name"}
                    continue
                for name in (k for k in test if k not in _BESIDE_A_TEST):
                    yield name, {**beside, **(test[name] if isinstance(test[name], dict) else {})}


def _add_test(project: Project, table: DraftTable, column: Any, test: str, facts: dict[str, Any], place: Place) -> bool:
    """Whether the test is of a kind that says something of the table."""
    match test, column:
        case "not_null", str():
            project.draft.column(table, Column(column, "", nullable=False), place)
        case "unique", str():
            table.add_unique((column,))
        case "accepted_values", str() if isinstance(facts.get("values"), list):
            _add_values(project, table, column, facts["values"], place)
        case "relationships", str():
            return _add_reference(project, table, (column,), facts.get("to"), (facts.get("field"),), place)
        case "unique_combination_of_columns", _:
            columns = facts.get("combination_of_columns")
            if not isinstance(columns, list) or not all(isinstance(c, str) and not JINJA.search(c) for c in columns):
                return False
            table.add_unique(tuple(columns))
        case "expression_is_true", _ if isinstance(facts.get("expression"), str):
            check = project.text(facts["expression"], place)
            table.checks.append(f"{column} {check}" if isinstance(column, str) else check)
        case _:
            return False
    return True


def _add_values(project: Project, table: DraftTable, column: str, values: list[Any], place: Place) -> None:
    texts = ["NULL" if v is None else project.text(v, place) for v in values]
    listed = ", ".join(repr(t) if "," in t or t != t.strip() or not t else t for t in texts)
    project.draft.column(table, Column(column, ""), place)
    old = table.columns[column.lower()]
    meaning = f"{old.meaning}\nAccepted values: {listed}" if old.meaning else f"Accepted values: {listed}"
    table.columns[column.lower()] = replace(old, meaning=meaning)


def _add_reference(
    project: Project, table: DraftTable, columns: tuple[str, ...], to: Any, fields: tuple[Any, ...], place: Place
) -> bool:
    target = project.relation(to)
    if target is None or not all(isinstance(f, str) and f for f in fields):
        project.problem(f"{table.name}.{', '.join(columns)}: the relationship to {to!r} cannot be read", place)
        return True
    table.add_foreign_key(ForeignKey(columns, target[1], fields, target[0]))
    return True


def add_constraints(project: Project, table: DraftTable, column: str | None, entry: Entry, place: Place) -> None:
    """Add what a model's contract says of a column (None: of the table)."""
    constraints = entry.get("constraints")
    for constraint in constraints if isinstance(constraints, list) else []:
        kind = constraint.get("type") if isinstance(constraint, Entry) else None
        listed = [column] if column else constraint.get("columns", []) if kind else []
        columns = tuple(c for c in listed if isinstance(c, str))
        if kind == "not_null":
            for name in columns:
                project.draft.column(table, Column(name, "", nullable=False), place)
        elif kind == "unique" and columns:
            table.add_unique(columns)
        elif kind == "primary_key":
            for name in columns:
                table.add_key(name)
        elif kind == "check" and isinstance(constraint.get("expression"), str):
            table.checks.append(project.text(constraint["expression"], place))
        elif kind == "foreign_key" and constraint.get("to"):
            _add_reference(project, table, columns, constraint["to"], tuple(constraint.get("to_columns") or ()), place)
        else:
            project.problem(f"table {table.name}: a constraint of type {kind!r} is not read", place)
