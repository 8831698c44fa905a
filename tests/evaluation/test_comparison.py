"""Two evaluations, pair by pair."""

import pytest

from tests.evaluation.builders import sample
from verilog_taskapp.evaluation.comparison import Comparison, NotComparable, compare
from verilog_taskapp.evaluation.samples import Sample


def row(problem: str, marks: str, model: str = "a") -> list[Sample]:
    """Samples of a problem: ``.`` passed, ``x`` failed, ``!`` error."""
    passed = {".": True, "x": False, "!": None}
    return [sample(problem, number, passed=passed[mark], model=model) for number, mark in enumerate(marks)]


def compared(a: dict[str, str], b: dict[str, str]) -> Comparison:
    sides = [
        [one for name, marks in side.items() for one in row(name, marks, model)] for side, model in ((a, "a"), (b, "b"))
    ]
    return compare(("A", "B"), sides[0], sides[1], resamples=500, seed=1)


def test_what_changed_between_two_models() -> None:
    found = compared({"p1": "xx", "p2": "..", "p3": ".x", "p4": "xx"}, {"p1": "..", "p2": "..", "p3": "xx", "p4": ".x"})
    assert (found.problems, found.pairs, found.unpaired) == (4, 8, 0)
    assert (found.both, found.neither, found.only_a, found.only_b) == (2, 2, 1, 3)
    assert (found.pass_at_1_a, found.pass_at_1_b, found.difference) == (0.375, 0.625, 0.25)
    assert found.low < found.difference < found.high
    assert (found.better, found.worse, found.sign_p) == (2, 1, 1.0)
    assert (found.gained, found.lost, found.mcnemar_p) == (1, 0, 1.0)
    assert [one.problem for one in found.changed] == ["p1", "p3", "p4"]


def test_a_sample_without_a_counterpart_is_in_no_number() -> None:
    found = compared({"p1": "!..", "p2": "x"}, {"p1": "xx.", "p3": "."})
    assert (found.pairs, found.unpaired) == (2, 3)
    assert (found.both, found.only_a) == (1, 1)


def test_a_difference_that_is_everywhere_is_significant() -> None:
    names = [f"p{number}" for number in range(10)]
    found = compared(dict.fromkeys(names, "xxxx"), dict.fromkeys(names, "...."))
    assert (found.low, found.difference, found.high) == (1.0, 1.0, 1.0)
    assert found.sign_p == pytest.approx(2 / 1024)
    assert found.mcnemar_p == pytest.approx(2 / 1024)


def test_nothing_in_common() -> None:
    with pytest.raises(NotComparable, match="same data set"):
        compared({"p1": "."}, {"p2": "."})
