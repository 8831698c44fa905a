"""The passes of the Icarus compiler, called without its driver.

``iverilog`` writes configuration files and starts a shell that starts ``ivlpp | ivl``: four processes where one does
the work. Here ``ivl`` is called alone where nothing is to be preprocessed, else after ``ivlpp``. The lines of the
configuration are those that the driver of Icarus 11, 12 and 13 writes for our flags; `toolchain.find` compiles probes
both ways and compares, so that another installation falls back to its driver instead of compiling something else.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verilog_taskapp.icarus.benches import JUDGE_FOLDER

CONFIG_FILE = f"{JUDGE_FOLDER}/ivl.conf"
DEFINES_FILE = f"{JUDGE_FOLDER}/ivlpp.conf"
LIST_FILE = f"{JUDGE_FOLDER}/ivlpp.list"
SOURCE_FILE = f"{JUDGE_FOLDER}/source"
"""All sources in one, as the preprocessor leaves them: what `ivl` reads from its standard input."""

_MODULES = ("system.vpi", "vhdl_sys.vpi", "vhdl_textio.vpi", "v2005_math.vpi", "va_math.vpi", "v2009.vpi")
_IN_SYSTEM = frozenset({
    "$display", "$write", "$strobe", "$monitor", "$finish", "$stop", "$time", "$realtime", "$signed", "$unsigned",
    "$random", "$urandom", "$readmemb", "$readmemh", "$writememb", "$writememh", "$fopen", "$fclose",
    "$fdisplay", "$value$plusargs",
})  # fmt: skip
"""Calls that the first module alone provides, or the compiler itself: loading the others costs time in each process."""
_CALL = re.compile(r"\$[A-Za-z_][\w$]*")
_LANGUAGE = (
    "generation:2012",
    "generation:no-specify",
    "generation:assertions",
    "generation:xtypes",
    "generation:io-range-error",
    "generation:no-strict-ca-eval",
    "generation:no-strict-expr-width",
    "generation:shared-loop-index",
    "generation:no-verilog-ams",
    "generation:icarus-misc",
    "warnings:nidRpsal",
    "ignore_missing_modules:false",
    "iwidth:32",
    "widthcap:65536",
)
"""What ``-g2012 -Wall -Winfloop -Wno-timescale`` means."""
_LANGUAGE_SINCE = {13: ("generation:no-interconnect",)}
"""Lines that a version added."""


@dataclass(frozen=True)
class Plan:
    """What to run: command lines one after the other, and the files that they need beside the sources.

    The last one reads `SOURCE_FILE` from its standard input: a file that is named it would preprocess itself.
    """

    commands: tuple[tuple[str, ...], ...]
    files: Mapping[str, bytes]
    needs_sources: bool
    """False where the files hold the sources already."""


@dataclass(frozen=True)
class Passes:
    """The folder with ``ivlpp``, ``ivl`` and the modules of one installation, and its major version."""

    library: Path
    major: int

    @property
    def _target(self) -> tuple[str, ...]:
        """The code generator by its full path: a bare name is looked for in forty folders first."""
        target = self.library / "vvp.tgt"
        return (f"flag:DLL={target}",) if target.is_file() else ()

    def plan(self, texts: Mapping[str, str], sources: Sequence[str], output: str, root: str) -> Plan:
        """How to compile `sources` into `output`; `texts` are all files that they may include."""
        needed = [texts[name] for name in sources]
        plain = not any(_preprocessed(text) for text in needed) and not any('"' in name for name in sources)
        calls = {call for text in needed for call in _CALL.findall(text)}
        modules = _MODULES if not plain or calls - _IN_SYSTEM else _MODULES[:1]
        lines = [f"root:{root}", f"basedir:{self.library}", *(f"module:{self.library}/{name}" for name in modules)]
        added = [line for major, more in _LANGUAGE_SINCE.items() if self.major >= major for line in more]
        config = "\n".join((*lines, *_LANGUAGE, *added, *self._target, f"out:{output}", "ivlpp:/nonexistent", ""))
        ivl = (str(self.library / "ivl"), f"-C{self.library}/vvp.conf", f"-C{CONFIG_FILE}", "--", "-")
        files = {CONFIG_FILE: config.encode()}
        if plain:
            files[SOURCE_FILE] = "".join(map(_with_place, sources, needed)).encode("utf-8", "replace")
            return Plan((ivl,), files, needs_sources=False)
        files[DEFINES_FILE] = (
            f"D:__ICARUS__=1\nI:.\nvhdlpp:/nonexistent\nvhdlpp-work:ivl_vhdl_work\n"
            f"I:{self.library}/include\nrelative include:false\n"
        ).encode()
        files[LIST_FILE] = "".join(f"{name}\n" for name in sources).encode()
        ivlpp = (
            str(self.library / "ivlpp"),
            "-L",
            "-Wredef-chg",
            f"-F{DEFINES_FILE}",
            f"-f{LIST_FILE}",
            f"-o{SOURCE_FILE}",
        )
        return Plan((ivlpp, ivl), files, needs_sources=True)


def find_passes(iverilog: Path, major: int) -> Passes | None:
    """The passes of an installed compiler; None where they are not found. Blocking.

    A compiler that is not a binary may do anything before it calls a real one, so it keeps its say.
    """
    program = iverilog.resolve()
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
    prefix = program.parent.parent
    for library in (*prefix.glob("lib/ivl*"), *prefix.glob("lib/*/ivl*")):
        if all((library / name).is_file() for name in ("ivl", "ivlpp", "vvp.conf", *_MODULES)):
            return Passes(library, major)
    return None


def _preprocessed(text: str) -> bool:
    """Whether the preprocessor would change a text; our own time scale, which it passes on, aside."""
    return "`" in re.sub(r"(?m)^`timescale [0-9a-z]+/[0-9a-z]+$", "", text) or "\r" in text or "\0" in text


def _with_place(name: str, text: str) -> str:
    return f'`line 1 "{name}" 0\n{text}' + ("" if text.endswith("\n") else "\n")


PROBE = {
    "probe.sv": """`timescale 1ns/1ps
`define WIDTH 8
module probe #(parameter N = 3)(input clk, input [`WIDTH-1:0] d, output reg [`WIDTH-1:0] q);
  typedef enum logic [1:0] {A, B, C} state_t;
  state_t state = A;
  wire [7:0] w[0:3];
  for (genvar i = 0; i < 4; i++) assign w[i] = d + i;
  always_ff @(posedge clk) begin q <= #1 d ^ w[state]; if (state == C) state <= A; else state <= B; end
  function automatic [7:0] twice(input [7:0] x); return x << 1; endfunction
  initial for (int i = 0; i < $clog2(N); i = i + 1) $display("%0d %b", twice(i), q, $time);
endmodule
""",
    "plain.sv": "module plain(input a, output wire b, c);\n  assign b = !a, c = a;\nendmodule\n",
}
"""Compiled both ways at start."""


def normalized(program: bytes) -> tuple[str, ...]:
    """A compiled program without what differs from run to run (addresses) and without its list of modules."""
    text = program.decode("latin-1")
    names: dict[str, str] = {}
    text = re.sub(r"0x[0-9a-f]{6,}", lambda found: names.setdefault(found[0], f"@{len(names)}"), text)
    return tuple(line for line in text.splitlines() if not line.startswith((":vpi_module", "#!")))
