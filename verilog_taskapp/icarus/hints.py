"""Short advice after a failed compile: rules that fire on what the compiler really said.

A rule needs a message of the compiler; many also need a construct that this version never accepts in the line that the
message names, or in the one before it. Nothing is guessed from a text alone: an honest design that compiles gets none.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import chain

from verilog_taskapp.icarus import hint_rules as rules
from verilog_taskapp.icarus.diagnostics import Diagnostic
from verilog_taskapp.icarus.gate import declared_modules, plain

MAX_HINTS = 3
MAX_MESSAGES = 20
"""Errors that are looked at: those that follow are mostly consequences."""
LINE_CHARS = 400
"""Of a line, as many characters are looked at."""
MESSAGE_CHARS = 1000
"""Of a message, as many characters are looked at."""
MAX_NAMES = 500
"""With more names than that none is suggested."""
NAME_CHARS = 40
"""Longest name repeated in a hint."""

_DIRECTIVE = re.compile(r"`(?!timescale\b|default_nettype\b|resetall\b)")
_MISSING = re.compile(
    r"(?:Unable to bind (?:wire/reg/memory|parameter) `|Could not find variable ``|^Net )(\w+)(?:'| is not defined)"
    r"|^No function named `(\w+)'"
)
_MODULE = re.compile(
    r"^no module named (\S+) was found|^Unknown module type: (\S+)$|^Module (\S+) was already declared here: (.+):"
    r"(\d+)$"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r"\bfunction\b([^;(]*)")
_CONSTANT = re.compile(r"\b(?:parameter|localparam)\b([^;]*)")
_VARIABLES = re.compile(r"\b(?:reg|logic|wire|integer|int|bit|byte)\b([^;]*)")
_DECLARATION = re.compile(
    r"\b(?:input|output|inout|wire|reg|logic|integer|int|bit|byte|localparam|parameter|genvar|enum)\b([^;)]*)"
)
_DECLARING = re.compile(r"\b(?:input|output|inout|wire|reg|logic|integer|genvar|assign)\b([^;=]*[;=]?)")
_LISTED = re.compile(r"([A-Za-z_]\w*)\s*([;,)=}\[])")


@dataclass(frozen=True)
class _Compile:
    """What one compilation said, with the text it said it of."""

    errors: tuple[Diagnostic, ...]
    messages: tuple[Diagnostic, ...]
    files: Mapping[str, str]
    sources: tuple[str, ...]
    top: str
    major: int

    @cached_property
    def code(self) -> dict[str, str]:
        """The files with errors, without comments, strings and escaped identifiers."""
        names = dict.fromkeys(one.file for one in self.messages if one.file in self.files)
        return {name: re.sub(r"\\\S+", "_", plain(self.files[name])) for name in names if name is not None}

    @cached_property
    def lines(self) -> dict[str, list[str]]:
        """`code` by lines."""
        return {name: text.split("\n") for name, text in self.code.items()}

    def line(self, file: str | None, number: int | None) -> str:
        """A line of code, counted from 1; empty where there is none."""
        lines = self.lines.get(file or "", [])
        return lines[number - 1][:LINE_CHARS] if number and 0 < number <= len(lines) else ""

    @cached_property
    def first(self) -> tuple[str, int] | None:
        """File and line of the first error, if it is one of syntax: the others may be its consequences."""
        located = [one for one in self.errors if one.file in self.files and one.line]
        one = located[0] if located and re.search(rules.SYNTAX, located[0].message) else None
        return (one.file, one.line) if one and one.file and one.line else None


def compile_hints(
    diagnostics: Sequence[Diagnostic], files: Mapping[str, str], sources: Sequence[str], top: str, major: int
) -> tuple[str, ...]:
    """At most `MAX_HINTS` sentences on why `sources` do not compile with this major version; most specific first."""
    short = [replace(one, message=one.message[:MESSAGE_CHARS]) for one in diagnostics]
    errors = tuple(one for one in short if one.severity == "error")[:MAX_MESSAGES]
    warnings = tuple(one for one in short if one.severity == "warning")[:MAX_MESSAGES]
    if not errors:
        return tuple(dict.fromkeys(_port_widths(warnings)))[:MAX_HINTS]
    seen = _Compile(errors, (*errors, *warnings), files, tuple(sources), top, major)
    sure = (_by_rules(seen), _reserved(seen), _names(seen), _arrays(seen), _modules(seen), _port_widths(errors))
    for found in (_fence(seen), chain(_foreign(seen), *sure), _outside(seen), _unbalanced(seen), _unfinished(seen)):
        told = tuple(dict.fromkeys(found))
        if told:
            return told[:MAX_HINTS]
    return ()


def _by_rules(seen: _Compile) -> Iterator[str]:
    used: set[Diagnostic] = set()
    for rule in rules.RULES:
        for one in seen.messages if seen.major in rule.majors else ():
            groups = None if one in used else _match(rule, one, seen)
            if groups is not None:
                used.add(one)
                advice = rule.advice
                for name, value in groups.items():
                    if value is not None:
                        advice = advice.replace(f"<{name.rstrip('_')}>", value[:NAME_CHARS])
                yield advice
                break


def _match(rule: rules.Rule, one: Diagnostic, seen: _Compile) -> dict[str, str | None] | None:
    """What the patterns of a rule found; None if the rule does not fire."""
    said = rule.says.search(one.message)
    if said is None:
        return None
    same = (other for other in seen.messages if (other.file, other.line) == (one.file, one.line))
    if rule.also is not None and not any(rule.also.search(other.message) for other in same):
        return None
    if rule.near is None:
        return said.groupdict()
    lines = (seen.line(one.file, (one.line or 0) + offset) for offset in (0, -1))
    place = next((hit for line in lines if (hit := rule.near.search(line))), None)
    return said.groupdict() | place.groupdict() if place else None


def _fence(seen: _Compile) -> Iterator[str]:
    if seen.first and any(line.lstrip().startswith("```") for line in seen.lines[seen.first[0]]):
        yield f"{seen.first[0]} still holds a Markdown fence (```): write the code alone."


def _foreign(seen: _Compile) -> Iterator[str]:
    """A character that no Verilog has, where the compiler stumbled."""
    file, number = seen.first or ("", 0)
    for line in (number, number - 1):
        if found := re.search(r"[^\x00-\x7f]", seen.line(file, line)):
            meant = f"write {rules.MEANT[found[0]]}" if found[0] in rules.MEANT else "remove it"
            yield f"Line {line} of {file} holds {found[0]} (U+{ord(found[0]):04X}), which is not Verilog: {meant}."
            return


def _reserved(seen: _Compile) -> Iterator[str]:
    """A keyword where a name is declared."""
    declared = _DECLARING.search(seen.line(*(seen.first or ("", 0))))
    for word, after in _LISTED.findall(declared[1]) if declared else ():
        if word in rules.KEYWORDS and not (after == "[" and word in rules.TYPE_WORDS):
            yield f"`{word}` is a reserved word: choose another name."
            return


def _names(seen: _Compile) -> Iterator[str]:
    """Names that are not declared, with the closest one that is."""
    missing = [(one, found) for one in seen.errors if (found := _MISSING.search(one.message))]
    unknown = {name for _, found in missing for name in found.groups() if name}
    strange: list[str] = []
    for one, found in missing:
        name, function = (text or "" for text in found.groups())
        code = seen.code.get(one.file or "", "")
        shown = (name or function)[:NAME_CHARS]
        if "declared here" in one.message or not code:
            continue
        functions = frozenset(words[-1] for listed in _FUNCTION.findall(code) if (words := _WORD.findall(listed)))
        constants = (part for part in _CONSTANT.findall(code) if re.search(rf"\b{name}\s*=", part))
        if name in functions:
            yield f"`{shown}` is a function: call it with parentheses, `{shown}(...)`."
        elif "Could not find" in one.message and any(constants):
            yield f"`{shown}` is a constant (parameter or localparam): it cannot be assigned."
        elif close := _closest(name or function, (functions if function else declared_names(code)) - unknown):
            yield f"`{shown}` is not declared in this scope: did you mean `{close}`?"
        elif shown not in strange:
            strange.append(shown)
    if strange:
        listed = ", ".join(f"`{name}`" for name in strange[:3]) + (", ..." if len(strange) > 3 else "")
        yield f"Not declared in this scope: {listed}. Declare it, or correct the name."


def _closest(name: str, known: frozenset[str]) -> str:
    """The name most like another one, shortened; empty if there is none."""
    if len(name) > NAME_CHARS or len(known) > MAX_NAMES:
        return ""
    return next(iter(get_close_matches(name, sorted(known), 1)), "")[:NAME_CHARS]


def _arrays(seen: _Compile) -> Iterator[str]:
    """An array that is given a single value, as Icarus 13 says it."""
    for one in seen.errors:
        if "cannot be implicitly cast to the target type" in one.message:
            found = re.search(r"\b([A-Za-z_]\w*)\s*<?=(?!=)", seen.line(one.file, one.line))
            declared = _VARIABLES.findall(seen.code.get(one.file or "", ""))
            if found and any(re.search(rf"\b{found[1]}\s*\[", part) for part in declared):
                yield f"`{found[1][:NAME_CHARS]}` is an array: assign its elements in a for loop."


def _modules(seen: _Compile) -> Iterator[str]:
    """The top module under another name, modules that are missing or there twice."""
    for one in seen.errors:
        found = _MODULE.search(one.message)
        if found is None:
            continue
        absent, unknown, twice, file, line = found.groups()
        if twice:
            again = "once more" if file == one.file else f"in {one.file}"
            yield f"Module {twice[:NAME_CHARS]} is declared in {file} (line {line}) and {again}: keep one of them."
            continue
        wanted = absent or unknown
        holders = {name: declared_modules(text) for name, text in seen.files.items() if name.endswith((".v", ".sv"))}
        names = sorted(frozenset[str]().union(*(holders[name] for name in seen.sources if name in holders)))
        elsewhere = [name for name, held in holders.items() if wanted in held and name not in seen.sources]
        if wanted in names:
            continue
        if elsewhere:
            yield f"{wanted} is in {elsewhere[0]}, which was not compiled: add it to the sources."
        elif absent and names:
            listed = ", ".join(name[:NAME_CHARS] for name in names[:3])
            yield f"The top module must be called {absent} (case matters); found: {listed}."
        elif unknown:
            close = _closest(unknown, frozenset(names))
            question = f"did you mean {close}?" if close else "write it; names are case-sensitive."
            yield f"There is no module {unknown[:NAME_CHARS]}: {question}"


def _port_widths(messages: Sequence[Diagnostic]) -> Iterator[str]:
    for one in messages:
        if found := re.match(r"port (\w+) of \w+ has (\d+) bits, expected (\d+)$", one.message):
            bits = int(found[3])
            yield f"Declare {found[1]} " + (f"with the range [{bits - 1}:0]." if bits > 1 else "without a range.")


# --- what is said of a syntax error when nothing better is known: the first of these that applies


def _outside(seen: _Compile) -> Iterator[str]:
    """Statements and prose that stand outside of a process or of any module."""
    if seen.first is None:
        return
    file, number = seen.first
    line, before = seen.line(file, number), "\n".join(seen.lines[file][: number - 1])
    opened = re.findall(r"\b(module|macromodule|interface|package|program|class|function|task|primitive)\b", before)
    closed = re.findall(r"\bend(?:module|interface|package|program|class|function|task|primitive)\b", before)
    named = re.match(r"\s*([A-Za-z_]\w*)", line)
    module = any("nvalid module i" in one.message and one.line == number for one in seen.errors)
    if len(opened) <= len(closed) and not _DIRECTIVE.search(before):
        if named and (named[1] not in rules.KEYWORDS or named[1] in ("always", "assign", "if", "begin")):
            yield f"Line {number} of {file} stands outside of any module: only code may be there, prose in // comments."
    elif module and re.match(r"\s*for\s*\(\s*(?:int|integer|reg|logic)\b", line):
        yield "Outside of an always block a for loop is a generate loop: write `for (genvar i = 0; ...)`."
    elif module and rules.STATEMENT.match(line):
        yield (
            f"Line {number} of {file} is a statement outside of an always block: put it inside, with begin ... end "
            "around several."
        )


def _unbalanced(seen: _Compile) -> Iterator[str]:
    """Blocks and brackets that are not closed, or closed too often."""
    code = seen.code[seen.first[0]] if seen.first else ""
    if seen.first is None or _DIRECTIVE.search(code):
        return
    words = Counter(re.findall(r"[A-Za-z_][\w$]*|[()\[\]{}]", code))
    words["case"] += words["casez"] + words["casex"]
    for opening, closing in rules.PAIRS:
        if words[opening] != words[closing]:
            yield f"{seen.first[0]} has {words[opening]} `{opening}` but {words[closing]} `{closing}`."


def _unfinished(seen: _Compile) -> Iterator[str]:
    """A statement without its semicolon before the line of the error."""
    file, number = seen.first or ("", 0)
    if not rules.STARTS.match(seen.line(file, number)):
        return
    number -= 1
    while number > 0 and not seen.line(file, number).strip():
        number -= 1
    last = seen.line(file, number).rpartition(";")[2].rstrip()
    ends = re.search(r"([A-Za-z_]\w*|\w|[)\]}])$", last)
    balanced = all(last.count(a) == last.count(b) for a, b in ("()", "[]", "{}"))
    if ends and ends[1] not in rules.KEYWORDS and balanced and rules.UNFINISHED.fullmatch(last):
        yield f"Line {number} of {file} lacks its `;` (or `,` in a list): the error shows only after it."


def declared_names(code: str) -> frozenset[str]:
    """Names in the declarations of a text without comments and strings, with those in ranges and initial values."""
    return frozenset(_WORD.findall(" ".join(_DECLARATION.findall(code)))) - rules.KEYWORDS
