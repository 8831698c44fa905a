"""Which benches can be recorded, what is recorded, and why the others cannot be used."""

import re
from dataclasses import replace

import pytest

from tests.icarus import made
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.recorder import replay_depth
from verilog_taskapp.icarus.runner import Runner
from verilog_taskapp.icarus.stimuli import PUBLIC
from verilog_taskapp.icarus.toolchain import Toolchain

CASES = {
    "sequential": (made.FLIP_FLOP_BENCH, 60),
    "with an asynchronous reset": (made.COUNTER_BENCH, 120),
    "combinational": (made.GATES_BENCH, 60),
    "without inputs": (made.CONSTANT_BENCH, 60),
    "512 bits wide": (made.WIDE_BENCH, 60),
    "in nanoseconds": (
        made.bench(made.FLIP_FLOP, made.scored_text({"d": 8}, {"q": 8}, timescale="1ns/1ps")),
        60,
    ),
    "in tens of microseconds": (
        made.bench(made.FLIP_FLOP, made.scored_text({"d": 8}, {"q": 8}, timescale="10us/100ns")),
        60,
    ),
    "with a clock of another name": (
        made.bench(
            made.FLIP_FLOP.replace("clk", "clock"),
            made.scored_text({"d": 8}, {"q": 8}, clock="clock"),
        ),
        60,
    ),
    "with inputs that change at the clock's edge": (
        made.bench(
            made.FLIP_FLOP,
            made.scored_text({"d": 8}, {"q": 8}, drive="initial {name} = 0; always @(posedge clk) {name} = $random;"),
        ),
        60,
    ),
    "with inputs that change with an offset": (
        made.bench(made.FLIP_FLOP, made.scored_text({"d": 8}, {"q": 8}, drive="always #7 {name} = $random;")),
        60,
    ),
    "with escaped port names": (
        made.bench(
            "module RefModule(input \\a.b , output \\q[0] ); assign \\q[0] = ~\\a.b ; endmodule\n",
            """
module tb;
  struct packed { int errors; int clocks; } stats1; reg clk = 0; reg x; wire r, d;
  RefModule good1(.\\a.b (x), .\\q[0] (r)); TopModule top1(.\\a.b (x), .\\q[0] (d));
  always #5 clk = ~clk; always @(posedge clk) x <= $random;
  always @(negedge clk) begin stats1.clocks++; if (r !== (r ^ d ^ r)) stats1.errors++; end
  initial #303 begin $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks); $finish; end
endmodule
""",
        ),
        30,
    ),
    "within a generate block": (
        made.bench(
            made.GATES,
            made.GATES_BENCH.testbench.replace("TopModule top_module1", "if (1) begin : inner TopModule top").replace(
                ".both(both_dut), .either(either_dut));", ".both(both_dut), .either(either_dut)); end"
            ),
        ),
        60,
    ),
    "with parameters in the reference": (
        made.bench(
            made.FLIP_FLOP.replace("RefModule(", "RefModule #(parameter N = 8)(").replace("[7:0]", "[N-1:0]"),
            made.FLIP_FLOP_BENCH.testbench,
        ),
        60,
    ),
    "with a helper module in a hidden file": (
        made.bench(
            "module RefModule(input a, output q); inverter i(a, q); endmodule\n",
            made.scored_text({"a": 1}, {"q": 1}, clocked=False),
            hidden_files={"inverter.sv": "module inverter(input a, output q); assign q = ~a; endmodule\n"},
        ),
        60,
    ),
    "with a waveform dump": (
        made.bench(
            made.FLIP_FLOP,
            made.scored_text(
                {"d": 8}, {"q": 8}, more='initial begin $dumpfile("wave.vcd"); $dumpvars(1, tb_mismatch); end\n'
                "wire tb_mismatch = ~tb_match;"
            ),
        ),
        60,
    ),
}  # fmt: skip


def design_for(bench: Bench) -> str:
    return made.as_design(bench.reference) + "".join(bench.hidden_files.values())


@pytest.mark.parametrize("name", CASES)
async def test_a_bench_is_recorded_and_its_own_reference_passes(name: str, judge: Judge) -> None:
    bench, samples = CASES[name]
    prepared = await judge.prepare(bench)
    assert (prepared.status, prepared.reason) == ("golden", "")
    for draws in (PUBLIC, 3):
        verdict = await judge.judge(prepared, *made.one_file(design_for(bench), "TopModule.sv"), draws=draws)
        assert (verdict.passed, verdict.reason, verdict.judge) == (True, "match", "golden")
        assert (verdict.samples, verdict.mismatches) == (samples, 0)
        assert verdict.share_of_outputs == 1.0


async def test_the_ports_are_those_of_the_reference_as_elaborated(judge: Judge) -> None:
    prepared = await judge.prepare(made.COUNTER_BENCH)
    assert prepared.ports == (
        Port("clk", "input", 1),
        Port("areset", "input", 1),
        Port("enable", "input", 1),
        Port("count", "output", 4),
        Port("wrapped", "output", 1),
    )
    assert prepared.facts is not None
    assert (prepared.facts.root, prepared.facts.design_path) == ("tb", ("tb", "top_module1"))


async def test_the_time_scale_is_the_benchs(judge: Judge) -> None:
    prepared = await judge.prepare(CASES["in nanoseconds"][0])
    trace = await judge.trace(prepared)
    assert (trace.interface.unit, trace.interface.precision) == (-9, -12)
    assert [time for time, _ in trace.sample_points()][:3] == [5_000, 10_000, 15_000]


async def test_a_secret_stimulus_differs_from_the_public_one_and_from_other_secrets(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    stimuli = {draws: (await judge.trace(prepared, draws)).stimulus for draws in range(6)}
    assert len(set(stimuli.values())) == 6
    assert {len(one) for one in stimuli.values()} == {len(stimuli[PUBLIC])}


async def test_a_bench_without_randomness_has_one_stimulus(judge: Judge) -> None:
    prepared = await judge.prepare(made.CONSTANT_BENCH)
    assert (await judge.trace(prepared, 5)).stimulus == (await judge.trace(prepared)).stimulus


async def test_outputs_that_are_unknown_in_the_reference_are_not_checked(judge: Judge) -> None:
    reference = "module RefModule(input a, output q, output r); assign q = a, r = 1'bx; endmodule\n"
    bench = made.bench(reference, made.scored_text({"a": 1}, {"q": 1, "r": 1}, clocked=False))
    prepared = await judge.prepare(bench)
    assert set((await judge.trace(prepared)).expected.decode().split()[-1]) <= set("01x")
    for value in ("1'b0", "1'b1", "1'bz"):
        design = made.as_design(reference).replace("1'bx", value)
        assert (await judge.judge(prepared, *made.one_file(design))).passed


UNUSABLE = {
    "a reference that fails its own bench": (
        replace(
            made.FLIP_FLOP_BENCH,
            testbench=made.FLIP_FLOP_BENCH.testbench.replace("wire tb_match =", "wire tb_match = d[0] &"),
        ),
        r"the reference fails its own testbench: \d+ of 60 samples mismatch",
    ),
    "a bench that does not compile": (
        replace(made.FLIP_FLOP_BENCH, testbench="module tb; nonsense\nendmodule\n"),
        "does not compile: syntax error",
    ),
    "a reference that does not compile": (
        replace(made.FLIP_FLOP_BENCH, reference=made.FLIP_FLOP.replace("<= d", "<= e")),
        "does not compile: Unable to bind wire/reg/memory `e' in `RefModule'",
    ),
    "a reference without its module": (
        replace(made.FLIP_FLOP_BENCH, reference=made.FLIP_FLOP.replace("RefModule", "Other")),
        r"does not compile: .*RefModule.*",
    ),
    "a bench without the design": (
        made.bench(made.CONSTANT, made.CONSTANT_BENCH.testbench.replace("TopModule top", "RefModule top")),
        "the testbench does not instantiate TopModule",
    ),
    "a bench with a port that the reference has not": (
        replace(made.FLIP_FLOP_BENCH, testbench=made.FLIP_FLOP_BENCH.testbench.replace("good1(", "good1(.z(d), ")),
        r"does not compile: port ``z'' is not a port of .*",
    ),
    "an interface with a port that goes both ways": (
        made.bench(
            made.GATES.replace("input a", "inout a"),
            made.scored_text({"b": 1}, {"a": 1, "both": 1, "either": 1}, clocked=False),
        ),
        "the interface has inout ports",
    ),
    "a reference without outputs": (
        made.bench("module RefModule(input a); endmodule\n", made.scored_text({"a": 1}, {}, clocked=False)),
        "the reference has no outputs",
    ),
    "a bench that takes no samples": (
        made.bench(made.GATES, made.scored_text({"a": 1, "b": 1}, {"both": 1, "either": 1}, half_periods=0)),
        r"does not compile: .*clk.*|.*0 of 0 samples.*",
    ),
    "a bench that says the same of every design": (
        made.bench(made.GATES, 'module tb; wire a, b, c, d; TopModule t(a, b, c, d); initial $display; endmodule'),
        r".*stats1; the testbench prints the same for its reference and for a design without outputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_bench_that_does_not_work_is_unusable_and_says_why(name: str, judge: Judge) -> None:
    bench, reason = UNUSABLE[name]
    prepared = await judge.prepare(replace(bench, key=f"unusable {name}".replace(" ", "-")))
    assert prepared.status == "unusable"
    assert not prepared.usable
    assert re.fullmatch(reason, prepared.reason), prepared.reason


async def test_a_bench_that_never_ends_is_unusable(
    runner: Runner, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verilog_taskapp.icarus.recorder.RECORD_CPU_S", 1.0)
    judge = Judge(runner, tools)
    endless = replace(made.GATES_BENCH, testbench=made.GATES_BENCH.testbench.replace("$finish", ""), key="endless")
    prepared = await judge.prepare(endless)
    assert (prepared.status, prepared.usable) == ("unusable", False)
    assert prepared.reason == "the testbench does not run to its end (time limit)"


CLASSIC = {
    "one whose stimulus depends on the answers": (
        made.CLOSED_LOOP_BENCH,
        "the testbench is not open-loop: its stimulus changes when the outputs are x",
    ),
    "one whose clock is not known by its name": (
        made.bench(made.FLIP_FLOP.replace("clk", "tick"), made.scored_text({"d": 8}, {"q": 8}, clock="tick")),
        r"the reference does not replay \(\d+ of 60 samples mismatch\)",
    ),
    "one that checks by itself": (made.SELF_CHECKING_BENCH, "the testbench keeps no score board named stats1"),
    "one that samples twice at an instant": (
        made.bench(
            made.GATES,
            made.GATES_BENCH.testbench.replace("stats1.clocks++;", "stats1.clocks++; #0 stats1.clocks++;"),
        ),
        "the testbench samples twice at the same instant",
    ),
    "one that hides its count": (
        made.bench(made.GATES, made.GATES_BENCH.testbench.replace('"Mismatches: %1d in %1d samples"', '"%1d/%1d"')),
        "the testbench does not print the count of mismatches and samples",
    ),
    "one that waits for ever for an answer": (
        made.bench(
            made.HANDSHAKE,
            made.scored_text(
                {"request": 1},
                {"grant": 1},
                drive="initial begin request = 1; wait (grant_dut === 1); request = 0; end",
            ).replace("repeat (60)", "wait (grant_dut === 1); repeat (60)"),
        ),
        r"the testbench is not open-loop: with outputs that are x, the testbench does not run to its end "
        r"\(time limit\)",
    ),
}


@pytest.mark.parametrize("name", CLASSIC)
async def test_a_bench_that_cannot_be_replayed_is_judged_the_classic_way(
    name: str, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verilog_taskapp.icarus.recorder.DUMMY_CPU_S", 1.0)
    bench, reason = CLASSIC[name]
    prepared = await judge.prepare(bench)
    assert (prepared.status, prepared.usable) == ("classic", True)
    assert re.fullmatch(reason, prepared.reason), prepared.reason


@pytest.mark.parametrize("rows", [1, 32, 33, 1000, 1024, 1025, 100_000])
def test_a_replay_bench_has_room_for_a_secret_stimulus_of_twice_the_rows(rows: int) -> None:
    depth = replay_depth(rows)
    assert 2 * rows <= depth
    assert depth.bit_count() == 1


async def test_a_reference_and_a_bench_find_their_hidden_files_by_plain_names(judge: Judge) -> None:
    text = made.scored_text({"d": 4}, {"q": 4}, clocked=False).replace(
        "endmodule", "wire [3:0] unused = `KEY;\nendmodule", 1
    )
    reference = '`include "key.vh"\nmodule RefModule(input [3:0] d, output [3:0] q); assign q = d ^ `KEY; endmodule\n'
    bench = made.bench(reference, '`include "key.vh"\n' + text, hidden_files={"key.vh": "`define KEY 4'h5\n"})
    prepared = await judge.prepare(bench)
    assert (prepared.status, prepared.reason) == ("golden", "")
    design = "module TopModule(input [3:0] d, output [3:0] q); assign q = d ^ {}; endmodule\n"
    for key, passed in (("4'h5", True), ("`KEY", False)):
        compilation = await judge.compile(prepared, *made.one_file(design.format(key)))
        assert (await judge.final(prepared, compilation)).passed is passed
