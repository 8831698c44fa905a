"""Messages of real compilers, in the model's terms."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.icarus import made
from verilog_taskapp.icarus.diagnostics import Diagnostic, for_the_model, parse, port_problems, render
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.verdict import Compilation

HEADER = "module TopModule(input clk, input [7:0] d, output reg [7:0] q);\n"
DFF = "always @(posedge clk) q <= d;\n"
OURS = re.compile(r"vt_|\.judge|/dev/shm|/tmp|/opt|/usr|RefModule|stats1|tb_match|referenced \d")


async def messages(judge: Judge, design: str, **files: str) -> Compilation:
    """The compilation of a design (and further files ``name_v``) for an 8-bit flip-flop."""
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    everything = {"TopModule.v": design} | {name.replace("_", "."): text for name, text in files.items()}
    sources = tuple(name for name in everything if name.endswith((".v", ".sv")))
    compilation = await judge.compile(prepared, everything, sources)
    assert not OURS.search(compilation.messages(100_000)), compilation.messages(100_000)
    return compilation


def lines(compilation: Compilation) -> list[str]:
    return compilation.messages(100_000).splitlines()


BROKEN = {
    "a syntax error": (HEADER + "always @(posedge clk q <= d;\nendmodule\n", ["TopModule.v:2: error: syntax error"]),
    "an undeclared name": (
        HEADER + "always @(posedge clk) q <= e;\nendmodule\n",
        ["TopModule.v:2: error: Unable to bind wire/reg/memory `e' in `TopModule'"],
    ),
    "a missing module": (
        HEADER + "helper h(clk, d, q);\nendmodule\n",
        ["TopModule.v:2: error: Unknown module type: helper"],
    ),
    "a missing include file": (
        '`include "nope.vh"\n' + HEADER + DFF + "endmodule\n",
        [r"re:TopModule.v:\d: error: Include file nope.vh not found"],
    ),
    "an unterminated comment": (HEADER + DFF + "/* endmodule\n", [r"re:TopModule.v:\d: error: syntax error"]),
    "an unterminated ifdef": (
        "`ifdef FOO\n" + HEADER + DFF + "endmodule\n",
        ["TopModule.v:1: error: This `ifdef lacks an `endif."],
    ),
    "a net assigned in a process": (
        HEADER.replace(" reg", "") + DFF + "endmodule\n",
        [r"re:TopModule.v:2: error: '?q'? is not a valid l-value .*q'? is declared here as (a )?wire\."],
    ),
    "a module declared twice": (
        HEADER + DFF + "endmodule\nmodule TopModule(input a); endmodule\n",
        [
            "TopModule.v:4: error: 'TopModule' has already been declared in this scope. "
            "It was declared here as a module.",
            "TopModule.v:4: error: Module TopModule was already declared here: TopModule.v:1",
        ],
    ),
    "a loop without a delay": (
        HEADER + "always q = d;\nendmodule\n",
        ["TopModule.v:2: error: always process does not have any delay. A runtime infinite loop will occur."],
    ),
    "something that is not supported": (
        HEADER + DFF + "covergroup cg; endgroup\nendmodule\n",
        [r"re:TopModule.v:\d: error: (syntax error|.*nvalid module item.*)"],
    ),
    "an enumeration without a cast": (
        HEADER + DFF + "enum {A, B} e; always_comb e = d;\nendmodule\n",
        ["TopModule.v:3: error: This assignment requires an explicit cast."],
    ),
    "a net assigned twice": (
        HEADER + "assign q = d;\n" + DFF + "endmodule\n",
        [r"re:TopModule.v:3: error: (q Unable to assign to unresolved wires|Cannot perform procedural assignment).*"],
    ),
    "a scope in a message": (
        HEADER + DFF + "function f(input a); f = bar; endfunction\nlocalparam P = f(1);\nendmodule\n",
        [r"re:TopModule.v:3: error: Unable to bind wire/reg/memory `bar' in `TopModule\.f'.*"],
    ),
    "a name of the testbench": (
        HEADER.replace(" reg", "") + "assign q = tb.q_ref;\nendmodule\n",
        [r"re:TopModule.v:2: error: Unable to bind wire/reg/memory `tb.q_ref' in `TopModule'"],
    ),
    "no module of the right name": (
        HEADER.replace("TopModule", "Top") + DFF + "endmodule\n",
        ["error: no module named TopModule was found in the compiled files"],
    ),
    "an empty file": ("", ["error: no module named TopModule was found in the compiled files"]),
    "only a comment": ("// module TopModule\n", ["error: no module named TopModule was found in the compiled files"]),
    "a missing port": (
        HEADER.replace("input [7:0] d, ", "") + "endmodule\n",
        ["error: port d of TopModule is missing: expected input d (8 bits)"],
    ),
    "a renamed port": (
        HEADER.replace("] q", "] Q") + "always @(posedge clk) Q <= d;\nendmodule\n",
        ["error: port q of TopModule is missing: expected output q (8 bits) (there is Q: names are case-sensitive)"],
    ),
    "a port of the wrong direction": (
        HEADER.replace("input [7:0] d", "output [7:0] d") + "endmodule\n",
        ["error: port d of TopModule is an output, expected input"],
    ),
    "a port that goes both ways": (
        HEADER.replace("input [7:0] d", "inout [7:0] d") + DFF + "endmodule\n",
        ["error: port d of TopModule is an inout, expected input"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_wrong_is_told_in_the_designs_own_terms(name: str, judge: Judge) -> None:
    design, expected = BROKEN[name]
    compilation = await messages(judge, design)
    assert compilation.failure == "errors"
    told = lines(compilation)
    for wanted in expected:
        if wanted.startswith("re:"):
            assert any(re.fullmatch(wanted[3:], line) for line in told), told
        else:
            assert wanted in told
    assert len(told) == len(set(told))
    if not any("syntax" in line for line in told):
        assert not any("no module named" in line for line in told[1:]), told


async def test_ports_that_still_fit_are_warned_about(judge: Judge) -> None:
    extra = await messages(judge, HEADER.replace("clk,", "clk, input reset,") + DFF + "endmodule\n")
    assert extra.succeeded
    assert lines(extra) == [
        "warning: port reset of TopModule is not in the interface: nothing is connected to it",
    ]
    narrow = await messages(judge, HEADER.replace("input [7:0]", "input [3:0]") + DFF + "endmodule\n")
    assert narrow.succeeded
    assert lines(narrow) == ["warning: port d of TopModule has 4 bits, expected 8"]


async def test_warnings_about_the_designs_own_code_are_kept(judge: Judge) -> None:
    design = HEADER + "wire [3:0] w; part p(.a(d), .b(w));\n" + DFF + "endmodule\n"
    compilation = await messages(
        judge, design + "module part(input [3:0] a, output [3:0] b); assign b = a; endmodule\n"
    )
    assert compilation.succeeded
    (warning,) = lines(compilation)
    assert re.fullmatch(
        r"TopModule.v:2: warning: Port 1 \(a\) of (module )?part expects 4 bit\S+ (got|given) 8\. "
        r"Pruning 4 high bits of the expression\.",
        warning,
    )


async def test_a_success_has_no_errors_whatever_the_compiler_calls_its_messages(judge: Judge) -> None:
    design = HEADER + "always_comb unique case (d[1:0]) 2'd0: q = d; default: q = ~d; endcase\nendmodule\n"
    compilation = await messages(judge, design)
    assert compilation.succeeded
    assert not any(one.severity == "error" for one in compilation.diagnostics)
    assert all("warning: not supported by this simulator: " in line for line in lines(compilation))


async def test_an_error_in_an_included_file_names_that_file(judge: Judge) -> None:
    compilation = await messages(judge, '`include "body.vh"\n', body_vh=HEADER + "\nnonsense here\nendmodule\n")
    assert lines(compilation)[0] == "body.vh:4: error: syntax error"


async def test_an_error_in_one_of_two_sources_names_the_right_one(judge: Judge) -> None:
    compilation = await messages(
        judge, HEADER.replace(" reg", "") + "part p(clk, d, q);\nendmodule\n", part_v="module part(\n;\nendmodule\n"
    )
    assert lines(compilation)[0] == "part.v:2: error: syntax error"


@pytest.mark.parametrize("target", ["/etc/passwd", ".judge/replay.sv", "../../x.v", "/dev/null", "TopModule.v"])
async def test_nothing_of_a_file_outside_the_workspace_is_quoted(target: str, judge: Judge) -> None:
    design = f'`include "{target}"\n' + HEADER + DFF + "endmodule\n"
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    compilation = await judge.compile(prepared, *made.one_file(design))
    told = compilation.messages(100_000)
    assert "root:" not in told
    assert "/root" not in told
    assert "vt_" not in told
    assert compilation.succeeded == (target == "/dev/null")
    assert told or compilation.succeeded


async def test_a_design_that_takes_the_benchs_name_learns_only_that(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    design = HEADER + DFF + "endmodule\nmodule vt_replay; endmodule\n"
    told = (await judge.compile(prepared, *made.one_file(design))).messages(10_000)
    assert "already declared here: the testbench" in told
    assert ".judge" not in told


async def test_line_directives_do_not_make_the_testbench_speak(judge: Judge) -> None:
    for name in ("other.v", ".judge/replay.sv", "/etc/shadow"):
        design = f'`line 7 "{name}" 0\n' + HEADER + "nonsense;\nendmodule\n"
        prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
        compilation = await judge.compile(prepared, *made.one_file(design))
        assert not compilation.succeeded
        assert lines(compilation) == ["error: the errors are in a file that is not in the workspace"]


# --- reading


def test_messages_are_read_with_their_place_and_severity() -> None:
    text = """TopModule.v:2: syntax error
./sub/part.sv:10: warning: Numeric constant truncated to 7 bits.
TopModule.v:3: sorry: constant selects in always_* processes are not currently supported (all bits included).
TopModule.v:4: error: q is not a valid l-value in top.
TopModule.v:1:      : q is declared here as wire.
I give up.
4 error(s) during elaboration.
Elaboration failed
"""
    assert parse(text) == (
        Diagnostic("error", "syntax error", "TopModule.v", 2),
        Diagnostic("warning", "Numeric constant truncated to 7 bits.", "sub/part.sv", 10),
        Diagnostic(
            "error",
            "not supported by this simulator: constant selects in always_* processes are not currently supported "
            "(all bits included).",
            "TopModule.v",
            3,
        ),
        Diagnostic("error", "q is not a valid l-value in top. q is declared here as wire.", "TopModule.v", 4),
    )


def test_messages_in_the_forms_of_each_version_are_read() -> None:
    text = """TopModule.v:2 Warning: Extra digits given for sized hex constant.
TopModule.v:5: error: Part select is out of range.
TopModule.v:5       : This MSB expression is not constant.
vvp.tgt sorry: Case unique/unique0 qualities are ignored.
:0: sorry: constant selects in always_* processes are not fully supported.
internal error: NetProc::nex_input not implemented
warning: Some modules have no timescale.
"""
    unsupported = "not supported by this simulator: "
    assert parse(text) == (
        Diagnostic("warning", "Extra digits given for sized hex constant.", "TopModule.v", 2),
        Diagnostic("error", "Part select is out of range. This MSB expression is not constant.", "TopModule.v", 5),
        Diagnostic("error", unsupported + "Case unique/unique0 qualities are ignored."),
        Diagnostic("error", unsupported + "constant selects in always_* processes are not fully supported."),
        Diagnostic("error", "NetProc::nex_input not implemented"),
        Diagnostic("warning", "Some modules have no timescale."),
    )


def test_a_message_that_is_repeated_is_read_once_and_keeps_its_own_continuation() -> None:
    text = "a.v:1: error: one\na.v:1:      : more\na.v:2: error: two\na.v:1: error: one\na.v:1:      : more\n"
    assert [str(one) for one in parse(text)] == ["a.v:1: error: one more", "a.v:2: error: two"]


def test_messages_without_a_place_lose_the_servers_paths() -> None:
    text = "/opt/icarus/12/lib/ivl/ivl: cannot open /tmp/ivrlg1234\nsh: 1: /usr/lib/ivl/ivlpp: not found\n"
    assert [str(one) for one in parse(text)] == [
        "error: ivl: cannot open ivrlg1234",
        "error: sh: 1: ivlpp: not found",
    ]


def test_missing_modules_are_told_once() -> None:
    text = "a.v:2: error: Unknown module type: half\n2 error(s) during elaboration.\n*** These modules were missing:\n"
    text += "        half referenced 1 times.\n        whole referenced 2 times.\n***\n"
    assert [str(one) for one in parse(text)] == [
        "a.v:2: error: Unknown module type: half",
        "error: Unknown module type: whole",
    ]


# --- for the model


def test_messages_of_other_files_are_left_out_and_counted_only_as_errors() -> None:
    found = (
        Diagnostic("error", "mine", "a.v", 1),
        Diagnostic("warning", "Port 2 (secret) of TopModule expects 4 bits", ".judge/bench.sv", 5),
    )
    assert for_the_model(found, ("a.v",), "TopModule") == (found[:1], False)
    hidden = Diagnostic("error", "port ``secret'' is not a port of dut", ".judge/bench.sv", 9)
    assert for_the_model((*found, hidden), ("a.v",), "TopModule") == (found[:1], True)


def test_the_scope_of_the_bench_is_told_as_the_top_module_and_merged() -> None:
    found = [
        Diagnostic("error", f"Unable to bind `e' in `{scope}'", "a.v", 2)
        for scope in ("tb.dut", "TopModule", "tb.dut.inner", "tb.dutch", "x.tb.dut")
    ]
    kept, _ = for_the_model(found, ("a.v",), "TopModule", ("tb", "dut"))
    assert [one.message.split("`")[2] for one in kept] == ["TopModule'", "TopModule.inner'", "tb.dutch'", "x.tb.dut'"]


@given(st.text(max_size=300))
@example("a.v:99999999999999999999: error: x")
@example(":1: x")
@example("a.v:1:      : a continuation of nothing")
@example("\x0b a.v:1: x \x1c \u2028 b.v:2: y")
def test_reading_and_telling_never_raise(text: str) -> None:
    found = parse(text)
    kept, hidden = for_the_model(found, ("a.v",), "TopModule", ("vt_replay", "vt_dut"))
    assert len(kept) <= len(found) + 1
    assert isinstance(hidden, bool)
    render(kept, 40)


DIAGNOSTICS = st.builds(
    Diagnostic,
    st.sampled_from(("error", "warning", "note")),
    st.text(max_size=40),
    st.none() | st.sampled_from(("a.v", "b.sv")),
    st.integers(1, 99),
)


@given(st.lists(DIAGNOSTICS, max_size=12), st.integers(1, 300))
def test_errors_come_first_and_the_text_is_cut_between_messages(found: list[Diagnostic], limit: int) -> None:
    text = render(found, limit)
    ordered = [str(one) for one in found if one.severity == "error"]
    ordered += [str(one) for one in found if one.severity != "error"]
    assert len(text) <= limit + len("\n... and 12 more messages") + len(" ...")
    if text != "\n".join(ordered):
        kept = next(n for n in range(len(ordered), -1, -1) if text.startswith("\n".join(ordered[:n])))
        rest = len(ordered) - max(kept, 1)
        assert (f"... and {rest} more messages" in text) == (rest > 0)


def test_errors_are_what_is_kept_when_the_text_is_cut() -> None:
    found = [*(Diagnostic("warning", f"warning {n}") for n in range(50)), Diagnostic("error", "the one error")]
    assert render(found, 60).splitlines() == [
        "error: the one error",
        "warning: warning 0",
        "warning: warning 1",
        "... and 48 more messages",
    ]


def test_a_single_message_that_is_too_long_is_cut_itself() -> None:
    assert render([Diagnostic("error", "x" * 100), Diagnostic("error", "y")], 20) == (
        "error: " + "x" * 13 + " ...\n... and 1 more messages"
    )


def test_nothing_renders_as_nothing() -> None:
    assert render([], 10) == ""


def test_ports_that_are_the_same_are_no_problem() -> None:
    ports = (Port("a", "input", 1), Port("q", "output", 4))
    assert port_problems(ports, ports[::-1], "Top") == ()
