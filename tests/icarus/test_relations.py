"""How failing outputs relate to the expected ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.icarus import made
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.compare import compare
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.relations import RESET_NAME, Relation, relations
from verilog_taskapp.icarus.trace import GoldenTrace, Interface, build_trace

WALK = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4]
BOTH_EDGES = [value for value in WALK for _ in range(2)]
Q = (Port("clk", "input", 1), Port("q", "output", 4))


def golden(values: list[str], ports: tuple[Port, ...] = Q) -> GoldenTrace:
    """Samples just before both edges of a clock; the outputs are in place well before."""
    events = "".join(f"{10 * n} {n % 2} {value}\n" for n, value in enumerate(values))
    return build_trace(Interface(ports, -12, -12), events.encode(), [10 * n for n in range(1, len(values) + 1)])


def bits(values: list[int], width: int = 4) -> list[str]:
    return [f"{value:0{width}b}" for value in values]


def found(expected: list[str], actual: list[str], ports: tuple[Port, ...] = Q) -> list[str]:
    trace = golden(expected, ports)
    given_ = ("\n".join(actual) + "\n").encode()
    return [str(one) for one in relations(trace, given_, compare(trace, given_))]


GOOD = bits(BOTH_EDGES)


def test_a_passing_run_has_no_relations() -> None:
    assert found(GOOD, GOOD) == []


def test_outputs_that_are_never_known() -> None:
    assert found(GOOD, ["zzzz"] * len(GOOD)) == ["q is Z in every sample: nothing drives it."]
    assert found(GOOD, ["xxxx"] * len(GOOD))[0].startswith("q is X in every sample:")
    assert found(GOOD, ["xxzz"] * len(GOOD)) == []
    assert found(GOOD, [*["xxxx"] * (len(GOOD) - 1), "0000"]) == []


def test_an_inverted_output() -> None:
    inverted = bits([15 - value for value in BOTH_EDGES])
    assert found(GOOD, inverted) == ["q looks inverted."]
    assert found(GOOD, ["xxxx", *inverted[1:]]) == ["q looks inverted."]
    assert found(GOOD, [*inverted[:-1], GOOD[-1]]) == []


def test_a_constant_is_not_inverted() -> None:
    assert found(["1111"] * 20, ["0000"] * 20) == []


def test_a_reversed_output() -> None:
    assert found(GOOD, [value[::-1] for value in GOOD])[0].startswith("q looks bit-reversed")
    assert found(GOOD, [value[2:] + value[:2] for value in GOOD]) == []


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (2, "one clock cycle late"),
        (-2, "one clock cycle early"),
        (1, "half a clock cycle late"),
        (-1, "half a clock cycle early"),
    ],
)
def test_an_output_in_another_cycle(shift: int, words: str) -> None:
    # Each value holds for a whole cycle, so that half a cycle and a whole one can be told apart.
    moved = ["xxxx"] * shift + GOOD[:-shift] if shift > 0 else GOOD[-shift:] + ["0000"] * -shift
    assert [line.split(":")[0] for line in found(GOOD, moved)] == [f"q looks {words}"]


def test_two_cycles_late_is_not_told() -> None:
    assert found(GOOD, ["xxxx"] * 4 + GOOD[:-4]) == []


def test_a_toggle_that_could_be_early_or_late_is_only_inverted() -> None:
    toggle = [str(n // 2 % 2) for n in range(40)]
    ports = (Q[0], Port("q", "output", 1))
    assert found(toggle, [str(1 - int(value)) for value in toggle], ports) == ["q looks inverted."]


def test_unchecked_bits_are_left_out() -> None:
    expected = ["xx" + value[2:] for value in GOOD]
    assert found(expected, bits([15 - value for value in BOTH_EDGES])) == ["q looks inverted."]
    assert found(expected, ["11" + value[2:] for value in GOOD]) == []


def test_outputs_with_the_same_relation_share_a_sentence() -> None:
    ports = (Q[0], *(Port(name, "output", 4) for name in "abc"))
    expected = [value * 3 for value in GOOD]
    inverted = bits([15 - value for value in BOTH_EDGES])
    actual = [bad + good + bad for bad, good in zip(inverted, GOOD, strict=True)]
    assert found(expected, actual, ports) == ["a, c look inverted."]


def test_without_a_clock_nothing_is_late() -> None:
    ports = (Port("a", "input", 1), Q[1])
    assert found(GOOD, ["xxxx"] * 2 + GOOD[:-2], ports) == []


def test_many_names_are_cut() -> None:
    assert str(Relation("inverted", tuple("abcdef"))) == "a, b, c, d, ... look inverted."


def test_a_result_that_ends_early_is_read_as_far_as_it_goes() -> None:
    trace = golden(GOOD)
    cut = ("\n".join(bits([15 - value for value in BOTH_EDGES])[:20]) + "\n01").encode()
    assert [one.kind for one in relations(trace, cut, compare(trace, cut))] == ["inverted"]
    assert relations(trace, b"", compare(trace, b"")) == ()


@given(st.lists(st.text("01xz", min_size=4, max_size=4), min_size=1, max_size=30), st.data())
@settings(deadline=None)
def test_no_values_break_the_relations(expected: list[str], data: st.DataObject) -> None:
    actual = data.draw(st.lists(st.text("01xz", min_size=4, max_size=4), max_size=len(expected)))
    for sentence in found(expected, actual):
        assert sentence


@pytest.mark.parametrize(
    "name",
    [
        "reset",
        "rst",
        "areset",
        "arst",
        "resetn",
        "rst_n",
        "aresetn",
        "arst_n",
        "nreset",
        "i_rst",
        "rst_ni",
        "sync_reset",
        "RESET",
    ],
)
def test_names_of_resets(name: str) -> None:
    assert RESET_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["preset", "rest", "reset_count", "burst", "first", "n", "set"])
def test_other_names(name: str) -> None:
    assert not RESET_NAME.fullmatch(name)


# --- resets, with real designs

ASYNC = made.COUNTER.replace("areset", "rst")
SYNC = ASYNC.replace(" or posedge rst", "")
DRIVE = {
    "rst": "initial begin rst = 1; repeat (3) @(negedge clk); rst = 0; "
    "repeat (5) begin repeat (7) @(negedge clk); rst <= 1; repeat (2) @(negedge clk); rst <= 0; end end"
}


def reset_bench(reference: str) -> Bench:
    text = made.scored_text({"rst": 1, "enable": 1}, {"count": 4, "wrapped": 1}, drive=DRIVE, half_periods=120)
    return made.bench(reference, text)


@pytest.mark.parametrize(("reference", "design"), [(ASYNC, SYNC), (SYNC, ASYNC)])
async def test_the_other_kind_of_reset_is_told(reference: str, design: str, judge: Judge) -> None:
    prepared = await judge.prepare(reset_bench(reference))
    assert prepared.status == "golden"
    verdict = await judge.judge(prepared, *made.one_file(made.as_design(design)))
    assert not verdict.passed
    assert [hint for hint in verdict.hints if hint.startswith("Mismatches begin where `rst` changes")]
    right = await judge.judge(prepared, *made.one_file(made.as_design(reference)))
    assert (right.passed, right.hints) == (True, ())


@pytest.mark.parametrize("reference", [ASYNC, SYNC])
@pytest.mark.parametrize("fault", [("count + 1", "count + 2"), ("count <= 0", "count <= 3"), ("&count", "|count")])
async def test_other_faults_do_not_look_like_it(reference: str, fault: tuple[str, str], judge: Judge) -> None:
    prepared = await judge.prepare(reset_bench(reference))
    verdict = await judge.judge(prepared, *made.one_file(made.as_design(reference).replace(*fault)))
    assert not verdict.passed
    assert not [hint for hint in verdict.hints if "reset" in hint]
