"""Short advice after a failed simulation: what the compiler warned of, how the outputs relate, how the text is written.

None of it holds an expected value, and none of it is said of a design that passes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from verilog_taskapp.icarus.diagnostics import Diagnostic
from verilog_taskapp.icarus.gate import plain
from verilog_taskapp.icarus.hints import MAX_HINTS, NAME_CHARS, declared_names
from verilog_taskapp.icarus.processes import read_early, unassigned
from verilog_taskapp.icarus.relations import Relation

MAX_WARNINGS = 200
"""Messages of the compiler that are looked at."""

_IMPLICIT = re.compile(r"implicit definition of wire '(\w+)'")
_MACRO = re.compile(r"macro (\w+) undefined")
_WIDTHS = re.compile(r"Port \d+ \((\w+)\) of (?:module )?(\w+) expects (\d+) bit\S*, (?:got|given) (\d+)")


def code_of(files: Mapping[str, str], sources: Sequence[str]) -> str:
    """The compiled sources as one text without comments and strings."""
    return "\n".join(plain(files[name]) for name in sources if name in files)


def behaviour_hints(
    diagnostics: Sequence[Diagnostic], code: str, relations: Sequence[Relation] = ()
) -> tuple[str, ...]:
    """At most `MAX_HINTS` sentences on why a design that compiles fails, most specific first; `code`: see `code_of`."""
    found = dict.fromkeys([*_warned(diagnostics, code), *(str(one) for one in relations)])
    if len(found) < MAX_HINTS:
        found |= dict.fromkeys(_written(code))
    return tuple(found)[:MAX_HINTS]


def _written(code: str) -> Iterator[str]:
    if latches := sorted(unassigned(code)):
        yield f"{_listed(latches)} may infer a latch: assign a value on every path (a default first, or else)."
    if early := sorted(read_early(code)):
        yield f"{_listed(early)}: assigned with `=` in a clocked block and read by another register: use `<=`."


def _warned(diagnostics: Sequence[Diagnostic], code: str) -> Iterator[str]:
    """Warnings that are harmless in a design that works and tell a lot of one that does not."""
    for one in diagnostics[:MAX_WARNINGS]:
        if "@* found no sensitivities" in one.message:
            yield (
                f"The `always @*` at {one.file}:{one.line} reads no signal: it never runs, what it assigns stays X; "
                "use `assign` or `always_comb`."
            )
        elif found := _IMPLICIT.match(one.message):
            if found[1] not in declared_names(code):  # else it is only used before its declaration
                yield f"`{found[1][:NAME_CHARS]}` is not declared: it became a wire of one bit."
        elif found := _MACRO.match(one.message):
            yield (
                f"`{found[1][:NAME_CHARS]} is not defined and reads as nothing: numbers take an apostrophe (1'b0), "
                "parameters no backtick."
            )
        elif found := _WIDTHS.match(one.message):
            port, module, bits, given = found.groups()
            if given != "32":  # else most likely a plain number
                yield f"Port {port} of {module} has {bits} bits, but {given} are connected at {one.file}:{one.line}."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name[:NAME_CHARS]}`" for name in names[:3])
