"""A profile that is no profile: broken, half, edited by hand. It counts as none, and nothing raises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from okf_compiler import profiling
from okf_compiler.profiling import ColumnProfile, ForeignKeyProfile, Profile, TableProfile, facts, text, values
from okf_compiler.profiling.values import IndexedColumn

COLUMN = ColumnProfile("city", "text", 2, 0, 0, 2, True, False, False, ("Oslo", "Rome"))
KEY = ForeignKeyProfile("shops", ("city",), "cities", ("name",), 1, 2, 0, 2)
PROFILE = Profile(
    "shop", "2026-01-01T00:00:00+00:00", {"shops": TableProfile("shops", 2, None, {"city": COLUMN})}, (KEY,)
)
WRONG: list[Any] = [None, "x", 5, [], {}, [None], [{}]]
PLACES = [
    *((key,) for key in ("database", "measured_at", "tables", "foreign_keys", "unmeasured")),
    *(("tables", 0, key) for key in ("name", "rows", "columns")),
    *(("tables", 0, "columns", 0, key) for key in ("name", "type", "nulls", "empty", "examples", "low", "specials")),
    *(("foreign_keys", 0, key) for key in ("table", "columns", "other_columns", "rows")),
]


def test_a_whole_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_text(json.dumps(facts.as_json(PROFILE)), encoding="utf-8")
    assert profiling.load(tmp_path) == PROFILE


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_value_of_another_type_harms_nobody(tmp_path: Path, place: tuple[Any, ...]) -> None:
    """It makes the profile none, or it can be said in words."""
    found = [_with(tmp_path, place, wrong) for wrong in WRONG]
    assert found.count(None) >= 3
    for profile in filter(None, found):
        text.note(profile)
        [
            text.rows(table) + text.facts(column)
            for table in profile.tables.values()
            for column in table.columns.values()
        ]
        [text.join_facts(key) for key in profile.foreign_keys]


def _with(folder: Path, place: tuple[Any, ...], value: Any) -> Profile | None:
    """What is loaded of a profile that has `value` at a place."""
    content = json.loads(json.dumps(facts.as_json(PROFILE)))
    holder: Any = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    (folder / "profile.json").write_text(json.dumps(content), encoding="utf-8")
    return profiling.load(folder, ("*.secret",))


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"version": 1, "tables": ['])
def test_what_is_no_profile_at_all_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "profile.json").write_bytes(content)
    assert profiling.load(tmp_path) is None


def test_a_broken_value_index_is_none(tmp_path: Path) -> None:
    values.write(tmp_path, [IndexedColumn("shops", "city", False, [(f"city {n}", n) for n in range(2_000)])])
    file = tmp_path / "values.sqlite"
    whole = file.read_bytes()
    middle = len(whole) // 2
    for broken in (b"", b"text", whole[:4096], b"\0" * 100 + whole[100:]):
        file.write_bytes(broken)
        assert values.open(tmp_path) is None
    file.write_bytes(whole[:4096] + b"\xff" * (middle - 4096) + whole[middle:])
    index = values.open(tmp_path)
    if index is not None:
        with index, pytest.raises(values.Broken):
            for text in ("city 1", "citi 1500", "1999"):
                index.find(text)
