"""The fixed split of a suite: 40 of 100 tasks to tune on, 60 held out. The same on every machine, for good."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import groupby
from typing import Protocol

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
