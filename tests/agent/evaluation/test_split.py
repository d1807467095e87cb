"""The split is fixed: its members are written down here, so that no version of anything moves them."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from okf_agent.evaluation.split import holdout


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
