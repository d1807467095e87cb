"""BIRD: execution accuracy, soft F1 and the reward of R-VES.

Source: github.com/bird-bench/mini_dev, `evaluation/evaluation_ex.py`, `evaluation_f1.py` and `evaluation_ves.py`; the
paper is arXiv:2305.03111.

- Execution accuracy: the two sets of rows are equal. Order and duplicates do not count; the order of columns does,
  their names do not. Values are equal as Python has it: 1 = 1.0, NULL = NULL, 'a' is not 'A'. SQLite's reals are
  doubles, so numbers compare as doubles here, whatever PostgreSQL's type.
- Soft F1: duplicate rows dropped, row i of one result is compared with row i of the other: the part of its cells
  that are somewhere in the other row.
- R-VES: for a right query, how often gold's time is that of the prediction, mean over some runs without outliers past
  three standard deviations, in five steps from 0.25 to 1.25. A run's `r_ves` is the square root of that step, and
  R-VES is 100 times its mean over all tasks, 0 for wrong ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, pstdev

from okf_agent.evaluation.results import Result, doubles
from okf_agent.evaluation.scorers.model import Scorer, missing

STEPS = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5), (0.0, 0.25))
"""From how many times as fast as gold -> the reward."""


def same(gold: Result, predicted: Result, _ordered: bool) -> str:
    """ "" where the sets of rows are equal, else how they differ."""
    expected, got = (dict.fromkeys(doubles(result.rows)) for result in (gold, predicted))
    if expected.keys() == got.keys():
        return ""
    return missing(list(expected), list(got))


def soft_f1(gold: Result, predicted: Result) -> float:
    """BIRD's soft F1 of a result, 0 to 1."""
    expected, got = (list(dict.fromkeys(doubles(result.rows))) for result in (gold, predicted))
    if not expected and not got:
        return 1.0
    hits = extra = lacking = 0.0
    for one, other in zip(expected, got, strict=False):
        cells = len(one)
        hits += sum(value in one for value in other) / cells
        extra += sum(value not in one for value in other) / cells
        lacking += sum(value not in other for value in one) / cells
    extra += max(len(got) - len(expected), 0)
    lacking += max(len(expected) - len(got), 0)
    if not hits:
        return 0.0
    precision, recall = hits / (hits + extra), hits / (hits + lacking)
    return 2 * precision * recall / (precision + recall)


def reward(ratios: Sequence[float]) -> float:
    """The square root of the step for a right query, given gold's time by the prediction's, a number a run."""
    mean, deviation = fmean(ratios), pstdev(ratios)
    kept = [ratio for ratio in ratios if abs(ratio - mean) < 3 * deviation]
    ratio = fmean(kept or ratios)  # all alike: nothing lies strictly inside no deviation
    return math.sqrt(next(value for least, value in STEPS if ratio >= least))


def measure(gold: Callable[[], float], predicted: Callable[[], float], repeats: int) -> float:
    """The reward of a right query, both timed in turn, `repeats` times."""
    ratios = []
    for _ in range(repeats):
        ours = predicted()
        ratios.append(gold() / ours)
    return reward(ratios)


SCORER = Scorer(same)
