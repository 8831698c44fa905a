"""The Verilog that the judge generates: the recorder, the dummies and the replay bench.

None of it ever holds an expected value. Names of ours start with ``vt_``; a port is only ever named in a connection
(``.name(...)``), so that no name of a design can clash with them.
"""

import re
from collections.abc import Sequence
from typing import Literal

from verilog_taskapp.icarus.launcher import OUT_PREFIX
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.replay import KIND_BITS, RowKind
from verilog_taskapp.icarus.trace import DELAY_BITS, FLAG_BITS, Interface

REPLAY_ROOT = "vt_replay"
REPLAY_INSTANCE = "vt_dut"
OBSERVED = "vt_reference"
JUDGE_FOLDER = ".judge"
"""Our files in a job's directory; a design's file names never start with a dot."""
REPLAY_FILE = f"{JUDGE_FOLDER}/replay.sv"
KINDS_FILE = f"{JUDGE_FOLDER}/kinds"
WORDS_FILE = f"{JUDGE_FOLDER}/words"
RESULT_FILE = f"{OUT_PREFIX}result"
PROGRAM_FILE = f"{JUDGE_FOLDER}/program.vvp"
EVENTS_FILE = f"{OUT_PREFIX}events"
EDGES_FILE = f"{OUT_PREFIX}edges"
SAMPLES_FILE = f"{OUT_PREFIX}samples"

Dummy = Literal["x", "0", "1", "random"]
DUMMIES: tuple[Dummy, ...] = ("x", "0", "1", "random")

_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_UNITS = {0: "s", -3: "ms", -6: "us", -9: "ns", -12: "ps", -15: "fs"}


def identifier(name: str) -> str:
    """A name as it must be written: escaped where it is not a simple identifier."""
    return name if _SIMPLE_NAME.fullmatch(name) else f"\\{name} "


def time_literal(exponent: int) -> str:
    """A power of ten of a second as a time-scale literal: -12 is ``1ps``, -8 is ``10ns``."""
    base = exponent // 3 * 3
    return f"{10 ** (exponent - base)}{_UNITS[base]}"


def timescale(unit: int, precision: int) -> str:
    """The directive for a unit and a precision."""
    return f"`timescale {time_literal(unit)}/{time_literal(precision)}\n"


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _header(top: str, ports: Sequence[Port], kind: str = "") -> str:
    listed = ", ".join(
        f"{p.direction} {kind if p.direction == 'output' else ''}{_range(p.width)}{identifier(p.name)}" for p in ports
    )
    return f"module {identifier(top)}({listed});\n"


def _concatenation(names: Sequence[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _recording(interface: Interface) -> str:
    """Statements that write every change of the ports, as the state at the end of the time step.

    ``$fstrobe`` takes only simple signals, hence the nets.
    """
    lines, signals, forms = ["  integer vt_fd;\n"], [], []
    for name, ports in (("vt_given", interface.inputs), ("vt_answered", interface.outputs)):
        if ports:
            bits = _concatenation([identifier(p.name) for p in ports])
            lines.append(f"  wire {_range(sum(p.width for p in ports))}{name} = {bits};\n")
            signals.append(name)
        forms.append("%b" if ports else "-")
    write = f'$fstrobe(vt_fd, "%0d {" ".join(forms)}", $time, {", ".join(signals)});'
    lines.append(f'  initial begin vt_fd = $fopen("{EVENTS_FILE}", "w"); {write} end\n')
    lines.append(f"  always @({', '.join(signals)}) {write}\n")
    return "".join(lines)


def edge_observer(interface: Interface) -> str:
    """Statements for the inside of the reference: at each clock edge, the inputs as its own processes see them.

    A bench that changes an input with a blocking assignment at the edge races with the design. Processes of one scope
    that wait for the same edge are woken together, so this tells what the reference saw, edge by edge.
    """
    inputs = _concatenation([identifier(p.name) for p in interface.inputs])
    # Both instances of the reference append to the file: each line is flushed whole.
    write = f'begin $fdisplay(vt_edges, "%m %0d %b", $time, {inputs}); $fflush(vt_edges); end'
    edges = [f"{kind} {identifier(p.name)}" for p in interface.clocks for kind in ("posedge", "negedge")]
    return f'\n  integer vt_edges;\n  initial vt_edges = $fopen("{EDGES_FILE}", "a");\n' + "".join(
        f"  always @({edge}) {write}\n" for edge in edges
    )


def recorder(interface: Interface, top: str, reference_top: str) -> str:
    """A stand-in for the design that is the reference and writes down all that happens at its ports."""
    connections = ", ".join(f".{identifier(p.name)}({identifier(p.name)})" for p in interface.ports)
    return (
        timescale(interface.precision, interface.precision)
        + _header(top, interface.ports)
        + f"  {identifier(reference_top)} {OBSERVED}({connections});\n"
        + _recording(interface)
        + "endmodule\n"
    )


def dummy(interface: Interface, top: str, kind: Dummy) -> str:
    """A stand-in for the design that answers with constants or noise, and writes down what it is fed."""
    if kind == "random":
        inputs = " or ".join(identifier(p.name) for p in interface.inputs)
        when = f"always @({inputs})" if inputs else "initial"
        drive = "  integer vt_seed = 20011;\n" + "".join(
            f"  {when} {identifier(p.name)} = {{{-(-p.width // 32)}{{$random(vt_seed)}}}};\n" for p in interface.outputs
        )
    else:
        drive = "".join(f"  assign {identifier(p.name)} = {{{p.width}{{1'b{kind}}}}};\n" for p in interface.outputs)
    head = _header(top, interface.ports, "reg " if kind == "random" else "")
    return timescale(interface.precision, interface.precision) + head + drive + _recording(interface) + "endmodule\n"


def sample_monitor(interface: Interface, bench_root: str) -> str:
    """A second root that writes the time at which the bench counts a sample."""
    return (
        timescale(interface.precision, interface.precision)
        + "module vt_monitor;\n  integer vt_fd;\n"
        + f'  initial vt_fd = $fopen("{SAMPLES_FILE}", "w");\n'
        + f'  always @({identifier(bench_root)}.stats1) $fdisplay(vt_fd, "%0d", $time);\nendmodule\n'
    )


def predraw(draws: int) -> str:
    """A third root that moves the bench's random streams on, before anything in the bench draws from them."""
    return (
        "module vt_predraw;\n"
        "  function integer vt_draw(input integer vt_n);\n    integer vt_i;\n    begin\n      vt_draw = 0;\n"
        "      for (vt_i = 0; vt_i < vt_n; vt_i = vt_i + 1) vt_draw = vt_draw + $random + $urandom;\n    end\n"
        f"  endfunction\n  integer vt_drawn = vt_draw({draws});\nendmodule\n"
    )


def wrapper(interface: Interface, top: str, reference_top: str) -> str:
    """The reference under the design's name."""
    connections = ", ".join(f".{identifier(p.name)}({identifier(p.name)})" for p in interface.ports)
    instance = f"  {identifier(reference_top)} vt_reference({connections});\n"
    return _header(top, interface.ports) + instance + "endmodule\n"


def replay_bench(interface: Interface, top: str, depth: int, clock_start: str, plan: Sequence[RowKind]) -> str:
    """The bench that an untrusted design is compiled with: it feeds recorded inputs and writes down the outputs.

    The numbers of rows and of words come at run time (``+vt_rows=N +vt_words=M``, at most `depth`), so that one
    compiled program serves several stimuli. `clock_start` holds the clocks' values at time 0, one character each: given
    as declaration initialisers they make no edge. The module's end has its label, because a design's file could begin
    with one. After it the bench's own time scale is set again: it then holds for the design's files.

    At each row the outputs are kept first, as they were before anything of that instant happened; then the clocks
    change (blocking), then all other inputs (non-blocking). An early row changes the other inputs before the clocks
    instead. Kinds of `plan` are the same statements with constants. A last word, all Z, tells that the file is whole.
    """
    declarations, connections = [], []
    for number, port in enumerate(interface.inputs):
        start = f" = 1'b{clock_start[number]}" if port in interface.clocks else ""
        declarations.append(f"  reg {_range(port.width)}vt_in{number}{start};\n")
        connections.append(f".{identifier(port.name)}(vt_in{number})")
    for number, port in enumerate(interface.outputs):
        declarations.append(f"  wire {_range(port.width)}vt_out{number};\n")
        connections.append(f".{identifier(port.name)}(vt_out{number})")
    last, answer = depth - 1, _range(interface.output_bits)
    return (
        timescale(interface.precision, interface.precision)
        + f"module {REPLAY_ROOT};\n"
        + f"  reg {_range(KIND_BITS)}vt_kinds [0:{last}];\n"
        + f"  reg {_range(interface.row_bits)}vt_memory [0:{last}];\n  reg {_range(interface.row_bits)}vt_row;\n"
        + f"  reg {answer}vt_answers [0:{depth}];\n"
        + "  integer vt_rows, vt_words, vt_index = 0, vt_next = 0, vt_sample = 0;\n"
        + "".join(declarations)
        + f"  {identifier(top)} {REPLAY_INSTANCE}({', '.join(connections)});\n"
        + "  initial begin\n"
        + '    if (!$value$plusargs("vt_rows=%d", vt_rows)) vt_rows = 0;\n'
        + '    if (!$value$plusargs("vt_words=%d", vt_words)) vt_words = 0;\n'
        + f'    $readmemb("{KINDS_FILE}", vt_kinds, 0, vt_rows - 1);\n'
        + f'    if (vt_words > 0) $readmemb("{WORDS_FILE}", vt_memory, 0, vt_words - 1);\n'
        + "    repeat (vt_rows) begin\n      case (vt_kinds[vt_index])\n"
        + "".join(f"        {KIND_BITS}'d{number}: {_of_kind(interface, kind)}" for number, kind in enumerate(plan, 1))
        + f"        default: {_in_full(interface)}"
        + "      endcase\n      vt_index = vt_index + 1;\n    end\n"
        + f"    vt_answers[vt_sample] = {{{interface.output_bits}{{1'bz}}}};\n"
        + f'    $writememb("{RESULT_FILE}", vt_answers, 0, vt_sample);\n'
        + f"    $finish(0);\n  end\nendmodule : {REPLAY_ROOT}\n"
        + timescale(interface.unit, interface.precision)
    )


_NEXT_WORD = "          vt_row = vt_memory[vt_next];\n          vt_next = vt_next + 1;\n"


def _sampled(interface: Interface) -> str:
    outputs = _concatenation([f"vt_out{number}" for number in range(len(interface.outputs))])
    return f"begin vt_answers[vt_sample] = {outputs}; vt_sample = vt_sample + 1; end\n"


def _of_row(interface: Interface) -> list[tuple[str, str, bool]]:
    """For each input: its variable, its bits in a full row, whether it is a clock."""
    found, low = [], interface.input_bits
    for number, port in enumerate(interface.inputs):
        low -= port.width
        found.append((f"vt_in{number}", f"vt_row[{low + port.width - 1}:{low}]", port in interface.clocks))
    return found


def _of_kind(interface: Interface, kind: RowKind) -> str:
    inputs = _of_row(interface)
    clocks = [name for name, _, is_clock in inputs if is_clock]
    lines = [f"          #{kind.delay};\n"]
    lines += [f"          {_sampled(interface)}"] if kind.is_sample else []
    lines += [f"          {name} = 1'b{value};\n" for name, value in zip(clocks, kind.clocks, strict=True)]
    if kind.changes_data:
        lines += [_NEXT_WORD, *(f"          {name} <= {bits};\n" for name, bits, is_clock in inputs if not is_clock)]
    return "begin\n" + "".join(lines) + "        end\n"


def _in_full(interface: Interface) -> str:
    inputs, width = _of_row(interface), interface.row_bits
    delay = f"vt_row[{width - FLAG_BITS - 1}:{width - FLAG_BITS - DELAY_BITS}]"
    early = "".join(f" {name} = {bits};" for name, bits, is_clock in inputs if not is_clock)
    return (
        f"begin\n{_NEXT_WORD}          if ({delay} != 0) #({delay});\n"
        + f"          if (vt_row[{width - 1}]) {_sampled(interface)}"
        + (f"          if (vt_row[{width - 2}]) begin{early} end\n" if early else "")
        + "".join(f"          {name} {'=' if is_clock else '<='} {bits};\n" for name, bits, is_clock in inputs)
        + "        end\n"
    )
