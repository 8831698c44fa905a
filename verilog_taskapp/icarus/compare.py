"""Comparing what a design answered with what was expected, outside of anything that the design can reach."""

from dataclasses import dataclass
from typing import Literal

from verilog_taskapp.icarus.trace import GoldenTrace

Malformation = Literal["missing_samples", "surplus_samples", "malformed"]


@dataclass(frozen=True)
class OutputComparison:
    """One output over all samples."""

    name: str
    width: int
    mismatches: int
    first_sample: int | None
    """Index of the first sample that differs."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing one run. It passed exactly when `malformation` is None and `mismatches` is 0."""

    samples: int
    """Golden samples."""
    mismatches: int
    """Samples in which at least one checked bit differs."""
    outputs: tuple[OutputComparison, ...]
    first_sample: int | None
    malformation: Malformation | None = None
    samples_seen: int = 0

    @property
    def passed(self) -> bool:
        """Every golden sample is there and every checked bit is equal."""
        return self.malformation is None and self.mismatches == 0


def compare(trace: GoldenTrace, actual: bytes) -> Comparison:
    """Compare a replay's result file with the trace.

    A checked bit (0 or 1 expected) must be equal: X or Z there is a mismatch. Too few, too many or malformed lines
    never pass; the lines up to there are still compared, so that the first difference can be told.
    """
    line = trace.interface.output_bits + 1
    if len(actual) == len(trace.expected) and _well_formed(actual, line):
        if int.from_bytes(actual, "big") & trace.mask == trace.expected_number:
            return Comparison(trace.samples, 0, _no_mismatches(trace), None, None, trace.samples)
        return _count(trace, actual, trace.samples, None)
    usable = _usable_lines(actual, line, trace.samples)
    if len(actual) > len(trace.expected) and usable == trace.samples:
        malformation: Malformation = "surplus_samples"
    elif usable * line == len(actual):
        malformation = "missing_samples"
    else:
        malformation = "malformed"
    return _count(trace, actual, usable, malformation)


def _well_formed(actual: bytes, line: int) -> bool:
    """Only 0, 1, x, z in lines of one length (the ends of lines are checked by position)."""
    return not actual.translate(None, b"01xz\n") and actual[line - 1 :: line].count(b"\n") == len(actual) // line == (
        actual.count(b"\n")
    )


def _usable_lines(actual: bytes, line: int, limit: int) -> int:
    """How many lines from the start are whole and well formed."""
    usable = 0
    while usable < limit:
        part = actual[usable * line : (usable + 1) * line]
        if len(part) < line or part[-1:] != b"\n" or part[:-1].translate(None, b"01xz"):
            break
        usable += 1
    return usable


def _no_mismatches(trace: GoldenTrace) -> tuple[OutputComparison, ...]:
    return tuple(OutputComparison(p.name, p.width, 0, None) for p in trace.interface.outputs)


def _count(trace: GoldenTrace, actual: bytes, samples: int, malformation: Malformation | None) -> Comparison:
    line = trace.interface.output_bits + 1
    outputs = trace.interface.outputs
    counts = [0] * len(outputs)
    firsts: list[int | None] = [None] * len(outputs)
    total, first = 0, None
    for sample in range(samples):
        start = sample * line
        expected, given = trace.expected[start : start + line], actual[start : start + line]
        if expected == given:
            continue
        differs, at = False, 0
        for number, port in enumerate(outputs):
            wanted, got = expected[at : at + port.width], given[at : at + port.width]
            at += port.width
            if wanted != got and any(w != g for w, g in zip(wanted, got, strict=True) if w in b"01"):
                counts[number] += 1
                differs = True
                if firsts[number] is None:
                    firsts[number] = sample
        if differs:
            total += 1
            if first is None:
                first = sample
    listed = tuple(
        OutputComparison(port.name, port.width, counts[number], firsts[number]) for number, port in enumerate(outputs)
    )
    return Comparison(trace.samples, total, listed, first, malformation, samples)
