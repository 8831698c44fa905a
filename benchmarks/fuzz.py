"""Random and mutated texts through the compiler and the golden judge: nothing may break, leak, stay or pass.

    python benchmarks/fuzz.py [--seconds 60] [--count N] [--seed 1] [--designs FOLDER ...] [--gated] [--json FILE]

Texts are made from the right design for a small bench and from the designs in the folders: mutated word by word, cut,
spliced, nested, repeated, or plain noise. Whatever passes is printed: it has to be a right design by accident. The exit
status is 1 when anything else than an ordinary verdict came back.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verilog_taskapp.environment.normalize import normalize
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.confinement import confinement
from verilog_taskapp.icarus.judge import Judge, Prepared
from verilog_taskapp.icarus.runner import MIB, Limits, Runner
from verilog_taskapp.icarus.toolchain import find

LIMITS = Limits(cpu_s=1.0, wall_s=60.0, address_space_bytes=512 * MIB)
MAX_CHARS = 200_000
TOLD_CHARS = 100_000

REFERENCE = """
module RefModule(input clk, input reset, input [3:0] d, output reg [3:0] q, output odd);
  assign odd = ^q;
  always @(posedge clk) if (reset) q <= 0; else q <= q + d;
endmodule
"""
TESTBENCH = """
`timescale 1ps/1ps
module tb;
  typedef struct packed { int errors; int clocks; } stats;
  stats stats1;
  reg clk = 0, reset = 1; logic [3:0] d = 0;
  wire [3:0] q_ref, q_dut; wire odd_ref, odd_dut;
  initial forever #5 clk = ~clk;
  always @(negedge clk) begin d <= $random; reset <= ($random & 7) == 0; end
  initial #400 $finish;
  RefModule good1(clk, reset, d, q_ref, odd_ref);
  TopModule top_module1(.clk(clk), .reset(reset), .d(d), .q(q_dut), .odd(odd_dut));
  wire tb_match = ({q_ref, odd_ref} === ({q_ref, odd_ref} ^ {q_dut, odd_dut} ^ {q_ref, odd_ref}));
  always @(posedge clk, negedge clk) begin
    stats1.clocks++;
    if (!tb_match) stats1.errors++;
  end
  final $display("Mismatches: %1d in %1d samples", stats1.errors, stats1.clocks);
endmodule
"""
RIGHT = REFERENCE.replace("RefModule", "TopModule")
BENCH = Bench("fuzz", "TopModule", "RefModule", REFERENCE, TESTBENCH)

LEAKS = re.compile(
    r"vt_\w+|\.judge[\w/.]*|root:x:|stats1|tb_match|good1|/dev/shm|/root/\w+|/usr/lib\S*|slot-\d+|/tmp/\S+|Traceback"
)
"""Names of the bench and of the host; one that the text itself holds is its own."""

_TOKENS = re.compile(r"\s+|[A-Za-z_$`][\w$]*|\d+'[sS]?[bodhBODH][\w?]+|\d+|\"[^\"\n]*\"|//[^\n]*|.", re.S)
_VOCABULARY = """
    module endmodule input output inout reg wire logic integer real time string event genvar generate endgenerate begin
    end if else for while repeat forever case casez endcase default always always_comb always_ff initial final assign
    force release deassign disable fork join join_any join_none wait posedge negedge function endfunction task endtask
    automatic static parameter localparam defparam specify endspecify primitive endprimitive table endtable package
    endpackage import class endclass new this interface modport program typedef enum struct packed union signed
    unsigned bit byte int longint shortint void return break continue tran supply0 tri1 pullup buf nand specparam bind
    clk reset d q odd TopModule vt_replay vt_dut vt_rows vt_memory vt_answers vt_index $display $write $monitor
    $finish $stop $random $urandom $time $readmemh $readmemb $fopen $fclose $fdisplay $fscanf $signed $clog2 $bits
    $sformatf $fatal
    `define `undef `ifdef `ifndef `else `endif `include `timescale `line `default_nettype `resetall `celldefine
    `begin_keywords `end_keywords `pragma `protect `__FILE__ `__LINE__
    ( ) [ ] { } ; : , . # @ * + - / % & | ^ ~ ! < > = == != === <= >= << >>> && || ?: ' \\ " // /* */ (* *)
    1'bx 1'bz 4'd5 32'hffffffff 64'd18446744073709551615 0 1 -1 2147483647 4294967296 1e308 1.5e-3 8'hzz '0 'x
"""
_WORDS = _VOCABULARY.split()
_SPLICES = (
    '\n`include ".judge/replay.sv"\n',
    '\n`include "/etc/passwd"\n',
    '\n`include "TopModule.sv"\n',
    '\n`line 7 ".judge/replay.sv" 1\n',
    "\n`timescale 1fs/1fs\n",
    'initial $display("%m %0t", $time);',
    "initial begin #1 $finish; end",
    "initial vt_replay.vt_rows = 0;",
    "initial force vt_replay.vt_out0 = 0;",
    "defparam vt_replay.vt_dut.x = 1;",
    "always #0 ;",
    'initial $readmemb(".judge/stimulus", vt_replay.vt_memory);',
    'wire \\a"b ;',
    "\\vt_replay.vt_dut ",
    "/*",
    '"',
    "\\",
    "\u00e9\u202e\u2028\U0001f600",
    "\0",
    "\x0b\x0c\x1c",
)


def words(text: str) -> list[str]:
    """A text in pieces that joined give it again."""
    return _TOKENS.findall(text)


def mutate(text: str, rng: random.Random, _: Sequence[str]) -> str:
    """A few words replaced, dropped, doubled or moved."""
    pieces = words(text)
    for _change in range(rng.choice((1, 1, 1, 2, 3, 6))):
        places = [number for number, piece in enumerate(pieces) if not piece.isspace()]
        if not places:
            break
        at = rng.choice(places)
        match rng.randrange(6):
            case 0:
                pieces[at] = rng.choice(_WORDS)
            case 1:
                del pieces[at]
            case 2:
                pieces.insert(at, pieces[rng.choice(places)])
            case 3:
                pieces.insert(at, f" {rng.choice(_WORDS)} ")
            case 4:
                other = rng.choice(places)
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case _:
                pieces.insert(at, rng.choice(_SPLICES))
    return "".join(pieces)


def cut(text: str, rng: random.Random, _: Sequence[str]) -> str:
    """Broken off somewhere, or with a hole: comments, strings and blocks stay open."""
    first, last = sorted(rng.randrange(len(text) + 1) for _end in range(2))
    return text[:first] if rng.random() < 0.5 else text[:first] + text[last:]


def splice(text: str, rng: random.Random, others: Sequence[str]) -> str:
    """The start of one design and the end of another."""
    other = rng.choice(others)
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]


def soup(_text: str, rng: random.Random, _: Sequence[str]) -> str:
    """Words of the language in any order."""
    return " ".join(rng.choice(_WORDS) for _word in range(rng.randint(1, 300)))


def noise(_text: str, rng: random.Random, _: Sequence[str]) -> str:
    """Bytes, or characters of every plane."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randint(1, 3000)).decode("utf-8", "replace")
    return "".join(
        chr(rng.choice((rng.randrange(128), rng.randrange(0x3000), rng.randrange(0x110000)))) for _c in range(500)
    )


def inside(text: str, rng: random.Random, _: Sequence[str]) -> str:
    """Something monstrous within the module: a huge line, a deep nest, a long list."""
    size = rng.choice((50, 1000, 20_000))
    monster = rng.choice(
        (
            "wire w" + "x" * size + ";",
            "wire y = " + "(" * size + "1" + ")" * size + ";",
            "wire y = " + "~" * size + "d[0];",
            "wire [3:0] y = " + "{" * size + "d" + "}" * size + ";",
            "initial " + "begin " * size + "end " * size,
            "initial " + "if (d) " * size + ";",
            "wire y = d[0]" + " ? d[0] : d[1]" * size + ";",
            "wire y = 0" + " + d" * size + ";",
            "// " + "\\" * size,
            f"wire [{size}00:0] y = {{{size}{{d}}}};",
            'initial $display("' + "%0d" * min(size, 5000) + '");',
            "".join(f"wire w{number};" for number in range(min(size, 5000))),
            "genvar i; generate for (i = 0; i < " + str(size) + "; i = i + 1) begin : g wire a; end endgenerate",
            "reg [3:0] m [0:" + str(size * 100) + "];",
            "function automatic [31:0] f(input [31:0] n); f = n ? f(n - 1) + f(n - 1) : 1; endfunction\n"
            "localparam P = f(30);",
        )
    )
    at = text.rfind("endmodule")
    return text[: max(at, 0)] + monster + "\n" + text[max(at, 0) :]


def macros(text: str, rng: random.Random, _: Sequence[str]) -> str:
    """Macros that grow, call themselves, paste or redefine words."""
    depth = rng.randint(2, 40)
    bomb = "`define m0 wire x;\n" + "".join(f"`define m{n} `m{n - 1} `m{n - 1}\n" for n in range(1, depth))
    heads = (
        bomb + f"`m{depth - 1}\n",
        "`define a `b\n`define b `a\n`a\n",
        "`define f(x) x x x x\n" + "`f(" * depth + "1" + ")" * depth + "\n",
        f"`define {rng.choice(_WORDS)} {rng.choice(_WORDS)}\n",
        "`define g(a,b) a``b\n`g(mod,ule) x; `g(end,module)\n",
        "`ifdef A\n" * depth,
        '`define s `"x`"\n',
        "`define long " + "x" * 50_000 + "\n`long\n",
    )
    return rng.choice(heads) + text


FORMS: tuple[Callable[[str, random.Random, Sequence[str]], str], ...] = (
    mutate, mutate, mutate, mutate, cut, splice, splice, soup, noise, inside, macros,
)  # fmt: skip


def texts(seeds: Sequence[str], seed: int) -> Iterator[tuple[str, str]]:
    """The form and the text of ever more designs; the same ones for the same seed."""
    rng = random.Random(seed)
    while True:
        form = rng.choice(FORMS)
        start = RIGHT if rng.random() < 0.5 else rng.choice(seeds)
        text = form(start, rng, seeds)
        if form is not mutate and rng.random() < 0.2:
            text = mutate(text, rng, seeds)
        yield form.__name__, text[:MAX_CHARS]


@dataclass
class Findings:
    """What came back."""

    texts: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    passed: list[str] = field(default_factory=list)
    """Texts that passed."""
    wrong: list[dict[str, str]] = field(default_factory=list)
    """Errors of ours, leaks, and files left: with the form and the text."""
    slowest_s: float = 0.0

    def note(self, what: str, form: str, text: str) -> None:
        self.wrong.append({"what": what[:500], "form": form, "text": text})


def as_written(text: str) -> str | None:
    """The text as the tool for writing files takes it; None where it refuses it."""
    normalized = normalize("TopModule.sv", text)[0].encode("utf-8", "replace").decode()
    return None if "\0" in normalized else normalized


async def judge_one(judge: Judge, prepared: Prepared, form: str, text: str, found: Findings) -> None:
    """One text to its verdict."""
    started = time.monotonic()
    try:
        compilation = await judge.compile(prepared, {"TopModule.sv": text}, ("TopModule.sv",))
        verdict = await judge.final(prepared, compilation)
    except TaskAppError as error:
        found.note(f"{type(error).__name__}: {error.message}", form, text)
        return
    found.texts += 1
    found.slowest_s = max(found.slowest_s, time.monotonic() - started)
    found.outcomes[compilation.failure or verdict.reason] += 1
    if verdict.passed:
        found.passed.append(text)
    told = compilation.messages(TOLD_CHARS) + "\n" + verdict.design_output + "\n" + verdict.detail
    leaked = sorted({match[0] for match in LEAKS.finditer(told) if match[0] not in text})
    if leaked:
        found.note(f"told: {leaked} in {told[:300]!r}", form, text)


def left_behind(scratch: Path) -> list[str]:
    """What jobs left, beside the locks and the empty slots of the launchers."""
    kept = (path.relative_to(scratch).parts for path in scratch.rglob("*"))
    return sorted("/".join(parts) for parts in kept if parts[-1] not in ("lock", "out") and len(parts) > 1)


async def fuzz(
    designs: Sequence[str], *, iverilog: str, seed: int, seconds: float, count: int | None, scratch: Path, gated: bool
) -> Findings:
    """Judge texts until time or number are used up."""
    found = Findings()
    started = time.monotonic()
    sandbox = await asyncio.to_thread(confinement, "required", iverilog)
    async with Runner(children=2, scratch_root=scratch, sandbox=sandbox) as runner:
        tools = await find(iverilog, runner)
        judge = Judge(runner, tools, compile_limits=LIMITS, run_limits=LIMITS, wall_factor=60.0, gated=gated)
        prepared = await judge.prepare(BENCH)
        source = texts([RIGHT, *designs], seed)

        async def worker() -> None:
            while time.monotonic() - started < seconds and (count is None or found.texts < count):
                form, text = next(source)
                written = as_written(text)
                if written is not None:
                    await judge_one(judge, prepared, form, written, found)

        await asyncio.gather(*(worker() for _ in range(runner.children)))
        left = await asyncio.to_thread(left_behind, runner.scratch)
        if left:
            found.note(f"left behind: {left[:10]}", "", "")
        await judge.close()
    found.seconds = time.monotonic() - started
    return found


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--designs", type=Path, nargs="*", default=[], help="folders of designs to start from")
    parser.add_argument("--iverilog", default="iverilog")
    parser.add_argument("--gated", action="store_true", help="with the list of refused calls")
    parser.add_argument("--json", type=Path, help="write everything there, the texts too")
    options = parser.parse_args()
    designs = [
        path.read_text("utf-8", "replace")
        for folder in options.designs
        for path in sorted(folder.rglob("*.*v"))
        if path.stat().st_size < MAX_CHARS
    ]
    with tempfile.TemporaryDirectory() as scratch:
        found = asyncio.run(
            fuzz(
                designs,
                iverilog=options.iverilog,
                seed=options.seed,
                seconds=options.seconds,
                count=options.count,
                scratch=Path(scratch),
                gated=options.gated,
            )
        )
    if options.json:
        options.json.write_text(json.dumps(vars(found), indent=1))
    print(f"{found.texts} texts in {found.seconds:.0f} s, the slowest took {found.slowest_s:.1f} s")
    print("  " + ", ".join(f"{name} {number}" for name, number in found.outcomes.most_common()))
    print(f"  passed: {len(found.passed)} ({len(set(found.passed))} different texts)")
    for one in found.wrong:
        print(f"WRONG ({one['form']}): {one['what']}\n{one['text'][:300]}\n")
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    main()
