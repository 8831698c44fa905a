"""Golden traces: from a recording to a stimulus with expected answers, and to bytes and back."""

import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.trace import (
    DELAY_BITS,
    MAX_DELAY,
    GoldenTrace,
    Interface,
    TraceError,
    build_trace,
    split_bits,
)

CLOCKED = Interface((Port("q", "output", 2), Port("d", "input", 2), Port("clk", "input", 1)), -12, -12)
NO_INPUTS = Interface((Port("one", "output", 1),), -9, -12)


def row(*, sample: bool = False, early: bool = False, delay: int = 0, inputs: str) -> str:
    return f"{sample:d}{early:d}{delay:0{DELAY_BITS}b}{inputs}"


def rows_of(trace: GoldenTrace) -> list[str]:
    return trace.stimulus.decode().splitlines()


# --- interfaces


def test_clocks_come_first_in_a_stimulus_row() -> None:
    assert [port.name for port in CLOCKED.inputs] == ["clk", "d"]
    assert (CLOCKED.input_bits, CLOCKED.output_bits, CLOCKED.row_bits) == (3, 2, 2 + 32 + 3)


@pytest.mark.parametrize("name", ["clk", "CLK", "clock", "i_clk", "aclk"])
def test_a_clock_is_known_by_its_name(name: str) -> None:
    assert Interface((Port(name, "input", 1),), 0, 0).clocks != ()


@pytest.mark.parametrize("port", [Port("clk", "input", 2), Port("clk", "output", 1), Port("clkx", "input", 1)])
def test_wide_ports_outputs_and_other_names_are_no_clocks(port: Port) -> None:
    assert Interface((port,), 0, 0).clocks == ()


def test_a_row_is_split_by_port() -> None:
    assert split_bits(CLOCKED.inputs, "110") == {"clk": "1", "d": "10"}


# --- from a recording


def test_a_recording_becomes_rows_with_delays_and_answers_from_before_each_sample() -> None:
    events = b"0 000 xx\n5 100 00\n10 001 00\n15 101 01\n"
    trace = build_trace(CLOCKED, events, [5, 15])
    assert rows_of(trace) == [
        row(inputs="000"),
        row(sample=True, delay=5, inputs="100"),
        row(delay=5, inputs="001"),
        row(sample=True, delay=5, inputs="101"),
    ]
    assert trace.expected == b"xx\n00\n"
    assert (trace.rows, trace.samples, trace.end_time, trace.clock_start) == (4, 2, 15, "0")
    assert list(trace.sample_points()) == [(5, "000"), (15, "001")]
    assert trace.input_changes() == [(0, "000"), (5, "100"), (10, "001"), (15, "101")]


def test_the_last_line_of_a_time_step_is_its_state() -> None:
    trace = build_trace(CLOCKED, b"0 000 00\n5 100 00\n5 111 01\n9 111 01\n", [9])
    assert rows_of(trace)[1] == row(delay=5, inputs="111")
    assert trace.expected == b"01\n"


def test_a_sample_without_a_change_is_a_row_and_a_change_of_outputs_alone_is_none() -> None:
    trace = build_trace(CLOCKED, b"0 000 00\n3 000 11\n", [2, 7])
    assert rows_of(trace) == [
        row(inputs="000"),
        row(sample=True, delay=2, inputs="000"),
        row(sample=True, delay=5, inputs="000"),
    ]
    assert trace.expected == b"00\n11\n"


def test_what_happens_after_the_last_sample_is_left_out() -> None:
    trace = build_trace(CLOCKED, b"0 000 00\n5 100 00\n10 001 00\n", [5])
    assert trace.end_time == 5


def test_inputs_that_the_design_saw_at_the_edge_change_before_the_clock() -> None:
    events = b"0 000 00\n5 110 00\n10 001 10\n15 111 10\n20 111 11\n"
    trace = build_trace(CLOCKED, events, [20], edges=b"5 100\n15 111\n")
    assert rows_of(trace) == [
        row(inputs="000"),
        row(delay=5, inputs="110"),
        row(delay=5, inputs="001"),
        row(early=True, delay=5, inputs="011"),
        row(inputs="111"),
        row(sample=True, delay=5, inputs="111"),
    ]
    assert trace.input_changes() == [(0, "000"), (5, "110"), (10, "001"), (15, "111")]


def test_a_sample_on_an_early_row_is_taken_before_anything_changes() -> None:
    trace = build_trace(CLOCKED, b"0 000 00\n5 111 11\n", [5], edges=b"5 111\n")
    assert rows_of(trace) == [row(inputs="000"), row(sample=True, early=True, delay=5, inputs="011"), row(inputs="111")]
    assert trace.expected == b"00\n"


def test_a_design_without_inputs_has_rows_without_bits() -> None:
    trace = build_trace(NO_INPUTS, b"0 - 1\n", [5, 10])
    assert rows_of(trace) == [row(sample=True, delay=5, inputs=""), row(sample=True, delay=5, inputs="")]
    assert trace.expected == b"1\n1\n"
    assert GoldenTrace.from_bytes(trace.to_bytes()) == trace


def test_uppercase_bits_of_a_recording_are_read_as_lowercase() -> None:
    assert build_trace(CLOCKED, b"0 0XZ X1\n", [3]).expected == b"x1\n"


@pytest.mark.parametrize(
    ("events", "samples", "edges", "reason"),
    [
        (b"", [1], b"", "empty recording"),
        (b"0 000 00\n", [], b"", "no samples"),
        (b"0 000 00\n", [5, 5], b"", "samples twice"),
        (b"0 000 00\n", [9, 5], b"", "samples twice"),
        (b"0 000\n", [5], b"", "malformed"),
        (b"x 000 00\n", [5], b"", "malformed"),
        (b"-1 000 00\n", [5], b"", "malformed"),
        (b"0 0000 00\n", [5], b"", "another width"),
        (b"0 000 0\n", [5], b"", "another width"),
        (b"0 - 00\n", [5], b"", "another width"),
        (b"5 000 00\n4 000 00\n", [5], b"", "back in time"),
        (b"0 000 00\n", [MAX_DELAY + 1], b"", "too long"),
        (b"0 000 00\n99999999999999999999999 100 00\n", [5], b"", "malformed"),
        (b"0 000 00\n\xff\xfe\n", [5], b"", "malformed"),
        (b"0 000 00\n5 100 00\n", [5], b"soon 100\n", "malformed"),
        (b"0 000 00\n5 100 00\n", [5], b"5 1\n", "another width"),
    ],
)
def test_a_recording_that_does_not_fit_is_a_trace_error(
    events: bytes, samples: list[int], edges: bytes, reason: str
) -> None:
    with pytest.raises(TraceError, match=reason):
        build_trace(CLOCKED, events, samples, edges)


@given(st.binary(max_size=200), st.lists(st.integers(0, 2**40), max_size=4), st.binary(max_size=60))
def test_a_recording_of_rubbish_is_never_another_error(events: bytes, samples: list[int], edges: bytes) -> None:
    with pytest.raises(TraceError):
        build_trace(CLOCKED, events, samples, edges)


BITS = st.sampled_from("01xz")


def bits(width: int) -> st.SearchStrategy[str]:
    return st.text("01xz", min_size=width, max_size=width)


@st.composite
def recordings(draw: st.DrawFn) -> tuple[Interface, bytes, list[int]]:
    widths = draw(st.lists(st.integers(1, 9), min_size=2, max_size=5))
    count = draw(st.integers(0, len(widths) - 1))
    ports = [Port(f"p{n}", "input" if n < count else "output", width) for n, width in enumerate(widths)]
    if draw(st.booleans()):
        ports.append(Port("clk", "input", 1))
    interface = Interface(tuple(draw(st.permutations(ports))), -12, -12)
    times = sorted(draw(st.sets(st.integers(1, 10_000), max_size=20)) | {0})
    lines = [
        f"{time} {draw(bits(interface.input_bits)) or '-'} {draw(bits(interface.output_bits))}\n" for time in times
    ]
    samples = sorted(draw(st.sets(st.integers(0, 10_100), min_size=1, max_size=20)))
    return interface, "".join(lines).encode(), samples


def state_before(events: bytes, time: int, column: int, width: int) -> str:
    """What a recording says of the inputs (1) or outputs (2) just before `time`."""
    found = "x" * width
    for line in events.decode().splitlines():
        parts = line.split(" ")
        if int(parts[0]) < time:
            found = "" if parts[column] == "-" else parts[column]
    return found


@given(recordings())
def test_every_sample_sees_the_state_just_before_it(recording: tuple[Interface, bytes, list[int]]) -> None:
    interface, events, samples = recording
    trace = build_trace(interface, events, samples)
    assert trace.samples == len(samples)
    assert trace.expected.decode().splitlines() == [
        state_before(events, time, 2, interface.output_bits) for time in samples
    ]
    assert list(trace.sample_points()) == [
        (time, state_before(events, time, 1, interface.input_bits)) for time in samples
    ]


@given(recordings())
def test_the_stimulus_repeats_every_change_of_the_inputs(recording: tuple[Interface, bytes, list[int]]) -> None:
    interface, events, samples = recording
    trace = build_trace(interface, events, samples)
    assert all(len(line) == interface.row_bits for line in rows_of(trace))
    for time in (*range(0, trace.end_time, 97), trace.end_time):
        held = "x" * interface.input_bits
        for at, given_inputs in trace.input_changes():
            held = given_inputs if at < time else held
        assert held == state_before(events, time, 1, interface.input_bits)


# --- to bytes and back


@given(recordings(), st.floats(0, 1000))
def test_a_trace_comes_back_from_its_bytes(recording: tuple[Interface, bytes, list[int]], cpu_s: float) -> None:
    interface, events, samples = recording
    built = build_trace(interface, events, samples)
    trace = GoldenTrace(interface, built.rows, built.stimulus, built.samples, built.expected, cpu_s)
    assert GoldenTrace.from_bytes(trace.to_bytes()) == trace


WHOLE = build_trace(CLOCKED, b"0 000 00\n5 100 00\n10 001 00\n15 101 01\n", [5, 15]).to_bytes()


@given(st.binary(max_size=300))
@example(b"")
@example(zlib.compress(b""))
@example(zlib.compress(b"\xff\xff\xff\xff{}"))
@example(zlib.compress(b"\x00\x00\x00\x02[]"))
@example(zlib.compress(b"\x00\x01\x86\xa0" + b"[" * 100_000))
def test_other_bytes_are_a_trace_error(data: bytes) -> None:
    with pytest.raises(TraceError):
        GoldenTrace.from_bytes(data)


@given(st.integers(0, len(WHOLE) * 8 - 1))
def test_a_flipped_bit_is_a_trace_error_or_without_effect(position: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[position // 8] ^= 1 << position % 8
    try:
        trace = GoldenTrace.from_bytes(bytes(damaged))
    except TraceError:
        return
    assert trace == GoldenTrace.from_bytes(WHOLE)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_trace_that_is_cut_off_is_a_trace_error(size: int) -> None:
    with pytest.raises(TraceError):
        GoldenTrace.from_bytes(WHOLE[:size])


def test_a_trace_with_something_behind_it_is_a_trace_error() -> None:
    with pytest.raises(TraceError):
        GoldenTrace.from_bytes(WHOLE + b"x")


def with_header(**changes: object) -> bytes:
    """The whole trace with another header, rightly packed."""
    plain = zlib.decompress(WHOLE)
    (size,) = struct.unpack_from(">I", plain)
    header: dict[str, Any] = json.loads(plain[4 : 4 + size]) | changes
    encoded = json.dumps(header).encode()
    return zlib.compress(struct.pack(">I", len(encoded)) + encoded + plain[4 + size :])


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3))
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)
KEYS = ("format", "ports", "unit", "precision", "rows", "samples", "reference_cpu_s", "stimulus_size")


@settings(max_examples=200)
@given(st.sampled_from(KEYS), ANYTHING)
@example("samples", 10**30)
@example("rows", 10**30)
@example("rows", float("inf"))
@example("stimulus_size", -1)
@example("ports", [["q", "output", "2"]])
@example("ports", [["q", "output", -1]])
@example("ports", [["q", "output", 10**18]])
def test_a_wrong_header_is_a_trace_error_and_never_another(key: str, value: object) -> None:
    try:
        trace = GoldenTrace.from_bytes(with_header(**{key: value}))
    except TraceError:
        return
    # What is left can be used: numbers that stand for the same, units that nothing checks.
    assert list(trace.sample_points()) == list(GoldenTrace.from_bytes(WHOLE).sample_points())


def test_a_trace_of_another_format_is_a_trace_error() -> None:
    assert GoldenTrace.from_bytes(with_header()) == GoldenTrace.from_bytes(WHOLE)
    with pytest.raises(TraceError, match="another format"):
        GoldenTrace.from_bytes(with_header(format=0))


def test_samples_that_are_ignored_are_not_checked() -> None:
    trace = GoldenTrace.from_bytes(WHOLE)
    assert trace.ignoring(1).expected == b"xx\n00\n"
    assert trace.ignoring(2).expected == b"xx\nxx\n"
    assert trace.ignoring(9).expected == b"xx\nxx\n"
    assert trace.ignoring(0) == trace
