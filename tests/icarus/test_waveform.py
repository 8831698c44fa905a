"""The table around the first mismatch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verilog_taskapp.icarus.compare import compare
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.trace import GoldenTrace, Interface, build_trace
from verilog_taskapp.icarus.waveform import WIDEST, Waveform, WaveformRow, shown, waveform

INTERFACE = Interface(
    (Port("clk", "input", 1), Port("address", "input", 6), Port("q", "output", 8), Port("valid", "output", 1)), -12, -12
)


def trace() -> GoldenTrace:
    """Ten samples, ten time units apart: the address counts up and q follows it."""
    events = "".join(f"{10 * n} 0{n:06b} {n:08b}1\n" for n in range(10))
    return build_trace(INTERFACE, events.encode(), [10 * n + 5 for n in range(10)])


def shown_for(actual: bytes, rows: int = 12) -> Waveform | None:
    golden = trace()
    return waveform(golden, actual, compare(golden, actual), rows)


def with_wrong(sample: int, row: str = "0000000x1") -> bytes:
    lines = trace().expected.decode().splitlines()
    lines[sample] = row
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        ("0", "0"),
        ("x", "x"),
        ("01", "h1"),
        ("11111111", "hff"),
        ("000010100", "h014"),
        ("xxxx", "hx"),
        ("zzzzzzzz", "hzz"),
        ("1x", "hX"),
        ("x1010", "hxa"),
        ("xxxxx", "hxx"),
        ("z0000", "hz0"),
        ("10zz", "hX"),
    ],
)
def test_values_are_shown_as_verilog_shows_them(bits: str, expected: str) -> None:
    assert shown(bits) == expected


@given(st.text("01", min_size=2, max_size=70))
def test_known_values_are_plain_hexadecimal(bits: str) -> None:
    assert int(shown(bits)[1:], 16) == int(bits, 2)
    assert len(shown(bits)) == 1 + -(-len(bits) // 4)


def test_the_table_is_aligned_and_marks_what_differs() -> None:
    table = shown_for(with_wrong(1, "0000000x0"), rows=3)
    assert table is not None
    assert table.table().splitlines() == [
        "sample time clk address q exp q got   valid exp valid got",
        "     0    5   0     h00   h00   h00           1         1",
        "     1   15   0     h01   h01   h0X <         1         0 <",
        "     2   25   0     h02   h02   h02           1         1",
    ]


def test_a_few_samples_before_the_mismatch_are_shown() -> None:
    table = shown_for(with_wrong(7), rows=6)
    assert table is not None
    assert [row.sample for row in table.rows] == [3, 4, 5, 6, 7, 8]
    assert [any(row.differs) for row in table.rows] == [False, False, False, False, True, False]


@pytest.mark.parametrize(("rows", "expected"), [(1, [7]), (2, [6, 7]), (5, [3, 4, 5, 6, 7])])
def test_the_mismatch_is_in_the_table_however_short_it_is(rows: int, expected: list[int]) -> None:
    table = shown_for(with_wrong(7), rows)
    assert table is not None
    assert [row.sample for row in table.rows] == expected


def test_a_result_that_ends_early_is_shown_up_to_its_end() -> None:
    table = shown_for(trace().expected[:50])  # five rows of ten bytes
    assert table is not None
    assert [row.sample for row in table.rows] == [0, 1, 2, 3, 4]
    assert not any(any(row.differs) for row in table.rows)


def test_there_is_no_table_without_a_mismatch_or_without_a_sample() -> None:
    assert shown_for(trace().expected) is None
    assert shown_for(b"") is None


def test_unchecked_bits_do_not_differ() -> None:
    interface = Interface((Port("q", "output", 2),), -12, -12)
    golden = build_trace(interface, b"0 - x1\n", [5])
    table = waveform(golden, b"10\n", compare(golden, b"10\n"), 3)
    assert table is not None
    assert table.rows[0].differs == (True,)
    assert (table.rows[0].expected, table.rows[0].actual) == (("x1",), ("10",))


def test_machines_get_bit_strings() -> None:
    table = shown_for(with_wrong(0), rows=1)
    assert table is not None
    assert table.to_json() == {
        "inputs": [{"name": "clk", "width": 1}, {"name": "address", "width": 6}],
        "outputs": [{"name": "q", "width": 8}, {"name": "valid", "width": 1}],
        "rows": [
            {
                "sample": 0,
                "time": 5,
                "inputs": ("0", "000000"),
                "expected": ("00000000", "1"),
                "actual": ("0000000x", "1"),
                "differs": (True, False),
            }
        ],
    }


def wide(expected: str, *actual: str) -> Waveform:
    ports = (Port("d", "input", len(expected)),), (Port("q", "output", len(expected)),)
    rows = [WaveformRow(n, n, (expected,), (expected,), (got,), (got != expected,)) for n, got in enumerate(actual)]
    return Waveform(*ports, tuple(rows))


def test_very_wide_values_are_shortened_around_the_digits_that_differ() -> None:
    expected = f"{0x123456789ABCDEF << 448 | 0xFEDCBA:0510b}"
    wrong = expected[:205] + "x" + expected[206:]
    table = wide(expected, expected, wrong)
    assert table.table().splitlines() == [
        "sample time                            d            q exp            q got",
        "     0    0 h0123456789ab...000000fedcba h0123...0...dcba h0123...0...dcba",
        "     1    1 h0123456789ab...000000fedcba h0123...0...dcba h0123...X...dcba <",
        "d is shortened, shown: bits 509:464, 47:0",
        "q is shortened, shown: bits 509:496, 307:304, 15:0",
    ]
    assert table.to_json()["rows"][1]["actual"] == (wrong,)


@given(st.integers(97, 600), st.data())
def test_of_a_wide_value_the_first_differing_digits_are_shown(width: int, data: st.DataObject) -> None:
    expected = data.draw(st.text("01", min_size=width, max_size=width))
    actual = data.draw(st.text("01x", min_size=width, max_size=width))
    lines = wide(expected, actual).table().splitlines()
    q_expected, q_actual = lines[1].split()[3:5]
    assert len(q_expected) == len(q_actual)
    assert (q_expected != q_actual) == (expected != actual) == lines[1].endswith("<")
    assert len(q_expected.replace("...", "")) <= 1 + WIDEST
    assert lines[-1].startswith("q is shortened, shown: bits ")


def test_values_of_96_bits_are_whole() -> None:
    assert "..." not in wide("01" * 48, "10" * 48).table()
