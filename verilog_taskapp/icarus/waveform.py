"""The samples around the first mismatch, as a table: inputs, expected and actual outputs, differences marked."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from verilog_taskapp.icarus.compare import Comparison
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.trace import GoldenTrace, split_bits

ROWS_BEFORE = 4
"""Samples shown before the first mismatch, where there are that many."""
WIDEST = 24
"""Hexadecimal digits of a value that are shown in the table; of wider ones the middle is left out."""
ENDS = 4
"""Digits that stay at each end of a wide value; the digits that differ first take the other places."""
GAP = "..."


@dataclass(frozen=True)
class WaveformRow:
    """One sample. Values are bit strings (``01xz``), most significant first."""

    sample: int
    time: int
    """In units of the bench's precision."""
    inputs: tuple[str, ...]
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    differs: tuple[bool, ...]
    """Per output."""


@dataclass(frozen=True)
class Waveform:
    """Consecutive samples around the first mismatch."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    rows: tuple[WaveformRow, ...]

    def to_json(self) -> dict[str, Any]:
        """The table for machines: values as bit strings."""
        return {
            "inputs": [{"name": port.name, "width": port.width} for port in self.inputs],
            "outputs": [{"name": port.name, "width": port.width} for port in self.outputs],
            "rows": [asdict(row) for row in self.rows],
        }

    def table(self) -> str:
        """Aligned text: one line a sample, wide buses in hex, expected/actual pairs, ``<`` marks a difference.

        Very wide buses are shortened in the middle, the same digits in every line; those that differ stay, and a line
        below the table tells which bits are shown.
        """
        header = ["sample", "time", *(p.name for p in self.inputs)]
        inputs = [_places(port.width, ()) for port in self.inputs]
        outputs = [
            _places(port.width, [(row.expected[number], row.actual[number]) for row in self.rows])
            for number, port in enumerate(self.outputs)
        ]
        for port in self.outputs:
            header += [f"{port.name} exp", f"{port.name} got", ""]
        lines = [header]
        for row in self.rows:
            line = [str(row.sample), str(row.time)]
            line += [_cut(shown(bits), places) for bits, places in zip(row.inputs, inputs, strict=True)]
            for wanted, got, differs, places in zip(row.expected, row.actual, row.differs, outputs, strict=True):
                line += [_cut(shown(wanted), places), _cut(shown(got), places), "<" if differs else ""]
            lines.append(line)
        widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
        text = [
            " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        for port, places in zip((*self.inputs, *self.outputs), (*inputs, *outputs), strict=True):
            if places is not None:
                text.append(f"{port.name} is shortened, shown: bits {_bit_ranges(port.width, places)}")
        return "\n".join(text)


def shown(bits: str) -> str:
    """A value for people: one bit as it is, wider ones in hex with ``h``; a digit with unknown bits is x, z or X."""
    if len(bits) == 1:
        return bits
    digits = []
    padded = bits.rjust(-(-len(bits) // 4) * 4, bits[0] if bits[0] in "xz" else "0")
    for start in range(0, len(padded), 4):
        nibble = padded[start : start + 4]
        if set(nibble) <= {"0", "1"}:
            digits.append(f"{int(nibble, 2):x}")
        else:
            digits.append(nibble[-1] if len(set(nibble)) == 1 else "X")
    return "h" + "".join(digits)


def _places(width: int, pairs: Sequence[tuple[str, str]]) -> list[int] | None:
    """Which digits of a value are shown, counted from the most significant one; None for all.

    `pairs` are the expected and actual values: the first digits in which they differ are among those shown.
    """
    digits = -(-width // 4)
    if digits <= WIDEST:
        return None
    kept = {*range(ENDS), *range(digits - ENDS, digits)}
    pad = digits * 4 - width
    for wanted, got in pairs:
        if len(kept) < WIDEST and wanted != got:
            differing = ((pad + at) // 4 for at, bit in enumerate(wanted) if bit in "01" and bit != got[at])
            for digit in differing:
                if len(kept) < WIDEST:
                    kept.add(digit)
    if len(kept) == 2 * ENDS:  # nothing differs: more of both ends
        kept |= {*range(WIDEST // 2), *range(digits - WIDEST // 2, digits)}
    return sorted(kept)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Consecutive places as (first, last)."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def _cut(value: str, places: Sequence[int] | None) -> str:
    """A value as `shown` gives it, with ``...`` for the digits that are left out."""
    if places is None:
        return value
    return "h" + GAP.join(value[1 + first : 2 + last] for first, last in _runs(places))


def _bit_ranges(width: int, places: Sequence[int]) -> str:
    digits = -(-width // 4)
    ranges = ((min(width, 4 * (digits - first)) - 1, 4 * (digits - 1 - last)) for first, last in _runs(places))
    return ", ".join(f"{high}:{low}" for high, low in ranges)


def waveform(trace: GoldenTrace, actual: bytes, comparison: Comparison, rows: int) -> Waveform | None:
    """The table around the first mismatch (or around the point where the result ends); None when there is neither."""
    centre = comparison.first_sample
    if centre is None:
        if comparison.passed or comparison.samples_seen == 0:
            return None
        centre = comparison.samples_seen - 1
    first = max(0, centre - min(ROWS_BEFORE, max(rows - 1, 0)))
    last = min(comparison.samples_seen, first + rows)
    line = trace.interface.output_bits + 1
    inputs, outputs = trace.interface.inputs, trace.interface.outputs
    built = []
    for sample, (time, given) in enumerate(islice(trace.sample_points(), first, last), start=first):
        start = sample * line
        wanted = _values(outputs, trace.expected[start : start + line - 1])
        got = _values(outputs, actual[start : start + line - 1])
        built.append(
            WaveformRow(
                sample,
                time,
                tuple(split_bits(inputs, given).values()),
                wanted,
                got,
                tuple(
                    any(w in "01" and w != g for w, g in zip(one, other, strict=True))
                    for one, other in zip(wanted, got, strict=True)
                ),
            )
        )
    return Waveform(inputs, outputs, tuple(built))


def _values(ports: Sequence[Port], bits: bytes) -> tuple[str, ...]:
    return tuple(split_bits(ports, bits.decode("ascii", "replace")).values())
