from dataclasses import replace
from typing import Any

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.lookup import ProblemIndex, first_user_text, turn_of


def found(index: ProblemIndex, message: str) -> str | None:
    known = index.find(message)
    return known.problem.id if known else None


def test_a_specification_is_found_inside_other_text(problems: tuple[Problem, ...]) -> None:
    index = ProblemIndex(problems)
    for problem in problems:
        assert found(index, f"Solve this task.\n\n{problem.prompt}\n\nStep 0, reward 0.0") == problem.id
    assert len(index) == len(problems)


def test_white_space_does_not_matter(problems: tuple[Problem, ...]) -> None:
    index = ProblemIndex(problems)
    assert found(index, "> " + problems[2].prompt.replace("\n", "\r\n   ") + " <") == problems[2].id


def test_the_opening_alone_or_a_changed_specification_is_not_found(problems: tuple[Problem, ...]) -> None:
    index = ProblemIndex(problems)
    opening = " ".join(problems[0].prompt.split()[:20])
    assert found(index, opening) is None
    assert found(index, problems[0].prompt.replace("gate", "gate or")) is None
    assert found(index, "") is None


def test_the_opening_may_occur_before_the_specification(problems: tuple[Problem, ...]) -> None:
    opening = " ".join(problems[0].prompt.split()[:12])
    assert found(ProblemIndex(problems), f"{opening} {opening}: {problems[3].prompt}") == problems[3].id


def test_the_longest_of_nested_specifications_wins(problems: tuple[Problem, ...]) -> None:
    longer = replace(problems[0], id="longer", prompt=problems[0].prompt + "Also in hardware.")
    inside = replace(problems[0], id="inside", prompt="Also in hardware.")
    index = ProblemIndex([inside, problems[0], longer])
    assert found(index, longer.prompt) == "longer"
    assert found(index, problems[0].prompt) == problems[0].id
    assert found(index, "Also in hardware.") == "inside"


def test_the_first_of_equal_specifications_wins_and_positions_are_kept(problems: tuple[Problem, ...]) -> None:
    twin = replace(problems[0], id="twin")
    index = ProblemIndex([problems[1], problems[0], twin, replace(twin, id="silent", prompt=" ")])
    known = index.find(problems[0].prompt)
    assert known is not None
    assert (known.problem.id, known.position) == (problems[0].id, 1)


def test_the_memory_of_messages_is_bounded(problems: tuple[Problem, ...]) -> None:
    index = ProblemIndex(problems)
    for number in range(5000):
        assert index.find(f"message {number}") is None
    assert len(index._seen) <= 4096


def test_a_conversation_tells_its_problem_and_its_turn() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "task"}]},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "done"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "later"},
    ]
    assert first_user_text(messages) == "the task"
    assert turn_of(messages) == 2
    assert first_user_text(messages[:1]) == ""
