"""The numbers: unbiased pass@k, intervals over problems, exact tests for pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


def pass_at_k(n: int, c: int, k: int) -> float:
    """The unbiased estimate of the chance that one of `k` samples passes, when `c` of `n` did.

    1 - C(n-c, k) / C(n, k): Chen et al., "Evaluating Large Language Models Trained on Code", 2021, equation 1. Raises
    ValueError unless 0 <= c <= n and 1 <= k <= n.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass@{k} of {c} passes in {n} samples is not defined")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


@dataclass(frozen=True)
class Estimate:
    """A mean over problems with its interval."""

    value: float
    low: float
    high: float
    problems: int
    """How many problems it is the mean of."""


def mean_with_interval(values: Sequence[float], *, resamples: int, seed: int) -> Estimate | None:
    """The mean of one value per problem, and the percentile bootstrap interval over problems; None for no values.

    Problems are what was drawn from all problems there could be, so they are resampled, never single samples: those of
    one problem belong together. Equal arguments give equal numbers.
    """
    if not values:
        return None
    array = np.asarray(values, dtype=np.float64)
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    for number in range(resamples):
        means[number] = array[generator.integers(0, len(array), len(array))].mean()
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Estimate(float(array.mean()), float(low), float(high), len(values))


def sign_test(wins: int, losses: int) -> float:
    """The two-sided exact p-value of a sign test: how often a fair coin is at least this one-sided. Ties are left out.

    Of discordant pairs this is McNemar's exact test.
    """
    total = wins + losses
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, one) for one in range(min(wins, losses) + 1))
    p: float = 2 * tail / 2**total
    return min(1.0, p)
