"""What was measured in a table, as it stands below the table's file at the moment of reading. Bundles never hold it.

Its numbers ground no answer: they are of another moment, and a count has to come from a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from okf_agent.prompts import framing
from okf_compiler import profiling
from okf_compiler.profiling import text
from okf_compiler.profiling.facts import Profile, TableProfile
from okf_compiler.profiling.store import PROFILE


def of_table(folder: Path | None, name: str, hide: Sequence[str] = ()) -> str:
    """What the profile in `folder` says of a table, in a frame; "" where there is no profile, or nothing in it.

    `hide` keeps columns back that were hidden after they were measured.
    """
    profile = _load(folder, tuple(hide)) if folder else None
    table = profile.tables.get(name) if profile else None
    if profile is None or table is None:
        return ""
    lines = [text.note(profile), f"{text.rows(table)}, never to be given as an answer.", *_columns(table)]
    return framing.framed("measured", "\n".join([*lines, *_joins(profile, name)]))


def note(folder: Path | None, hide: Sequence[str] = ()) -> str:
    """What has to stand beside counts of values: when they were measured; "" where that is not known."""
    profile = _load(folder, tuple(hide)) if folder else None
    return text.note(profile) if profile else ""


def problem(folder: Path, database: str, hide: Sequence[str] = ()) -> str:
    """Why what was measured of a database cannot be shown, and what to do; "" where it can, or nothing was."""
    if not (folder / PROFILE).is_file():
        return ""
    profile = _load(folder, tuple(hide))
    again = f"It is left out: `okf-compiler profile {database}` measures anew."
    if profile is None:
        return f"{folder / PROFILE} cannot be read, or is of another version. {again}"
    if profile.database != database:
        return f"{folder / PROFILE} was measured in {profile.database}, not in {database}. {again}"
    return ""


def _columns(table: TableProfile) -> Iterator[str]:
    for column in table.columns.values():
        if said := text.facts(column):
            yield f"- {framing.one_line(column.name)}: {said}"


def _joins(profile: Profile, name: str) -> Iterator[str]:
    """What the joins of this table leave out, on either side."""
    for key in profile.foreign_keys:
        if name in (key.table, key.other_table) and (said := text.join_facts(key)):
            columns = ", ".join(key.columns)
            yield f"- join by {framing.one_line(f'{key.table}.{columns}')}: {framing.one_line(said)}"


def _load(folder: Path, hide: tuple[str, ...]) -> Profile | None:
    try:
        changed = (folder / PROFILE).stat().st_mtime_ns
    except OSError:
        return None
    return _read(folder, hide, changed)


@lru_cache(maxsize=8)
def _read(folder: Path, hide: tuple[str, ...], _changed: int) -> Profile | None:
    return profiling.load(folder, hide)
