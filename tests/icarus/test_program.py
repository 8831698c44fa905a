"""Facts read from real compiled programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verilog_taskapp.icarus.program import ModuleInstance, Port, is_whole, modules
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain


async def compiled(runner: Runner, tools: Toolchain, source: str) -> list[ModuleInstance]:
    argv = tools.compile_argv(("a.sv",), "a.vvp", roots=("top",))
    result = await runner.run(
        Job((Step(argv, Limits(), "a.vvp"),), {"a.sv": source.encode()}, collect={"a.vvp": 10**7})
    )
    assert result.last.succeeded, result.last.stderr
    return list(modules(result.files["a.vvp"]))


def paths(found: list[ModuleInstance]) -> dict[str, str]:
    return {".".join(one.path): one.module for one in found}


async def test_ports_have_the_width_and_direction_of_the_elaborated_module(runner: Runner, tools: Toolchain) -> None:
    source = """
module top #(parameter N = 4, localparam M = N * 2) (
  input clk, input logic [N-1:0] a, input [7:0][1:0] packed_array, inout wire [0:2] io, output reg [M:1] q,
  output signed [15:0] s, output integer i
);
endmodule
"""
    (top,) = await compiled(runner, tools, source)
    assert (top.path, top.module) == (("top",), "top")
    assert top.ports == (
        Port("clk", "input", 1),
        Port("a", "input", 4),
        Port("packed_array", "input", 16),
        Port("io", "inout", 3),
        Port("q", "output", 8),
        Port("s", "output", 16),
        Port("i", "output", 32),
    )


async def test_parameters_of_an_instance_change_its_ports(runner: Runner, tools: Toolchain) -> None:
    source = """
module top; wire [8:0] w; wire [2:0] v; part #(.N(9)) wide(w); part narrow(v); endmodule
module part #(parameter N = 3) (output [N-1:0] q); assign q = 0; endmodule
"""
    _, *parts = sorted(await compiled(runner, tools, source), key=lambda one: one.path)
    assert {one.path: one.ports for one in parts} == {
        ("top", "narrow"): (Port("q", "output", 3),),
        ("top", "wide"): (Port("q", "output", 9),),
    }


async def test_generate_blocks_and_arrays_are_part_of_the_path(runner: Runner, tools: Toolchain) -> None:
    source = """
module top; wire a;
  genvar g;
  generate for (g = 0; g < 2; g = g + 1) begin : lane
    leaf one(a); if (g == 1) begin : extra leaf two(a); end
  end endgenerate
  leaf row [1:0] (a);
  mid m(a);
endmodule
module mid(input a); leaf inner(a); endmodule
module leaf(input a); task t; begin : named reg x; x = a; end endtask function f(input i); f = i; endfunction endmodule
"""
    assert paths(await compiled(runner, tools, source)) == {
        "top": "top",
        "top.lane[0].one": "leaf",
        "top.lane[1].one": "leaf",
        "top.lane[1].extra.two": "leaf",
        "top.row[0]": "leaf",
        "top.row[1]": "leaf",
        "top.m": "mid",
        "top.m.inner": "leaf",
    }


async def test_escaped_identifiers_are_read_as_they_were_declared(runner: Runner, tools: Toolchain) -> None:
    source = r"""
module top; \odd"module\x  plain(.\a.b (1'b0), .\c[0] ()); other \inst"1\ (); endmodule
module \odd"module\x (input \a.b , output \c[0] ); assign \c[0] = \a.b ; endmodule
module other; endmodule
"""
    _, *inner = await compiled(runner, tools, source)
    ports = (Port("a.b", "input", 1), Port("c[0]", "output", 1))
    assert sorted((one.path, one.module, one.ports) for one in inner) == [
        (("top", 'inst"1\\'), "other", ()),
        (("top", "plain"), 'odd"module\\x', ports),
    ]


async def test_each_module_has_its_own_time_scale(runner: Runner, tools: Toolchain) -> None:
    source = "`timescale 1ns/10ps\nmodule top; fast f(); endmodule\n`timescale 1us/1ns\nmodule fast; endmodule\n"
    found = {one.module: (one.unit, one.precision) for one in await compiled(runner, tools, source)}
    assert found == {"top": (-9, -11), "fast": (-6, -9)}


async def test_packages_and_classes_are_no_modules(runner: Runner, tools: Toolchain) -> None:
    source = """
package p; function int twice(int x); return 2 * x; endfunction endpackage
module top(output int q);
  class box; int x; function new(); x = 1; endfunction endclass
  assign q = p::twice(3);
endmodule
"""
    assert paths(await compiled(runner, tools, source)) == {"top": "top"}


@given(st.binary(max_size=400))
def test_whatever_the_text_nothing_is_raised(text: bytes) -> None:
    assert list(modules(text)) == []


@pytest.mark.parametrize(
    "text", [b"", b'S_1 .scope module, "a', b' .port_info 0 /INPUT 1 "x";', b"S_1\n .timescale 0 0;"]
)
def test_text_that_is_cut_off_holds_no_module(text: bytes) -> None:
    assert list(modules(text)) == []


def test_a_port_reads_well() -> None:
    assert str(Port("clk", "input", 1)) == "input clk (1 bit)"
    assert str(Port("q", "output", 8)) == "output q (8 bits)"


async def test_a_program_without_its_last_bytes_is_not_whole(runner: Runner, tools: Toolchain) -> None:
    argv = tools.compile_argv(("a.sv",), "a.vvp", roots=("top",))
    source = "module top(input a, output b);\n  assign b = ~a;\nendmodule\n"
    job = Job((Step(argv, Limits(), "a.vvp"),), {"a.sv": source.encode()}, collect={"a.vvp": 10**7})
    program = (await runner.run(job)).files["a.vvp"]
    assert is_whole(program)
    assert [size for size in range(len(program)) if is_whole(program[:size])] == []
