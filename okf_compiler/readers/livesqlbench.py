"""The LiveSQLBench format: `<db>_schema.txt`, `<db>_column_meaning_base.json`, `<db>_kb.jsonl`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from okf_compiler.documents import Documents
from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, JsonField, Problem, Rule, Source, Table
from okf_compiler.readers.livesqlbench_schema import read_tables
from okf_compiler.sql_names import schema_and_table

_PUBLISHER = "https://huggingface.co/datasets/birdsql/"
_PUBLISHED = {
    "livesqlbench-base-lite": "livesqlbench-base-lite",
    "livesqlbench-base-lite-postgres": "livesqlbench-base-lite",
    "livesqlbench-base-full-v1": "livesqlbench-base-full-v1",
}
_SQLITE_TYPE = re.compile(r"\btext\(\d+\)", re.IGNORECASE)
"""Only the SQLite edition of Base-Lite, which has an address of its own, gives text a length."""


def read(documents: Documents) -> Database:
    """Everything the documents say. What cannot be read is among the problems, with its file and line.

    Raises:
        UserError: no schema, a file that is not UTF-8 or not readable, meanings that are not JSON.
    """
    problems: list[Problem] = []
    schema = _read_text(documents.schema)
    tables = read_tables(schema, documents.schema, problems)
    if not tables:
        raise UserError(
            f"{documents.schema} has no CREATE TABLE that can be read."
            + (f" First problem: {problems[0]}" if problems else "")
        )
    meanings = _optional_text(documents.meanings, "columns have no meanings", problems)
    rules = _optional_text(documents.rules, "there are no business rules", problems)
    if meanings is not None:
        tables = _add_meanings(tables, meanings, documents.meanings, problems)
    return Database(
        name=documents.name,
        tables=tuple(tables),
        rules=tuple(_read_rules(rules, documents.rules, problems)) if rules is not None else (),
        sources=_sources(documents, schema),
        problems=tuple(problems),
    )


def _read_text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path} is missing.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _optional_text(path: Path, consequence: str, problems: list[Problem]) -> str | None:
    if path.exists():
        return _read_text(path)
    problems.append(Problem(f"is missing, so {consequence}", str(path)))
    return None


def _sources(documents: Documents, schema: str) -> tuple[Source, ...]:
    """Each file under its publisher's address, or under its path from the data root's own name."""
    root = documents.root.name or documents.root.resolve().name
    repository = _PUBLISHED.get(root)
    if root == "livesqlbench-base-lite" and _SQLITE_TYPE.search(schema):
        repository = "livesqlbench-base-lite-sqlite"
    base = f"{_PUBLISHER}{repository}/blob/main" if repository else root
    files = {
        "schema": (documents.schema, "Schema"),
        "column_meaning_base": (documents.meanings, "Column meanings"),
        "kb": (documents.rules, "Business rules"),
    }
    return tuple(
        Source(id, f"{base}/{documents.name}/{path.name}", f"{title} of {documents.name}")
        for id, (path, title) in files.items()
    )


_ESCAPES = {"\t": "\\t", "\f": "\\f", "\b": "\\b", "\r": "\\r"}
_LATEX = re.compile(
    r"\t(?=ext|imes\b|heta\b|au\b|frac|ilde|o\b|herefore)|\f(?=rac|orall)|[\b](?=eta\b|ar\b|egin|inom|ig|oldsymbol)"
    r"|\r(?=ight|ho\b|angle|floor|ceil)"
)
"""What JSON makes of `\\frac` and `\\times` where whoever wrote the file did not double the backslash."""


# --- <db>_column_meaning_base.json: "db|table|column" -> text, or {column_meaning, fields_meaning} ---


def _add_meanings(tables: list[Table], text: str, file: Path, problems: list[Problem]) -> list[Table]:
    """The tables with their columns' meanings; names match in any letter case."""
    database = Database("", tuple(tables))
    found: dict[tuple[str, str, str], Column] = {}
    for key, value in _load_meanings(text, file, problems).items():
        parts = key.split("|")
        schema, name = schema_and_table(parts[-2]) if len(parts) > 1 else ("", "")
        table = database.table(name, schema or "public") or database.table(parts[-2]) if name else None
        column = table.column(parts[-1]) if table else None
        fault = None
        if table is None:
            fault = f"{key!r} names a table that the schema does not have"
        elif column is None:
            fault = f"{key!r} names a column that the table does not have"
        else:
            place = (table.schema, table.name, column.name)
            if place in found:
                fault = f"{key!r} gives a second meaning to one column"
            described = _describe(column, value)
            if described is None:
                fault = f"{key!r} has a meaning that is neither a text nor an object with column_meaning"
            elif fault is None:
                found[place] = described
        if fault:
            problems.append(Problem(fault, str(file), _line_of(text, key)))
    return [replace(t, columns=tuple(found.get((t.schema, t.name, c.name), c) for c in t.columns)) for t in tables]


def _load_meanings(text: str, file: Path, problems: list[Problem]) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            names = [name for name, _ in pairs]
            for name in sorted({n for n in names if names.count(n) > 1}):
                problems.append(Problem(f"{name!r} stands twice; the last one counts", str(file), _line_of(text, name)))
        return mapping

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{error.lineno}: not JSON: {error.msg}. Correct the file and compile again.") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; nested too deeply
        raise UserError(f"{file}: cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise UserError(f'{file}: must be one JSON object: {{"db|table|column": "meaning", …}}.')
    return content


def _describe(column: Column, value: Any) -> Column | None:
    if isinstance(value, str):
        return replace(column, meaning=_clean(value) if value.strip() else None)
    if not isinstance(value, dict):
        return None
    meaning = value.get("column_meaning")
    return replace(
        column,
        meaning=_clean(meaning) if isinstance(meaning, str) and meaning.strip() else None,
        fields=tuple(_fields(value.get("fields_meaning", {}), ())),
    )


def _fields(node: Any, path: tuple[str, ...]) -> Iterator[JsonField]:
    """The leaves of nested field meanings, in the source's order; a list's items are named by position."""
    if isinstance(node, dict):
        for name, inner in node.items():
            yield from _fields(inner, (*path, _clean(name)))
    elif isinstance(node, list):
        for position, inner in enumerate(node):
            yield from _fields(inner, (*path, str(position)))
    elif path:
        yield JsonField(path, _clean(node if isinstance(node, str) else json.dumps(node)))


def _line_of(text: str, key: str) -> int:
    position = text.find(json.dumps(key, ensure_ascii=False))
    return text.count("\n", 0, position) + 1 if position >= 0 else 0


# --- <db>_kb.jsonl: one rule a line ---


def _read_rules(text: str, file: Path, problems: list[Problem]) -> list[Rule]:
    rules: dict[str, Rule] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"not a JSON object: {error}", str(file), number))
            continue
        if not isinstance(entry, dict):
            problems.append(Problem("not a JSON object", str(file), number))
            continue
        rule = _rule(entry, number, str(file), problems)
        if rule.id in rules:
            new_id = next(f"{rule.id}-{n}" for n in range(2, len(rules) + 3) if f"{rule.id}-{n}" not in rules)
            problems.append(Problem(f"id {rule.id} stands twice; this one became {new_id}", str(file), number))
            rule = replace(rule, id=new_id)
        rules[rule.id] = rule
        lines[rule.id] = number
    for rule in rules.values():
        for missing in (d for d in rule.depends_on if d not in rules):
            problems.append(
                Problem(f"rule {rule.id} depends on rule {missing}, which is not here", str(file), lines[rule.id])
            )
    return list(rules.values())


def _rule(entry: dict[str, Any], number: int, file: str, problems: list[Problem]) -> Rule:
    def text(key: str) -> str:
        value = entry.get(key)
        if isinstance(value, str):
            return _clean(value)
        if value is not None or key == "knowledge":
            problems.append(Problem(f"{key} is not a text", file, number))
        return "" if value is None else json.dumps(value, ensure_ascii=False)

    children = entry.get("children_knowledge", -1)
    depends_on = []
    for child in children if isinstance(children, list) else [children]:
        if isinstance(child, bool) or not isinstance(child, int | str):
            problems.append(Problem(f"children_knowledge holds {child!r}, which is no id", file, number))
        elif child != -1:
            depends_on.append(str(child))
    id = entry.get("id")
    if not isinstance(id, int | str):
        problems.append(Problem("the rule has no id; its line number stands for it", file, number))
        id = f"line-{number}"
    return Rule(
        id=str(id),
        name=text("knowledge"),
        type=text("type"),
        description=text("description"),
        definition=text("definition"),
        depends_on=tuple(dict.fromkeys(depends_on)),
    )


def _clean(text: str) -> str:
    """The text as its file spells it, LaTeX too, but for halves of surrogate pairs, which no file in UTF-8 can hold."""
    text = _LATEX.sub(lambda match: _ESCAPES[match[0]], text)
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text
