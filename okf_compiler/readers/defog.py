"""A Defog metadata file: `{"table_metadata": {table: [columns]}, "glossary": "- one rule\\n- another"}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from okf_compiler.draft import Draft
from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, Place, Problem, Rule, Source
from okf_compiler.sql_names import schema_and_table
from okf_compiler.text_files import read_text

SOURCE_ID = "metadata"
_BULLET = re.compile(r"^[-*•]\s+")
_NAMED = re.compile(r"^(?P<name>[^=]{2,80}?)\s+=\s")
_TITLE_CHARS = 80


def read(path: Path) -> Database:
    """The tables with their columns, types and descriptions, and the glossary's entries as rules, in order.

    Raises:
        UserError: the file is missing, not JSON, or has no `table_metadata`.
    """
    problems: list[Problem] = []
    text = read_text(path, problems)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}. Correct the file and compile again.") from None
    tables = content.get("table_metadata") if isinstance(content, dict) else None
    if not isinstance(tables, dict):
        raise UserError(f'{path} has no "table_metadata" object: a Defog metadata file was expected.', status=2)
    for key in sorted(content.keys() - {"table_metadata", "glossary"}):
        problems.append(Problem(f"the key {key!r} is not read", str(path), _line_of(text, key)))
    draft = Draft(problems)
    _read_tables(tables, text, str(path), draft)
    rules = list(_read_glossary(content.get("glossary"), text, str(path), problems))
    line = _line_of(text, "glossary")
    return Database(
        name=path.stem,
        tables=draft.finish(SOURCE_ID),
        rules=tuple(rules),
        sources=(Source(SOURCE_ID, path.name, f"Metadata {path.name}"),),
        problems=tuple(problems),
        places={**draft.places, **{(rule.id,): Place(str(path), line) for rule in rules}},
    )


def _read_tables(tables: Mapping[str, Any], text: str, file: str, draft: Draft) -> None:
    for full_name, columns in tables.items():
        schema, name = schema_and_table(full_name)
        start = max(text.find(json.dumps(full_name, ensure_ascii=False)), 0)
        place = Place(file, text.count("\n", 0, start) + 1)
        table = draft.table(name, schema, place)
        for entry in columns if isinstance(columns, list) else [columns]:
            if not isinstance(entry, dict) or not isinstance(entry.get("column_name"), str):
                draft.problems.append(
                    Problem(f"table {full_name} has an entry without a column_name: {entry!r}"[:200], file, place.line)
                )
                continue
            quoted = re.escape(json.dumps(entry["column_name"], ensure_ascii=False))
            found = re.compile(rf'"column_name"\s*:\s*{quoted}').search(text, start)
            line = text.count("\n", 0, found.start()) + 1 if found else place.line
            meaning = entry.get("column_description")
            column = Column(
                name=entry["column_name"],
                type=str(entry.get("data_type") or ""),
                meaning=meaning if isinstance(meaning, str) and meaning.strip() else None,
            )
            draft.column(table, column, Place(file, line))


def _read_glossary(glossary: Any, text: str, file: str, problems: list[Problem]) -> Iterator[Rule]:
    """One rule a bullet, with the bullets indented under it; what stands before ` = ` is its name."""
    if glossary is None or (isinstance(glossary, str) and not glossary.strip()):
        return
    if not isinstance(glossary, str):
        problems.append(Problem("the glossary is not a text", file, _line_of(text, "glossary")))
        return
    entries: list[list[str]] = []
    for line in glossary.split("\n"):
        if entries and (line[:1].isspace() or not line.strip()):
            entries[-1].append(line)
        elif line.strip():
            entries.append([_BULLET.sub("", line)])
    for number, lines in enumerate(entries, 1):
        named = _NAMED.match(lines[0])
        first = lines[0].strip()
        title = first if len(first) <= _TITLE_CHARS else first[: _TITLE_CHARS - 1].rpartition(" ")[0] + " …"
        yield Rule(
            id=str(number),
            name=named["name"] if named else title.rstrip(":"),
            type="calculation" if named else "business_rule",
            definition="\n".join(lines).rstrip(),
            source=SOURCE_ID,
        )


def _line_of(text: str, key: str) -> int:
    position = text.find(json.dumps(key, ensure_ascii=False))
    return text.count("\n", 0, position) + 1 if position >= 0 else 0
