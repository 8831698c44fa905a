"""The numbers, against closed forms and against counting by hand."""

import math
from itertools import combinations

import pytest

from verilog_taskapp.evaluation.statistics import mean_with_interval, pass_at_k, sign_test


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (1, 0, 1, 0.0),
        (1, 1, 1, 1.0),
        (20, 5, 1, 0.25),
        (4, 2, 2, 5 / 6),
        (5, 1, 5, 1.0),
        (10, 0, 10, 0.0),
        (4, 3, 2, 1.0),
    ],
)
def test_pass_at_k_of_known_cases(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=1e-15)


def test_pass_at_k_is_the_share_of_subsets_that_hold_a_pass() -> None:
    n = 7
    for c in range(n + 1):
        for k in range(1, n + 1):
            subsets = list(combinations(range(n), k))
            share = sum(min(subset) < c for subset in subsets) / len(subsets)
            assert pass_at_k(n, c, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_k_of_many_samples_neither_overflows_nor_loses_precision() -> None:
    assert pass_at_k(10_000, 1, 100) == pytest.approx(0.01, abs=1e-12)
    assert 0 < pass_at_k(10_000, 9_000, 1_000) <= 1


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_what_is_not_defined_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(n, c, k)


def test_the_bootstrap_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    values = [0.0, 0.25, 0.5, 1.0, 1.0, 0.0, 0.75]
    first = mean_with_interval(values, resamples=500, seed=3)
    assert first == mean_with_interval(values, resamples=500, seed=3)
    assert first != mean_with_interval(values, resamples=500, seed=4)


def test_the_interval_of_a_share_is_about_the_normal_one() -> None:
    values = [1.0] * 300 + [0.0] * 100
    found = mean_with_interval(values, resamples=4000, seed=0)
    assert found is not None
    half = 1.96 * math.sqrt(0.75 * 0.25 / 400)
    assert (found.value, found.problems) == (0.75, 400)
    assert found.low == pytest.approx(0.75 - half, abs=0.006)
    assert found.high == pytest.approx(0.75 + half, abs=0.006)


def test_equal_values_have_no_width_and_no_values_have_no_mean() -> None:
    found = mean_with_interval([0.5, 0.5], resamples=100, seed=0)
    assert found is not None
    assert (found.low, found.value, found.high) == (0.5, 0.5, 0.5)
    assert mean_with_interval([], resamples=100, seed=0) is None


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (3, 3, 1.0), (8, 2, 0.109375), (1, 0, 1.0)]
)
def test_the_sign_test_is_exact(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)
