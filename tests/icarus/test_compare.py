"""The comparison that decides, against a reference that is too simple to be wrong."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verilog_taskapp.icarus.compare import Comparison, Malformation, OutputComparison, compare
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.trace import DELAY_BITS, GoldenTrace, Interface


def trace_of(widths: list[int], expected: list[str]) -> GoldenTrace:
    """A trace of outputs a, b, ... that expects these rows."""
    ports = tuple(Port(chr(ord("a") + number), "output", width) for number, width in enumerate(widths))
    stimulus = ("10" + "0" * DELAY_BITS + "\n") * len(expected)
    return GoldenTrace(Interface(ports, -12, -12), len(expected), stimulus.encode(), len(expected), text(expected))


def text(rows: list[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


@st.composite
def traces(draw: st.DrawFn) -> GoldenTrace:
    widths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    rows = st.text("01xz", min_size=sum(widths), max_size=sum(widths))
    return trace_of(widths, draw(st.lists(rows, min_size=1, max_size=8)))


@st.composite
def answers(draw: st.DrawFn) -> tuple[GoldenTrace, bytes]:
    """A trace and an answer that is near to it: some bytes replaced, inserted, dropped or appended."""
    trace = draw(traces())
    data = bytearray(trace.expected)
    byte = st.one_of(st.sampled_from(b"01xz\n"), st.sampled_from(b"XZ 0\r\x00\xff-hL"))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(("replace", "insert", "drop", "cut", "append")))
        if kind == "replace" and at < len(data):
            data[at] = draw(byte)
        elif kind == "insert":
            data.insert(at, draw(byte))
        elif kind == "drop" and at < len(data):
            del data[at]
        elif kind == "cut":
            del data[at:]
        else:
            data += draw(st.sampled_from((b"\n", b"0\n", trace.expected, trace.expected[:3])))
    return trace, bytes(data)


def naive(trace: GoldenTrace, actual: bytes) -> Comparison:
    """Line by line, bit by bit."""
    ports = trace.interface.outputs
    width = sum(port.width for port in ports)
    wanted_rows = trace.expected.decode().split("\n")[:-1]
    *lines, rest = actual.decode("latin-1").split("\n")
    good: list[str] = []
    for line in lines:
        if len(line) != width or set(line) - set("01xz") or len(good) == len(wanted_rows):
            break
        good.append(line)
    malformation: Malformation | None
    if len(good) == len(lines) and not rest:
        malformation = None if len(good) == len(wanted_rows) else "missing_samples"
    elif len(good) == len(wanted_rows):
        malformation = "surplus_samples"
    else:
        malformation = "malformed"
    counts = {port.name: 0 for port in ports}
    firsts: dict[str, int | None] = {port.name: None for port in ports}
    bad: list[int] = []
    for number, (wanted, got) in enumerate(zip(wanted_rows, good, strict=False)):
        at = 0
        for port in ports:
            pairs = list(zip(wanted, got, strict=True))[at : at + port.width]
            at += port.width
            if any(w in "01" and g != w for w, g in pairs):
                counts[port.name] += 1
                firsts[port.name] = number if firsts[port.name] is None else firsts[port.name]
                bad = bad if bad and bad[-1] == number else [*bad, number]
    outputs = tuple(OutputComparison(port.name, port.width, counts[port.name], firsts[port.name]) for port in ports)
    return Comparison(len(wanted_rows), len(bad), outputs, bad[0] if bad else None, malformation, len(good))


@given(answers())
@example((trace_of([1], ["0", "1"]), b"0\n1\n"))
@example((trace_of([1], ["0", "1"]), b"0\n\n1"))
@example((trace_of([2], ["00", "11"]), b"0\n0\n11"))
@example((trace_of([1], ["0"]), b"0\n0\n"))
@example((trace_of([1], ["0"]), b"0\nrubbish"))
@example((trace_of([1], ["x"]), b"\n"))
@example((trace_of([1], ["x"]), b""))
def test_it_says_what_the_naive_comparison_says(answer: tuple[GoldenTrace, bytes]) -> None:
    trace, actual = answer
    assert compare(trace, actual) == naive(trace, actual)


@given(traces())
def test_the_expected_rows_themselves_pass(trace: GoldenTrace) -> None:
    assert compare(trace, trace.expected).passed


@given(traces(), st.data())
def test_bits_that_are_not_checked_may_be_anything(trace: GoldenTrace, data: st.DataObject) -> None:
    free = bytes(data.draw(st.sampled_from(b"01xz")) if byte in b"xz" else byte for byte in trace.expected)
    assert compare(trace, free).passed


@given(traces(), st.data())
def test_one_wrong_bit_is_found(trace: GoldenTrace, data: st.DataObject) -> None:
    checked = [at for at, byte in enumerate(trace.expected) if byte in b"01"]
    if not checked:
        return
    at = data.draw(st.sampled_from(checked))
    wrong = data.draw(st.sampled_from([byte for byte in b"01xz" if byte != trace.expected[at]]))
    actual = trace.expected[:at] + bytes([wrong]) + trace.expected[at + 1 :]
    comparison = compare(trace, actual)
    sample = at // (trace.interface.output_bits + 1)
    assert (comparison.passed, comparison.mismatches, comparison.first_sample) == (False, 1, sample)
    assert sum(output.mismatches for output in comparison.outputs) == 1


def test_x_and_z_where_a_value_is_expected_mismatch() -> None:
    comparison = compare(trace_of([1, 2], ["010", "010", "010"]), b"x10\n0z0\n010\n")
    assert (comparison.mismatches, comparison.first_sample) == (2, 0)
    assert comparison.outputs == (OutputComparison("a", 1, 1, 0), OutputComparison("b", 2, 1, 1))


@pytest.mark.parametrize("wrong", [b"X1\n", b"O1\n", b"01\r", b"0 \n", b"\x00\x01\n", b"h1\n", b"0\n1"])
def test_a_row_with_other_characters_never_passes(wrong: bytes) -> None:
    comparison = compare(trace_of([2], ["xx"]), wrong)
    assert not comparison.passed
    assert comparison.malformation == "malformed"


def test_what_was_right_before_the_end_is_still_counted() -> None:
    comparison = compare(trace_of([1], list("0101")), b"0\n0\n")
    assert (comparison.malformation, comparison.samples_seen) == ("missing_samples", 2)
    assert (comparison.mismatches, comparison.first_sample) == (1, 1)


def test_more_samples_than_expected_never_pass() -> None:
    comparison = compare(trace_of([1], list("01")), b"0\n1\n0\n")
    assert (comparison.passed, comparison.malformation, comparison.samples_seen) == (False, "surplus_samples", 2)


def test_a_million_samples_take_no_time_to_speak_of() -> None:
    trace = trace_of([8], ["01010101"] * 300_000)
    assert compare(trace, trace.expected).passed
    assert compare(trace, trace.expected[:-9] + b"01010100\n").first_sample == 299_999
