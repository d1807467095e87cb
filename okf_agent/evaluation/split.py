"""The fixed split of a suite, 40 of 100 tasks to tune on and 60 held out, and which cells have seen the latter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import groupby
from typing import Any, Protocol

SPLIT_SEED = 240
HELD, OF = 3, 5
"""Three of every five tasks are held out."""


class Splittable(Protocol):
    """What the split looks at: an id, and the two things that it is stratified by."""

    @property
    def id(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def difficulty(self) -> str: ...


def holdout(tasks: Iterable[Splittable]) -> frozenset[str]:
    """The ids of the tasks that are held out. Give it all tasks of a suite, not the ones that were chosen to run.

    In each database, tasks lie by difficulty, and within one by the SHA-256 of seed and id; then every second, fourth
    and fifth of five is held out, beginning somewhere that the database's name decides. So every database and every
    stratum is within one task of its share; and nothing but ids, databases and difficulties has a say: no random
    number generator, no order of a file, no other database.
    """
    ordered = sorted(tasks, key=lambda task: (task.database, task.difficulty, _hash(task.id), task.id))
    held = set()
    for database, group in groupby(ordered, key=lambda task: task.database):
        start = int(_hash(database), 16) % OF
        for i, task in enumerate(group, start=start):
            if (i + 1) * HELD // OF > i * HELD // OF:
                held.add(task.id)
    return frozenset(held)


def _hash(text: str) -> str:
    return sha256(f"{SPLIT_SEED}:{text}".encode()).hexdigest()


def seen_before(
    facts: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]], held: frozenset[str]
) -> dict[str, list[str]]:
    """Return the earlier evaluations in which cells of `facts` were asked held-out tasks of the same suite.

    A cell is known by its name and its model. All are contents of eval.json; an evaluation stands as its name, its day
    and the parts of the cell's configuration that were different, by the cell's name.
    """
    found: dict[str, list[str]] = {}
    for other in earlier:
        if other.get("suite") != facts["suite"] or held.isdisjoint(other.get("tasks") or ()):
            continue
        models = {cell.get("name"): cell.get("model") for cell in other.get("cells") or ()}
        for cell in facts["cells"]:
            name = cell["name"]
            if models.get(name) == cell["model"]:
                changed = _changed(*(each.get("configuration", {}).get(name, {}) for each in (other, facts)))
                how = f"with other {', '.join(changed)}" if changed else "with the same configuration"
                day = str(other.get("started_at") or "")[:10]
                found.setdefault(name, []).append(f"{other.get('name')} ({day}, {how})")
    return found


def seen_in_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what a report says of cells that had seen the hold-out before, a sentence a cell."""
    models = {cell.get("name"): cell.get("model") for cell in facts.get("cells") or ()}
    return [
        f"{cell} ({models.get(cell)}) was asked held-out tasks before: in {', '.join(where)}."
        for cell, where in (facts.get("seen_holdout") or {}).items()
    ]


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The parts that differ; a database that only one of the two asked is no difference."""
    names = dict.fromkeys((*before, *after))
    both = [name for name in names if not name.startswith("bundle.") or (name in before and name in after)]
    return [name for name in both if before.get(name) != after.get(name)]
