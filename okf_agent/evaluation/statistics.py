"""What may be said of a share, a difference and repeats, from so many tasks. Every formula names its source.

A task asked several times is still one task: its verdicts are averaged first, and intervals count tasks, so that
repeats never make an interval narrower than the questions allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist

from okf_agent.extras import need

CONFIDENCE = 0.95
RESAMPLES = 10_000
BOOTSTRAP_SEED = 240


@dataclass(frozen=True)
class Interval:
    """An estimate, its bounds, and the number of tasks it stands on."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Stability:
    """How many tasks came out the same in all their repeats; tasks with a single verdict do not count."""

    always_right: int = 0
    always_wrong: int = 0
    mixed: int = 0

    @property
    def tasks(self) -> int:
        return self.always_right + self.always_wrong + self.mixed

    @property
    def share(self) -> float | None:
        """Of the repeated tasks, those with one verdict only; None if no task was repeated."""
        return (self.always_right + self.always_wrong) / self.tasks if self.tasks else None


@lru_cache(maxsize=4096)
def wilson(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a share (Wilson 1927, JASA 22:209-212, without continuity correction).

    A mean over repeats may leave a fraction of a success. Without tasks the share is 0, somewhere between 0 and 1.

    Raises:
        ValueError: successes below 0 or above n.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    if not -1e-9 <= successes <= n + 1e-9:
        raise ValueError(f"{successes} successes of {n}")
    share = min(max(successes / n, 0.0), 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(centre - half, 0.0), min(centre + half, 1.0), n)


def paired_difference(
    a: Sequence[float],
    b: Sequence[float],
    clusters: Sequence[str],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Interval:
    """The mean of b - a over the same tasks, with a percentile interval of the cluster bootstrap.

    Whole clusters (databases) are drawn with replacement, each with all its tasks, since tasks of one database share
    its traps (Cameron, Gelbach and Miller 2008, Review of Economics and Statistics 90:414-427, "pairs cluster
    bootstrap"; percentile interval: Efron and Tibshirani 1993, chapter 13). With one cluster only, tasks are drawn.
    The seed is fixed: the same verdicts always give the same bounds.

    Raises:
        ValueError: the three are not of one length.
        UserError: numpy is not installed.
    """
    differences = [y - x for x, y in zip(a, b, strict=True)]
    if len(clusters) != len(differences):
        raise ValueError("a cluster for every task is needed")
    if not differences:
        return Interval(0.0, 0.0, 0.0, 0)
    need("An interval of a difference", "eval", "numpy")
    import numpy as np

    names = clusters if len(set(clusters)) > 1 else [str(i) for i in range(len(clusters))]
    _, member = np.unique(np.asarray(names), return_inverse=True)
    sums, sizes = np.bincount(member, weights=differences), np.bincount(member)
    drawn = np.random.Generator(np.random.PCG64(BOOTSTRAP_SEED)).integers(len(sums), size=(resamples, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(sum(differences) / len(differences), float(low), float(high), len(differences))


def mcnemar(only_a: int, only_b: int) -> float:
    """The two-sided exact p-value that two cells are equally often right (McNemar 1947, Psychometrika 12:153-157).

    Only the tasks count on which they disagree: a binomial test of `only_a` of them at one half, both tails. 1.0
    where they never disagree.
    """
    n = only_a + only_b
    tail = sum(comb(n, k) for k in range(min(only_a, only_b) + 1))
    return min(1.0, 2 * tail / (1 << n))


def pass_at_k(n: int, right: int, k: int) -> float:
    """The chance that one of k runs is right, where `right` of n were: 1 - C(n - right, k) / C(n, k).

    The unbiased estimator of Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.

    Raises:
        ValueError: not 1 <= k <= n, or not 0 <= right <= n.
    """
    if not 1 <= k <= n or not 0 <= right <= n:
        raise ValueError(f"pass@{k} of {right} right among {n} is not defined")
    return 1.0 - comb(n - right, k) / comb(n, k)


def mean_pass_at_k(verdicts: Mapping[str, Sequence[bool]], k: int) -> float | None:
    """The mean of pass@k over the tasks that have at least k verdicts; None if there is none."""
    values = [pass_at_k(len(found), sum(found), k) for found in verdicts.values() if len(found) >= k]
    return sum(values) / len(values) if values else None


def stability(verdicts: Iterable[Sequence[bool]]) -> Stability:
    """How often the repeats of a task agree, over tasks with two verdicts or more."""
    repeated = [found for found in verdicts if len(found) > 1]
    right = sum(all(found) for found in repeated)
    wrong = sum(not any(found) for found in repeated)
    return Stability(right, wrong, len(repeated) - right - wrong)
