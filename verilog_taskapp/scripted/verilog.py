"""Just enough Verilog to rename design units and to read the port list of one module.

Only identifiers are ever touched: comments, strings, numbers, system tasks and macro names are left alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Direction = Literal["input", "output", "inout"]
_DIRECTIONS: dict[str, Direction] = {"input": "input", "output": "output", "inout": "inout"}

_LEXEME = re.compile(
    r"""
    (?P<blank> //[^\n]* | /\*.*?(?:\*/|\Z) | "(?:\\.|[^"\\\n])*"? )
  | `(?:define|undef|ifdef|ifndef|elsif)[ \t]+\w+
  | `\w+
  | '[sS]?[bodhBODH][ \t]*[\da-fA-FxXzZ?_]+
  | \\(?P<escaped>\S+)
  | (?P<word>[\w$]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"\(\*(?!\s*\)).*?\*\)", re.DOTALL)
_UNIT = re.compile(
    r"\b(?:module|macromodule|interface|package|program|primitive|class)\s+(?:(?:automatic|static)\s+)?(\w+)"
)
_SUBROUTINE = re.compile(r"\bfunction\b.*?\bendfunction\b|\btask\b.*?\bendtask\b", re.DOTALL)
_DIMENSIONS = r"(?:\[[^\]]*\]\s*)*"
_PORT = re.compile(
    r"(?:(?P<direction>input|output|inout)\b\s*)?"
    r"(?P<kind>(?:[A-Za-z_]\w*(?:::\w+)?\b\s*)*?)"
    rf"(?P<packed>{_DIMENSIONS})(?P<name>[A-Za-z_]\w*)\s*(?P<unpacked>{_DIMENSIONS})(?:=(?P<default>.*))?",
    re.DOTALL,
)
_VECTOR_WORDS = frozenset({"wire", "tri", "reg", "logic", "bit", "var", "signed", "unsigned"})
_NOT_BITS = frozenset({"real", "realtime", "shortreal", "string", "event", "interface"})


class UnreadableModule(ValueError):
    """The module is not there, or its port list uses something that is not read here."""


@dataclass(frozen=True)
class Port:
    """One port; ``kind`` is what stands between direction and range, e.g. ``reg signed``."""

    direction: Direction
    name: str
    kind: str = ""
    packed: str = ""
    default: str = ""

    @property
    def is_vector(self) -> bool:
        """Whether the type is made of plain bits with a range, not a named type or an ``int``."""
        return set(self.kind.split()) <= _VECTOR_WORDS

    def as_net(self, name: str) -> str:
        """The declaration, without direction, of a net of this port's type."""
        kind = ("wire signed" if "signed" in self.kind.split() else "wire") if self.is_vector else self.kind
        return " ".join(part for part in (kind, self.packed, name) if part)

    def as_variable(self) -> str:
        """The declaration of a local signal that replaces this port."""
        words = self.kind.split()
        kind = self.kind if words and words[0] not in ("signed", "unsigned") else f"wire {self.kind}".strip()
        value = f"= {self.default}" if self.default else ""
        return " ".join(part for part in (kind, self.packed, self.name, value) if part)

    def as_port(self) -> str:
        """The port as an entry of an ANSI port list."""
        value = f"= {self.default}" if self.default else ""
        return " ".join(part for part in (self.direction, self.kind, self.packed, self.name, value) if part)


@dataclass(frozen=True)
class Module:
    """Where a module's header stands in its text, and its ports in order.

    ``ports_span`` is the text between the parentheses of the port list, ``semicolon`` the end of the header.
    """

    ports: tuple[Port, ...]
    ansi: bool
    imports: str
    parameters: str
    """The ``#(...)`` of the header as written, or nothing."""
    parameter_names: tuple[str, ...]
    body_parameters: str
    """For a non-ANSI header: the parameter declarations of the body, which the ranges may use."""
    ports_span: tuple[int, int]
    semicolon: int


def rename_identifiers(text: str, names: Mapping[str, str]) -> str:
    """`text` with the identifiers in `names` replaced, outside comments, strings, numbers and macro names."""

    def replace(match: re.Match[str]) -> str:
        if (word := match["word"]) is not None:
            return names.get(word, word)
        if (escaped := match["escaped"]) is not None:
            return "\\" + names.get(escaped, escaped)
        return match[0]

    return _LEXEME.sub(replace, text)


def identifiers(text: str) -> frozenset[str]:
    """Every word of the code, keywords included."""
    return frozenset(match["word"] or match["escaped"] or "" for match in _LEXEME.finditer(text))


def design_units(text: str) -> tuple[str, ...]:
    """The names of the modules, packages, interfaces and so on that `text` declares, in order."""
    return tuple(dict.fromkeys(_UNIT.findall(_code_only(text))))


def unused_name(wanted: str, taken: frozenset[str]) -> str:
    """`wanted`, with a number appended if it is taken."""
    number = 2
    name = wanted
    while name in taken:
        name, number = f"{wanted}{number}", number + 1
    return name


def read_module(text: str, name: str) -> Module:
    """The header of module `name`.

    Raises UnreadableModule for a missing module and for ports that are interfaces, unpacked arrays, reals or renamed.
    """
    code = _code_only(text)
    start = re.search(rf"\b(?:module|macromodule)\s+(?:(?:automatic|static)\s+)?{re.escape(name)}(?![\w$])", code)
    if start is None:
        raise UnreadableModule(f"no module {name}")
    imports = re.compile(r"(?:\s*import\b[^;]*;)*").match(code, start.end())
    at = imports.end() if imports else start.end()
    parameters = ports = (at, at)
    if opening := re.compile(r"\s*#\s*(?=\()").match(code, at):
        parameters = (opening.end(), _closing(code, opening.end()) + 1)
        at = parameters[1]
    if opening := re.compile(r"\s*\(").match(code, at):
        ports = (opening.end(), _closing(code, opening.end() - 1))
        at = ports[1] + 1
    ending = re.compile(r"\s*;").match(code, at)
    if ending is None:
        raise UnreadableModule(f"the header of module {name} has no end")
    body_end = re.compile(r"\bendmodule\b").search(code, ending.end())
    body = _SUBROUTINE.sub(" ", code[ending.end() : body_end.start() if body_end else len(code)])
    items = [item.strip() for item in _split(code[slice(*ports)]) if item.strip()]
    ansi = not items or re.match(r"(?:input|output|inout)\b", items[0]) is not None
    return Module(
        ports=_ansi_ports(items) if ansi else _body_ports(items, body),
        ansi=ansi,
        imports=text[start.end() : imports.end()].strip() if imports else "",
        parameters=f"#{text[slice(*parameters)]}" if parameters[0] != parameters[1] else "",
        parameter_names=_parameter_names(code[parameters[0] + 1 : parameters[1] - 1]),
        body_parameters="" if ansi else "\n".join(re.findall(r"\b(?:parameter|localparam)\b[^;]*;", body)),
        ports_span=ports,
        semicolon=ending.end() - 1,
    )


def _code_only(text: str) -> str:
    """`text` with comments, strings and attributes blanked; every other character stays where it is."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    code = _LEXEME.sub(lambda match: blank(match) if match["blank"] is not None else match[0], text)
    return _ATTRIBUTE.sub(blank, code)


def _closing(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        if code[at] == "(":
            depth += 1
        elif code[at] == ")":
            depth -= 1
            if depth == 0:
                return at
    raise UnreadableModule("a parenthesis of the header is never closed")


def _split(text: str) -> list[str]:
    """`text` cut at the commas that are not inside brackets."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _ansi_ports(items: list[str]) -> tuple[Port, ...]:
    ports: list[Port] = []
    for item in items:
        match = _match_port(item)
        kind, packed = " ".join(match["kind"].split()), match["packed"].strip()
        direction = _DIRECTIONS.get(match["direction"] or "")
        if direction is None:
            if not ports:
                raise UnreadableModule(f"a port without a direction: {item!r}")
            direction = ports[-1].direction
            if not kind and not packed:
                kind, packed = ports[-1].kind, ports[-1].packed
        ports.append(Port(direction, match["name"], kind, packed, (match["default"] or "").strip()))
    return tuple(ports)


def _body_ports(names: list[str], body: str) -> tuple[Port, ...]:
    declared: dict[str, Port] = {}
    for declaration in re.findall(r"\b(?:input|output|inout)\b[^;]*", body):
        declared |= {port.name: port for port in _ansi_ports([item.strip() for item in _split(declaration)])}
    if missing := [name for name in names if name not in declared]:
        raise UnreadableModule(f"ports without a declaration: {missing}")
    return tuple(declared[name] for name in names)


def _match_port(item: str) -> re.Match[str]:
    match = _PORT.fullmatch(item)
    if match is None or match["unpacked"] or _NOT_BITS & set(match["kind"].split()):
        raise UnreadableModule(f"a port that is not read here: {item!r}")
    return match


def _parameter_names(text: str) -> tuple[str, ...]:
    names = []
    local = False
    for item in _split(text):
        if keyword := re.match(r"\s*(parameter|localparam)\b", item):
            local = keyword[1] == "localparam"
        if not local and (name := re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*=", item)):
            names.append(name[1])
    return tuple(names)
