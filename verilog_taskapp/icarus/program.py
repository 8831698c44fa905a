"""Reading facts from a compiled ``.vvp`` program: scopes, ports, time scales.

The compiler's output is the one place where ports are listed after elaboration, with parameters and ranges worked out.
Only headers are read, line by line; a design can influence the text only through its own names.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Direction = Literal["input", "output", "inout"]

_SCOPE = re.compile(r'^(S_\w+) \.scope ([\w.]+), "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)" [^;]*?(?:, (S_\w+))?;$')
_PORT = re.compile(r'^ +\.port_info (\d+) /(INPUT|OUTPUT|INOUT) (\d+) "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_TIMESCALE = re.compile(r"^ \.timescale (-?\d+) (-?\d+);")
_DIRECTIONS: dict[str, Direction] = {"INPUT": "input", "OUTPUT": "output", "INOUT": "inout"}


@dataclass(frozen=True)
class Port:
    """One port of a module as elaborated; ``width`` in bits."""

    name: str
    direction: Direction
    width: int

    def __str__(self) -> str:
        return f"{self.direction} {self.name} ({self.width} bit{'s' if self.width != 1 else ''})"


@dataclass(frozen=True)
class ModuleInstance:
    """One module scope. ``unit`` and ``precision`` are powers of ten of a second (-12: 1 ps)."""

    path: tuple[str, ...]
    """Names of instances and generate blocks from the root, e.g. ``("tb", "lane[0]", "top_module1")``."""
    module: str
    ports: tuple[Port, ...]
    unit: int
    precision: int


def is_whole(program: bytes) -> bool:
    """Whether a program has its end, the table of file names: on a full disk the compiler leaves less and says nothing.

    All supported versions write that table last: ``:file_names N;`` and N lines.
    """
    _, _, table = program.rpartition(b"\n:file_names ")
    number, _, names = table.partition(b";\n")
    return number.isdigit() and names.endswith(b";\n") and names.count(b"\n") == int(number)


def modules(program: bytes) -> Iterator[ModuleInstance]:
    """Every module instance of a compiled program, roots first."""
    paths: dict[str, tuple[str, ...]] = {}
    current: tuple[str, str] | None = None
    ports: list[Port] = []
    scale = (0, 0)
    for raw in io.BytesIO(program):  # line by line: most callers stop early
        if raw[:1] not in (b"S", b" "):
            continue
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("S_"):
            if current is not None:
                yield ModuleInstance(paths[current[0]], current[1], tuple(ports), *scale)
                current = None
            match = _SCOPE.match(line)
            if match:
                label, kind, instance, module, parent = match.groups()
                paths[label] = (*paths.get(parent, ()), _plain(instance))
                if kind == "module":
                    current, ports, scale = (label, _plain(module)), [], (0, 0)
        elif current is not None and line.startswith(" "):
            if match := _PORT.match(line):
                ports.append(Port(_plain(match[4]), _DIRECTIONS[match[2]], int(match[3])))
            elif match := _TIMESCALE.match(line):
                scale = (int(match[1]), int(match[2]))
    if current is not None:
        yield ModuleInstance(paths[current[0]], current[1], tuple(ports), *scale)


def _plain(name: str) -> str:
    """A name as it was declared; the program text escapes quotes and backslashes."""
    return _ESCAPED.sub(r"\1", name)
