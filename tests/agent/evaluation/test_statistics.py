"""Figures against published tables and values that were worked out by hand."""

import importlib.util

import pytest

from okf_agent.evaluation.statistics import (
    mcnemar,
    mean_pass_at_k,
    paired_difference,
    pass_at_k,
    stability,
    wilson,
)
from okf_compiler.errors import UserError


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857-872, table I, method 3 (score, no continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_bounds(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert found.value == pytest.approx(successes / n)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_wilson_of_half_a_success_lies_between_its_neighbours() -> None:
    below, half, above = (wilson(successes, 10) for successes in (4, 4.5, 5))
    assert below.low < half.low < above.low and half.low == pytest.approx((below.low + above.low) / 2, abs=2e-3)
    assert below.high < half.high < above.high and half.high == pytest.approx((below.high + above.high) / 2, abs=2e-3)
    assert half.value == 0.45


def test_without_tasks_everything_is_possible() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)
    assert wilson(10, 10).high == pytest.approx(1)


def test_wilson_refuses_more_successes_than_tasks() -> None:
    with pytest.raises(ValueError):
        wilson(3, 2)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [
        (0, 0, 1.0),
        (0, 5, 2 * 0.5**5),
        (1, 9, 2 * (1 + 10) / 2**10),
        (5, 5, 1.0),
        (2, 10, 2 * (1 + 12 + 66) / 2**12),
    ],
)
def test_mcnemar_is_the_exact_binomial_test(only_a: int, only_b: int, p: float) -> None:
    assert mcnemar(only_a, only_b) == pytest.approx(p)
    assert mcnemar(only_b, only_a) == pytest.approx(p)


@pytest.mark.parametrize(
    ("n", "right", "k", "chance"),
    [(1, 1, 1, 1.0), (2, 1, 1, 0.5), (2, 1, 2, 1.0), (5, 2, 1, 0.4), (5, 2, 2, 0.7), (5, 2, 4, 1.0), (10, 0, 3, 0.0)],
)
def test_pass_at_k(n: int, right: int, k: int, chance: float) -> None:
    assert pass_at_k(n, right, k) == pytest.approx(chance)


@pytest.mark.parametrize(("n", "right", "k"), [(2, 1, 3), (2, 1, 0), (2, 3, 1), (2, -1, 1)])
def test_pass_at_k_refuses_what_is_not_defined(n: int, right: int, k: int) -> None:
    with pytest.raises(ValueError):
        pass_at_k(n, right, k)


def test_pass_at_k_of_several_tasks_leaves_out_those_with_fewer_runs() -> None:
    assert mean_pass_at_k({"a": [True, False], "b": [False, False], "c": [True]}, 2) == pytest.approx(0.5)
    assert mean_pass_at_k({"a": [True]}, 2) is None


def test_stability_counts_repeated_tasks_only() -> None:
    found = stability([[True, True], [False, False, False], [True, False], [True]])
    assert (found.always_right, found.always_wrong, found.mixed, found.tasks) == (1, 1, 1, 3)
    assert found.share == pytest.approx(2 / 3)
    assert stability([[True]]).share is None


def test_paired_difference_of_two_databases_has_the_bounds_of_their_four_draws() -> None:
    """Two clusters of equal size, differences 0 and 1: the mean is 0, 1/2 or 1 with chance 1/4, 1/2, 1/4."""
    found = paired_difference([0, 0, 0, 0], [0, 0, 1, 1], ["x", "x", "y", "y"])
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.0, 1.0, 4)


def test_databases_make_the_interval_wider_than_as_many_lone_tasks() -> None:
    """60 tasks, all of a database alike: only 6 independent facts."""
    a, b = [0.0] * 60, [float(i // 10 < 3) for i in range(60)]
    clustered = paired_difference(a, b, [str(i // 10) for i in range(60)])
    alone = paired_difference(a, b, [str(i) for i in range(60)])
    assert clustered.value == alone.value == 0.5
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)
    # By hand: 0.5 ± 1.96·sqrt(0.25 / 60)
    assert (alone.low, alone.high) == (pytest.approx(0.373, abs=0.02), pytest.approx(0.627, abs=0.02))


def test_one_database_is_drawn_by_task_and_the_bounds_are_always_the_same() -> None:
    a, b = [0.0] * 40, [1.0] * 20 + [0.0] * 20
    found = paired_difference(a, b, ["shop"] * 40)
    assert 0.3 < found.low < found.value < found.high < 0.7
    assert found == paired_difference(a, b, ["shop"] * 40)
    assert paired_difference([], [], []).n == 0


def test_a_pair_needs_both_and_a_database() -> None:
    with pytest.raises(ValueError):
        paired_difference([1], [1, 0], ["x", "y"])
    with pytest.raises(ValueError):
        paired_difference([1, 1], [1, 0], ["x"])


def test_a_difference_without_numpy_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    here = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numpy" else here(name))
    with pytest.raises(UserError, match="needs numpy, which the extra `eval` brings"):
        paired_difference([0, 1], [1, 1], ["x", "y"])
