"""Hints: each fires on the messages of real compilers, names a rewrite that compiles, and spares honest designs."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.icarus import made
from verilog_taskapp.environment.world import bench_of
from verilog_taskapp.icarus.behaviour import behaviour_hints, code_of
from verilog_taskapp.icarus.diagnostics import Diagnostic, for_the_model, parse
from verilog_taskapp.icarus.hint_rules import RULES
from verilog_taskapp.icarus.hints import MAX_HINTS, compile_hints
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.processes import read_early, unassigned
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.verdict import Compilation
from verilog_taskapp.problems import load_problem_set
from verilog_taskapp.settings import Settings

SHARED = Path(__file__).resolve().parents[3] / "shared"
MODEL_TEXT = SHARED / "attacks" / "model_text"
VERILOG_EVAL = SHARED / "verilog-eval" / "dataset_spec-to-rtl"

PORTS = "(input clk, input [7:0] d, output reg [7:0] q);\n"
NETS = PORTS.replace(" reg", "")
CLOCKED = "always @(posedge clk) q <= d;\n"
STATES = "typedef enum logic [1:0] {A, B, C} state_t;\nstate_t s;\n"
PAIR = "typedef struct packed {logic a; logic [6:0] b;} pair_t;\n"
ALL = (11, 12, 13)


def module(body: str, ports: str = PORTS) -> str:
    return f"module TopModule{ports}{body}endmodule\n"


@dataclass(frozen=True)
class Case:
    """A design that the versions in ``majors`` refuse, part of the hint, and the design as the hint advises it."""

    bad: str
    hint: str
    good: str
    majors: tuple[int, ...] = ALL


def case(
    bad: str, hint: str, good: str, majors: tuple[int, ...] = ALL, *, ports: str = PORTS, good_ports: str = ""
) -> Case:
    return Case(module(bad, ports), hint, module(good, good_ports or ports), majors)


def on_edge(statement: str) -> str:
    return f"always @(posedge clk) {statement}\n"


LOOP = "integer i;\nalways @* begin\nq = 0;\nfor (i = 0; i < 8; i = i + 1) begin\n{}\nend\nend\n"
GUARDED = "reg done;\n" + LOOP.replace("q = 0;", "q = 0; done = 0;").format(
    "if (!done) begin\nif (d[i]) done = 1; else q = q + 1;\nend"
)
MEMORY = "reg [7:0] m [0:3];\n"
FILLED = "integer i;\ninitial for (i = 0; i < 4; i = i + 1) m[i] = 0;\n"
REVERSED = "integer i;\nalways @* for (i = 0; i < 8; i = i + 1) q[i] = d[7 - i];\n"
SUB = "module sub(input [7:0] x, output [7:0] y); assign y = x; endmodule\n"
NO_ASSERTIONS = "Icarus has no properties, sequences, concurrent or deferred assertions"

BY_RULE: dict[str, Case] = {
    "vhdl": case(on_edge("if (d[0]) then q <= d; end if;"), "VHDL (`then`)", on_edge("if (d[0]) q <= d;")),
    "else_if": case(
        on_edge("if (d[0]) q <= 1; elsif (d[1]) q <= 2;"),
        "`else if` ",
        on_edge("if (d[0]) q <= 1; else if (d[1]) q <= 2;"),
    ),
    "word_operator": case(on_edge("q <= d and 3;"), "not the word `and`", on_edge("q <= d & 3;")),
    "single_equals": case(on_edge("if (d = 1) q <= 1;"), "Compare with `==`", on_edge("if (d == 1) q <= 1;")),
    "inside": case(on_edge("q <= d inside {1, 2};"), "no `inside`", on_edge("q <= (d == 1 || d == 2);")),
    "case_inside": case(
        "always_comb case (d) inside\n1: q = 1;\ndefault: q = 0;\nendcase\n",
        "use `casez`",
        "always_comb casez (d)\n8'b0000_000?: q = 1;\ndefault: q = 0;\nendcase\n",
    ),
    "streaming": case(on_edge("q <= {<<{d}};"), "no streaming operators", REVERSED),
    "named_pattern": case(PAIR + on_edge("q <= '{default: 0};"), "`'{name: value}`", on_edge("q <= '0;")),
    "array_parameter": case(
        "localparam logic [7:0] M [0:1] = '{1, 2};\n" + on_edge("q <= M[d[0]];"),
        "Parameters cannot be arrays",
        "function [7:0] m(input i); case (i) 0: m = 1; default: m = 2; endcase endfunction\n"
        + on_edge("q <= m(d[0]);"),
    ),
    "pattern": case(
        f"{PAIR}pair_t s;\n" + on_edge("begin s <= '{1'b1, 7'd2}; q <= s; end"),
        "Use a concatenation {a, b}",
        f"{PAIR}pair_t s;\n" + on_edge("begin s <= {1'b1, 7'd2}; q <= s; end"),
        (11, 12),
    ),
    "struct_array": case(
        f"{PAIR}pair_t s [0:3];\n" + on_edge("begin s[0].a <= 1; q <= s[0]; end"),
        "assign the whole element",
        f"{PAIR}pair_t s [0:3];\n" + on_edge("begin s[0] <= {1'b1, 7'd0}; q <= s[0]; end"),
    ),
    "whole_array": case(
        "reg [7:0] n [0:3];\n" + MEMORY + on_edge("m <= n;") + CLOCKED,
        "assign its elements in a for loop",
        MEMORY + FILLED + CLOCKED,
    ),
    "let": case(
        "let f(x) = x + 1;\n" + CLOCKED,
        "no `let`",
        "function [7:0] f(input [7:0] x); f = x + 1; endfunction\n" + CLOCKED,
    ),
    "assertion": case(CLOCKED + "assert property (@(posedge clk) d == q);\n", NO_ASSERTIONS, CLOCKED),
    "property": case(CLOCKED + "property p; @(posedge clk) d |=> q; endproperty\n", NO_ASSERTIONS, CLOCKED),
    "unique_if": case(
        "always_comb unique if (d[0]) q = 1; else q = 0;\n",
        "no `unique` before `if`",
        "always_comb if (d[0]) q = 1; else q = 0;\n",
    ),
    "cast_signed": case(
        on_edge("q <= signed'(d) >>> 1;"), "write `$signed(x)`", on_edge("q <= $signed(d) >>> 1;"), (11,)
    ),
    "cast_void": case(
        "function int f(); return 1; endfunction\ninitial void'(f());\n" + CLOCKED,
        "assign the result",
        "function int f(); return 1; endfunction\nint unused;\ninitial unused = f();\n" + CLOCKED,
        (11,),
    ),
    "cast_enum": case(
        STATES + on_edge("begin s <= state_t'(d[1:0]); q <= s; end"),
        "`logic [1:0]`",
        "localparam A = 0, B = 1, C = 2;\nlogic [1:0] s;\n" + on_edge("begin s <= d[1:0]; q <= s; end"),
        (11,),
    ),
    "enum_11": case(
        STATES + "state_t n;\nalways_comb n = d[0] ? A : d[1:0];\n" + CLOCKED,
        "use if/else instead of `?:`",
        STATES + "state_t n;\nalways_comb if (d[0]) n = A; else n = s;\n" + CLOCKED,
        (11,),
    ),
    "enum": case(
        STATES + on_edge("begin s <= d[1:0]; q <= s; end"),
        "cast the value, `state_t'(x)`",
        STATES + on_edge("begin s <= A; q <= s; end"),
        (13,),
    ),
    "parameter_type": case(
        "parameter type T = logic [7:0];\nT x;\n" + CLOCKED, "write the type out", "logic [7:0] x;\n" + CLOCKED, (11,)
    ),
    "parameter_string": case(
        'parameter string S = "a";\n' + CLOCKED, "leave out the word `string`", 'parameter S = "a";\n' + CLOCKED, (11,)
    ),
    "const": case(
        "const logic [7:0] K = 1;\n" + CLOCKED, "Use `localparam`", "localparam K = 1;\n" + CLOCKED, (11, 12)
    ),
    "var": case("var logic k;\n" + CLOCKED, "Leave out the word `var`", "logic k;\n" + CLOCKED, (11,)),
    "break": case(LOOP.format("if (d[i]) break;\nq = q + 1;"), "guard the loop's body", GUARDED, (11, 12)),
    "continue": case(
        LOOP.format("if (d[i]) continue;\nq = q + 1;"),
        "into an `if`",
        LOOP.format("if (!d[i]) begin q = q + 1; end"),
        (11, 12),
    ),
    "return_in_task": case(
        "task t; begin q = 1; return; end endtask\n" + on_edge("t;"),
        "A task cannot `return`",
        "task t; if (d[0]) q = 1; else q = 0; endtask\n" + on_edge("t;"),
        (11, 12),
    ),
    "void_function": case(
        "function void f(); q = 1; endfunction\nalways_comb f();\n",
        "make it a task",
        "task f; q = 1; endtask\nalways @(d) f;\n",
        (11,),
    ),
    "unpacked_struct": case(
        "typedef struct {logic a; logic b;} s_t;\ns_t s;\n" + CLOCKED,
        "`struct packed`",
        "typedef struct packed {logic a; logic b;} s_t;\ns_t s;\n" + CLOCKED,
    ),
    "loop_variables": case(
        "always_comb for (int i = 0, j = 7; i < 8; i++) q[i] = d[i];\n",
        "one loop variable",
        "always_comb for (int i = 0; i < 8; i++) q[i] = d[i];\n",
    ),
    "loop_generate": case(
        "generate for (int i = 0; i < 8; i = i + 1) begin : g assign q[i] = d[i]; end endgenerate\n",
        "`for (genvar i = 0; ...)`",
        "generate for (genvar i = 0; i < 8; i = i + 1) begin : g assign q[i] = d[i]; end endgenerate\n",
        ports=NETS,
    ),
    "genvar": case(
        "generate for (i = 0; i < 8; i = i + 1) begin : g assign q[i] = d[i]; end endgenerate\n",
        "Write `for (genvar i = 0",
        "for (genvar i = 0; i < 8; i = i + 1) begin : g assign q[i] = d[i]; end\n",
        ports=NETS,
    ),
    "variable_slice": case(on_edge("q <= d[q[2:0]:0];"), "`x[start +: WIDTH]`", on_edge("q <= d[q[2:0] +: 4];")),
    "variable_index": case(
        "logic [3:0][7:0] m;\n" + on_edge("begin m[d[1:0]][d[4:2]] <= 1; q <= m[0]; end"),
        "make it an array",
        MEMORY + on_edge("begin m[d[1:0]][d[4:2]] <= 1; q <= m[0]; end"),
    ),
    "slice_of_expression": case(
        on_edge("q <= (d + 1)[3:0];"),
        "put the expression into a wire",
        "wire [7:0] sum = d + 1;\n" + on_edge("q <= sum[3:0];"),
    ),
    "always_at": case("always @posedge clk q <= d;\n", "with @ and parentheses", CLOCKED),
    "always_ff_event": case("always_ff q <= d;\n", "`always_ff @(posedge clk)`", "always_ff @(posedge clk) q <= d;\n"),
    "always_comb_event": case("always_comb @(*) q = d;\n", "`always_comb` without", "always_comb q = d;\n"),
    "always_forever": case("always q = d;\n", "`always @(*)`", "always @(*) q = d;\n"),
    "assign_nonblocking": case("assign q <= d;\n", "`assign` takes `=`", "assign q = d;\n", ports=NETS),
    "net_in_process": case(CLOCKED, "`q` is a net: declare it as reg", CLOCKED, ports=NETS, good_ports=PORTS),
    "driven_twice": case(
        "logic [7:0] w;\nassign w = d;\n" + on_edge("w <= d;") + CLOCKED,
        "`w` is driven by an always block",
        "logic [7:0] w;\nassign w = d;\n" + CLOCKED,
    ),
    "two_drivers": case(
        "logic [7:0] w;\nassign w = d;\nassign w = 1;\n" + CLOCKED,
        "`w` has two drivers",
        "logic [7:0] w;\nassign w = d;\n" + CLOCKED,
    ),
    "input_reg": case(
        CLOCKED,
        "write `input d`",
        CLOCKED,
        (11,),
        ports=PORTS.replace("input [7:0]", "input reg [7:0]"),
        good_ports=PORTS,
    ),
    "use_before": case(
        on_edge("q <= w;") + "wire [7:0] w = d;\n",
        "declaration of `w` above",
        "wire [7:0] w = d;\n" + on_edge("q <= w;"),
        (13,),
    ),
    "declared_twice": case(
        "reg [7:0] w; wire [7:0] w;\n" + CLOCKED, "`w` is declared twice", "reg [7:0] w;\n" + CLOCKED
    ),
    "no_direction": case(
        "input clk; input [7:0] d;\nassign q = d;\n",
        "`output q;`",
        "input clk; input [7:0] d; output [7:0] q;\nassign q = d;\n",
        ports="(clk, d, q);\n",
    ),
    "port_semicolon": case(CLOCKED, "put `,` between", CLOCKED, ports=PORTS.replace(",", ";"), good_ports=PORTS),
    "port_comma": case(CLOCKED, "Remove the comma", CLOCKED, ports=PORTS.replace(")", ",)"), good_ports=PORTS),
    "missing_comma": case(CLOCKED, "A comma is missing", CLOCKED, ports=PORTS.replace("clk,", "clk"), good_ports=PORTS),
    "scalar": case("wire w;\n" + on_edge("q <= w[1];"), "`w` has one bit", "wire [7:0] w;\n" + on_edge("q <= w[1];")),
    "array_index": case(MEMORY + on_edge("q <= m;"), "`m[i]`", MEMORY + on_edge("q <= m[0];")),
    "unsized": case(on_edge("q <= {1, d};"), "write 1'b1, not 1", on_edge("q <= {1'b1, d};")),
    "bad_number": case(on_edge("q <= 8'b2;"), "only the digits 0, 1, x and z", on_edge("q <= 8'd2;")),
    "backtick": case(on_edge("q <= {1`b1, d[6:0]};"), "an apostrophe, not a backtick", on_edge("q <= {1'b1, d[6:0]};")),
    "macro": case(on_edge("q <= `WIDTH;"), "`WIDTH is not defined", "localparam WIDTH = 8;\n" + on_edge("q <= WIDTH;")),
    "end_word": Case(module(CLOCKED).replace("endmodule", "end module"), "`endmodule` is one word", module(CLOCKED)),
    "instance_in_process": Case(
        SUB + module(on_edge("begin sub s(.x(d)); end")),
        "move the instance out",
        SUB + module("sub s(.x(d), .y(q));\n", NETS),
    ),
}
OTHERS: dict[str, Case] = {
    "a typographic quote": case(
        on_edge("q <= 8\u2019hff;"), "(U+2019), which is not Verilog: write '", on_edge("q <= 8'hff;")
    ),
    "another character": case(on_edge("q <= d \u2264 1;"), "write <=", on_edge("q <= d <= 1;")),
    "a fence": Case(f"```verilog\n{module(CLOCKED)}```\n", "a Markdown fence", module(CLOCKED)),
    "a fence after prose": Case(f"The code:\n```verilog\n{module(CLOCKED)}```\n", "a Markdown fence", module(CLOCKED)),
    "prose before": Case(f"Here is it:\n{module(CLOCKED)}", "Line 1 of TopModule.v stands outside", module(CLOCKED)),
    "prose after": Case(
        f"{module(CLOCKED)}This module works.\n", "Line 4 of TopModule.v stands outside", module(CLOCKED)
    ),
    "a reserved name": case(
        "reg [7:0] priority;\n" + CLOCKED, "`priority` is a reserved word", "reg [7:0] rank;\n" + CLOCKED
    ),
    "a reserved port": case(
        CLOCKED, "`bit` is a reserved", CLOCKED, ports=PORTS.replace(");", ", input bit);"), good_ports=PORTS
    ),
    "a name with a typo": case(
        "localparam IDLE = 0;\n" + on_edge("q <= IDEL;"),
        "did you mean `IDLE`?",
        "localparam IDLE = 0;\n" + on_edge("q <= IDLE;"),
    ),
    "another clock": case("always @(posedge clock) q <= d;\n", "did you mean `clk`?", CLOCKED),
    "an undeclared name": case(on_edge("q <= nothing;"), "Not declared in this scope: `nothing`", CLOCKED),
    "an undeclared function": case(on_edge("q <= f(d);"), "Not declared in this scope: `f`", CLOCKED),
    "a function without parentheses": case(
        "function [7:0] f(); f = 1; endfunction\n" + on_edge("q <= f;"),
        "`f` is a function",
        "function [7:0] f(); f = 1; endfunction\n" + on_edge("q <= f();"),
    ),
    "a constant": case(
        "localparam P = 1;\n" + on_edge("P <= d;") + CLOCKED, "`P` is a constant", "localparam P = 1;\n" + CLOCKED
    ),
    "one value for an array": case(
        MEMORY + on_edge("m <= 0;") + CLOCKED, "its elements in a for loop", MEMORY + FILLED + CLOCKED
    ),
    "a name of another case": Case(
        module(CLOCKED).replace("Top", "top"), "TopModule (case matters); found: topModule", module(CLOCKED)
    ),
    "a missing module": Case(
        SUB + module("Sub s(d, q);\n", NETS), "did you mean sub?", SUB + module("sub s(d, q);\n", NETS)
    ),
    "a module twice": Case(
        module(CLOCKED) + module(CLOCKED), "declared in TopModule.v (line 1) and once more", module(CLOCKED)
    ),
    "a missing end": case(
        "always @(posedge clk) begin\nq <= d;\n", "1 `begin` but 0 `end`", "always @(posedge clk) begin\nq <= d;\nend\n"
    ),
    "a missing endcase": case(
        "always @* case (d)\ndefault: q = 0;\n",
        "1 `case` but 0 `endcase`",
        "always @* case (d)\ndefault: q = 0;\nendcase\n",
    ),
    "a missing endmodule": Case(
        module(CLOCKED).replace("endmodule", ""), "1 `module` but 0 `endmodule`", module(CLOCKED)
    ),
    "a missing parenthesis": case(on_edge("if (d == 1 q <= d;"), "3 `(` but 2 `)`", on_edge("if (d == 1) q <= d;")),
    "a missing semicolon": case(
        "always @(posedge clk) begin\nq <= d\nend\n", "Line 3 of TopModule.v lacks its `;`", CLOCKED
    ),
    "a header without semicolon": case(
        CLOCKED, "Line 1 of TopModule.v lacks", CLOCKED, ports=PORTS.replace(");", ")"), good_ports=PORTS
    ),
    "statements without begin": case(
        "always @(posedge clk)\nif (d[0])\nq <= d;\nq[0] <= 1;\nelse q <= 0;\n",
        "Line 5 of TopModule.v is a statement outside",
        "always @(posedge clk)\nif (d[0]) begin\nq <= d;\nq[0] <= 1;\nend else q <= 0;\n",
    ),
    "a loop outside": case(
        "for (int i = 0; i < 8; i = i + 1) begin : g assign q[i] = d[i]; end\n",
        "a for loop is a generate loop",
        "for (genvar i = 0; i < 8; i = i + 1) begin : g assign q[i] = d[i]; end\n",
        ports=NETS,
    ),
}


async def compiled(judge: Judge, design: str, **files: str) -> Compilation:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    everything = {"TopModule.v": design} | {name.replace("_", "."): text for name, text in files.items()}
    return await judge.compile(prepared, everything, tuple(everything))


def test_every_rule_is_demonstrated() -> None:
    assert sorted(BY_RULE) == sorted(rule.name for rule in RULES)


@pytest.mark.parametrize("name", [*BY_RULE, *OTHERS])
async def test_a_hint_fires_where_it_should_and_its_advice_compiles(name: str, judge: Judge, tools: Toolchain) -> None:
    one = (BY_RULE | OTHERS)[name]
    compilation = await compiled(judge, one.bad)
    if tools.major in one.majors:
        assert not compilation.succeeded
        assert [hint for hint in compilation.hints if one.hint in hint], (compilation.hints, compilation.diagnostics)
        assert len(compilation.hints) <= MAX_HINTS
        assert all(len(hint) <= 160 for hint in compilation.hints)
    elif compilation.succeeded:
        assert compilation.hints == ()
    good = await compiled(judge, one.good)
    assert good.succeeded, good.messages(1000)
    assert good.hints == ()


async def test_a_port_of_another_width_is_told_although_it_compiles(judge: Judge) -> None:
    compilation = await compiled(judge, module(CLOCKED).replace("[7:0] d", "[3:0] d"))
    assert compilation.succeeded
    assert compilation.hints == ("Declare d with the range [7:0].",)


async def test_a_module_in_a_file_that_is_not_compiled_is_found(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    files = {"TopModule.v": module("sub s(d, q);\n", NETS), "sub.v": SUB}
    compilation = await judge.compile(prepared, files, ("TopModule.v",))
    assert compilation.hints == ("sub is in sub.v, which was not compiled: add it to the sources.",)


async def test_a_module_in_two_files_names_both(judge: Judge) -> None:
    compilation = await compiled(judge, module(CLOCKED), copy_v=module(CLOCKED))
    assert (
        compilation.hints[0] == "Module TopModule is declared in TopModule.v (line 1) and in copy.v: keep one of them."
    )


SILENT = {
    "a legal assertion beside an error": "always @(posedge clk) begin assert (d != 3); q <= d +; end\n",
    "a macro in the file": "`define HALF begin q <= d;\nalways @(posedge clk) `HALF end end\n",
    "a plain error": on_edge("q <= d ? 1;"),
}


@pytest.mark.parametrize("name", SILENT)
async def test_an_error_that_no_rule_is_sure_of_has_no_hint(name: str, judge: Judge) -> None:
    compilation = await compiled(judge, module(SILENT[name]))
    assert not compilation.succeeded
    assert compilation.hints == ()


# --- after a simulation


async def failing(judge: Judge, design: str) -> tuple[str, ...]:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    verdict = await judge.judge(prepared, *made.one_file(design))
    assert not verdict.passed
    return verdict.hints


BEHAVIOUR = {
    "an always block that reads nothing": (
        module("always @(*) q = 0;\n"),
        [
            "The `always @*` at TopModule.v:2 reads no signal: it never runs, what it assigns stays X; use `assign` or "
            "`always_comb`.",
            "q is X in every sample: never assigned, or a register that is never reset or initialised.",
        ],
    ),
    "an output that nothing drives": (module("", NETS), ["q is Z in every sample: nothing drives it."]),
    "an inverted output": (module(on_edge("q <= ~d;")), ["q looks inverted."]),
    "a register too many": (
        module("reg [7:0] p;\nalways @(posedge clk) begin p <= d; q <= p; end\n"),
        ["q looks one clock cycle late: one register too many, or `<=` on a value that is itself registered."],
    ),
    "a macro that nobody defined": (
        module(on_edge("q <= d + 8`h01;")),
        ["`h01 is not defined and reads as nothing: numbers take an apostrophe (1'b0), parameters no backtick."],
    ),
    "a latch": (
        module("always @* if (d[0]) q = d;\n"),
        ["`q` may infer a latch: assign a value on every path (a default first, or else)."],
    ),
    "an implicit wire": (
        module("assign nxt = d;\n" + on_edge("q <= nxt;")),
        ["`nxt` is not declared: it became a wire of one bit."],
    ),
    "a narrow connection": (
        SUB.replace("[7:0] x", "[3:0] x") + module("sub s(d, q);\n", NETS),
        ["Port x of sub has 4 bits, but 8 are connected at TopModule.v:3."],
    ),
    "blocking assignments between registers": (
        module("reg [7:0] a, b;\nalways @(posedge clk) begin a = d + 1; b = a; q = b; end\n"),
        ["`a`, `b`: assigned with `=` in a clocked block and read by another register: use `<=`."],
    ),
    "nothing that is known": (module(on_edge("q <= d + 1;")), []),
}


@pytest.mark.parametrize("name", BEHAVIOUR)
async def test_what_is_said_after_a_failed_simulation(name: str, judge: Judge) -> None:
    design, expected = BEHAVIOUR[name]
    found = await failing(judge, design)
    assert set(expected) <= set(found) if expected else found == ()


async def test_a_verdict_on_a_secret_stimulus_has_no_hints(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    trace = await judge.trace(prepared)
    before_edges = [held for _, held in trace.sample_points() if held[0] == "0"]
    key = "".join(held[1:] for held in before_edges[2:6])
    design = module(
        "reg p;\nalways @* if (d[0]) p = 1;\n"
        "initial q = 0;\ninteger n = 0;\nreg [31:0] seen = 0;\nalways @(posedge clk) begin\nn <= n + 1;\n"
        f"if (n >= 2 && n < 6) seen <= {{seen[23:0], d}};\nq <= n < 6 || seen == 32'b{key} ? d : ~d;\nend\n"
    )
    compilation = await judge.compile(prepared, *made.one_file(design))
    public, final = await judge.run(prepared, compilation), await judge.final(prepared, compilation)
    assert (public.passed, final.passed, final.reason) == (True, False, "mismatch")
    assert final.hints == ()
    secret = judge.secrets.chosen(prepared.bench.key, compilation.fingerprint)
    assert [hint[:3] for hint in (await judge.run(prepared, compilation, secret)).hints] == ["`p`"]


async def test_a_classic_verdict_has_the_hints_that_need_no_trace(judge: Judge) -> None:
    prepared = await judge.prepare(made.SELF_CHECKING_BENCH)
    assert prepared.status == "classic"
    latch = "module TopModule(input a, input b, output reg both, output either);\nassign either = a | b;\n"
    verdict = await judge.judge(prepared, *made.one_file(f"{latch}always @* if (a) both = b;\nendmodule\n"))
    assert not verdict.passed
    assert verdict.hints == ("`both` may infer a latch: assign a value on every path (a default first, or else).",)


COMBINATIONAL = {
    "if (a) q = 1;": {"q"},
    "if (a) q = 1; else q = 0;": set(),
    "begin q = 0; if (a) q = 1; end": set(),
    "begin if (a) begin q = 1; p = 0; end else p = 1; end": {"q"},
    "case (s) 0: q = 1; 1: q = 2; 2: q = 3; endcase": {"q"},
    "case (s) 0: q = 1; 1: q = 2; endcase": set(),
    "case (s) 0: q = 1; default: ; endcase": {"q"},
    "case (s) 0, 1, 2, 3: q = 1; endcase": set(),
    "case (s) A: q = 1; B: q = 2; default: q = 0; endcase": set(),
    "casez (s) 2'b1?: q = 1; 2'b01: q = 2; 2'b00: q = 0; endcase": set(),
    "case (1'b1) a: q = 1; b: q = 2; c: q = 3; endcase": set(),
    "case ({a, b}) 0: q = 1; endcase": set(),
    "unique case (s) 0: q = 1; 1: q = 2; 2: q = 3; endcase": {"q"},
    "for (i = 0; i < 4; i = i + 1) if (a) q[i] = 1;": set(),
    "begin {p, q} = 0; if (a) q[1] = 1; end": set(),
    "begin : named if (a) q[1:0] = b; end": {"q"},
    "begin int x; if (a) q = 1; end": set(),
    "if (a) f(q);": set(),
    "if (a) s.q = 1;": set(),
    "if (a) q++;": set(),
    "if (a": set(),
    "case () 1: q = 1; 2: q = 2; 3: q = 4; endcase": set(),
    "": set(),
}


@pytest.mark.parametrize("body", COMBINATIONAL)
def test_latches_are_only_claimed_when_the_reading_is_sure(body: str) -> None:
    for header in ("always @*", "always @(*)", "always_comb"):
        assert unassigned(f"module m; {header} {body} endmodule") == COMBINATIONAL[body]
    assert unassigned(f"module m; always @(posedge c) {body} endmodule") == set()


CLOCKED_BLOCKS = {
    "begin a = d; b = a; end": {"a"},
    "begin b = a; a = d; end": set(),
    "begin t = d + 1; q <= t; end": set(),
    "begin a <= d; b <= a; end": set(),
    "begin n = n + 1; end": set(),
    "begin i = 3; q = i; end integer i;": set(),
    "a = d; always @(posedge c) b <= a;": {"a"},
    "a = d; always @* b = a;": set(),
}


@pytest.mark.parametrize("body", CLOCKED_BLOCKS)
def test_blocking_assignments_are_only_told_between_registers(body: str) -> None:
    assert read_early(f"module m; always @(posedge c) {body} endmodule") == CLOCKED_BLOCKS[body]


# --- honest designs, and text of any kind


async def spared(judge: Judge, settings: Settings) -> int:
    """How many references pass; none of those has a hint."""
    passed = 0
    for problem in load_problem_set(settings):
        prepared = await judge.prepare(bench_of(problem))
        if prepared.status != "golden":
            continue
        text = re.sub(rf"\b{prepared.bench.reference_top}\b", prepared.bench.top, prepared.bench.reference)
        verdict = await judge.judge(prepared, *made.one_file(text, "TopModule.sv"))
        if verdict.passed:
            passed += 1
            assert verdict.compilation is not None
            assert (verdict.hints, verdict.compilation.hints) == ((), ()), problem.id
    return passed


async def test_no_bundled_reference_gets_a_hint(judge: Judge) -> None:
    assert await spared(judge, Settings(dataset="bundled")) == 30


@pytest.mark.slow
@pytest.mark.skipif(not VERILOG_EVAL.is_dir(), reason="VerilogEval's data set is not there")
async def test_no_reference_of_verilog_eval_gets_a_hint(judge: Judge) -> None:
    assert await spared(judge, Settings(dataset=f"dir:{VERILOG_EVAL}")) >= 150


@pytest.mark.skipif(not MODEL_TEXT.is_dir(), reason="the samples are not there")
async def test_an_always_block_that_never_fires_is_told_in_a_models_own_text(judge: Judge) -> None:
    prepared = await judge.prepare(made.CONSTANT_BENCH)
    text = (MODEL_TEXT / "Prob001_zero__always_star_never_fires.sv").read_text()
    verdict = await judge.judge(prepared, *made.one_file(re.sub(r"\bzero\b", "one", text)))
    assert not verdict.passed
    assert "reads no signal: it never runs" in verdict.hints[0]


WORDS = """
module endmodule always @ ( ) * [ ] { } ; = <= if else case endcase begin end q d ' " ` \\ // /* */ 1'b0 for function
parameter reg wire \u201c ``` assign posedge typedef : , . default
"""
PIECES = st.sampled_from([*WORDS.split(), "\n"])
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map(" ".join))
MESSAGES = st.sampled_from(
    [
        "syntax error",
        "Malformed statement",
        "Invalid module instantiation",
        "no module named T was found in",
        "Unable to bind wire/reg/memory `q' in `T'",
        "Could not find variable ``d'' in ``T''",
        "Unknown module type: q",
        "Module T was already declared here: a.v:1",
        "The expression ''sd0' cannot be implicitly cast to the target type.",
        "No function named `f' found in this context (T).",
        "@* found no sensitivities so it will never trigger.",
        "implicit definition of wire 'w'.",
        "Port 1 (x) of sub expects 8 bits, got 4.",
        "port q of T has 4 bits, expected 1",
    ]
)
DIAGNOSTICS = st.lists(
    st.builds(
        Diagnostic,
        st.sampled_from(["error", "warning"]),
        MESSAGES | st.text(max_size=80),
        st.sampled_from(["a.v", None, "other.v"]),
        st.integers(-1, 12) | st.none(),
    ),
    max_size=8,
)


@given(DIAGNOSTICS, TEXTS, st.integers(9, 14))
@example([Diagnostic("error", "syntax error", "a.v", 1)], "", 11)
@settings(deadline=None)
def test_no_text_and_no_message_breaks_the_hints(found: list[Diagnostic], text: str, major: int) -> None:
    files = {"a.v": text}
    for hints in (
        compile_hints(found, files, ("a.v",), "T", major),
        behaviour_hints(found, code_of(files, ("a.v",))),
    ):
        assert len(hints) <= MAX_HINTS
        assert len(set(hints)) == len(hints)


LONG = {
    "parameters": "parameter ",
    "functions": "function ",
    "one word": "a",
    "spaces": "1 " + " " * 50,
    "brackets": "q[",
    "always": "always @* ",
    "begins": "always @* begin ",
    "comparisons": "<= x and ",
    "quotes": '"',
    "backslashes": "\\",
    "comments": "/* ",
    "ifs": "always @* if (a) ",
}


@pytest.mark.parametrize("name", LONG)
def test_large_hostile_texts_take_no_more_than_linear_time(name: str) -> None:
    text = (LONG[name] * 262_144)[:262_144]
    found = [
        Diagnostic("error", message, "a.v", 1)
        for message in (
            "syntax error",
            "Could not find variable ``q'' in ``T''",
            f"Unable to bind parameter `{text[:99]}'",
        )
    ]
    started = time.process_time()
    for body in (text, f"\n{text}", text.replace(" ", "\n")):
        compile_hints(found, {"a.v": body}, ("a.v",), "T", 11)
        behaviour_hints(found, code_of({"a.v": body}, ("a.v",)))
    assert time.process_time() - started < 3


def test_ordinary_designs_cost_less_than_a_millisecond() -> None:
    design = made.as_design(made.COUNTER).replace("count + 1", "cuont + 1")
    said = "TopModule.v:6: error: Unable to bind wire/reg/memory `cuont' in `vt_replay.vt_dut'\n1 error(s)."
    files = {"TopModule.v": design}
    found, _ = for_the_model(parse(said), files, "TopModule", ("vt_replay", "vt_dut"))
    assert compile_hints(found, files, ("TopModule.v",), "TopModule", 12) == (
        "`cuont` is not declared in this scope: did you mean `count`?",
    )
    best = []
    for _ in range(20):
        started = time.process_time()
        compile_hints(found, files, ("TopModule.v",), "TopModule", 12)
        behaviour_hints((), code_of(files, ("TopModule.v",)))
        best.append(time.process_time() - started)
    assert min(best) < 0.001
