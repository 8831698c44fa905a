"""Which problems and designs are measured."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.arena import arena
from benchmarks.double import TAG
from benchmarks.group import DUPLICATES, SAMPLES, group_of, variation
from benchmarks.tasks import NothingToDo, Task, inside, prepare, right_task, spread
from verilog_taskapp.environment.world import World
from verilog_taskapp.problems.model import Problem


@pytest.fixture
def problem(tmp_path: Path, golden_cache: Path) -> Problem:
    """A bundled problem."""
    with arena("bundled", golden_cache, tmp_path) as place:
        return prepare(place, 1).problems[0]


def test_problems_are_spread_over_the_set(problem: Problem) -> None:
    many = [problem] * 10
    assert len(spread(many, 4)) == 4
    assert len(spread(many, None)) == len(spread(many, 99)) == 10
    numbered = [replace(problem, id=str(number)) for number in range(12)]
    assert [one.id for one in spread(numbered, 4)] == ["0", "3", "6", "9"]


def test_text_goes_to_the_end_of_the_top_module() -> None:
    design = (
        "module other; endmodule\nmodule Top(input a);\n  wire endmodule_like;\nendmodule\nmodule last; endmodule\n"
    )
    found = inside(design, "Top", "reg x;")
    assert found.index("endmodule_like") < found.index("reg x;") < found.index("endmodule\nmodule last")
    with pytest.raises(NothingToDo, match="no module Nothing"):
        inside(design, "Nothing", "reg x;")


def test_the_right_design_is_the_reference_with_a_tag(problem: Problem) -> None:
    found = right_task(problem)
    assert found.path == f"{problem.top}.v"
    assert found.design.count(TAG) == 1
    assert problem.reference_top not in found.design


@pytest.mark.parametrize("number", range(1, 6))
def test_a_variation_is_another_text_of_the_same_words(number: int) -> None:
    design = "module a;\n  wire b;\nendmodule\n"
    text = variation(design, number)
    assert text != design
    assert [line for line in text.split("\n") if "//" not in line and line.strip()]
    assert "\n".join(line for line in text.split("\n") if not line.startswith("//")).split() == design.split()


def test_a_group_has_duplicates_right_and_wrong_samples(tmp_path: Path, golden_cache: Path, problem: Problem) -> None:
    async def judged() -> tuple[list[Task], list[bool]]:
        with arena("bundled", golden_cache, tmp_path) as place:
            async with World.open(place.settings()) as world:
                samples = await group_of(world, problem)
                again = await group_of(world, problem)
                assert samples == again
                chosen = await world.choose(problem_id=problem.id)
                verdicts = [
                    await world.judge.judge(chosen.prepared, {one.path: one.design}, (one.path,)) for one in samples
                ]
                return samples, [one.passed for one in verdicts]

    samples, passed = asyncio.run(judged())
    assert len(samples) == SAMPLES
    assert len({one.design for one in samples}) == SAMPLES - DUPLICATES
    assert {len({one.design for one in samples if one.key == key}) for key in Counter(one.key for one in samples)} == {
        1
    }
    assert any(passed)
    assert not all(passed)
