"""The compiler without its driver compiles the same, and is only used where it does."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.icarus.fakes import script
from verilog_taskapp.icarus import passes as module
from verilog_taskapp.icarus.benches import replay_bench
from verilog_taskapp.icarus.passes import find_passes, normalized
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.runner import MIB, Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain, find, plan_steps
from verilog_taskapp.icarus.trace import Interface
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.settings import Settings

OUT = "out.vvp"
HEADER = "module TopModule(input clk, input [7:0] d, output reg [7:0] q);\n"
FF = HEADER + "always @(posedge clk) q <= d;\nendmodule\n"
DESIGNS: Mapping[str, Mapping[str, str]] = {
    "two files, one without a last newline": {
        "a.sv": HEADER + "half h(clk, d, q); endmodule",
        "b.v": "module half(input c, input [7:0] d, output reg [7:0] q); always @(posedge c) q <= d; endmodule",
    },
    "a time scale of its own": {"a.sv": "`timescale 1ns / 10ps\n" + FF.replace("<= d", "<= #1 d")},
    "a time scale in our own form": {"a.sv": "`timescale 1ns/10ps\n" + FF.replace("<= d", "<= #1.25 d")},
    "macros and conditions": {"a.sv": "`define W 8\n`ifdef W\n" + FF.replace("<= d", "<= d + `W") + "`endif\n"},
    "an included file": {"a.sv": '`include "b.vh"\n' + FF.replace("<= d", "<= `NEXT"), "b.vh": "`define NEXT ~d\n"},
    "mathematics of every module": {
        "a.sv": FF.replace("<= d", "<= $clog2(d) + $rtoi($sqrt(d)) + $countones(d) + $bits(d)"),
    },
    "backticks in comments, line ends of another system": {
        "a.sv": ("// `not a macro\n" + FF.replace(";", "; /* ` */")).replace("\n", "\r\n")
    },
    "letters outside ASCII": {"a.sv": "// größer ≤ 8\n" + FF},
    "warnings": {"a.sv": FF.replace("always", "wire [3:0] w = d; always").replace("<= d", "<= w[9]")},
    "an error": {"a.sv": FF.replace("<= d", "<= e")},
    "a syntax error at the end": {"a.sv": FF + "/* no end"},
    "nothing": {"a.sv": ""},
    "an override without a target": {"a.sv": FF.replace("always", "defparam x.y = 1; always")},
}


async def both_ways(
    tools: Toolchain, runner: Runner, files: Mapping[str, str]
) -> tuple[tuple[bytes | None, list[str]], ...]:
    """Program and messages with the driver and without it."""
    assert tools.passes is not None
    sources = tuple(name for name in files if name.endswith((".v", ".sv")))
    content = {name: text.encode() for name, text in files.items()}
    driver = Step(tools.compile_argv(sources, OUT, roots=("TopModule",)), Limits(), stage="compile")
    plan = tools.passes.plan(files, sources, OUT, "TopModule")
    needed = content if plan.needs_sources else {}
    found = []
    for job in (
        Job((driver,), content, collect={OUT: MIB}),
        Job(plan_steps(plan, Limits()), {**needed, **plan.files}, collect={OUT: MIB}),
    ):
        result = await runner.run(job)
        said = [line for step in result.steps for line in (step.stderr + step.stdout).splitlines()]
        found.append((result.files.get(OUT), sorted(set(said))))
    return tuple(found)


async def test_every_supported_version_is_used_without_its_driver(tools: Toolchain) -> None:
    assert tools.passes == find_passes(tools.iverilog, tools.major)
    assert tools.passes is not None


@pytest.mark.parametrize("name", sorted(DESIGNS))
async def test_programs_and_messages_are_the_drivers(name: str, tools: Toolchain, boxed: Runner) -> None:
    (expected, said), (program, told) = await both_ways(tools, boxed, DESIGNS[name])
    assert (program is None) == (expected is None)
    if expected is not None and program is not None:
        assert normalized(program) == normalized(expected)
    assert told == said


async def test_every_bundled_reference_compiles_to_the_same_program(tools: Toolchain, boxed: Runner) -> None:
    for problem in load_problem_set(Settings(dataset="bundled")):
        text = problem.reference.replace(problem.reference_top, "TopModule")
        (expected, said), (program, told) = await both_ways(tools, boxed, {"TopModule.sv": text})
        assert program is not None, problem.id
        assert expected is not None, problem.id
        assert normalized(program) == normalized(expected), problem.id
        assert told == said, problem.id


def test_one_process_is_enough_where_nothing_is_preprocessed(tools: Toolchain) -> None:
    assert tools.passes is not None

    def commands(text: str) -> int:
        assert tools.passes is not None
        return len(tools.passes.plan({"a.sv": text}, ("a.sv",), OUT, "TopModule").commands)

    assert commands(HEADER) == 1
    assert commands("`timescale 1ps/1ps\n" + HEADER) == 1
    assert commands("`define X\n" + HEADER) == 2


def test_only_the_modules_that_a_design_calls_for_are_loaded(tools: Toolchain) -> None:
    assert tools.passes is not None
    for text, loaded in ((HEADER, 1), (HEADER + "initial $display(q);", 1), (HEADER + "initial q = $sqrt(3);", 6)):
        config = tools.passes.plan({"a.sv": text}, ("a.sv",), OUT, "TopModule").files[module.CONFIG_FILE]
        assert config.count(b"module:") == loaded


def test_the_replay_bench_itself_calls_for_no_more_modules(tools: Toolchain) -> None:
    assert tools.passes is not None
    interface = Interface((Port("d", "input", 1), Port("q", "output", 1)), -12, -12)
    bench = replay_bench(interface, "TopModule", 16, "", ())
    plan = tools.passes.plan({"a.sv": HEADER, "b.sv": bench}, ("b.sv", "a.sv"), OUT, "vt_replay")
    assert len(plan.commands) == 1
    assert plan.files[module.CONFIG_FILE].count(b"module:") == 1


def test_a_compiler_that_is_a_script_keeps_its_say(tools: Toolchain, tmp_path: Path) -> None:
    assert find_passes(script(tmp_path / "iverilog", f'exec {tools.iverilog} "$@"'), tools.major) is None


async def test_an_installation_that_would_compile_something_else_keeps_its_driver(
    tools: Toolchain, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LANGUAGE", tuple(line.replace("2012", "2001") for line in module._LANGUAGE))
    assert await find(str(tools.iverilog), runner) == replace(tools, passes=None)


def test_two_programs_are_the_same_whatever_their_addresses_are() -> None:
    one = b'#! /usr/bin/vvp\n:vpi_module "x";\nS_0x55aa00112233 .scope module, S_0x55aa00112299;\nv0x55aa00112233 1;\n'
    other = one.replace(b"55aa00112233", b"7f0000000001").replace(b"55aa00112299", b"7f0000000002")
    swapped = other.replace(b"v0x7f0000000001", b"v0x7f0000000002")
    assert normalized(one) == normalized(other)
    assert normalized(one) != normalized(swapped)


def test_an_installation_without_the_passes_has_none(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    binary = tmp_path / "bin" / "iverilog"
    binary.write_bytes(b"\x7fELF")
    assert find_passes(binary, 12) is None
