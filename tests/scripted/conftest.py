"""Small problems with every style of port list, and real iverilog to try the written designs on."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from verilog_taskapp.problems.model import Problem

GATE = """
// The RefModule of this problem: a "RefModule" in a comment stays.
module RefModule (
  input a, b,
  output y, // xor
  output z
);
  assign y = a ^ b;
  assign z = a & b;
endmodule
"""
COUNTER = """
module RefModule (
  input clk,
  input reset,
  output reg [3:0] q = 4'd3
);
  always @(posedge clk)
    if (reset) q <= 0;
    else q <= q + 1;
endmodule
"""
OLD_STYLE = """
module RefModule(clk, d, q, parity);
  parameter N = 8;
  input clk;
  input [N-1:0] d;
  output reg [N-1:0] q;
  output parity;
  function even(input [N-1:0] word);
    even = ^word;
  endfunction
  always @(posedge clk) q <= d;
  assign parity = even(q);
endmodule
"""
HELPER = """
module half #(parameter W = 4) (input signed [W-1:0] x, output signed [W-1:0] y);
  assign y = x >>> 1;
endmodule

module RefModule #(parameter W = 4, parameter K = 1) (
  (* keep *) input signed [W-1:0] x,
  output logic signed [W-1:0] y
);
  half #(.W(W)) \\inner! (.x(x), .y(y));
endmodule
"""
STATES = """
module RefModule (input clk, input x, output [1:0] state, output wire hot);
  typedef enum logic [1:0] {A, B, C} state_t;
  state_t now = A;
  always_ff @(posedge clk)
    case (now)
      A: now <= x ? B : A;
      B: now <= x ? B : C;
      default: now <= A;
    endcase
  assign state = now;
  assign hot = now == C;
endmodule
"""
CONSTANT = "module RefModule (output one);\n  assign one = 1'b1;\nendmodule\n"

COMMON_OPENING = "I would like you to implement a module named TopModule with the following\ninterface."


def bench(inputs: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    """A bench that compares TopModule with RefModule on random inputs (widths in bits) and prints the mismatches."""
    driven = {name: width for name, width in inputs.items() if name != "clk"}
    refs = "{" + ", ".join(f"{name}_ref" for name in outputs) + "}"
    duts = "{" + ", ".join(f"{name}_dut" for name in outputs) + "}"

    def ports(suffix: str) -> str:
        return ", ".join([*(f".{i}({i})" for i in inputs), *(f".{o}({o}_{suffix})" for o in outputs)])

    return "\n".join(
        [
            "module tb;",
            "  reg clk = 0;",
            "  always #5 clk = ~clk;",
            *(f"  reg [{width - 1}:0] {name} = 1;" for name, width in driven.items()),
            *(f"  wire [{width - 1}:0] {name}_ref, {name}_dut;" for name, width in outputs.items()),
            f"  RefModule good1 ({ports('ref')});",
            f"  TopModule top_module1 ({ports('dut')});",
            "  integer errors = 0, samples = 0;",
            "  always @(negedge clk) begin",
            "    samples = samples + 1;",
            f"    if ({refs} !== ({refs} ^ {duts} ^ {refs})) errors = errors + 1;",
            *(f"    {name} <= $random;" for name in driven),
            "  end",
            '  initial begin #1001 $display("Mismatches: %0d in %0d samples", errors, samples); $finish; end',
            "endmodule",
            "",
        ]
    )


def problem(name: str, reference: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> Problem:
    interface = "\n".join([*(f" - input  {i} ({w})" for i, w in inputs.items()), *(f" - output {o}" for o in outputs)])
    prompt = f"\n{COMMON_OPENING}\n\n{interface}\n\nThe module should do what {name} does.\n"
    return Problem(name, prompt, reference, bench(inputs, outputs))


PROBLEMS = (
    problem("gate", GATE, {"a": 1, "b": 1}, {"y": 1, "z": 1}),
    problem("counter", COUNTER, {"clk": 1, "reset": 1}, {"q": 4}),
    problem("old_style", OLD_STYLE, {"clk": 1, "d": 8}, {"q": 8, "parity": 1}),
    problem("helper", HELPER, {"x": 4}, {"y": 4}),
    problem("states", STATES, {"clk": 1, "x": 1}, {"state": 2, "hot": 1}),
    problem("constant", CONSTANT, {}, {"one": 1}),
)


@dataclass(frozen=True)
class Outcome:
    """What iverilog and vvp made of a design; ``mismatches`` and ``samples`` are None when it did not compile."""

    messages: str
    mismatches: int | None
    samples: int | None


Judge = Callable[..., Outcome]


@pytest.fixture(scope="session")
def problems() -> tuple[Problem, ...]:
    return PROBLEMS


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """``judge(design, problem)`` with the problem's bench; ``judge(design)`` elaborates the design alone."""
    iverilog = shutil.which("iverilog")
    vvp = shutil.which("vvp")
    if iverilog is None or vvp is None:
        pytest.skip("iverilog is not installed")

    def run(design: str, against: Problem | None = None) -> Outcome:
        files = {"TopModule.v": design}
        if against is not None:
            files |= {"reference.sv": against.reference, "bench.sv": against.testbench}
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        top = "TopModule" if against is None else "tb"
        compile_command = [iverilog, "-g2012", "-Wno-timescale", "-s", top, "-o", "out", *reversed(files)]
        compiled = subprocess.run(compile_command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        if compiled.returncode != 0:
            return Outcome(compiled.stderr, None, None)
        if against is None:
            return Outcome(compiled.stderr, 0, 0)
        ran = subprocess.run([vvp, "-n", "out", "-none"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        found = re.search(r"^Mismatches: (\d+) in (\d+) samples", ran.stdout, re.MULTILINE)
        assert found is not None, ran.stdout + ran.stderr
        return Outcome(compiled.stderr, int(found[1]), int(found[2]))

    return run
