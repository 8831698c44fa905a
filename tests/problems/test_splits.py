"""The split of an id, pinned for ever."""

from collections import Counter

import pytest

from verilog_taskapp.problems import Problem, Split, effective_split, split_of

PINNED: dict[str, Split] = {
    "Prob001_zero": "train",
    "Prob002_m2014_q4i": "train",
    "Prob099_m2014_q6c": "test",
    "Prob156_review2015_fancytimer": "train",
    "counter": "val",
    "mux2": "val",
    "p3": "val",
    "p1": "test",
    "été": "train",
    "a b": "train",
}


@pytest.mark.parametrize(("problem_id", "split"), PINNED.items())
def test_an_id_is_in_the_same_split_for_ever(problem_id: str, split: Split) -> None:
    assert split_of(problem_id) == split


def test_ids_fall_60_20_20() -> None:
    counts = Counter(split_of(f"problem_{number}") for number in range(10_000))
    assert counts == {"train": 5981, "val": 1995, "test": 2024}


def test_a_split_given_by_the_source_wins() -> None:
    given = Problem("Prob001_zero", "p", "module r; endmodule", "TopModule t();", split="test")
    free = Problem("Prob001_zero", "p", "module r; endmodule", "TopModule t();")
    assert (effective_split(given), effective_split(free)) == ("test", split_of("Prob001_zero"))
