"""What a seed and an id mean, and what is told about the set."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from verilog_taskapp.errors import InvalidRequest, ProblemNotFound, ProblemUnusable
from verilog_taskapp.problems import Problem, ProblemSet, SkippedRow, split_of

TESTBENCH = "module tb; TopModule dut(); endmodule"


def problem(problem_id: str, **fields: Any) -> Problem:
    return Problem(problem_id, "Do it.", "module RefModule; endmodule", TESTBENCH, **fields)


def problem_set(*problems: Problem) -> ProblemSet:
    return ProblemSet("mine", "My set", "dir:mine", problems)


TEN = problem_set(*(problem(f"p{number}") for number in range(10)))


def test_seeds_mean_these_problems_for_ever() -> None:
    picked = {split: [TEN.select(split, seed).id for seed in range(7)] for split in ("train", "val", "test", "all")}
    assert picked == {
        "train": ["p0", "p2", "p4", "p5", "p6", "p7", "p9"],
        "val": ["p3", "p8", "p3", "p8", "p3", "p8", "p3"],
        "test": ["p1", "p1", "p1", "p1", "p1", "p1", "p1"],
        "all": ["p0", "p1", "p2", "p3", "p4", "p5", "p6"],
    }


def test_a_seed_counts_modulo_the_size_of_its_split() -> None:
    size = len(TEN.split("train"))
    assert TEN.select("train", 1) == TEN.select("train", 1 + size) == TEN.select("train", 1 + size * 10**30)


def test_no_seed_is_seed_0_and_no_split_is_val() -> None:
    assert TEN.select() == TEN.select("val") == TEN.select("val", None) == TEN.select("val", 0) == TEN.split("val")[0]


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, [1]])
def test_a_seed_that_is_no_whole_number_from_0_is_the_callers_error(seed: Any) -> None:
    with pytest.raises(InvalidRequest, match="seed must be a whole number from 0") as caught:
        TEN.select("val", seed)
    assert (caught.value.status, caught.value.extras["errors"][0]["field"]) == (422, "seed")


def test_the_whole_set_and_the_splits_keep_the_sources_order() -> None:
    order = ["zebra", "Apple", "10", "9", "mid", "a b", "q", "r", "s", "t"]
    shuffled = problem_set(*map(problem, order))
    assert [item.id for item in shuffled.split("all")] == [item.id for item in shuffled] == order
    for split in ("train", "val", "test"):
        expected = [name for name in order if split_of(name) == split]
        assert [item.id for item in shuffled.split(split)] == expected


def test_a_split_from_the_source_wins_over_the_hash() -> None:
    given = problem_set(*(problem(f"p{number}", split="test") for number in range(10)), problem("v", split="val"))
    assert given.facts.split_counts == {"train": 0, "val": 1, "test": 10}
    assert given.select("val", 5).id == "v"


def test_an_empty_split_names_the_sizes_of_the_others() -> None:
    only_test = problem_set(problem("a", split="test"), problem("b", split="test"))
    with pytest.raises(InvalidRequest, match=r"'val' of dir:mine has no problems.*train: 0, val: 0, test: 2, all: 2"):
        only_test.select()


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="unknown split 'dev'; the splits are train, val, test, all"):
        TEN.split("dev")


def test_an_unusable_problem_is_stepped_over_and_no_other_seed_changes_its_meaning() -> None:
    unusable = {"p3", "p4", "p9"}
    picked = [TEN.select("all", seed, unusable=unusable).id for seed in range(10)]
    assert picked == ["p0", "p1", "p2", "p5", "p5", "p5", "p6", "p7", "p8", "p0"]


def test_nothing_usable_is_an_error_of_the_data_set() -> None:
    with pytest.raises(ProblemUnusable, match="no problem of the split 'all' is usable"):
        TEN.select("all", 0, unusable={f"p{number}" for number in range(10)})


def test_an_id_is_found_exactly() -> None:
    assert TEN.get("p7").id == "p7"


@pytest.mark.parametrize(
    ("asked", "close"),
    [
        ("Prob001", ["Prob001_zero"]),
        ("prob001_ZERO", ["Prob001_zero"]),
        ("Prob001_zer0", ["Prob001_zero"]),
        ("gates", ["Prob012_gates4", "Prob013_gates100"]),
        ("xyzzy", []),
        ("", []),
    ],
)
def test_an_unknown_id_names_the_close_ones(asked: str, close: list[str]) -> None:
    loaded = problem_set(*map(problem, ("Prob001_zero", "Prob012_gates4", "Prob013_gates100", "counter")))
    with pytest.raises(ProblemNotFound, match="in dir:mine") as caught:
        loaded.get(asked)
    found = caught.value.extras["close_matches"]
    assert found[: len(close)] == close
    assert bool(found) == bool(close)
    assert all(name in caught.value.message for name in close)


def test_the_fingerprint_depends_on_content_order_and_split_only() -> None:
    same = ProblemSet("other", "Other", "bundled", TEN.problems, (SkippedRow("x", "y"),))
    assert same.fingerprint == TEN.fingerprint
    assert len(TEN.fingerprint) == 64
    assert TEN.version == TEN.fingerprint[:12]
    first, *rest = TEN.problems
    for changed in (
        (*rest, first),
        (replace(first, prompt="Do it now."), *rest),
        (replace(first, id="p"), *rest),
        (replace(first, split="val" if split_of("p0") != "val" else "test"), *rest),
        tuple(rest),
    ):
        assert problem_set(*changed).fingerprint != TEN.fingerprint


def test_the_facts_count_what_is_there() -> None:
    loaded = ProblemSet(
        "mine",
        "My set",
        "dir:mine",
        (problem("a", difficulty="easy", split="val"), problem("b", split="val"), problem("c", split="train")),
        (SkippedRow("d", "prompt: empty"),),
    )
    facts = loaded.facts
    assert (facts.id, facts.name, facts.source, facts.version) == ("mine", "My set", "dir:mine", loaded.version)
    assert (facts.instance_count, facts.instance_ids) == (3, ("a", "b", "c"))
    assert facts.split_counts == {"train": 1, "val": 2, "test": 0}
    assert facts.difficulty_counts == {"easy": 1, "medium": 2, "hard": 0}
    assert facts.skipped == (SkippedRow("d", "prompt: empty"),)
    assert facts.description == "My set: 3 problems from dir:mine"


def test_a_set_without_problems_or_with_an_id_twice_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="at least one problem"):
        problem_set()
    with pytest.raises(ValueError, match="each id once"):
        problem_set(problem("a"), problem("a"))


def test_importing_the_package_imports_neither_datasets_nor_pyarrow() -> None:
    code = "import sys, verilog_taskapp.problems; print({'datasets', 'pyarrow', 'huggingface_hub'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
