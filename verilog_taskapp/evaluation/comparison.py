"""Two evaluations of the same problems, compared pair by pair."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from verilog_taskapp.evaluation.samples import Sample
from verilog_taskapp.evaluation.statistics import mean_with_interval, sign_test


class NotComparable(ValueError):
    """The two have nothing in common; the message says what to do."""


class Changed(BaseModel):
    """A problem whose pass rate is not the same."""

    model_config = ConfigDict(frozen=True)

    problem: str
    a_passed: int
    a_samples: int
    b_passed: int
    b_samples: int

    @property
    def difference(self) -> float:
        """Pass rate of b minus that of a."""
        return self.b_passed / self.b_samples - self.a_passed / self.a_samples


class Comparison(BaseModel):
    """What changed from `a` to `b`. Only samples that have a result in both are compared."""

    model_config = ConfigDict(frozen=True)

    a: str
    b: str
    problems: int
    pairs: int
    """Samples of the same problem and number."""
    unpaired: int
    """Samples of either side without a counterpart: errors, or another n."""
    pass_at_1_a: float
    pass_at_1_b: float
    difference: float
    """Of pass@1, b minus a, as a mean over problems."""
    low: float
    high: float
    """95 % interval of the difference, by bootstrap over problems."""
    both: int
    neither: int
    only_a: int
    only_b: int
    """Pairs by who passed."""
    better: int
    worse: int
    """Problems whose pass rate is higher, or lower, in b."""
    sign_p: float
    """Exact two-sided sign test over the problems whose rate changed."""
    gained: int
    lost: int
    """Problems that are solved (by more than half of their samples) in b only, or in a only."""
    mcnemar_p: float
    """McNemar's exact test over the problems, of those two numbers."""
    changed: tuple[Changed, ...]
    """The largest changes first."""


def compare(
    names: tuple[str, str], a: Sequence[Sample], b: Sequence[Sample], *, resamples: int, seed: int
) -> Comparison:
    """Pair the samples of two models, which need not have the same name. Raises `NotComparable`."""
    left, right = _results(a), _results(b)
    keys = [key for key in left if key in right]
    if not keys:
        raise NotComparable("there is no sample that has a result in both: are they of the same data set?")
    rows: dict[str, list[tuple[bool, bool]]] = {}
    for key in keys:
        rows.setdefault(key[0], []).append((left[key], right[key]))
    counted = [_changed(name, pairs) for name, pairs in rows.items()]
    differences = [one.difference for one in counted]
    estimate = mean_with_interval(differences, resamples=resamples, seed=seed)
    if estimate is None:
        raise NotComparable("there is nothing to compare")
    pairs = [pair for group in rows.values() for pair in group]
    solved = [(2 * one.a_passed > one.a_samples, 2 * one.b_passed > one.b_samples) for one in counted]
    better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    gained, lost = solved.count((False, True)), solved.count((True, False))
    return Comparison(
        a=names[0],
        b=names[1],
        problems=len(rows),
        pairs=len(pairs),
        unpaired=len(left) + len(right) - 2 * len(keys),
        pass_at_1_a=fmean(one.a_passed / one.a_samples for one in counted),
        pass_at_1_b=fmean(one.b_passed / one.b_samples for one in counted),
        difference=estimate.value,
        low=estimate.low,
        high=estimate.high,
        both=pairs.count((True, True)),
        neither=pairs.count((False, False)),
        only_a=pairs.count((True, False)),
        only_b=pairs.count((False, True)),
        better=better,
        worse=worse,
        sign_p=sign_test(better, worse),
        gained=gained,
        lost=lost,
        mcnemar_p=sign_test(gained, lost),
        changed=tuple(sorted((one for one in counted if one.difference), key=lambda one: -abs(one.difference))),
    )


def _results(samples: Sequence[Sample]) -> Mapping[tuple[str, int], bool]:
    return {(one.problem, one.sample): one.passed for one in samples if one.passed is not None}


def _changed(name: str, pairs: list[tuple[bool, bool]]) -> Changed:
    return Changed(
        problem=name,
        a_passed=sum(left for left, _ in pairs),
        a_samples=len(pairs),
        b_passed=sum(right for _, right in pairs),
        b_samples=len(pairs),
    )
