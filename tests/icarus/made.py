"""Small benches in VerilogEval's style: a score board named ``stats1`` and a line with the count of mismatches."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from verilog_taskapp.icarus.bench import Bench

FLIP_FLOP = """
module RefModule(input clk, input [7:0] d, output reg [7:0] q);
  initial q = 0;
  always @(posedge clk) q <= d;
endmodule
"""
COUNTER = """
module RefModule(input clk, input areset, input enable, output reg [3:0] count, output wrapped);
  assign wrapped = &count;
  always @(posedge clk or posedge areset)
    if (areset) count <= 0;
    else if (enable) count <= count + 1;
endmodule
"""
GATES = """
module RefModule(input a, input b, output both, output either);
  assign both = a & b, either = a | b;
endmodule
"""
CONSTANT = "module RefModule(output one);\n  assign one = 1'b1;\nendmodule\n"
WIDE = """
module RefModule(input clk, input [511:0] d, output reg [511:0] q);
  always @(posedge clk) q <= ~d;
endmodule
"""
HANDSHAKE = """
module RefModule(input clk, input request, output reg grant);
  initial grant = 0;
  always @(posedge clk) grant <= request;
endmodule
"""

RANDOM = "always @(posedge clk, negedge clk) {name} <= $random;"
"""How a testbench drives an input by default: never at the same moment as the design's own edge is seen."""


def scored_text(
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    *,
    clock: str = "clk",
    clocked: bool = True,
    timescale: str = "1 ps/1 ps",
    drive: str | Mapping[str, str] = RANDOM,
    half_periods: int = 60,
    more: str = "",
) -> str:
    """A bench that feeds ``inputs`` (widths in bits) and compares ``outputs`` at both edges of its clock.

    ``clocked``: the design has the clock as its input ``clock``. ``drive``: the statement that drives an input.
    """
    given = [clock, *inputs] if clocked else list(inputs)
    refs = "{" + ", ".join(f"{name}_ref" for name in outputs) + "}"
    duts = "{" + ", ".join(f"{name}_dut" for name in outputs) + "}"

    def ports(suffix: str) -> str:
        return ", ".join([*(f".{name}({name})" for name in given), *(f".{name}({name}_{suffix})" for name in outputs)])

    drives = {name: drive if isinstance(drive, str) else drive.get(name, RANDOM) for name in inputs}
    return "\n".join(
        [
            f"`timescale {timescale}",
            "module tb();",
            "  typedef struct packed { int errors; int clocks; } stats;",
            "  stats stats1;",
            f"  reg {clock} = 0;",
            f"  initial forever #5 {clock} = ~{clock};",
            *(f"  logic [{width - 1}:0] {name};" for name, width in inputs.items()),
            *(f"  wire [{width - 1}:0] {name}_ref, {name}_dut;" for name, width in outputs.items()),
            *("  " + drives[name].replace("{name}", name).replace("clk", clock) for name in inputs),
            f"  initial begin repeat ({half_periods}) @(posedge {clock}, negedge {clock}); #1 $finish; end",
            f"  RefModule good1({ports('ref')});",
            f"  TopModule top_module1({ports('dut')});",
            f"  wire tb_match = ({refs} === ({refs} ^ {duts} ^ {refs}));",
            f"  always @(posedge {clock}, negedge {clock}) begin",
            "    stats1.clocks++;",
            "    if (!tb_match) stats1.errors++;",
            "  end",
            f"  {more}",
            '  final $display("Mismatches: %1d in %1d samples", stats1.errors, stats1.clocks);',
            "endmodule",
            "",
        ]
    )


def bench(reference: str, text: str, **fields: object) -> Bench:
    """A bench with the hash of its texts as the key."""
    made = Bench("", "TopModule", "RefModule", reference, text, **fields)  # type: ignore[arg-type]
    return replace(made, key=hashlib.sha256(repr(made).encode()).hexdigest())


def as_design(reference: str) -> str:
    """The reference under the design's name."""
    return reference.replace("RefModule", "TopModule")


def one_file(design: str, name: str = "TopModule.v") -> tuple[dict[str, str], tuple[str, ...]]:
    """A design as the judge takes it."""
    return {name: design}, (name,)


FLIP_FLOP_BENCH = bench(FLIP_FLOP, scored_text({"d": 8}, {"q": 8}))
COUNTER_BENCH = bench(
    COUNTER,
    scored_text(
        {"areset": 1, "enable": 1},
        {"count": 4, "wrapped": 1},
        drive={"areset": "initial begin areset = 1; #12 areset = 0; #203 areset = 1; #4 areset = 0; end"},
        half_periods=120,
    ),
)
GATES_BENCH = bench(GATES, scored_text({"a": 1, "b": 1}, {"both": 1, "either": 1}, clocked=False))
CONSTANT_BENCH = bench(CONSTANT, scored_text({}, {"one": 1}, clocked=False))
WIDE_BENCH = bench(WIDE, scored_text({"d": 512}, {"q": 512}, drive="always @(posedge clk) {name} <= {16{$random}};"))
CLOSED_LOOP_BENCH = bench(
    HANDSHAKE,
    scored_text(
        {"request": 1},
        {"grant": 1},
        drive="initial {name} = 0; always @(negedge clk) {name} <= grant_dut ? 0 : ($random & 1);",
    ),
)
SELF_CHECKING_BENCH = bench(
    GATES,
    """
module tb;
  reg a, b; wire both, either;
  integer i, wrong = 0;
  TopModule dut(a, b, both, either);
  initial begin
    for (i = 0; i < 4; i = i + 1) begin
      {a, b} = i; #1;
      if (both !== (a & b) || either !== (a | b)) wrong = wrong + 1;
    end
    if (wrong == 0) $display("all good"); else $display("%0d wrong", wrong);
    $finish;
  end
endmodule
""",
)
