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
        """Aligned text: one line a sample, wide buses in hex, expected/actual pairs, ``<`` marks a difference."""
        header = ["sample", "time", *(p.name for p in self.inputs)]
        for port in self.outputs:
            header += [f"{port.name} exp", f"{port.name} got", ""]
        lines = [header]
        for row in self.rows:
            line = [str(row.sample), str(row.time), *(shown(bits) for bits in row.inputs)]
            for wanted, got, differs in zip(row.expected, row.actual, row.differs, strict=True):
                line += [shown(wanted), shown(got), "<" if differs else ""]
            lines.append(line)
        widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
        return "\n".join(
            " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


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
