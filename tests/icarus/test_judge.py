"""The golden judge: right designs pass, everything else fails, and what is ours is never a verdict."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import left_by_jobs, until
from tests.icarus import made
from tests.icarus.fakes import fake_tools
from verilog_taskapp.errors import EnvironmentFailed, ProblemUnusable
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.judge import Judge, Prepared
from verilog_taskapp.icarus.runner import MIB, Job, JobResult, Limits, Runner
from verilog_taskapp.icarus.stimuli import PUBLIC
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.verdict import Reason, Verdict

HEADER = "module TopModule(input clk, input [7:0] d, output reg [7:0] q);\n"
DFF = "initial q = 0;\nalways @(posedge clk) q <= d;\n"
END = "endmodule\n"
RIGHT = HEADER + DFF + END


def pool(judge: Judge, prepared: Prepared) -> list[int]:
    """The secret stimuli of a bench."""
    return [judge.secrets.draws(prepared.bench.key, index) for index in range(judge.secrets.size)]


async def verdict_on(judge: Judge, design: str, bench: Bench = made.FLIP_FLOP_BENCH, **files: str) -> Verdict:
    """The public verdict on a design with further files ``name_suffix``."""
    prepared = await judge.prepare(bench)
    everything = {"TopModule.sv": design} | {
        name[::-1].replace("_", ".", 1)[::-1]: text for name, text in files.items()
    }
    return await judge.judge(prepared, everything, tuple(name for name in everything if name.endswith((".v", ".sv"))))


# --- designs that are right


HONEST = {
    "as the reference has it": RIGHT,
    "printing a lot": HEADER + 'always @(d) $display("%m %b", d);\n' + DFF + END,
    "printing what a testbench prints": HEADER + 'final $display("Mismatches: 9 in 60 samples");\n' + DFF + END,
    "with its own time scale": "`timescale 1ns/1ps\n" + RIGHT,
    "with a delay of a unit": HEADER + "initial q = 0;\nalways @(posedge clk) q <= #1 d;\n" + END,
    "with a bench of its own beside it": RIGHT
    + 'module tb; TopModule t(); initial begin $display("x"); #9 $finish; end endmodule\n',
    "drawing random values": HEADER + "integer r; always @(posedge clk) r = $random + $urandom;\n" + DFF + END,
    "with names of the judge": HEADER + "wire vt_dut = 1; reg vt_fd, vt_row, vt_memory, vt_in0;\n" + DFF + END,
    "with a child instance": "module part(input c, input [7:0] a, output reg [7:0] b); initial b = 0; "
    "always @(posedge c) b <= a; endmodule\n" + HEADER.replace(" reg", "") + "part p(.c(clk), .a(d), .b(q));\n" + END,
    "with an empty file name directive": '`line 1 "x.v" 0\n' + RIGHT,
    "that waits for its clock in a loop": HEADER
    + "initial begin q = 0; forever begin @(posedge clk); q <= d; end end\n"
    + END,
    "with an unused output left unknown": RIGHT.replace("output reg", "output unused, output reg"),
    "with default_nettype none": "`default_nettype none\n" + RIGHT.replace("input", "input wire"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
async def test_an_honest_design_passes(name: str, judge: Judge) -> None:
    verdict = await verdict_on(judge, HONEST[name])
    assert verdict.compilation is not None
    assert (verdict.passed, verdict.reason) == (True, "match"), verdict.compilation.messages(1000)
    assert (verdict.samples, verdict.mismatches, verdict.waveform) == (60, 0, None)
    assert [(one.name, one.width, one.mismatches) for one in verdict.outputs] == [("q", 8, 0)]


async def test_included_files_and_memory_files_of_the_workspace_can_be_used(judge: Judge) -> None:
    reference = "module RefModule(input [1:0] a, output [7:0] q); assign q = a * 16 + 1; endmodule\n"
    bench = made.bench(reference, made.scored_text({"a": 2}, {"q": 8}, clocked=False))
    design = """
`include "defines.vh"
module TopModule(input [1:0] a, output [`WIDTH-1:0] q);
  reg [7:0] table_ [0:3];
  initial $readmemh("sub/table.mem", table_);
  lookup look(.index(a), .q(q), .w0(table_[0]), .w1(table_[1]), .w2(table_[2]), .w3(table_[3]));
endmodule
"""
    files = {
        "TopModule.sv": design,
        "defines.vh": "`define WIDTH 8\n",
        "sub/table.mem": "01 11\n21 31\n",
        "lookup.v": "module lookup(input [1:0] index, output [7:0] q, input [7:0] w0, w1, w2, w3);\n"
        "  assign q = index == 0 ? w0 : index == 1 ? w1 : index == 2 ? w2 : w3;\nendmodule\n",
    }
    prepared = await judge.prepare(bench)
    assert (await judge.judge(prepared, files, ("TopModule.sv", "lookup.v"))).passed
    wrong = files | {"sub/table.mem": "01 11 21 30\n"}
    assert not (await judge.judge(prepared, wrong, ("TopModule.sv", "lookup.v"))).passed


async def test_the_order_of_the_sources_is_the_callers(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    files = {"a.sv": RIGHT.replace("q <= d", "q <= `VALUE"), "b.sv": "`define VALUE d\n"}
    assert (await judge.judge(prepared, files, ("b.sv", "a.sv"))).passed
    assert (await judge.judge(prepared, files, ("a.sv", "b.sv"))).reason == "compile_error"


# --- designs that are wrong


WRONG: dict[str, tuple[str, Reason]] = {
    "one bit wrong": (RIGHT.replace("q <= d", "q <= d ^ 8'h10"), "mismatch"),
    "one bit wrong once in a while": (
        HEADER + "integer n = 0; initial q = 0;\nalways @(posedge clk) begin n = n + 1; q <= d ^ (n == 25); end\n"
        + END,
        "mismatch",
    ),
    "the other edge": (RIGHT.replace("posedge", "negedge"), "mismatch"),
    "unknown outputs": (HEADER + END, "mismatch"),
    "floating outputs": (HEADER.replace(" reg", "") + END, "mismatch"),
    "outputs that are never driven to a value": (HEADER.replace(" reg", "") + "assign q = 8'hzz;\n" + END, "mismatch"),
    "a narrow output": (RIGHT.replace("output reg [7:0] q", "output reg [6:0] q"), "mismatch"),
    "a narrow input": (RIGHT.replace("input [7:0] d", "input [6:0] d"), "mismatch"),
    "always @* on a constant": (HEADER + "always @* q = 8'h00;\n" + END, "mismatch"),
    "a missing port": (RIGHT.replace("input [7:0] d,", "") + "", "compile_error"),
    "a renamed port": (RIGHT.replace("clk", "clock"), "compile_error"),
    "another module": (RIGHT.replace("TopModule", "Other"), "compile_error"),
    "an instance of the reference": (HEADER.replace(" reg", "") + "RefModule r(clk, d, q);\n" + END, "compile_error"),
    "a name of the testbench": (HEADER.replace(" reg", "") + "assign q = tb.q_ref;\n" + END, "compile_error"),
    "an input driven backwards": (RIGHT.replace("input [7:0] d", "inout [7:0] d"), "compile_error"),
    "the pass line and the end": (
        HEADER + 'initial begin $display("Mismatches: 0 in 60 samples"); $finish; end\n' + END,
        "missing_samples",
    ),
    "the end at the start": (HEADER + "initial $finish;\n" + DFF + END, "missing_samples"),
    "the end in the middle": (HEADER + "initial #100 $finish(0);\n" + DFF + END, "missing_samples"),
    "an error that is fatal": (HEADER + "initial #100 $fatal;\n" + DFF + END, "missing_samples"),
    "a loop that never waits": (HEADER + "always @(posedge clk) while (1) q = d;\n" + END, "time_limit"),
    "two processes that never settle": (
        HEADER + "reg a = 0, b = 0; always @(a) b = ~a; always @(b) a = ~b ^ a ^ a; initial forever #0 a = ~a;\n" + END,
        "time_limit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_design_fails(name: str, ungated: Judge) -> None:
    design, reason = WRONG[name]
    verdict = await verdict_on(ungated, design)
    assert (verdict.passed, verdict.reason) == (False, reason)


TRICKS = {
    "writing a result": 'integer f; initial begin f = $fopen("../out/result", "w"); #99 $fdisplay(f, "00000000"); end',
    "adding to the result": 'integer f; initial begin f = $fopen("../out/result", "a"); $fdisplay(f, "00000000"); end',
    "forcing what is written": "initial force vt_replay.vt_out0 = 8'h00;",
    "forcing its input": "initial force d = 8'h00;",
    "reading the stimulus": 'integer f; initial f = $fopen(".judge/stimulus", "r");',
    "dumping waves": 'initial begin $dumpfile("x.vcd"); $dumpvars; end',
    "stopping": "initial #100 $stop;",
    "running a command": 'initial $system("id");',
}  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
async def test_a_trick_is_refused_with_its_name(name: str, judge: Judge) -> None:
    verdict = await verdict_on(judge, HEADER + f"{TRICKS[name]}\n" + DFF + END)
    assert verdict.reason == "compile_error"
    assert verdict.compilation is not None
    assert " is not allowed in a design" in verdict.compilation.messages(1000)
    assert "vt_" not in verdict.compilation.messages(1000)


@pytest.mark.parametrize("name", TRICKS)
async def test_a_trick_does_not_help_where_it_is_not_refused(
    name: str, boxed: Runner, tools: Toolchain, golden_cache: Path
) -> None:
    ungated = Judge(boxed, tools, run_limits=Limits(cpu_s=1.0), cache_dir=golden_cache, gated=False)
    wrong = HEADER + f"{TRICKS[name]}\n" + DFF.replace("<= d", "<= ~d") + END
    assert not (await verdict_on(ungated, wrong)).passed


async def test_a_mismatch_tells_which_output_how_often_and_where_first(judge: Judge) -> None:
    design = made.as_design(made.COUNTER).replace("&count", "count == 14")
    verdict = await verdict_on(judge, design, made.COUNTER_BENCH)
    count, wrapped = verdict.outputs
    assert (count.name, count.mismatches, count.first_sample) == ("count", 0, None)
    assert (wrapped.name, wrapped.width) == ("wrapped", 1)
    assert verdict.mismatches == wrapped.mismatches > 0
    assert verdict.first_mismatch == wrapped.first_sample
    assert verdict.share_of_outputs == 0.5
    assert verdict.waveform is not None
    (first,) = [row for row in verdict.waveform.rows if row.sample == verdict.first_mismatch]
    assert first.differs == (False, True)
    assert {first.expected[0], first.actual[0]} <= {"1110", "1111"}


async def test_what_a_design_prints_comes_back_as_its_own_words_without_the_judges(judge: Judge) -> None:
    verdict = await verdict_on(judge, HEADER + 'initial $display("here: %m");\n' + DFF + END)
    assert verdict.passed
    assert verdict.design_output == "here: TopModule\n"


async def test_what_the_simulator_says_about_a_design_comes_back_too(ungated: Judge) -> None:
    verdict = await verdict_on(ungated, HEADER + 'initial $no_such_task("x");\n' + DFF + END)
    assert verdict.reason == "missing_samples"
    assert "$no_such_task" in verdict.design_output
    assert ".judge" not in verdict.design_output
    missing = 'reg [7:0] m [0:1]; initial $readmemh("missing.mem", m);\n'
    verdict = await verdict_on(ungated, HEADER + missing + DFF + END)
    assert verdict.passed
    assert "missing.mem" in verdict.design_output


async def test_a_silent_design_has_no_output(judge: Judge) -> None:
    assert (await verdict_on(judge, RIGHT)).design_output == ""


LIMITS = Limits(cpu_s=1.0, wall_s=60.0, address_space_bytes=256 * MIB, file_size_bytes=1 * MIB, output_bytes=1000)


@pytest.fixture
def strict(boxed: Runner, tools: Toolchain, golden_cache: Path) -> Judge:
    """A judge with limits that are soon used up."""
    return Judge(
        boxed, tools, compile_limits=LIMITS, run_limits=LIMITS, wall_factor=60.0, cache_dir=golden_cache / "strict"
    )


GREEDY: dict[str, tuple[str, tuple[Reason, ...]]] = {
    "memory": (
        HEADER + 'string s; initial begin s = "0123456789abcdef"; forever s = {s, s}; end\n' + END,
        ("memory_limit", "time_limit", "crashed"),
    ),
    "queued memory": (
        HEADER + "int many[$]; initial forever many.push_back(1);\n" + END,
        ("memory_limit", "time_limit"),
    ),
    "output": (HEADER + 'initial forever $display("flood flood flood flood flood");\n' + END, ("output_limit",)),
    "files": (
        HEADER + 'integer f; initial begin f = $fopen("big.txt"); forever $fdisplay(f, "0123456789012345678901"); end\n'
        + END,
        ("compile_error",),  # the gate names $fopen, and in the sandbox there is no file to write
    ),
    "the compiler's time": (
        HEADER + DFF + "function integer spin(input integer n); while (1) spin = spin + 1; endfunction\n"
        "localparam P = spin(1);\n" + END,
        ("compile_error",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GREEDY)
async def test_a_design_that_takes_too_much_fails_by_its_own_doing(name: str, strict: Judge) -> None:
    design, reasons = GREEDY[name]
    verdict = await verdict_on(strict, design)
    assert verdict.reason in reasons
    assert len(verdict.design_output) <= 2 * LIMITS.output_bytes


async def test_a_compile_that_never_ends_is_told_as_such(strict: Judge) -> None:
    verdict = await verdict_on(strict, GREEDY["the compiler's time"][0])
    assert verdict.compilation is not None
    assert verdict.compilation.failure == "time_limit"
    assert verdict.compilation.messages(1000) == "compiler stopped: time limit"


async def test_a_compile_that_eats_memory_is_told_as_such(strict: Judge) -> None:
    verdict = await verdict_on(strict, HEADER + DFF + "reg [(1<<30)-1:0] huge; initial huge = 1<<5;\n" + END)
    assert verdict.compilation is not None
    assert verdict.compilation.messages(1000) == "compiler stopped: memory limit"


async def test_a_problems_own_limit_holds_in_place_of_the_settings(judge: Judge) -> None:
    bench = replace(made.GATES_BENCH, run_cpu_s=1.0, key="short-run")
    design = made.as_design(made.GATES).replace("endmodule", "initial forever #0; endmodule")
    verdict = await verdict_on(judge, design, bench)
    assert verdict.reason == "time_limit"
    assert verdict.cpu_s < 1.9


# --- the public and the secret stimulus


async def test_a_design_that_replays_the_public_answers_fails_on_the_secret_ones(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    answers = (await judge.trace(prepared)).expected.decode().split()
    cases = "".join(f"{number}: q = 8'b{answer};\n" for number, answer in enumerate(answers[1:], start=1))
    rom = HEADER + f"integer n = 0; initial q = 0;\nalways @(clk) begin n = n + 1; case (n)\n{cases}endcase end\n" + END
    compilation = await judge.compile(prepared, *made.one_file(rom))
    assert (await judge.run(prepared, compilation)).passed
    final = await judge.final(prepared, compilation)
    assert (final.passed, final.reason) == (False, "mismatch")
    assert final.waveform is None


async def test_the_reference_passes_finally_on_every_secret_stimulus(judge: Judge) -> None:
    prepared = await judge.prepare(made.COUNTER_BENCH)
    compilation = await judge.compile(prepared, *made.one_file(made.as_design(made.COUNTER)))
    assert (await judge.final(prepared, compilation)).passed
    for draws in pool(judge, prepared):
        assert (await judge.run(prepared, compilation, draws)).passed


async def test_a_design_that_fails_in_public_is_not_judged_in_secret(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    compilation = await judge.compile(prepared, *made.one_file(RIGHT.replace("<= d", "<= ~d")))
    verdict = await judge.final(prepared, compilation)
    assert verdict.reason == "mismatch"
    assert verdict.waveform is not None


async def test_a_secret_stimulus_that_does_not_fit_does_not_end_in_an_error(
    judge: Judge, caplog: pytest.LogCaptureFixture
) -> None:
    first = "32'h12153524"  # what $random begins with
    longer = made.FLIP_FLOP_BENCH.testbench.replace("repeat (60)", f"repeat ($random == {first} ? 60 : 6000)")
    prepared = await judge.prepare(made.bench(made.FLIP_FLOP, longer))
    compilation = await judge.compile(prepared, *made.one_file(RIGHT))
    verdict = await judge.final(prepared, compilation)
    assert (verdict.passed, verdict.samples) == (True, 60)
    assert "too long for the replay bench" in caplog.text


# --- what is ours is an error, never a verdict


def judge_with(runner: Runner, tools: Toolchain, cache: Path | None = None) -> Judge:
    short = Limits(cpu_s=2.0, wall_s=4.0)
    return Judge(runner, tools, compile_limits=short, run_limits=short, wall_factor=2.0, cache_dir=cache)


CRASH = "kill -SEGV $$"
BROKEN_COMPILERS = {
    "crashes": CRASH,
    "exits without a word": "exit 1",
    "has lost its passes": "echo 'sh: 1: /usr/lib/ivl/ivlpp: not found'; exit 127",
    "succeeds without writing a program": "exit 0",
    "has no space for its files": "echo 'ivl: cannot write program.vvp: No space left on device' >&2; exit 1",
    "is out of memory": "echo 'terminate called after throwing bad_alloc' >&2; kill -ABRT $$",
}
BROKEN_SIMULATORS = {
    "crashes": CRASH,
    "aborts": "kill -ABRT $$",
    "exits at once": "exit 0",
    "exits with a failure": "exit 1",
    "writes nothing": '$REAL "$@"; for file in ../out/*; do : > $file; done',
    "writes half of it": '$REAL "$@"; head -c 200 ../out/result > half; cat half > ../out/result',
}


@pytest.mark.parametrize("name", BROKEN_COMPILERS)
async def test_a_compiler_that_is_broken_is_no_verdict(
    name: str, runner: Runner, tools: Toolchain, golden_cache: Path, tmp_path: Path
) -> None:
    prepared = await judge_with(runner, tools, golden_cache).prepare(made.FLIP_FLOP_BENCH)
    broken = judge_with(runner, fake_tools(tmp_path / "fake", tools, iverilog=BROKEN_COMPILERS[name]), golden_cache)
    with pytest.raises(EnvironmentFailed):
        await broken.compile(prepared, *made.one_file(RIGHT))


@pytest.mark.parametrize("name", BROKEN_SIMULATORS)
async def test_a_simulator_that_is_broken_is_no_verdict(
    name: str, runner: Runner, tools: Toolchain, golden_cache: Path, tmp_path: Path
) -> None:
    prepared = await judge_with(runner, tools, golden_cache).prepare(made.FLIP_FLOP_BENCH)
    broken = judge_with(runner, fake_tools(tmp_path / "fake", tools, vvp=BROKEN_SIMULATORS[name]), golden_cache)
    compilation = await broken.compile(prepared, *made.one_file(RIGHT))
    assert compilation.succeeded
    with pytest.raises(EnvironmentFailed) as caught:
        await broken.run(prepared, compilation)
    assert caught.value.stage == "verdict"


@pytest.mark.parametrize("which", ["iverilog", "vvp"])
@pytest.mark.parametrize("body", [CRASH, "exit 1", "kill -KILL $$"])
async def test_a_broken_installation_makes_no_problem_unusable(
    which: str, body: str, runner: Runner, tools: Toolchain, tmp_path: Path
) -> None:
    broken = fake_tools(tmp_path / "fake", tools, **{which: body})
    with pytest.raises(EnvironmentFailed):
        await judge_with(runner, broken, tmp_path / "cache").prepare(made.FLIP_FLOP_BENCH)
    prepared = await judge_with(runner, tools, tmp_path / "cache").prepare(made.FLIP_FLOP_BENCH)
    assert prepared.status == "golden"


async def test_a_simulator_that_is_killed_is_tried_again_and_then_an_error(
    runner: Runner, tools: Toolchain, golden_cache: Path, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    prepared = await judge_with(runner, tools, golden_cache).prepare(made.FLIP_FLOP_BENCH)
    killed = fake_tools(tmp_path / "fake", tools, vvp=f"echo >> {count}; kill -KILL $$")
    judge = judge_with(runner, killed, golden_cache)
    compilation = await judge.compile(prepared, *made.one_file(RIGHT))
    with pytest.raises(EnvironmentFailed, match="killed on this machine, twice"):
        await judge.run(prepared, compilation)
    assert count.read_text() == "\n\n"


async def test_a_simulator_that_is_killed_once_still_gives_its_verdict(
    runner: Runner, tools: Toolchain, golden_cache: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    prepared = await judge_with(runner, tools, golden_cache).prepare(made.FLIP_FLOP_BENCH)
    once = fake_tools(
        tmp_path / "fake", tools, vvp=f'[ -f {mark} ] || {{ touch {mark}; kill -KILL $$; }}; exec $REAL "$@"'
    )
    assert (await judge_with(runner, once, golden_cache).judge(prepared, *made.one_file(RIGHT))).passed


async def test_a_simulator_that_stalls_is_no_verdict(
    runner: Runner, tools: Toolchain, golden_cache: Path, tmp_path: Path
) -> None:
    prepared = await judge_with(runner, tools, golden_cache).prepare(made.FLIP_FLOP_BENCH)
    stalled = fake_tools(tmp_path / "fake", tools, vvp="exec sleep 600")
    judge = Judge(runner, stalled, run_limits=Limits(cpu_s=0.2), wall_factor=1.0, cache_dir=golden_cache)
    with pytest.raises(EnvironmentFailed, match="stalled on this machine, twice"):
        await judge.judge(prepared, *made.one_file(RIGHT))


async def test_what_a_simulator_prints_or_how_it_exits_is_no_evidence(
    runner: Runner, tools: Toolchain, golden_cache: Path, tmp_path: Path
) -> None:
    prepared = await judge_with(runner, tools, golden_cache).prepare(made.FLIP_FLOP_BENCH)
    chatty = fake_tools(tmp_path / "fake", tools, vvp='$REAL "$@"; echo "Mismatches: 60 in 60 samples"; exit 1')
    assert (await judge_with(runner, chatty, golden_cache).judge(prepared, *made.one_file(RIGHT))).passed


# --- preparing


def count_jobs(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many jobs the runner has been given since the last call."""
    jobs = 0
    real = runner.run

    async def counted(job: Job) -> JobResult:
        nonlocal jobs
        jobs += 1
        return await real(job)

    def so_far() -> int:
        nonlocal jobs
        jobs, before = 0, jobs
        return before

    monkeypatch.setattr(runner, "run", counted)
    return so_far


async def test_concurrent_callers_share_one_preparation(
    runner: Runner, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = count_jobs(runner, monkeypatch)
    alone = Judge(runner, tools)
    await alone.prepare(made.FLIP_FLOP_BENCH)
    for_one = jobs()
    judge = Judge(runner, tools)
    prepared = await asyncio.gather(*(judge.prepare(made.FLIP_FLOP_BENCH) for _ in range(10)))
    assert all(one is prepared[0] for one in prepared)
    assert jobs() == for_one
    await judge.prepare(made.FLIP_FLOP_BENCH)
    assert jobs() == 0


async def test_concurrent_callers_share_one_recording_of_a_secret(
    runner: Runner, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge(runner, tools)
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    jobs = count_jobs(runner, monkeypatch)
    traces = await asyncio.gather(*(judge.trace(prepared, 4) for _ in range(5)))
    assert all(one == traces[0] for one in traces)
    assert jobs() == 2  # one recording, one replay of it


async def test_a_caller_that_gives_up_does_not_take_the_preparation_from_the_others(
    runner: Runner, tools: Toolchain
) -> None:
    judge = Judge(runner, tools)
    first = asyncio.create_task(judge.prepare(made.FLIP_FLOP_BENCH))
    second = asyncio.create_task(judge.prepare(made.FLIP_FLOP_BENCH))
    await until(lambda: runner.busy)
    first.cancel()
    assert (await second).status == "golden"
    assert first.cancelled()


async def test_a_second_process_records_nothing_again(
    runner: Runner, tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Judge(runner, tools, cache_dir=tmp_path / "cache")
    for bench in (made.FLIP_FLOP_BENCH, made.CLOSED_LOOP_BENCH):
        await first.prepare(bench)
    await first.trace(await first.prepare(made.FLIP_FLOP_BENCH), 2)
    jobs = count_jobs(runner, monkeypatch)
    second = Judge(runner, tools, cache_dir=tmp_path / "cache")
    prepared = await second.prepare(made.FLIP_FLOP_BENCH)
    assert prepared == await first.prepare(made.FLIP_FLOP_BENCH)
    assert await second.prepare(made.CLOSED_LOOP_BENCH) == await first.prepare(made.CLOSED_LOOP_BENCH)
    for draws in (PUBLIC, 2):
        assert await second.trace(prepared, draws) == await first.trace(prepared, draws)
    assert jobs() == 0


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"{}", b"[1]", b'{"status": "golden", "root": 3, "ports": 7}'])
async def test_damaged_cache_files_are_made_again(
    damage: bytes, runner: Runner, tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Judge(runner, tools, cache_dir=tmp_path / "cache").prepare(made.FLIP_FLOP_BENCH)
    stored = [path for path in (tmp_path / "cache" / "golden").rglob("*") if path.is_file()]
    assert len(stored) == 2
    for path in stored:
        path.write_bytes(damage)
    again = Judge(runner, tools, cache_dir=tmp_path / "cache")
    prepared = await again.prepare(made.FLIP_FLOP_BENCH)
    assert prepared.status == "golden"
    assert (await again.judge(prepared, *made.one_file(RIGHT))).passed
    third = Judge(runner, tools, cache_dir=tmp_path / "cache")
    jobs = count_jobs(runner, monkeypatch)
    assert await third.trace(await third.prepare(made.FLIP_FLOP_BENCH)) == await again.trace(prepared)
    assert jobs() == 0


async def test_a_cache_that_cannot_be_written_costs_no_verdict(
    runner: Runner, tools: Toolchain, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    judge = Judge(runner, tools, cache_dir=tmp_path / "cache")
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    assert (await judge.judge(prepared, *made.one_file(RIGHT))).passed
    assert "cannot be written" in caplog.text


async def test_a_bench_that_is_unusable_cannot_be_compiled_for(judge: Judge) -> None:
    prepared = await judge.prepare(replace(made.FLIP_FLOP_BENCH, testbench="module tb; endmodule", key="no-bench"))
    with pytest.raises(ProblemUnusable, match="does not instantiate"):
        await judge.compile(prepared, *made.one_file(RIGHT))


async def test_a_cancelled_verdict_leaves_nothing_behind(judge: Judge, boxed: Runner) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    endless = HEADER + "always @(posedge clk) while (1) q <= d;\n" + END
    task = asyncio.create_task(judge.judge(prepared, *made.one_file(endless)))
    await until(lambda: boxed.busy)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert boxed.busy == 0
    assert left_by_jobs(boxed.scratch) == []


async def test_many_verdicts_at_once_do_not_mix(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    designs = [RIGHT.replace("<= d", f"<= d ^ {number}") for number in range(6)]
    verdicts = await asyncio.gather(*(judge.judge(prepared, *made.one_file(one)) for one in designs))
    assert [verdict.passed for verdict in verdicts] == [True] + [False] * 5


async def test_a_bench_without_randomness_gets_every_combination_as_its_secret_stimulus(judge: Judge) -> None:
    counting = {"a": "always @(posedge clk) {name} <= stats1.clocks > 4;", "b": "initial {name} = 0;"}
    bench = made.bench(
        made.GATES, made.scored_text({"a": 1, "b": 1}, {"both": 1, "either": 1}, clocked=False, drive=counting)
    )
    prepared = await judge.prepare(bench)
    draws = pool(judge, prepared)[0]
    public, secret = await judge.trace(prepared), await judge.trace(prepared, draws)
    assert {inputs for _, inputs in public.sample_points()} <= {"xx", "x0", "00", "10"}
    assert {inputs for _, inputs in secret.sample_points()} == {"00", "01", "10", "11"}
    right = await judge.compile(prepared, *made.one_file(made.as_design(made.GATES)))
    assert (await judge.final(prepared, right)).passed
    narrow = (
        "module TopModule(input a, input b, output both, output either);\nassign both = 0, either = a;\nendmodule\n"
    )
    learnt = await judge.compile(prepared, *made.one_file(narrow))
    assert (await judge.run(prepared, learnt)).passed
    assert not (await judge.final(prepared, learnt)).passed


async def test_the_same_design_always_meets_the_same_secret_stimulus(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    first = await judge.compile(prepared, *made.one_file(RIGHT))
    again = await judge.compile(prepared, *made.one_file(RIGHT))
    other = await judge.compile(prepared, *made.one_file(RIGHT + "// another\n"))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    chosen = {judge.secrets.chosen(prepared.bench.key, f"{number}") for number in range(64)}
    assert chosen == set(pool(judge, prepared))
