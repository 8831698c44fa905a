"""The form in which a trace is fed to a design: the same rows, told by kind where that pays."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.icarus import made
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.replay import (
    HEADER_EVERY,
    KIND_BITS,
    MAX_KINDS,
    Answers,
    Replay,
    RowKind,
    answers,
    kinds_of,
    replay,
    written_bytes,
)
from verilog_taskapp.icarus.trace import DELAY_BITS, FLAG_BITS, GoldenTrace, Interface

INTERFACE = Interface((Port("clk", "input", 1), Port("d", "input", 4), Port("q", "output", 3)), -12, -12)


def row(sample: bool, early: bool, delay: int, clock: str, data: str) -> str:
    return f"{sample:d}{early:d}{delay:0{DELAY_BITS}b}{clock}{data}"


def trace_of(rows: Sequence[str]) -> GoldenTrace:
    samples = sum(one[0] == "1" for one in rows)
    return GoldenTrace(INTERFACE, len(rows), ("\n".join(rows) + "\n").encode(), samples, b"xxx\n" * samples)


def carried_out(fed: Replay, plan: Sequence[RowKind]) -> list[tuple[bool, bool, int, str, str]]:
    """What the bench does with a stimulus, row by row, as `benches.replay_bench` describes it."""
    words = fed.words.decode().splitlines()[: fed.word_count]
    done, data = [], "xxxx"
    for number in (int(line, 2) for line in fed.kinds.decode().splitlines()):
        if number == 0:
            word = words.pop(0)
            delay = int(word[FLAG_BITS : FLAG_BITS + DELAY_BITS], 2)
            clock, data = word[-5], word[-4:]
            done.append((word[0] == "1", word[1] == "1", delay, clock, data))
        else:
            kind = plan[number - 1]
            data = words.pop(0)[-4:] if kind.changes_data else data
            done.append((kind.is_sample, False, kind.delay, kind.clocks, data))
    assert words == []
    return done


ROWS = st.lists(
    st.tuples(
        st.booleans(),
        st.booleans(),
        st.sampled_from([0, 1, 5, 7, 2**32 - 1]),
        st.sampled_from("01x"),
        st.sampled_from(["0000", "0001", "1x0z"]),
    ),
    min_size=1,
    max_size=60,
)


@given(public=ROWS, secret=ROWS)
def test_whatever_the_rows_are_the_bench_does_the_same(
    public: list[tuple[bool, bool, int, str, str]], secret: list[tuple[bool, bool, int, str, str]]
) -> None:
    plan = kinds_of(trace_of([row(*one) for one in public]))
    for rows in (public, secret):
        fed = replay(trace_of([row(*one) for one in rows]), plan)
        assert carried_out(fed, plan) == rows
        assert fed.rows == len(rows)
        assert set(map(len, fed.kinds.decode().splitlines())) == {KIND_BITS}


def test_a_clock_is_two_kinds_and_only_changes_of_data_are_words() -> None:
    rows = [row(False, False, 0, "0", "0000")]
    for number in range(100):
        rows += [row(True, False, 5, "1", f"{number // 10:04b}"), row(False, False, 5, "0", f"{number // 10:04b}")]
    trace = trace_of(rows)
    plan = kinds_of(trace)
    assert plan[:2] == (RowKind(5, False, "0", False), RowKind(5, True, "1", False))
    fed = replay(trace, plan)
    assert fed.word_count == 1 + 9
    assert fed.arguments == ("+vt_rows=201", "+vt_words=10")
    assert replay(trace, plan) is fed


def test_there_are_never_more_kinds_than_numbers() -> None:
    rows = [row(True, False, 1 + number % 40, "1", "0000") for number in range(4000)]
    assert len(kinds_of(trace_of(rows))) == MAX_KINDS


def test_a_stimulus_without_words_has_a_file_all_the_same() -> None:
    rows = [row(True, False, 5, clock, "xxxx") for clock in "0101"]
    trace = trace_of(rows)
    fed = replay(trace, kinds_of(trace))
    assert (fed.word_count, len(fed.words.splitlines())) == (0, 1)


INTERFACE_OF_3 = Interface((Port("q", "output", 3),), -12, -12)


def written(words: list[str], interface: Interface) -> bytes:
    """The file that the bench leaves: the answers and a last word."""
    lines = [f"{word}\n" for word in (*words, "z" * interface.output_bits)]
    return "".join(
        (f"// 0x{number:08x}\n" if number % HEADER_EVERY == 0 else "") + line for number, line in enumerate(lines)
    ).encode()


@given(words=st.integers(1, 9).flatmap(lambda n: st.lists(st.text("01xz", min_size=n, max_size=n), min_size=1)))
def test_the_addresses_between_the_answers_are_taken_out(words: list[str]) -> None:
    interface = Interface((Port("q", "output", len(words[0])),), -12, -12)
    file = written(words, interface)
    assert len(file) == written_bytes(len(words), interface)
    assert answers(file, interface) == Answers("".join(f"{word}\n" for word in words).encode(), True)


@given(cut=st.integers(1, 1000))
def test_a_file_that_lacks_its_end_is_not_complete(cut: int) -> None:
    file = written(["010"] * 40, INTERFACE_OF_3)
    assert not answers(file[:-cut], INTERFACE_OF_3).complete


def test_what_is_no_file_of_the_bench_stays_what_it_is() -> None:
    for text in (b"000\n001\n", b"// 0x00000000\n" + b"000\n" * HEADER_EVERY + b"000\n", b"\0" * 100):
        assert answers(text, INTERFACE_OF_3) == Answers(text, False)
    assert answers(b"", INTERFACE_OF_3) == Answers(b"", False)


async def test_the_simulator_writes_what_is_read_here(judge: Judge) -> None:
    """Prepared means recorded and replayed: the reference's own answers came back through the file."""
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    trace = await judge.trace(prepared)
    assert prepared.status == "golden"
    assert len(kinds_of(trace)) >= 2
    assert trace.samples > HEADER_EVERY
