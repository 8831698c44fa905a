"""How a golden trace is fed to a design: the plan of a bench, the files that it reads, the file that it writes.

Interpreting a row (its flags, its delay, every input) costs the simulator far more than carrying it out. Most rows of
a trace are of a few kinds, the two halves of a clock's period for example, so the replay bench knows the most frequent
kinds of the public stimulus as statements with constants, and a row is a small number that picks one. Whatever has no
kind is carried out from its full description. A secret stimulus of the same bench uses the same plan.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verilog_taskapp.icarus.trace import DELAY_BITS, FLAG_BITS, GoldenTrace, Interface

KIND_BITS = 4
MAX_KINDS = 2**KIND_BITS - 1
"""Kind 0 stands for a row that is described in full."""
MIN_SHARE = 1 / 64
"""A kind that fewer rows have is not worth a comparison in every other row."""
HEADER_EVERY = 16
"""``$writememb`` writes the address, ``// 0x00000010``, before each so many words, in all supported versions."""
_HEADER_BYTES = len(b"// 0x00000000\n")


@dataclass(frozen=True)
class RowKind:
    """What many rows have in common."""

    delay: int
    """Since the row before, in units of the precision; at least 1."""
    is_sample: bool
    clocks: str
    """The clocks' values from then on, one character each."""
    changes_data: bool
    """Whether another input changes; its value is then in the next word."""


@dataclass(frozen=True)
class Replay:
    """A stimulus in the form that the replay bench reads."""

    rows: int
    kinds: bytes
    """For ``$readmemb``: the kind of each row."""
    word_count: int
    words: bytes
    """For ``$readmemb``: full rows, in the order in which they are used."""

    @property
    def arguments(self) -> tuple[str, str]:
        """What the bench is told on its command line."""
        return f"+vt_rows={self.rows}", f"+vt_words={self.word_count}"


def kinds_of(public: GoldenTrace) -> tuple[RowKind, ...]:
    """The plan of a bench: the kinds worth knowing, the most frequent first. Worked out once per trace."""
    known: tuple[RowKind, ...] | None = public.derived.get(kinds_of)
    if known is None:
        found = Counter(kind for kind, _ in _rows(public) if kind is not None)
        enough = max(2, public.rows * MIN_SHARE)
        known = tuple(kind for kind, count in found.most_common(MAX_KINDS) if count >= enough)
        public.derived[kinds_of] = known
    return known


def replay(trace: GoldenTrace, plan: Sequence[RowKind]) -> Replay:
    """`trace` for a bench with this plan. Worked out once per trace and plan."""
    plan = tuple(plan)
    known: Replay | None = trace.derived.get(plan)
    if known is None:
        known = trace.derived[plan] = _replay(trace, plan)
    return known


def _replay(trace: GoldenTrace, plan: Sequence[RowKind]) -> Replay:
    numbers = {kind: f"{number:0{KIND_BITS}b}" for number, kind in enumerate(plan, 1)}
    general = "0" * KIND_BITS
    kinds: list[str] = []
    words: list[str] = []
    for kind, row in _rows(trace):
        number = numbers.get(kind, general) if kind is not None else general
        kinds.append(number)
        if number == general or (kind is not None and kind.changes_data):
            words.append(row)
    word_count = len(words)
    words = words or ["0" * trace.interface.row_bits]  # a file without words would be complained about
    return Replay(trace.rows, _lines(kinds), word_count, _lines(words))


@dataclass(frozen=True)
class Answers:
    """What a replay wrote down."""

    samples: bytes
    """One line each."""
    complete: bool
    """Whether the bench's last word is there, so that nothing was lost on the way, on a full disk say."""


def answers(written: bytes, interface: Interface) -> Answers:
    """The samples in a file of ``$writememb``, without the addresses and without the bench's last word, all Z.

    What is no such file comes back as it is: no comparison takes it for samples.
    """
    line = interface.output_bits + 1
    block = _HEADER_BYTES + HEADER_EVERY * line
    parts = []
    for start in range(0, len(written), block):
        if written[start : start + 5] != b"// 0x":
            return Answers(written, False)
        parts.append(written[start + _HEADER_BYTES : start + block])
    samples = b"".join(parts)
    last = b"z" * interface.output_bits + b"\n"
    if len(samples) % line or samples[-line:] != last:
        return Answers(samples, False)
    return Answers(samples[:-line], True)


def written_bytes(samples: int, interface: Interface) -> int:
    """Size of the file of ``$writememb`` with so many samples and the bench's last word."""
    words = samples + 1
    return words * (interface.output_bits + 1) + -(-words // HEADER_EVERY) * _HEADER_BYTES


def _rows(trace: GoldenTrace) -> Iterator[tuple[RowKind | None, str]]:
    """Each row with its kind; None for what has none: at once, or inputs before the clocks."""
    clocks = len(trace.interface.clocks)
    start = FLAG_BITS + DELAY_BITS
    known: dict[tuple[str, bool], RowKind] = {}
    held = "x" * (trace.interface.input_bits - clocks)
    no_delay = "0" * DELAY_BITS
    for row in trace.stimulus.decode("ascii").split("\n")[: trace.rows]:
        data = row[start + clocks :]
        changes = data != held
        held = data
        if row[1] == "1" or row[FLAG_BITS:start] == no_delay:
            yield None, row
            continue
        key = (row[: start + clocks], changes)
        kind = known.get(key)
        if kind is None:
            kind = known[key] = RowKind(
                int(row[FLAG_BITS:start], 2), row[0] == "1", row[start : start + clocks], changes
            )
        yield kind, row


def _lines(rows: Sequence[str]) -> bytes:
    return ("\n".join(rows) + "\n").encode()
