"""Which modules a Verilog text declares and names: a light scan that knows comments and strings, no parser."""

import re

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")

_INERT = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|\\\S+', re.DOTALL)
"""Comments, strings and escaped identifiers (IEEE 1800-2017, 5.4, 5.6.1 and 5.9)."""

_DECLARATION = re.compile(r"\b(?:macro)?module\s+(?:(?:automatic|static)\s+)?([A-Za-z_][A-Za-z0-9_$]*)")


def code_only(text: str) -> str:
    """`text` with every comment, string and escaped identifier replaced by one space."""
    return _INERT.sub(" ", text)


def declared_modules(text: str) -> tuple[str, ...]:
    """Names of the modules that `text` declares, in its order, each once; both branches of an ``ifdef`` count."""
    return tuple(dict.fromkeys(_DECLARATION.findall(code_only(text))))


def named_in(text: str) -> frozenset[str]:
    """Every identifier and keyword in the code of `text`."""
    return frozenset(IDENTIFIER.findall(code_only(text)))
