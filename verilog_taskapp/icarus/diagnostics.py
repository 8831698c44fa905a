"""The compiler's messages: parsed, and told in terms of the files that the model wrote."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from verilog_taskapp.icarus.program import Port

Severity = Literal["error", "warning", "note"]

_LOCATED = re.compile(r"^(?P<file>[^\s:][^:\n]*)?:(?P<line>\d+)(?:: | (?=[A-Za-z]+: )|\s+(?=: ))(?P<text>.*)$")
"""Not every message has the colon after the line: Icarus 11 writes ``f.v:2 Warning: ...`` and ``f.v:2     : more``."""
_SEVERITY = re.compile(r"(?:vvp\.tgt )?(?P<word>error|warning|sorry|internal error): ?", re.IGNORECASE)
_MISSING_MODULE = re.compile(r"^\s+(?P<module>\S+) referenced \d+ times\.$")
_SUMMARY = re.compile(
    r"^(\d+ error\(s\) during elaboration\.|Elaboration failed|Preprocessor failed with \d+ errors?\.|I give up\."
    r"|\*\*\*.*|.*These modules were missing:|: Perhaps ``-s .*"
    # how a pass of the compiler ended: the cause of the end says it
    r"|terminate called after throwing .*|what\(\): .*"
    r"|(CPU time limit exceeded|File size limit exceeded|Segmentation fault|Aborted|Killed)( \(core dumped\))?)$"
)
_UNKNOWN_ROOT = re.compile(r'^Unable to find the root module "(?P<module>.*)" in the Verilog source\.$')
_JUDGE_PLACE = re.compile(r"(?:\./)?\.judge/[\w./]+(?::\d+)?")
_SERVER_PATH = re.compile(r"(?<![\w./])/(?:[^\s/:'\"]+/)+")


@dataclass(frozen=True)
class Diagnostic:
    """One message; ``file`` and ``line`` are None where the compiler names no place."""

    severity: Severity
    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file is not None else ""
        return f"{place}{self.severity}: {self.message}"


def parse(text: str) -> tuple[Diagnostic, ...]:
    """Read the output of iverilog. Continuation lines (``file:line:      : more``) join the message before."""
    found: list[Diagnostic] = []
    for line in text.split("\n"):
        located = _LOCATED.match(line)
        if located:
            _add_located(found, located["file"], int(located["line"]), located["text"])
        elif missing := _MISSING_MODULE.match(line):
            message = f"Unknown module type: {missing['module']}"
            if not any(one.message == message for one in found):
                found.append(Diagnostic("error", message))
        elif line.strip():
            severity, message = _severity(line.strip())
            if not _SUMMARY.match(message):
                found.append(Diagnostic(severity, _SERVER_PATH.sub("", message)))
    return tuple(dict.fromkeys(found))


def _add_located(found: list[Diagnostic], file: str | None, number: int, text: str) -> None:
    if re.match(r"\s*: ", text):
        if found:
            last = found[-1]
            joined = f"{last.message} {text.strip().removeprefix(':').strip()}"
            found[-1] = Diagnostic(last.severity, joined, last.file, last.line)
        return
    severity, message = _severity(text)
    if file is None:  # ``:0: sorry: ...``: the place of something that the compiler made itself
        found.append(Diagnostic(severity, _SERVER_PATH.sub("", message)))
    else:
        found.append(Diagnostic(severity, message, file.removeprefix("./"), number))


def _severity(text: str) -> tuple[Severity, str]:
    """How bad a message is by its first word, and the rest of it; without such a word it is an error."""
    named = _SEVERITY.match(text)
    if named is None:
        return "error", text
    rest = text[named.end() :].strip()
    if named["word"].lower() == "sorry":
        rest = f"not supported by this simulator: {rest}"
    return "warning" if named["word"].lower() == "warning" else "error", rest


def of_a_success(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The messages of a compile that gave a program: none of them was an error, whatever the compiler calls it.

    Icarus goes on after ``sorry: Case unique/unique0 qualities are ignored`` and after some of its internal errors.
    """
    return tuple(
        Diagnostic("warning", one.message, one.file, one.line) if one.severity == "error" else one
        for one in diagnostics
    )


def for_the_model(
    diagnostics: Sequence[Diagnostic], own_files: Collection[str], top: str, scope: Sequence[str] = ()
) -> tuple[tuple[Diagnostic, ...], bool]:
    """Keep what concerns the model's files; also tell whether a message of the hidden bench was left out.

    A message that the bench caused is never quoted: it is told through the ports of the design instead. `scope` is the
    path of the design's instance: the model reads its module's name there, and no place in a file of the judge.
    """
    instance = re.compile(rf"(?<![\w.$]){re.escape('.'.join(scope))}(?![\w$])") if scope else None
    kept: list[Diagnostic] = []
    hidden = no_top = False
    for one in diagnostics:
        unknown_root = _UNKNOWN_ROOT.match(one.message)
        if unknown_root or (one.file not in own_files and one.message == f"Unknown module type: {top}"):
            no_top = True
        elif one.file is None or one.file in own_files:
            message = instance.sub(lambda _: top, one.message) if instance else one.message
            message = _JUDGE_PLACE.sub("the testbench", message)
            kept.append(Diagnostic(one.severity, message, one.file, one.line))
        elif one.severity == "error":
            hidden = True
    if no_top and not any(one.severity == "error" for one in kept):
        kept.append(missing_top(top))
    return tuple(dict.fromkeys(kept)), hidden


def missing_top(top: str) -> Diagnostic:
    """What is wrong with a design that does not declare its top module."""
    return Diagnostic("error", f"no module named {top} was found in the compiled files")


def port_problems(expected: Sequence[Port], actual: Sequence[Port], top: str) -> tuple[Diagnostic, ...]:
    """What differs between the ports that the testbench connects and the ports that the design has."""
    found: list[Diagnostic] = []
    own = {port.name: port for port in actual}
    for port in expected:
        given = own.get(port.name)
        if given is None:
            similar = [name for name in own if name.lower() == port.name.lower()]
            hint = f" (there is {similar[0]}: names are case-sensitive)" if similar else ""
            found.append(Diagnostic("error", f"port {port.name} of {top} is missing: expected {port}{hint}"))
        elif given.direction != port.direction:
            found.append(
                Diagnostic("error", f"port {port.name} of {top} is an {given.direction}, expected {port.direction}")
            )
        elif given.width != port.width:
            found.append(
                Diagnostic("warning", f"port {port.name} of {top} has {given.width} bits, expected {port.width}")
            )
    names = {port.name for port in expected}
    found += [
        Diagnostic("warning", f"port {port.name} of {top} is not in the interface: nothing is connected to it")
        for port in actual
        if port.name not in names
    ]
    return tuple(found)


def render(diagnostics: Sequence[Diagnostic], limit_chars: int) -> str:
    """The messages as text, errors first, cut at `limit_chars` between messages with a count of the rest."""
    ordered = [one for one in diagnostics if one.severity == "error"]
    ordered += [one for one in diagnostics if one.severity != "error"]
    lines: list[str] = []
    used = 0
    for number, one in enumerate(ordered):
        line = str(one)
        if used + len(line) + 1 > limit_chars:
            if not lines:
                lines.append(line[:limit_chars] + " ...")
                number += 1
            if len(ordered) > number:
                lines.append(f"... and {len(ordered) - number} more messages")
            break
        lines.append(line)
        used += len(line) + 1
    return "\n".join(lines)
