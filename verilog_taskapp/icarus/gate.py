"""What a design asks of the simulator, read from its compiled program, and what it may ask."""

import re
from collections.abc import Iterable

_CALL = re.compile(r'^\s*(?:%vpi_(?:call|func)\S*|[\w.]*\s*\.sfunc\S*)\s.*?"(\$[^"]+)"', re.M)
_FORCING = re.compile(r"^\s*%(force|cassign|release|deassign)", re.M)

_PURE_NAMES = """
    abs acos acosh asin asinh atan atan2 atanh bits bitstoreal bitstoshortreal ceil clog2 cos cosh
    countones dimensions exp floor high hypot increment isunknown itor left ln log10 low max min
    onehot onehot0 pow realtime realtobits right rtoi shortrealtobits signed sin sinh size sqrt
    stime tan tanh time unpacked_dimensions unsigned
"""
PURE_CALLS = frozenset(f"${name}" for name in _PURE_NAMES.split())
"""Functions of their arguments or of the time: they reach nothing outside the design."""


def system_calls(program: bytes) -> frozenset[str]:
    """System tasks and functions that a compiled program calls, e.g. ``$display``; ``force`` and its kin by name."""
    text = program.decode("utf-8", "replace")
    return frozenset(_CALL.findall(text)) | frozenset(_FORCING.findall(text))


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
    """A source text without comments and strings, the same number of lines."""
    kept = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"', re.S)
    return kept.sub(lambda match: " " + "\n" * match[0].count("\n"), text)
