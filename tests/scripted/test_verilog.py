import pytest

from verilog_taskapp.scripted.verilog import (
    Port,
    UnreadableModule,
    design_units,
    identifiers,
    read_module,
    rename_identifiers,
    unused_name,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("module RefModule;", "module TopModule;"),
        ("module RefModule(input a);", "module TopModule(input a);"),
        ("endmodule : RefModule", "endmodule : TopModule"),
        ("RefModule#(1) RefModule_1();", "TopModule#(1) RefModule_1();"),
        ("\\RefModule  x();", "\\TopModule  x();"),
        ("// RefModule\nRefModule u();", "// RefModule\nTopModule u();"),
        ("/* RefModule\n */ RefModule u();", "/* RefModule\n */ TopModule u();"),
        ('$display("RefModule // %m"); RefModule u();', '$display("RefModule // %m"); TopModule u();'),
        ('$display("a \\" RefModule");', '$display("a \\" RefModule");'),
        ("$RefModule; xRefModule; RefModule$x;", "$RefModule; xRefModule; RefModule$x;"),
        ("`define RefModule 1\n`RefModule", "`define RefModule 1\n`RefModule"),
        ("/* never closed RefModule", "/* never closed RefModule"),
    ],
)
def test_only_the_identifier_is_renamed(before: str, after: str) -> None:
    assert rename_identifiers(before, {"RefModule": "TopModule"}) == after


def test_a_number_is_not_an_identifier() -> None:
    assert rename_identifiers("module d10; assign x = 8'd10 + 4'sb0; endmodule", {"d10": "top", "sb0": "no"}) == (
        "module top; assign x = 8'd10 + 4'sb0; endmodule"
    )


def test_two_names_can_be_exchanged() -> None:
    assert rename_identifiers("a b a", {"a": "b", "b": "a"}) == "b a b"


def test_design_units_are_found_outside_comments() -> None:
    text = "// module no;\npackage p; endpackage\nmodule automatic m; endmodule\ninterface i; endinterface : i"
    assert design_units(text) == ("p", "m", "i")


def test_an_unused_name_is_numbered() -> None:
    assert unused_name("core", identifiers("core core2 // core3")) == "core3"


def test_ansi_ports_inherit_what_they_do_not_say() -> None:
    module = read_module(
        "module m (input wire [3:0] a, b, input c, output reg signed [W-1:0][1:0] d, e = 1, logic f); endmodule", "m"
    )
    assert module.ansi
    assert module.ports == (
        Port("input", "a", "wire", "[3:0]"),
        Port("input", "b", "wire", "[3:0]"),
        Port("input", "c"),
        Port("output", "d", "reg signed", "[W-1:0][1:0]"),
        Port("output", "e", "reg signed", "[W-1:0][1:0]", "1"),
        Port("output", "f", "logic"),
    )


def test_the_header_may_hold_comments_attributes_imports_and_parameters() -> None:
    text = (
        "module m2; endmodule\n"
        'module m import p::*; #(parameter A = f(1, 2), B = 2, localparam L = ")", C = 3, parameter type T = logic)\n'
        "  ( (* keep = 1 *) input T a, /* output no, */ output p::state_t [1:0] y // );\n  );\nendmodule"
    )
    module = read_module(text, "m")
    assert module.imports == "import p::*;"
    assert module.parameter_names == ("A", "B", "T")
    assert module.parameters.startswith("#(parameter A")
    assert module.ports == (Port("input", "a", "T"), Port("output", "y", "p::state_t", "[1:0]"))
    assert text[module.semicolon] == ";"
    assert text[module.semicolon + 1 :] == "\nendmodule"


def test_old_style_ports_are_read_from_the_body() -> None:
    text = """module m(a, q, b);
      parameter N = 4, M = 2;
      output reg [N-1:0] q; input a, b;
      task t; input no; begin end endtask
      function f; input neither; f = 0; endfunction
    endmodule"""
    module = read_module(text, "m")
    assert not module.ansi
    assert module.ports == (Port("input", "a"), Port("output", "q", "reg", "[N-1:0]"), Port("input", "b"))
    assert module.body_parameters == "parameter N = 4, M = 2;"


@pytest.mark.parametrize(
    "text",
    [
        "module other; endmodule",
        "module m",
        "module m (input a;",
        "module m (a); endmodule",
        "module m (bus.master b); endmodule",
        "module m (input a [3:0]); endmodule",
        "module m (output real r); endmodule",
        "module m (.a(b)); input b; endmodule",
    ],
)
def test_what_is_not_read_is_said(text: str) -> None:
    with pytest.raises(UnreadableModule):
        read_module(text, "m")
