"""The folder of one database's profile: `profile.json`, `values.sqlite`, for their owner's eyes alone.

Everything is written aside and renamed, so that nobody reads a half. Tables of a profile that is not finished lie in
`.parts/`, and go on from there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from okf_compiler.hide import is_hidden
from okf_compiler.profiling import facts
from okf_compiler.profiling.facts import Profile, TableProfile
from okf_compiler.sql_names import schema_and_table
from okf_compiler.whole_file import write_whole

PROFILE = "profile.json"
VALUES = "values.sqlite"
PARTS = ".parts"


def load(folder: Path, hide: Sequence[str] = ()) -> Profile | None:
    """The profile in a database's folder, without what `hide` keeps back by now; None where there is none to be read.

    A column may have been hidden after it was measured.
    """
    try:
        profile = facts.from_json(json.loads((folder / PROFILE).read_text(encoding="utf-8")))
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return _without(profile, hide) if hide else profile


def shows(hide: Sequence[str], table: str, column: str) -> bool:
    """Whether nothing in `hide` covers a column, or a JSON path or what it lies in, of a qualified table."""
    schema, name = schema_and_table(table)
    keys = column.split(".")
    columns = [".".join(keys[: depth + 1]) for depth in range(len(keys))]
    # A profile of an earlier release has a dot of the table's own name without quotes.
    tables = {(schema or "public", name), ("public", table)}
    return not any(is_hidden(hide, *each, part) for each in tables for part in columns)


def shows_whole(hide: Sequence[str], table: str, column: str, type: str) -> bool:
    """Whether nothing in `hide` may cover a part of the values of a JSON array, such as a key of the objects in it.

    >>> [shows_whole(["t.doc.items.pin"], "t", column, "array") for column in ("doc.items", "doc.tags")]
    [False, True]
    """
    if "array" not in type and "json" not in type:
        return True
    schema, name = schema_and_table(table)
    places = [f"{each}.{column}.".lower() for each in (f"{schema or 'public'}.{name}", name, table)]
    for entry in hide:
        start, star, _ = entry.lower().partition("*")
        if any(start.startswith(place) or (star and place.startswith(start)) for place in places):
            return False
    return True


def _without(profile: Profile, hide: Sequence[str]) -> Profile:
    def kept(table: TableProfile) -> TableProfile:
        columns = {
            name: column if shows_whole(hide, table.name, name, column.type) else replace(column, examples=())
            for name, column in table.columns.items()
            if shows(hide, table.name, name)
        }
        return replace(table, columns=columns)

    return replace(
        profile,
        tables={name: kept(table) for name, table in profile.tables.items()},
        foreign_keys=tuple(
            key
            for key in profile.foreign_keys
            if all(shows(hide, key.table, c) for c in key.columns)
            and all(shows(hide, key.other_table, c) for c in key.other_columns)
        ),
        unmeasured={place: why for place, why in profile.unmeasured.items() if shows(hide, *_split(profile, place))},
    )


def _split(profile: Profile, place: str) -> tuple[str, str]:
    """Table and column of a place; a place that is a whole table has the column ""."""
    table = next((name for name in profile.tables if place.startswith(f"{name}.")), place)
    return table, place[len(table) + 1 :]


def prepare(folder: Path) -> None:
    """Make the folder, for its owner alone; git is told to leave it alone, wherever it lies."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_whole(ignore, "*\n", private=True)


def write_profile(folder: Path, profile: Profile) -> None:
    text = json.dumps(facts.as_json(profile), ensure_ascii=False, indent=1) + "\n"
    write_whole(folder / PROFILE, text, private=True, durable=True)


class Parts:
    """What is finished of a profile that is under way, one file for each table.

    A part counts only while its `stamp` is the same: what was asked, of which columns.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / PARTS

    def read(self, key: str, stamp: str) -> dict[str, Any] | None:
        try:
            content = json.loads(self._file(key).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return content if isinstance(content, dict) and content.get("stamp") == stamp else None

    def write(self, key: str, stamp: str, content: Mapping[str, Any]) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        text = json.dumps({**content, "stamp": stamp}, ensure_ascii=False)
        write_whole(self._file(key), text, private=True, durable=True)

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, key: str) -> Path:
        """Any name may be a table's: a file's name is made from its bytes' hash."""
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
