"""The split is fixed: its members are written down here, so that no version of anything moves them."""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from okf_agent.evaluation.split import holdout, seen_before, seen_in_words


@dataclass(frozen=True)
class Task:
    id: str
    database: str
    difficulty: str


def tasks(databases: int = 18, each: int = 15) -> list[Task]:
    levels = ("Simple", "Moderate", "Challenging")
    return [Task(f"db{d}_{i}", f"db{d}", levels[i % 3]) for d in range(databases) for i in range(each)]


def test_the_same_tasks_for_good() -> None:
    assert sorted(holdout(tasks(2, 10))) == [
        "db0_0",
        "db0_1",
        "db0_3",
        "db0_4",
        "db0_5",
        "db0_9",
        "db1_2",
        "db1_4",
        "db1_5",
        "db1_6",
        "db1_7",
        "db1_9",
    ]


def test_sixty_of_a_hundred_in_every_database_and_each_difficulty_within_one() -> None:
    everything = tasks()
    held = holdout(everything)
    assert len(held) == 162  # of 270
    for name, share in ((lambda t: t.database, 9), (lambda t: (t.database, t.difficulty), 3)):
        counts = Counter(name(task) for task in everything if task.id in held)
        assert all(abs(counts[name(task)] - share) <= 1 for task in everything)


@pytest.mark.parametrize("size", range(1, 12))
def test_a_database_of_any_size_is_within_one_of_its_share(size: int) -> None:
    for name in "abcdefgh":
        held = holdout([Task(f"{name}{i}", name, "") for i in range(size)])
        assert abs(len(held) - 0.6 * size) < 1


def test_neither_order_nor_another_database_has_a_say() -> None:
    some = tasks(3)
    shuffled = random.Random(1).sample(some, len(some))
    assert holdout(shuffled) == holdout(some)
    assert {id for id in holdout(tasks(4)) if not id.startswith("db3_")} == holdout(some)


def facts(name: str, model: str = "m", tasks: tuple[str, ...] = ("held",), **configuration: object) -> dict[str, Any]:
    """An eval.json of one cell."""
    return {
        "name": name, "suite": "s", "tasks": list(tasks), "started_at": "2026-12-01T10:00:00+00:00",
        "cells": [{"name": "pack", "model": model}], "configuration": {"pack": configuration},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        (facts("first", rules=True), "first (2026-12-01, with the same configuration)"),
        (facts("first", rules=False), "first (2026-12-01, with other rules)"),
        (facts("first", rules=True) | {"suite": "t"}, ""),
        (facts("first", model="other", rules=True), ""),
        (facts("first", tasks=("tuning",), rules=True), ""),
        (facts("first", rules=True) | {"cells": [{"name": "raw", "model": "m"}]}, ""),
        (facts("first", rules=True, **{"bundle.b": "x"}), "first (2026-12-01, with the same configuration)"),
        ({"name": "broken"}, ""),
    ],
)
def test_a_cell_has_seen_the_hold_out_with_its_model_in_its_suite(earlier: dict[str, Any], said: str) -> None:
    now = facts("now", rules=True)
    found = seen_before(now, [earlier], frozenset({"held"}))
    assert found == ({"pack": [said]} if said else {})
    sentences = [f"pack (m) was asked held-out tasks before: in {said}."] if said else []
    assert seen_in_words(now | {"seen_holdout": found}) == sentences
