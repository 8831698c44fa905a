"""How a failing run relates to the expected one as a whole: inverted, reversed, a clock late, never driven.

A relation is told only if it holds in every sample that is looked at. None of them holds an expected value.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

from verilog_taskapp.icarus.compare import Comparison
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.trace import GoldenTrace

MAX_SAMPLES = 20_000
MAX_BITS = 4_000_000
"""Samples times output bits that are looked at."""
KNOWN_SHARE = 0.9
"""At least this share of an output's checked samples must be known (no X or Z) for a relation between values."""
MIN_CHANGES = 3
"""So many samples must tell a shifted output from one in time."""

RelationKind = Literal[
    "undriven", "unknown", "inverted", "reversed", "late", "early", "half_late", "half_early", "reset"
]

RESET_NAME = re.compile(r"(?i)(?:i_)?(?:a|async_?|s|sync_?)?n?_?(?:rst|reset)(?:_?(?:n|b|i|ni))?")

_SENTENCES: dict[RelationKind, str] = {
    "undriven": "{} Z in every sample: nothing drives it.",
    "unknown": "{} X in every sample: never assigned, or a register that is never reset or initialised.",
    "inverted": "{} inverted.",
    "reversed": "{} bit-reversed: [0] and the highest bit are swapped, and so on.",
    "late": "{} one clock cycle late: one register too many, or `<=` on a value that is itself registered.",
    "early": "{} one clock cycle early: a register is missing.",
    "half_late": "{} half a clock cycle late: check posedge against negedge.",
    "half_early": "{} half a clock cycle early: check posedge against negedge.",
    "reset": "Mismatches begin where `{}` changes, before an active clock edge: re-read whether it is a synchronous or "
    "an asynchronous reset.",
}
_INVERTED = bytes.maketrans(b"01", b"10")


@dataclass(frozen=True)
class Relation:
    """One relation, with the outputs that it holds for (for ``reset``: the input)."""

    kind: RelationKind
    names: tuple[str, ...]

    def __str__(self) -> str:
        listed = ", ".join(self.names[:4]) + (", ..." if len(self.names) > 4 else "")
        if self.kind == "reset":
            return _SENTENCES[self.kind].format(listed)
        verb = "is" if self.kind in ("undriven", "unknown") else "looks"
        if len(self.names) > 1:
            verb = {"is": "are", "looks": "look"}[verb]
        return _SENTENCES[self.kind].format(f"{listed} {verb}")


def relations(
    trace: GoldenTrace, actual: bytes, comparison: Comparison, edges: frozenset[tuple[str, str]] = frozenset()
) -> tuple[Relation, ...]:
    """What is true of all mismatching outputs, or of some; the most specific first.

    `edges` are those in the sensitivity lists of the design, such as ``("posedge", "clk")``. Only complete lines of
    `actual` are read: `Comparison.samples_seen`, at most `MAX_SAMPLES`.
    """
    line = trace.interface.output_bits + 1
    samples = min(comparison.samples_seen, MAX_SAMPLES, MAX_BITS // line)
    if comparison.passed or samples < 1:
        return ()
    period = _samples_per_clock(trace, samples)
    found: dict[RelationKind, list[str]] = {}
    start = 0
    for port, result in zip(trace.interface.outputs, comparison.outputs, strict=True):
        if result.mismatches:
            places = range(start, samples * line, line)
            expected = [trace.expected[at : at + port.width] for at in places]
            given = [actual[at : at + port.width] for at in places]
            kind = _relation(expected, given, period)
            if kind is not None:
                found.setdefault(kind, []).append(port.name)
        start += port.width
    listed = [Relation(kind, tuple(found[kind])) for kind in _SENTENCES if kind in found]
    return (*listed, *_reset(trace, actual, samples, edges))


def _relation(expected: Sequence[bytes], actual: Sequence[bytes], period: int) -> RelationKind | None:
    """The one relation between two columns of values; None if there is none, or more than one of time."""
    for character, kind in ((b"z", "undriven"), (b"x", "unknown")):
        if not any(value.translate(None, character) for value in actual):
            return kind  # type: ignore[return-value]
    # What fits is asked first: that question is mostly answered by the first values.
    inverted = (value.translate(_INVERTED) for value in expected)
    if _fits(inverted, actual) and {48, 49} <= set().union(*set(expected)):
        return "inverted"
    if len(expected[0]) > 1 and _fits((value[::-1] for value in expected), actual):
        mirrored = [value[::-1] for value in expected]
        if _changes(expected, mirrored) >= MIN_CHANGES:
            return "reversed"
    shifts: list[tuple[RelationKind, int]] = [("late", period), ("early", -period)] if period else []
    if period == 2:
        shifts += [("half_late", 1), ("half_early", -1)]
    fitting = [kind for kind, shift in shifts if _shifted(expected, actual, shift)]
    return fitting[0] if len(fitting) == 1 else None


def _shifted(expected: Sequence[bytes], actual: Sequence[bytes], shift: int) -> bool:
    """Whether ``actual[t]`` is ``expected[t - shift]`` throughout, except for the first clock cycles."""
    early, late = (expected, actual) if shift > 0 else (actual, expected)
    head, tail = early[: -abs(shift)], late[abs(shift) :]
    before, after = (head, tail) if shift > 0 else (tail, head)
    in_time = actual[shift:] if shift > 0 else actual[:shift]
    unshifted = expected[shift:] if shift > 0 else expected[:shift]
    skipped = 2 if len(in_time) > 4 else 0
    return _fits(before[skipped:], after[skipped:]) and _changes(before[skipped:], unshifted[skipped:]) >= MIN_CHANGES


def _fits(expected: Iterable[bytes], actual: Sequence[bytes]) -> bool:
    """Whether all known values are the expected ones, and most are known."""
    checked = known = 0
    for wanted, got in zip(expected, actual, strict=True):
        bits = wanted.translate(None, b"xz")
        if not bits:
            continue
        checked += 1
        if got.translate(None, b"01"):
            continue
        known += 1
        if not _same(wanted, got):
            return False
    return known >= 4 and known >= KNOWN_SHARE * checked


def _changes(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """In how many places two columns of values surely differ."""
    return sum(
        a != b and any(c != d for c, d in zip(a, b, strict=True) if c in b"01" and d in b"01")
        for a, b in zip(one, other, strict=True)
    )


def _samples_per_clock(trace: GoldenTrace, samples: int) -> int:
    """2 where samples are taken at both edges of the only clock, 1 at one of them, 0 where that is not so."""
    if len(trace.interface.clocks) != 1:
        return 0
    values = [inputs[:1] for _, inputs in islice(trace.sample_points(), samples)]
    same = {a == b for a, b in pairwise(values[2:])}
    return {frozenset({True}): 1, frozenset({False}): 2}.get(frozenset(same), 0)


def _reset(trace: GoldenTrace, actual: bytes, samples: int, edges: frozenset[tuple[str, str]]) -> tuple[Relation, ...]:
    """The reset at whose change the outputs part, before an active edge of a clock, to meet again after that edge.

    One of the two then took its reset value at once, and the other one waited for the clock. Only the first sample that
    mismatches after one that does not is looked at.
    """
    places = {port.name: place for place, port in _bits(trace) if port.width == 1}
    resets = {place: name for name, place in places.items() if RESET_NAME.fullmatch(name)}
    clocks = [port.name for port in trace.interface.clocks]
    active = {(places[name], "01" if edge == "posedge" else "10") for edge, name in edges if name in clocks}
    line = trace.interface.output_bits + 1
    expected = [trace.expected[at : at + line] for at in range(0, samples * line, line)]
    given = [actual[at : at + line] for at in range(0, samples * line, line)]
    if not resets or not active:
        return ()
    parted = next(
        (later for later, pair in enumerate(pairwise(map(_same, expected, given)), 1) if pair == (True, False)), None
    )
    if parted is None:
        return ()
    times = [time for time, _ in islice(trace.sample_points(), samples)]
    held, changed, met, together = "x" * trace.interface.input_bits, -1, None, False
    for time, now in trace.input_changes():
        if time >= times[parted - 1]:
            clock = any(held[place] + now[place] == edge for place, edge in active)
            moved = [place for place in resets if held[place] != now[place]]
            if time < times[parted]:
                if changed >= 0 and (clock or moved):
                    return ()
                changed = moved[0] if moved else changed
                together |= clock
            elif changed < 0 or (moved and not clock):
                return ()
            elif clock:
                met = next((sample for sample in range(parted, samples) if times[sample] > time), None)
                break
        held = now
    if met is None or not _same(expected[met], given[met]):
        return ()
    asynchronous = any(name == resets[changed] for _, name in edges)
    quick, slow = (given, expected) if asynchronous else (expected, given)
    still = slow[parted] == slow[parted - 1] or (asynchronous and together)
    if quick[parted] != quick[met] or quick[parted] == quick[parted - 1] or not still:
        return ()
    return (Relation("reset", (resets[changed],)),)


def _bits(trace: GoldenTrace) -> Iterator[tuple[int, Port]]:
    """Each input with the place of its first bit in a row of inputs."""
    place = 0
    for port in trace.interface.inputs:
        yield place, port
        place += port.width


def _same(expected: bytes, actual: bytes) -> bool:
    """Whether every checked bit is equal."""
    return expected == actual or not any(w != g for w, g in zip(expected, actual, strict=True) if w in b"01")
