"""The always blocks of a design, read lightly: what they assign on every path, and how.

Only plain statements are read (assignments, begin, if, case). A block with anything else in it is left out, so that
what is said of the others is sure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

MAX_PROCESSES = 100
MAX_TOKENS = 5000
"""Of one process."""
MAX_DEPTH = 50

_PROCESS = re.compile(r"\balways(?:_comb\b|_ff\b|\b)\s*(?:@\s*(?:\*|\(([^()]*)\)))?")
_EDGE = re.compile(r"\b(posedge|negedge)\s+([A-Za-z_][\w$]*)")
_TOKEN = re.compile(r"[A-Za-z_$`][\w$]*|(?:\d+\s*)?'[sS]?[A-Za-z0-9][\w?]*|\d[\w.]*|[<>=!]==?|\S")
_NAME = re.compile(r"[A-Za-z_][\w$]*")
_LABEL = re.compile(r"[\w'?$]+")
_OTHER = """
    for while repeat forever foreach do wait fork disable assign deassign force release return break continue int
    integer reg logic bit byte automatic static localparam parameter wire end endcase endmodule else default assert
    assume cover
"""
_NO_ASSIGNMENT = frozenset(_OTHER.split())


@dataclass(frozen=True)
class Assignment:
    """One procedural assignment. ``reads`` are the names on its right side."""

    targets: frozenset[str]
    blocking: bool
    reads: frozenset[str]


@dataclass(frozen=True)
class Process:
    """One always block of plain statements."""

    edges: tuple[tuple[str, str], ...]
    """``("posedge", "clk")``; none: combinational."""
    always: frozenset[str]
    """Assigned on every path."""
    some: frozenset[str]
    """Assigned on at least one path."""
    assignments: tuple[Assignment, ...]


def clock_edges(text: str) -> frozenset[tuple[str, str]]:
    """Edges in the sensitivity lists of a text without comments and strings, e.g. ``("posedge", "clk")``."""
    lists = islice((match[1] for match in _PROCESS.finditer(text) if match[1]), MAX_PROCESSES)
    return frozenset((edge, name) for listed in lists for edge, name in _EDGE.findall(listed))


def processes(text: str) -> Iterator[Process]:
    """The combinational and the clocked always blocks of a text without comments and strings."""
    for match in islice(_PROCESS.finditer(text), MAX_PROCESSES):
        edges = tuple(_EDGE.findall(match[1] or ""))
        combinational = match[0].startswith("always_comb") or "*" in match[0]
        if not edges and not combinational:
            continue
        reader = _Reader(text, match.end())
        try:
            always, some = reader.statement()
        except _Unsure:
            continue
        yield Process(edges, always, some, tuple(reader.assignments))


def unassigned(text: str) -> frozenset[str]:
    """Names that a combinational block assigns on some paths and not on others: they may infer latches."""
    return frozenset(name for one in processes(text) if not one.edges for name in one.some - one.always)


def read_early(text: str) -> frozenset[str]:
    """Names that a clocked block assigns with ``=`` and that another clocked assignment reads, as registers are.

    Temporary variables (``=`` beside ``<=`` in one block) and loop variables are not meant.
    """
    clocked = [one for one in processes(text) if one.edges]
    found: set[str] = set()
    for one in clocked:
        elsewhere = [assigned for other in clocked if other is not one for assigned in other.assignments]
        mixed = any(not assigned.blocking for assigned in one.assignments)
        for number, assigned in enumerate(one.assignments):
            if assigned.blocking:
                later = [] if mixed else one.assignments[number + 1 :]
                for reader in (*later, *elsewhere):
                    found |= (assigned.targets & reader.reads) - reader.targets
    variables = re.findall(r"\b(?:integer|int|genvar)\b([^;]*)", text)
    return frozenset(found.difference(*(_NAME.findall(listed) for listed in variables)))


class _Unsure(Exception):
    """Something other than a plain statement."""


_Paths = tuple[frozenset[str], frozenset[str]]
_NOTHING: _Paths = (frozenset(), frozenset())


@dataclass
class _Reader:
    """Reads one statement from a position on."""

    text: str
    position: int
    assignments: list[Assignment] = field(default_factory=list)
    word: str = ""
    depth: int = 0

    def __post_init__(self) -> None:
        self._tokens = (match[0] for match in islice(_TOKEN.finditer(self.text, self.position), MAX_TOKENS))
        self._next()

    def _next(self) -> str:
        before, self.word = self.word, next(self._tokens, "")
        return before

    def _until(self, stops: str) -> list[str]:
        """The tokens before one of `stops` outside of brackets, which becomes the current token."""
        taken: list[str] = []
        depth = 0
        while depth or self.word not in stops:
            if not self.word or self.word in "@#;" or (self.word in ")]}" and not depth):
                raise _Unsure
            depth += (self.word in "([{") - (self.word in ")]}")
            taken.append(self._next())
        if not self.word:
            raise _Unsure
        return taken

    def _condition(self) -> list[str]:
        if self.word != "(":
            raise _Unsure
        self._next()
        inside = self._until(")")
        self._next()
        return inside

    def statement(self) -> _Paths:
        """Names assigned on every path, and on at least one."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Unsure
        paths = self._statement()
        self.depth -= 1
        return paths

    def _statement(self) -> _Paths:
        if self.word in ("unique", "unique0", "priority"):
            self._next()
        if self.word == ";":
            self._next()
            return _NOTHING
        if self.word == "begin":
            return self._block()
        if self.word == "if":
            self._next()
            self._condition()
            always, some = self.statement()
            if self.word != "else":
                return frozenset(), some
            self._next()
            otherwise, other = self.statement()
            return always & otherwise, some | other
        if self.word in ("case", "casez", "casex"):
            return self._case()
        return self._assignment()

    def _block(self) -> _Paths:
        always, some = _NOTHING
        self._next()
        if self.word == ":":
            self._next()
            self._next()
        while self.word != "end":
            more, other = self.statement()
            always, some = always | more, some | other
        self._next()
        if self.word == ":":
            self._next()
            self._next()
        return always, some

    def _case(self) -> _Paths:
        exact = self._next() == "case"
        selector = self._condition()
        branches: list[_Paths] = []
        labels: list[str] = []
        complete = False
        while self.word != "endcase":
            if self.word == "default":
                complete = True
                self._next()
            else:
                labels += [label for label in self._until(":") if label != ","]
            if self.word == ":":
                self._next()
            branches.append(self.statement())
        self._next()
        if not complete:  # the labels may cover every value of the selector
            count = len(set(labels))
            simple = exact and bool(selector) and _NAME.match(selector[0]) and all(map(_LABEL.fullmatch, labels))
            complete = not simple or (count > 1 and count & (count - 1) == 0)
        some = frozenset[str]().union(*(branch[1] for branch in branches))
        always = frozenset.intersection(*(branch[0] for branch in branches)) if complete and branches else frozenset()
        return always, some

    def _assignment(self) -> _Paths:
        if not self.word or self.word in _NO_ASSIGNMENT or not (self.word == "{" or _NAME.match(self.word)):
            raise _Unsure
        left = self._left()
        if self.word not in ("=", "<="):
            raise _Unsure
        blocking = self._next() == "="
        right = self._until(";")
        self._next()
        names = frozenset(left)
        self.assignments.append(Assignment(names, blocking, frozenset(filter(_NAME.match, right))))
        return names, names

    def _left(self) -> list[str]:
        """The names that are assigned, without those in their indices."""
        names: list[str] = []
        index = braces = 0
        while index or braces or self.word not in ("=", "<="):
            if not self.word or self.word in "@#;()":
                raise _Unsure
            index += (self.word == "[") - (self.word == "]")
            braces += (self.word == "{") - (self.word == "}")
            if not index and not braces and names and _NAME.match(self.word):
                raise _Unsure  # a declaration, or the member of a struct
            if not index and _NAME.match(self.word):
                names.append(self.word)
            elif not index and self.word not in "]{},":
                raise _Unsure
            self._next()
        return names
