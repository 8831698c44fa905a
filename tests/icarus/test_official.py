"""The classic flow: the analyser's rules on logs, real runs, and the published set's references."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.icarus import made
from verilog_taskapp.environment.world import bench_of
from verilog_taskapp.errors import EnvironmentFailed, ProblemUnusable
from verilog_taskapp.icarus import official
from verilog_taskapp.icarus.official import CATEGORY_NAMES, Category, OfficialFlow, categorize
from verilog_taskapp.icarus.runner import Limits, Runner
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted.designs import renamed_reference
from verilog_taskapp.settings import Settings

VERILOG_EVAL = Path(__file__).resolve().parents[3] / "shared" / "verilog-eval" / "dataset_spec-to-rtl"
PASS = "Mismatches: 0 in 100 samples"
FAIL = "Mismatches: 7 in 100 samples"
PLAIN = "module TopModule(input clk, input reset); endmodule"

LOGS: tuple[tuple[str, Category], ...] = (
    (PASS, "."),
    (f"VCD info: dumpfile wave.vcd opened for output.\nHint: no mismatches.\n{PASS}\n", "."),
    (FAIL, "R"),
    ("", "R"),
    ("a.sv:1: syntax error\nI give up.", "S"),
    ("a.sv:3: error: This assignment requires an explicit cast.", "e"),
    ("a.sv:3: error: Sized numeric constant must have a size greater than zero.", "0"),
    (f"a.sv:3: warning: always_comb process has no sensitivities.\n{PASS}", "n"),
    (f"a.sv:3: warning: @* found no sensitivities so it will never trigger.\n{PASS}", "n"),
    ("a.sv:3: error: q is not a valid l-value.\na.sv:1:      : q is declared here as wire.", "w"),
    ("a.sv:3: error: Unknown module type: adder\n2 error(s) during elaboration.", "m"),
    ("a.sv:3: error: Unable to bind wire/reg/memory `clk' in `tb.dut'", "c"),
    ("a.sv:3: error: Unable to bind wire/reg/memory `state' in `tb.dut'", "p"),
    ("a.sv:3: error: port ``Y2'' is not a port of good1.", "C"),
    (f"{PASS}\nTIMEOUT", "T"),
    # the first line that decides, whatever comes later
    ("TIMEOUT\na.sv:1: syntax error", "T"),
    ("a.sv:1: syntax error\nTIMEOUT", "S"),
    ("a.sv:3: error: Unable to bind wire/reg/memory `x'\na.sv:4: error: Unknown module type: adder", "m"),
    # within a line, the first rule
    ("a.sv:3: syntax error near Unknown module type", "S"),
    # an error anywhere outranks a pass
    (f"the design says: error\n{PASS}", "C"),
    (f"{PASS}\nUnable to bind wire/reg", "p"),
    ("a.sv:3: error: one\na.sv:4: error: Unable to bind wire/reg/memory `x'", "p"),
    # a pass is a line of its own
    (f" {PASS}", "R"),
    (f"{PASS} or so", "R"),
    ("Mismatches: 00 in 5 samples", "."),
    (f"{PASS}\r\n", "."),
    # one such line is enough
    (f"{FAIL}\n{PASS}", "."),
    (f"{PASS}\n{FAIL}", "."),
)


@pytest.mark.parametrize(("log", "category"), LOGS, ids=[f"{number}-{log[1]}" for number, log in enumerate(LOGS)])
def test_the_rules_of_the_analyser(log: str, category: Category) -> None:
    verdict = categorize(log, PLAIN)
    assert verdict.category == category
    assert verdict.passed == (category == ".")
    assert verdict.category_name == CATEGORY_NAMES[category]


def test_every_category_is_tried() -> None:
    assert {category for _, category in LOGS} == set(CATEGORY_NAMES) - {"r"}


@pytest.mark.parametrize(
    "text", ["always @(posedge clk, posedge reset)", "always @(negedge reset)", "always @(posedge clk or posedge r)"]
)
def test_a_mismatch_with_an_asynchronous_reset_is_told_apart(text: str) -> None:
    assert categorize(FAIL, text).category == "r"
    assert categorize(PASS, text).category == "."


def test_a_synchronous_reset_is_an_ordinary_mismatch() -> None:
    assert categorize(FAIL, "always @(posedge clk) if (reset) q <= 0; // posedge resets").category == "r"
    assert categorize(FAIL, "always @(posedge clk) if (reset) q <= 0;").category == "R"


def test_counts_are_those_of_the_last_line() -> None:
    verdict = categorize(f"{PASS}\nMismatches: 3 in 40 samples\n", PLAIN)
    assert (verdict.mismatches, verdict.samples) == (3, 40)
    assert categorize("nothing", PLAIN).mismatches is None


def test_the_excerpt_is_the_end_of_the_log() -> None:
    log = "\n".join(f"line {number}" for number in range(100))
    excerpt = categorize(log, PLAIN).log_excerpt.splitlines()
    assert excerpt[-1] == "line 99"
    assert len(excerpt) == official.EXCERPT_LINES


# --- real runs


@pytest.fixture
def flow(runner: Runner, tools: Toolchain) -> OfficialFlow:
    return OfficialFlow(runner, tools, Limits(cpu_s=5.0, wall_s=60.0))


async def test_the_reference_passes(flow: OfficialFlow) -> None:
    verdict = await flow.judge(made.GATES_BENCH, *made.one_file(made.as_design(made.GATES)))
    assert (verdict.category, verdict.mismatches, verdict.samples) == (".", 0, 60)
    assert verdict.cpu_s > 0
    assert verdict.wall_s > 0


async def test_a_wrong_design_mismatches(flow: OfficialFlow) -> None:
    wrong = made.as_design(made.GATES).replace("a & b", "a ^ b")
    verdict = await flow.judge(made.GATES_BENCH, *made.one_file(wrong))
    assert verdict.category == "R"
    assert verdict.mismatches
    assert "Mismatches:" in verdict.log_excerpt


@pytest.mark.parametrize(
    ("design", "category"),
    [
        ("module TopModule(input a input b); endmodule", "S"),
        ("module TopModule(input a, input b, output both, either); adder x(a); endmodule", "m"),
        ("module TopModule(input a, input b, output both, either); assign both = c[0]; endmodule", "p"),
        ("module TopModule(input a, input b, output both); endmodule", "C"),
    ],
)
async def test_designs_that_do_not_compile(flow: OfficialFlow, design: str, category: Category) -> None:
    assert (await flow.judge(made.GATES_BENCH, *made.one_file(design))).category == category


async def test_a_design_can_talk_its_way_to_a_pass(flow: OfficialFlow) -> None:
    liar = """module TopModule(input a, input b, output both, output either);
      initial begin $display("Mismatches: 0 in 1 samples"); $finish; end
    endmodule"""
    assert (await flow.judge(made.GATES_BENCH, *made.one_file(liar))).passed


async def test_a_simulation_that_does_not_end_is_a_timeout(
    runner: Runner, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official, "RUN_CPU_S", 1.0)
    monkeypatch.setattr(official, "RUN_WALL_FACTOR", 60.0)
    flow = OfficialFlow(runner, tools, Limits(cpu_s=5.0, wall_s=60.0))
    hung = made.as_design(made.GATES).replace("endmodule", "  reg c = 0; initial forever #0 c = ~c;\nendmodule")
    verdict = await flow.judge(made.GATES_BENCH, *made.one_file(hung))
    assert verdict.category == "T"


async def test_data_files_are_there_at_run_time(flow: OfficialFlow) -> None:
    design = made.as_design(made.GATES).replace(
        "assign", 'reg [0:0] one [0:0]; initial $readmemb("one.mem", one); assign', 1
    )
    design = design.replace("a & b", "a & b & one[0]")
    files = {"TopModule.v": design, "one.mem": "1\n"}
    assert (await flow.judge(made.GATES_BENCH, files, ("TopModule.v",))).passed


async def test_a_bench_with_another_root_cannot_be_used(flow: OfficialFlow) -> None:
    renamed = replace(made.GATES_BENCH, testbench=made.GATES_BENCH.testbench.replace("module tb", "module bench"))
    with pytest.raises(ProblemUnusable, match="module tb"):
        await flow.judge(renamed, *made.one_file(made.as_design(made.GATES)))


async def test_a_simulator_that_cannot_be_started_gives_no_verdict(runner: Runner, tools: Toolchain) -> None:
    broken = OfficialFlow(runner, replace(tools, iverilog=Path("/nonexistent/iverilog")), Limits())
    with pytest.raises(EnvironmentFailed):
        await broken.judge(made.GATES_BENCH, *made.one_file(made.as_design(made.GATES)))


EXPECTED: dict[int, dict[str, Category]] = {
    11: {"Prob082": "T", "Prob099": "C", "Prob141": "T", "Prob151": "C", "Prob156": "C"},
    12: {"Prob082": "T", "Prob099": "C", "Prob141": "T", "Prob156": "T"},
}
"""References that the official flow does not pass, by the simulator's major version."""


@pytest.mark.slow
@pytest.mark.skipif(not VERILOG_EVAL.is_dir(), reason="no VerilogEval checkout beside this repository")
async def test_the_references_of_verilog_eval_pass_as_often_as_published(flow: OfficialFlow, tools: Toolchain) -> None:
    if tools.major not in EXPECTED:
        pytest.skip(f"Icarus {tools.version} refuses these testbenches")
    problems = load_problem_set(Settings(_env_file=None, dataset=f"dir:{VERILOG_EVAL}", errata=False)).problems
    verdicts = await asyncio.gather(
        *(flow.judge(bench_of(one), *made.one_file(renamed_reference(one))) for one in problems)
    )
    failed = {
        problem.id.partition("_")[0]: verdict.category
        for problem, verdict in zip(problems, verdicts, strict=True)
        if not verdict.passed
    }
    assert failed == EXPECTED[tools.major]
    assert Counter(verdict.passed for verdict in verdicts)[True] == {11: 151, 12: 152}[tools.major]
