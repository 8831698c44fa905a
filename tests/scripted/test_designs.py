"""The designs are what they claim to be, by real iverilog."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.designs import designs_of, renamed_reference

VERILOG_EVAL = Path(__file__).resolve().parents[3] / "shared" / "verilog-eval" / "dataset_spec-to-rtl"
UNUSABLE = {
    "Prob099_m2014_q6c": "is not a port of good1",
    "Prob151_review2015_fsm": "cast operation is not yet supported",
    "Prob156_review2015_fancytimer": "cast operation is not yet supported",
}
"""Problems that do not compile with Icarus 11 even with the reference itself (099: with no version), and why."""

Judge = Callable[..., Any]
NAMES = ("gate", "counter", "old_style", "helper", "states", "constant")


@pytest.fixture
def named(problems: tuple[Problem, ...], request: pytest.FixtureRequest) -> Problem:
    return next(problem for problem in problems if problem.id == request.param)


every_problem = pytest.mark.parametrize("named", NAMES, indirect=True)


def test_every_made_problem_is_tried(problems: tuple[Problem, ...]) -> None:
    assert tuple(problem.id for problem in problems) == NAMES


@every_problem
def test_the_right_design_matches(named: Problem, judge: Judge) -> None:
    outcome = judge(designs_of(named).right, named)
    assert outcome.mismatches == 0
    assert outcome.samples == 100


@every_problem
def test_the_wrong_design_compiles_and_differs_in_every_sample(named: Problem, judge: Judge) -> None:
    outcome = judge(designs_of(named).wrong, named)
    assert outcome.samples == 100
    # `old_style` has no reset: its first sample is X in the reference, which matches anything
    assert outcome.mismatches in (99, 100)


@every_problem
def test_the_syntax_error_is_one(named: Problem, judge: Judge) -> None:
    outcome = judge(designs_of(named).syntax_error, named)
    assert outcome.mismatches is None
    assert "syntax error" in outcome.messages


@every_problem
def test_the_missing_port_is_an_error_only_for_the_bench(named: Problem, judge: Judge) -> None:
    design = designs_of(named).missing_port
    last_output = named.testbench.split("_dut;")[-2].rsplit(" ", 1)[-1]
    assert judge(design).mismatches == 0
    outcome = judge(design, named)
    assert outcome.mismatches is None
    assert f"port ``{last_output}'' is not a port of top_module1" in outcome.messages


@every_problem
def test_no_design_names_the_reference(named: Problem) -> None:
    designs = designs_of(named)
    code = [line for text in (designs.right, designs.wrong, designs.missing_port) for line in text.splitlines()]
    assert not [line for line in code if "RefModule" in line and not line.startswith("//")]


def test_helper_modules_do_not_clash_with_those_of_the_reference(problems: tuple[Problem, ...]) -> None:
    helper = next(problem for problem in problems if problem.id == "helper")
    assert "module half_dut " in renamed_reference(helper)
    assert "\n  half_dut #(.W(W)) \\inner! (" in renamed_reference(helper)


def test_other_tops_are_renamed_too(judge: Judge) -> None:
    text = "module golden(input a, output y);\n  TopModule t(a, y);\nendmodule\n"
    text += "module TopModule(input a, output y);\n  assign y = !a;\nendmodule\n"
    right = designs_of(Problem("p", "", text, "", reference_top="golden")).right
    assert "module TopModule(input a, output y);\n  TopModule_dut t(a, y);" in right
    assert judge(right).mismatches == 0
    assert designs_of(Problem("p", "", text, "", top="my_top", reference_top="golden")).path == "my_top.v"


@pytest.mark.parametrize(
    "reference",
    ["module RefModule(output y [1:0]);\nendmodule\n", "module RefModule(input a);\nendmodule\n"],
)
def test_ports_that_cannot_be_wrapped_give_a_design_without_ports(
    reference: str, problems: tuple[Problem, ...], judge: Judge
) -> None:
    odd = replace(problems[0], reference=reference)
    designs = designs_of(odd)
    assert designs.wrong == designs.missing_port == "module TopModule;\nendmodule\n"
    for design in (designs.wrong, designs.syntax_error):
        assert judge(design, replace(problems[0])).mismatches is None


@pytest.mark.slow
@pytest.mark.skipif(not VERILOG_EVAL.is_dir(), reason=f"no VerilogEval checkout at {VERILOG_EVAL}")
@pytest.mark.parametrize("prompt", sorted(VERILOG_EVAL.glob("*_prompt.txt")), ids=lambda path: path.name[:7])
def test_every_verilog_eval_problem_has_a_right_and_a_wrong_design(prompt: Path, judge: Judge) -> None:
    name = prompt.name.removesuffix("_prompt.txt")
    reference = prompt.with_name(f"{name}_ref.sv").read_text()
    problem = Problem(name, prompt.read_text(), reference, prompt.with_name(f"{name}_test.sv").read_text())
    designs = designs_of(problem)
    right, wrong = judge(designs.right, problem), judge(designs.wrong, problem)
    if right.mismatches is None:
        assert UNUSABLE.get(name, "no other may fail") in right.messages
        assert wrong.mismatches is None
        return
    assert right.mismatches == 0
    assert wrong.mismatches is not None
    assert wrong.mismatches > 0
    assert wrong.samples == right.samples


def test_the_verilog_eval_folder_is_complete_when_it_is_there() -> None:
    if not VERILOG_EVAL.is_dir():
        pytest.skip(f"no VerilogEval checkout at {VERILOG_EVAL}")
    assert len(list(VERILOG_EVAL.glob("*_prompt.txt"))) == 156
