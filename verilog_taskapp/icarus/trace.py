"""Golden traces: what a testbench feeds the design and what the reference answers, at the bench's own instants.

A trace is two texts. The *stimulus* has one row per instant at which an input changes or the bench samples; the
*expected* rows hold the reference's outputs as they were just before each sampling instant, fixed width, one line a
sample. X or Z in an expected row means that the bit is not checked.
"""

import json
import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from verilog_taskapp.icarus.program import Port

FORMAT = 1
FLAG_BITS = 2
"""A stimulus row starts with: is a sample, changes the other inputs before the clocks."""
DELAY_BITS = 32
MAX_DELAY = 2**DELAY_BITS - 1
MAX_BYTES = 1024**3
"""A stored trace that unpacks to more than this is damaged."""
CLOCK_NAMES = frozenset({"clk", "clock", "i_clk", "clk_i", "clk_in", "aclk", "pclk", "hclk"})
"""Inputs driven with blocking assignments, before all others of the same instant (case-insensitive)."""


class TraceError(ValueError):
    """A recording that cannot become a trace; the message says why."""


@dataclass(frozen=True)
class Interface:
    """The ports of the device under test, in the reference's order, and the bench's time scale."""

    ports: tuple[Port, ...]
    unit: int
    precision: int

    @cached_property
    def clocks(self) -> tuple[Port, ...]:
        """Inputs that are clocks by name."""
        return tuple(p for p in self.ports if p.direction == "input" and p.name.lower() in CLOCK_NAMES and p.width == 1)

    @cached_property
    def data(self) -> tuple[Port, ...]:
        """All other inputs."""
        return tuple(p for p in self.ports if p.direction == "input" and p not in self.clocks)

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Clocks first, then the other inputs: the order of bits in a stimulus row."""
        return (*self.clocks, *self.data)

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """The order of bits in an expected row."""
        return tuple(p for p in self.ports if p.direction == "output")

    @property
    def input_bits(self) -> int:
        """Width of all inputs together."""
        return sum(p.width for p in self.inputs)

    @property
    def output_bits(self) -> int:
        """Width of all outputs together."""
        return sum(p.width for p in self.outputs)

    @property
    def row_bits(self) -> int:
        """Width of a stimulus row: flags, delay, inputs."""
        return FLAG_BITS + DELAY_BITS + self.input_bits


@dataclass(frozen=True)
class GoldenTrace:
    """One recorded stimulus with the reference's answers."""

    interface: Interface
    rows: int
    stimulus: bytes
    """`rows` lines for ``$readmemb``: flags, delay since the row before (in units of the precision), inputs."""
    samples: int
    expected: bytes
    """`samples` lines of `Interface.output_bits` characters of ``01xz``."""
    reference_cpu_s: float = 0.0
    """CPU seconds that the reference's own replay took."""
    derived: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """What others worked out from this trace and keep with it."""

    @property
    def memory_bytes(self) -> int:
        """About what a trace takes that is in use: its form for the replay, its answers and both numbers of them."""
        return 2 * len(self.stimulus) + 3 * len(self.expected)

    @cached_property
    def mask(self) -> int:
        """Big integer over the bytes of `expected`: ones where a character is checked (0, 1 and the line ends)."""
        return int.from_bytes(self.expected.translate(_CHECKED), "big")

    @cached_property
    def expected_number(self) -> int:
        """`expected` as a big integer, masked."""
        return int.from_bytes(self.expected, "big") & self.mask

    def _parsed_rows(self) -> Iterator[tuple[bool, int, str]]:
        """For each row: whether it is a sample, its time, the inputs from then on."""
        time = 0
        for line in self.stimulus.splitlines():
            row = line.decode()
            time += int(row[FLAG_BITS : FLAG_BITS + DELAY_BITS], 2)
            yield row[0] == "1", time, row[FLAG_BITS + DELAY_BITS :]

    @cached_property
    def clock_start(self) -> str:
        """The clocks' values at time 0, one character each; x where the bench sets none."""
        clocks = len(self.interface.clocks)
        _, time, inputs = next(self._parsed_rows())
        return inputs[:clocks] if time == 0 else "x" * clocks

    @cached_property
    def end_time(self) -> int:
        """Time of the last row, in units of the precision."""
        return max(time for _, time, _ in self._parsed_rows())

    def input_changes(self) -> list[tuple[int, str]]:
        """Times at which an input changes (from all unknown at the start), with the inputs from then on."""
        changes: list[tuple[int, str]] = []
        held = "x" * self.interface.input_bits
        for _, time, inputs in self._parsed_rows():
            if inputs != held:
                if changes and changes[-1][0] == time:
                    changes.pop()  # an early row: only the end of the time step counts
                changes.append((time, inputs))
                held = inputs
        return changes

    def sample_points(self) -> Iterator[tuple[int, str]]:
        """Time (units of the precision) and inputs as they were just before, for each sample in order."""
        held = "x" * self.interface.input_bits
        for is_sample, time, inputs in self._parsed_rows():
            if is_sample:
                yield time, held
            held = inputs

    def ignoring(self, samples: int) -> "GoldenTrace":
        """The same trace with nothing checked in its first `samples`."""
        line = self.interface.output_bits + 1
        unchecked = ("x" * (line - 1) + "\n").encode() * min(samples, self.samples)
        return replace(self, expected=unchecked + self.expected[len(unchecked) :], derived={})

    def to_bytes(self) -> bytes:
        """Compressed, self-describing."""
        header = {
            "format": FORMAT,
            "ports": [[p.name, p.direction, p.width] for p in self.interface.ports],
            "unit": self.interface.unit,
            "precision": self.interface.precision,
            "rows": self.rows,
            "samples": self.samples,
            "reference_cpu_s": self.reference_cpu_s,
            "stimulus_size": len(self.stimulus),
        }
        encoded = json.dumps(header).encode()
        return zlib.compress(struct.pack(">I", len(encoded)) + encoded + self.stimulus + self.expected, 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> "GoldenTrace":
        """Raises `TraceError` for anything that `to_bytes` did not write."""
        try:
            unpacker = zlib.decompressobj()
            plain = unpacker.decompress(data, MAX_BYTES)
            if not unpacker.eof or unpacker.unused_data:
                raise TraceError("cut off, too long, or followed by something else")
            (size,) = struct.unpack_from(">I", plain)
            header = json.loads(plain[4 : 4 + size])
            if header["format"] != FORMAT:
                raise TraceError("another format")
            ports = tuple(Port(str(name), direction, int(width)) for name, direction, width in header["ports"])
            body = plain[4 + size :]
            split = header["stimulus_size"]
            trace = cls(
                Interface(ports, int(header["unit"]), int(header["precision"])),
                int(header["rows"]),
                body[:split],
                int(header["samples"]),
                body[split:],
                float(header["reference_cpu_s"]),
            )
            rows = (trace.stimulus, trace.rows, trace.interface.row_bits)
            for lines, count, width in (rows, (trace.expected, trace.samples, trace.interface.output_bits)):
                if len(lines) != count * (width + 1) or lines[width :: width + 1] != b"\n" * count or count < 1:
                    raise TraceError("rows of another number or width")
        except (zlib.error, struct.error, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise TraceError(f"not a golden trace: {error}") from error
        return trace


_CHECKED = bytes(255 if chr(c) in "01\n" else 0 for c in range(256))


def build_trace(
    interface: Interface, events: bytes, sample_times: Sequence[int], edges: bytes | None = None
) -> GoldenTrace:
    """Turn a recording into a trace.

    `events` has lines ``<time> <inputs> <outputs>`` (``-`` for no bits) in time order, the last line of a time being
    the state at the end of that time step. `edges` has lines ``<time> <inputs>``: the inputs as a clocked process saw
    them at a clock edge; where given, inputs that had changed by then are replayed before the clock's edge, else
    (and always without `edges`) after it. Raises `TraceError` when they do not fit the interface.
    """
    try:
        times, inputs, outputs = _read_events(interface, events)
        seen = _read_edges(interface, edges or b"")
    except (ValueError, OverflowError) as error:  # a TraceError is one
        raise error if isinstance(error, TraceError) else TraceError("a malformed recording") from error
    clocks = sum(port.width for port in interface.clocks)
    if not sample_times:
        raise TraceError("the testbench takes no samples")
    if any(later <= earlier for earlier, later in pairwise(sample_times)):
        raise TraceError("the testbench samples twice at the same instant")
    unknown_outputs = "x" * interface.output_bits
    stimulus: list[str] = []
    expected: list[str] = []
    held, last, answer = "x" * interface.input_bits, 0, unknown_outputs
    index, sampled = 0, 0
    while index < len(times) or sampled < len(sample_times):
        time = min(
            times[index] if index < len(times) else sample_times[sampled],
            sample_times[sampled] if sampled < len(sample_times) else times[index],
        )
        is_sample = sampled < len(sample_times) and sample_times[sampled] == time
        if is_sample:
            expected.append(answer)
            sampled += 1
        if time - last > MAX_DELAY:
            raise TraceError("the testbench waits too long between two events")
        changed = False
        if index < len(times) and times[index] == time:
            early = held[:clocks] + seen.get(time, held)[clocks:]
            if early != held:
                stimulus.append(f"{is_sample:d}1{time - last:0{DELAY_BITS}b}{early}")
                held, last, is_sample = early, time, False
            changed = inputs[index] != held
            held, answer = inputs[index], outputs[index]
            index += 1
        if is_sample or changed:
            stimulus.append(f"{is_sample:d}0{time - last:0{DELAY_BITS}b}{held}")
            last = time
        if sampled == len(sample_times):
            break
    return GoldenTrace(
        interface,
        len(stimulus),
        ("\n".join(stimulus) + "\n").encode(),
        len(expected),
        ("\n".join(expected) + "\n").encode(),
    )


def _read_edges(interface: Interface, edges: bytes) -> dict[int, str]:
    seen: dict[int, str] = {}
    for line in edges.decode("ascii", "replace").splitlines():
        time, _, bits = line.partition(" ")
        if len(bits) != interface.input_bits:
            raise TraceError("a recording of another width")
        seen[int(time)] = bits.lower()
    return seen


def _read_events(interface: Interface, events: bytes) -> "tuple[array[int], list[str], list[str]]":
    times: array[int] = array("Q")
    inputs: list[str] = []
    outputs: list[str] = []
    for line in events.decode("ascii", "replace").splitlines():
        parts = line.split(" ")
        if len(parts) != 3:
            raise TraceError("a malformed recording")
        time = int(parts[0])
        given, answered = ("" if part == "-" else part.lower() for part in parts[1:])
        if len(given) != interface.input_bits or len(answered) != interface.output_bits:
            raise TraceError("a recording of another width")
        if times and times[-1] == time:
            inputs[-1], outputs[-1] = given, answered
        elif times and times[-1] > time:
            raise TraceError("a recording that goes back in time")
        else:
            times.append(time)
            inputs.append(given)
            outputs.append(answered)
    if not times:
        raise TraceError("an empty recording")
    return times, inputs, outputs


def split_bits(ports: Sequence[Port], bits: str) -> Mapping[str, str]:
    """A row's bits by port name."""
    values: dict[str, str] = {}
    start = 0
    for port in ports:
        values[port.name] = bits[start : start + port.width]
        start += port.width
    return values
