"""The weaker judge locks down what a design may do, and still tells right from wrong."""

import pytest

from tests.icarus import made
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.verdict import Verdict

HEADER = "module TopModule(input clk, input request, output reg grant);\n"
BODY = "initial grant = 0;\nalways @(posedge clk) grant <= request;\n"
RIGHT = HEADER + BODY + "endmodule\n"
NOT_ALLOWED = "is not allowed in a design that is judged by this testbench"


async def verdict_on(judge: Judge, design: str, bench: Bench = made.CLOSED_LOOP_BENCH) -> Verdict:
    prepared = await judge.prepare(bench)
    assert prepared.status == "classic"
    return await judge.judge(prepared, *made.one_file(design))


def told(verdict: Verdict) -> str:
    assert verdict.compilation is not None
    return verdict.compilation.messages(10_000)


@pytest.mark.parametrize("bench", [made.CLOSED_LOOP_BENCH, made.SELF_CHECKING_BENCH], ids=["scored", "self-checking"])
async def test_the_reference_passes(bench: Bench, judge: Judge) -> None:
    verdict = await verdict_on(judge, made.as_design(bench.reference), bench)
    assert (verdict.passed, verdict.reason, verdict.judge) == (True, "match", "classic"), told(verdict)


async def test_an_honest_design_with_children_and_pure_functions_passes(judge: Judge) -> None:
    design = HEADER.replace(" reg", "") + "part #(.N($clog2(2))) p(.c(clk), .a(request), .b(grant));\nendmodule\n"
    design += "module part #(parameter N = 1)(input c, input [N-1:0] a, output reg b);\n"
    design += "initial b = 0; always @(posedge c) if ($time > 0) b <= $unsigned(a); endmodule\n"
    verdict = await verdict_on(judge, design)
    assert verdict.passed, told(verdict)
    assert (verdict.samples, verdict.mismatches) == (60, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("<= request", "<= ~request"), "mismatch"),
        (("posedge", "negedge"), "mismatch"),
        (("grant <= request", "grant <= 1'bx"), "mismatch"),
        (("always", "initial while (1) ; always"), "time_limit"),
    ],
)
async def test_a_wrong_design_fails(change: tuple[str, str], reason: str, judge: Judge) -> None:
    verdict = await verdict_on(judge, RIGHT.replace(*change))
    assert (verdict.passed, verdict.reason, verdict.judge) == (False, reason, "classic")


async def test_a_wrong_design_fails_a_bench_that_checks_by_itself(judge: Judge) -> None:
    design = made.as_design(made.GATES).replace("a | b", "a ^ b")
    assert (await verdict_on(judge, design, made.SELF_CHECKING_BENCH)).reason == "mismatch"


REFUSED = {
    "prints the pass line": ('initial $display("Mismatches: 0 in 60 samples");', f"$display {NOT_ALLOWED}"),
    "prints at the end": ('final $write("Mismatches: 0 in 60 samples");', f"$write {NOT_ALLOWED}"),
    "stops": ("initial #20 $finish;", f"$finish {NOT_ALLOWED}"),
    "pauses": ("initial #20 $stop;", f"$stop {NOT_ALLOWED}"),
    "forces": ("initial force grant = 1;", f"force {NOT_ALLOWED}"),
    "assigns in a process": ("initial assign grant = 1;", f"cassign {NOT_ALLOWED}"),
    "reads a file": ('integer f; initial f = $fopen("x");', f"$fopen {NOT_ALLOWED}"),
    "reads a memory": ('reg m [0:1]; initial $readmemb("m.mem", m);', f"$readmemb {NOT_ALLOWED}"),
    "steers the stimulus": ("integer v; always @(posedge clk) v = $random;", f"$random {NOT_ALLOWED}"),
    "prints where it sees the bench's macros": (
        '`ifdef BENCH_MACRO\ninitial $display("Mismatches: 0 in 60 samples");\n`endif',
        f"$display {NOT_ALLOWED}",
    ),
    "names the reference": ("RefModule r(clk, request, w);", "the name RefModule belongs to the testbench"),
    "names the bench": ("assign w = tb.grant_ref;", "the name tb belongs to the testbench"),
    "hides the reference in odd names": (
        "wire \\a/* ; RefModule r(clk, request, w); wire \\b*/ ;",
        "the name RefModule belongs to the testbench",
    ),
    "joins the reference's name": (
        "`define JOIN(x) Ref\n`JOIN(1)Module r(clk, request, w);",
        "the name RefModule belongs to the testbench",
    ),
    "declares a module of the bench": ("endmodule\nmodule tb;", "the name tb belongs to the testbench"),
    "includes the reference": ('`include ".judge/reference.sv"', "files of the testbench cannot be included"),
    "drives its own input": ("assign request = 0;", "the design drives its own input request"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_design_is_refused_that(name: str, judge: Judge) -> None:
    more, message = REFUSED[name]
    bench = made.CLOSED_LOOP_BENCH
    if "MACRO" in more:
        bench = made.bench(bench.reference, "`define BENCH_MACRO 1\n" + bench.testbench)
    verdict = await verdict_on(judge, RIGHT.replace("endmodule", f"wire w;\n{more}\nendmodule"), bench)
    assert (verdict.passed, verdict.reason) == (False, "compile_error")
    assert message in told(verdict)
    assert "vt_" not in told(verdict)


async def test_a_port_that_could_drive_the_bench_is_refused(judge: Judge) -> None:
    verdict = await verdict_on(judge, RIGHT.replace("input request", "inout request"))
    assert verdict.reason == "compile_error"
    assert "port request of TopModule is an inout, expected input" in told(verdict)


async def test_errors_and_missing_ports_are_told_as_everywhere(judge: Judge) -> None:
    assert "TopModule.v:3: error: Unable to bind wire/reg/memory `x' in `TopModule'" in told(
        await verdict_on(judge, RIGHT.replace("<= request", "<= x"))
    )
    missing = told(await verdict_on(judge, RIGHT.replace("request", "ask")))
    assert "port request of TopModule is missing: expected input request (1 bit)" in missing


async def test_a_long_transcript_is_compared_whole(judge: Judge) -> None:
    chatty = made.SELF_CHECKING_BENCH.testbench.replace(
        "initial begin", 'initial begin for (i = 0; i < 3000; i = i + 1) $display("line %0d of many lines", i);'
    )
    bench = made.bench(made.GATES, chatty)
    design = made.as_design(made.GATES)
    assert (await verdict_on(judge, design, bench)).passed
    assert not (await verdict_on(judge, design.replace("a | b", "a"), bench)).passed


async def test_hidden_files_are_there_and_a_design_cannot_replace_them(judge: Judge) -> None:
    bench = made.bench(
        made.GATES,
        made.SELF_CHECKING_BENCH.testbench.replace("integer i", "checker_ c(); integer i"),
        hidden_files={"checker.sv": 'module checker_; initial $display("checker"); endmodule\n'},
    )
    design = made.as_design(made.GATES)
    assert (await verdict_on(judge, design, bench)).passed
    prepared = await judge.prepare(bench)
    files = {"TopModule.v": design, "vt_hidden/checker.sv": "module checker_; endmodule\n"}
    verdict = await judge.judge(prepared, files, tuple(files))
    assert not verdict.passed
    assert "cannot be included" in told(verdict)


async def test_a_bench_that_cannot_be_replayed_and_whose_reference_fails_is_unusable(judge: Judge) -> None:
    wrong = made.CLOSED_LOOP_BENCH.testbench.replace("stats1", "board").replace(
        "wire tb_match =", "wire tb_match = 0 &"
    )
    prepared = await judge.prepare(made.bench(made.HANDSHAKE, wrong))
    assert prepared.status == "unusable"
    assert prepared.reason.endswith("the reference fails its own testbench: 60 of 60 samples mismatch")
