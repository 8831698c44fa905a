"""What a design asks of the simulator, from its compiled program; what a source text names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.icarus import made
from verilog_taskapp.icarus import gate
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain


async def compiled(runner: Runner, tools: Toolchain, source: str) -> bytes:
    argv = tools.compile_argv(("a.sv",), "a.vvp", roots=("top",))
    result = await runner.run(
        Job((Step(argv, Limits(), "a.vvp"),), {"a.sv": source.encode()}, collect={"a.vvp": 10**7})
    )
    assert result.last.succeeded, result.last.stderr
    return result.files["a.vvp"]


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ('initial $display("x");', {"$display"}),
        ('initial begin $write("a"); $strobe("b"); #1 $finish; end', {"$write", "$strobe", "$finish"}),
        ('integer f; initial f = $fopen("x");', {"$fopen"}),
        ("wire [31:0] w = $random;", {"$random"}),
        ('reg [7:0] m [0:1]; initial $readmemh("m", m);', {"$readmemh"}),
        ("reg r; initial begin force r = 1; release r; end", {"force", "release"}),
        ("reg r; initial begin assign r = 1; deassign r; end", {"cassign", "deassign"}),
        ("reg [7:0] r; initial r = $clog2(r) + $signed(r) + $time;", {"$clog2", "$time"}),
        ("localparam P = $clog2(100); wire [P:0] w = P;", set()),
        ("final $display;", {"$display"}),
        ("task t; $stop; endtask", {"$stop"}),
        ('function f(input a); begin f = a; $display("in a function"); end endfunction', {"$display"}),
        ("genvar g; for (g = 0; g < 2; g = g + 1) begin : b initial $finish; end", {"$finish"}),
        ('// $display("no")\n/* $finish */ string s = "$stop";', set()),
    ],
)  # fmt: skip
async def test_calls_are_read_from_the_program(body: str, calls: set[str], runner: Runner, tools: Toolchain) -> None:
    assert gate.system_calls(await compiled(runner, tools, f"module top;\n{body}\nendmodule\n")) == calls


async def test_calls_in_packages_and_instances_count(runner: Runner, tools: Toolchain) -> None:
    source = 'package p; task t; $display("x"); endtask endpackage\nmodule top; part q(); endmodule\n'
    source += "module part; initial $finish; endmodule\n"
    assert gate.system_calls(await compiled(runner, tools, source)) == {"$display", "$finish"}


async def test_instances_are_known_by_their_module(runner: Runner, tools: Toolchain) -> None:
    source = "`define JOIN(x) Ref\nmodule top; `JOIN(1)Module r(); endmodule\nmodule RefModule; endmodule\n"
    assert gate.instantiated(await compiled(runner, tools, source)) == {"top", "RefModule"}


@pytest.mark.parametrize(
    ("body", "driven"),
    [
        ("assign q = a;", set()),
        ("assign q = a, a = 1;", {"a"}),
        ("assign q = a, b[3] = 1;", {"b"}),
        ("pullup (a); assign q = a;", {"a"}),
        ("part p(a); assign q = a;", {"a"}),
        ("sink s(a); assign q = a;", set()),
    ],
)
async def test_inputs_that_the_design_drives_itself_are_found(
    body: str, driven: set[str], runner: Runner, tools: Toolchain
) -> None:
    source = f"module top(input a, input [3:0] b, output q);\n{body}\nendmodule\n"
    source += "module part(output x); assign x = 1; endmodule\nmodule sink(input x); endmodule\n"
    assert gate.driven_inputs(await compiled(runner, tools, source)) == driven


def test_what_only_computes_is_pure() -> None:
    assert {"$clog2", "$signed", "$time", "$countones"} <= gate.PURE_CALLS
    assert not gate.PURE_CALLS & {
        "$display",
        "$finish",
        "$random",
        "$urandom",
        "$fopen",
        "$readmemh",
        "$system",
        "$value",
    }


@pytest.mark.parametrize(
    "text",
    [
        "RefModule r(a);",
        "\\RefModule  r(a);",
        "wire x; // comment\nRefModule r(a);",
        '$display("a"); RefModule r(a);',
        "wire \\a/* ; RefModule r(a); wire \\b*/ ;",
        "wire \\c// ; RefModule r(a);",
        'wire \\d"e ; RefModule r(a); wire \\f" ;',
        "`define R RefModule\n",
        "assign q = tb.RefModule.x;",
    ],
)
def test_a_name_in_the_code_is_found(text: str) -> None:
    assert gate.mentioned(text, {"RefModule", "tb2"}) == {"RefModule"}


@pytest.mark.parametrize(
    "text",
    ["// RefModule", "/* RefModule\nRefModule */", '"RefModule"', "RefModule2 r();", "aRefModule r();", "$RefModule;"],
)
def test_a_name_in_a_comment_a_string_or_another_name_is_not(text: str) -> None:
    assert gate.mentioned(text, {"RefModule"}) == (frozenset() if "$" not in text else {"RefModule"})


def test_declared_modules_are_found() -> None:
    text = "module a; endmodule // module b\nmodule automatic c(); endmodule\n"
    text += "macromodule d; endmodule module\n e; endmodule"
    assert gate.declared_modules(text) == {"a", "c", "d", "e"}


@given(st.text('/*"\\\n aM', max_size=60))
def test_a_text_without_comments_and_strings_has_as_many_lines(text: str) -> None:
    assert gate.plain(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("assign q = d;", ""),
        ('initial $display("%0d", $random); assign q = d;', ""),
        ('initial begin if (0) $finish; end reg [7:0] m [0:3]; initial $readmemh("m.mem", m); assign q = d;', ""),
        ('integer f; initial f = $fopen("x"); assign q = d;', "$fopen"),
        ('reg [7:0] a; initial if ($value$plusargs("vt_rows=%d", a)) a = 0; assign q = d;', "$value$plusargs"),
        ("initial $dumpvars; assign q = d;", "$dumpvars"),
        ("initial $stop; assign q = d;", "$stop"),
        ('initial $system("true"); assign q = d;', "$system"),
        ("wire w = d; initial force w = 1; assign q = w;", "force"),
    ],
)
async def test_the_golden_judge_refuses_what_reaches_outside_and_names_it(
    body: str, refused: str, judge: Judge
) -> None:
    text = made.scored_text({"d": 1}, {"q": 1}, clocked=False)
    bench = made.bench("module RefModule(input d, output q); assign q = d; endmodule\n", text)
    design = f"module TopModule(input d, output q);\n{body}\nendmodule\n"
    prepared = await judge.prepare(bench)
    compilation = await judge.compile(prepared, {"TopModule.sv": design, "m.mem": "0 1 2 3\n"}, ("TopModule.sv",))
    expected = f"error: {refused} is not allowed in a design" if refused else ""
    assert compilation.messages(1000) == expected
    assert compilation.succeeded == (not refused)
