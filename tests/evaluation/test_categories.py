"""Failures get VerilogEval's code where it has one, from what the real compiler and judge say."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import HANGS, MIN_MAX_PORTS, settings_in
from verilog_taskapp.contracts import RolloutStep
from verilog_taskapp.evaluation.categories import ALL_CATEGORIES, of_messages, of_unfinished, of_verdict
from verilog_taskapp.evaluation.grading import Grader

BODY = "  assign min = 0; assign max = 0; assign equal = 0;\n"
DESIGNS = {
    "S": f"{MIN_MAX_PORTS}  assign min = ;\nendmodule\n",
    "m": f"{MIN_MAX_PORTS}{BODY}  Adder sum (a, b);\nendmodule\n",
    "p": f"{MIN_MAX_PORTS}{BODY}  wire x = nowhere;\nendmodule\n",
    "c": f"{MIN_MAX_PORTS}{BODY}  reg q; always @(posedge clk) q <= 1;\nendmodule\n",
    "w": f"{MIN_MAX_PORTS}{BODY}  wire x; always @(*) x = a[0];\nendmodule\n",
    "0": f"{MIN_MAX_PORTS}{BODY}  wire x = 0'b1;\nendmodule\n",
    "R": f"{MIN_MAX_PORTS}{BODY}endmodule\n",
    "r": f"{MIN_MAX_PORTS}{BODY}  // always @(posedge reset)\nendmodule\n",
    "T": HANGS,
    "gate": f'{MIN_MAX_PORTS}{BODY}  integer f; initial f = $fopen("x");\nendmodule\n',
    "early_end": f"{MIN_MAX_PORTS}{BODY}  initial $fatal(0);\nendmodule\n",
    ".": f"""{MIN_MAX_PORTS}
  wire less = is_signed ? $signed(a) < $signed(b) : a < b;
  assign min = less ? a : b;
  assign max = less ? b : a;
  assign equal = a == b;
endmodule
""",
}
NO_PORT = "module TopModule (input [7:0] a, input [7:0] b, input is_signed, output [7:0] min);\nendmodule\n"


@pytest.fixture
async def grader(tmp_path: Path, golden_cache: Path) -> AsyncIterator[Grader]:
    """A grader with a short limit."""
    settings = settings_in(tmp_path, cache_dir=golden_cache, run_cpu_s=0.3, wall_factor=100.0)
    async with Grader.open(settings) as opened:
        yield opened


@pytest.mark.parametrize("code", DESIGNS)
async def test_each_failure_has_its_code(grader: Grader, code: str) -> None:
    found = await grader.judgements("vt001_min_max", {"TopModule.v": DESIGNS[code]}, ("TopModule.v",), ["golden"])
    assert found["golden"].category == code
    assert found["golden"].passed is (code == ".")


async def test_a_port_or_a_top_that_is_missing(grader: Grader) -> None:
    for text, code in ((NO_PORT, "p"), ("module Other; endmodule\n", "m")):
        found = await grader.judgements("vt001_min_max", {"TopModule.v": text}, ("TopModule.v",), ["golden"])
        assert (found["golden"].category, found["golden"].reason) == (code, "compile_error")


def test_advice_is_not_taken_for_a_message_of_the_compiler() -> None:
    assert of_messages("a.v:1: error: something\nhint: a syntax error may be behind it") == "C"


@pytest.mark.parametrize(
    ("reason", "code"), [("memory_limit", "resource"), ("crashed", "crash"), ("malformed", "early_end"), ("new", "R")]
)
def test_reasons_without_a_code_of_verilog_eval_have_one_of_ours(reason: str, code: str) -> None:
    assert of_verdict(reason, "", "") == code
    assert code in ALL_CATEGORIES


def step(tool: str | None, outcome: str | None) -> RolloutStep:
    calls = [{"tool_name": tool, "arguments": {}}] if tool else []
    return RolloutStep.model_validate({"obs": {}, "tool_calls": calls, "info": {"outcome": outcome}})


WRITE, IDLE = step("write_file", "ok"), step(None, None)


@pytest.mark.parametrize(
    ("steps", "status", "stop", "code"),
    [
        ([], "", "context_length", "context_length"),
        ([IDLE, IDLE], "", "max_steps", "bad_tool_call"),
        ([step("compile", "failed")], "", "max_steps", "no_design"),
        ([step("write_file", "refused")], "", "max_steps", "no_design"),
        ([WRITE, step("compile", "blocked")], "Last compile: Failed\nsyntax error", "max_steps", "blocked"),
        ([WRITE, IDLE], "Last compile: Failed\na.v:1: error: syntax error", "max_steps", "S"),
        ([WRITE, IDLE], "Last compile: Success", "max_steps", "not_submitted"),
        ([WRITE, IDLE], "", "context_length", "context_length"),
    ],
)
def test_episodes_that_end_without_a_submission(steps: list[RolloutStep], status: str, stop: str, code: str) -> None:
    assert of_unfinished(steps, status, stop) == code
