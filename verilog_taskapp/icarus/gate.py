"""What a design asks of the simulator, read from its compiled program, and what it may ask."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from verilog_taskapp.icarus.program import modules

_CALL = re.compile(r'^\s*(?:%vpi_(?:call|func)\S*|\S*\s*\.sfunc\S*)\s.*?"(\$[^"]+)"', re.M)
_DRIVEN = re.compile(r'^v\w+ \.net\S* "([^"]+)".*; +(?:alias, +)?[1-9]\d* drivers', re.M)
_NOT_CODE = re.compile(r'(\\[^ \t\b\f\r\n]+)|//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"', re.S)
_FORCING = re.compile(r"^\s*%(force|cassign|release|deassign)", re.M)
_SWITCHED = re.compile(r"^I\w+ \.island tran", re.M)

_PURE_NAMES = """
    abs acos acosh asin asinh atan atan2 atanh bits bitstoreal bitstoshortreal ceil clog2 cos cosh
    countones dimensions exp floor high hypot increment isunknown itor left ln log10 low max min
    onehot onehot0 pow realtime realtobits right rtoi shortrealtobits signed sin sinh size sqrt
    stime tan tanh time unpacked_dimensions unsigned
"""
PURE_CALLS = frozenset(f"${name}" for name in _PURE_NAMES.split())
"""Functions of their arguments or of the time: they reach nothing outside the design."""


ALLOWED_CALLS = PURE_CALLS | frozenset(
    f"${name}"
    for name in (
        *(f"{task}{base}" for task in ("display", "write", "strobe", "monitor") for base in ("", "b", "o", "h")),
        *("error", "warning", "info", "timeformat", "printtimescale", "monitoron", "monitoroff"),
        *("sformat", "sformatf", "swrite", "swriteb", "swriteo", "swriteh", "sscanf"),
        *("random", "urandom", "urandom_range", "readmemb", "readmemh", "fatal"),
    )
)
"""What a design may call under the golden judge: printing is harmless there, and the sandbox keeps ``$readmem`` to the
workspace's files. Ending the simulation (``$finish``, ``$stop``) is the bench's business. The list exists for clear
messages; the verdict does not rest on it."""

BENCH_CALLS: Mapping[str, int] = MappingProxyType({"$value$plusargs": 2, "$readmemb": 2, "$writememb": 1, "$finish": 1})
"""The calls of the generated replay bench itself."""


def refused_calls(program: bytes) -> tuple[str, ...]:
    """Calls that a design compiled with the replay bench must not make, e.g. ``$fopen``, sorted."""
    named = program.count(b'"$') - program.count(b'"$unit"')  # the scope of what is declared outside modules
    if named == sum(BENCH_CALLS.values()) and b"%force" not in program and b"%release" not in program:
        return ()  # nothing but the bench's own: most designs
    text = program.decode("utf-8", "replace")
    calls = Counter(_CALL.findall(text)) - Counter(BENCH_CALLS)
    forcing = {word for word in _FORCING.findall(text) if word in ("force", "release")}
    return tuple(sorted({*(call for call in calls if call not in ALLOWED_CALLS), *forcing}))


def system_calls(program: bytes) -> frozenset[str]:
    """System tasks and functions that a compiled program calls, e.g. ``$display``; ``force`` and its kin by name."""
    text = program.decode("utf-8", "replace")
    return frozenset(_CALL.findall(text)) | frozenset(_FORCING.findall(text))


def instantiated(program: bytes) -> frozenset[str]:
    """Names of the modules that a compiled program holds instances of."""
    return frozenset(one.module for one in modules(program))


def driven_inputs(program: bytes) -> frozenset[str]:
    """Input ports of the root module that the program itself drives: it would overrule who is connected there."""
    text = program.decode("utf-8", "replace")
    root = next((one for one in modules(program) if len(one.path) == 1), None)
    start = text.find(".scope module, ")
    if root is None or start < 0:
        return frozenset()
    body = text[start : end if (end := text.find("\nS_", start)) > 0 else len(text)]
    return frozenset(_DRIVEN.findall(body)) & {port.name for port in root.ports if port.direction == "input"}


def has_switches(program: bytes) -> bool:
    """Whether a program joins nets in both directions (``tran`` and its kin): then nobody can tell who drives what."""
    return _SWITCHED.search(program.decode("utf-8", "replace")) is not None


def declared_modules(text: str) -> frozenset[str]:
    """Names of the modules that a source text declares."""
    return frozenset(
        re.findall(r"\b(?:module|macromodule|program|interface)\s+(?:automatic\s+)?([A-Za-z_]\w*)", plain(text))
    )


def mentioned(text: str, names: Iterable[str]) -> frozenset[str]:
    """Which of `names` occur as identifiers in a source text, outside of comments and strings."""
    words = frozenset(re.findall(r"[A-Za-z_][\w$]*", plain(text)))
    return words & frozenset(names)


def plain(text: str) -> str:
    """A source text without comments and strings, the same number of lines.

    An escaped identifier stays, whatever is in it: what looks like a comment or a string there is neither.
    """
    return _NOT_CODE.sub(lambda match: match[1] or " " + "\n" * match[0].count("\n"), text)
