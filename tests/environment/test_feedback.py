"""What a verdict tells the policy, by level."""

from dataclasses import replace

import pytest

from verilog_taskapp.environment.feedback import facts, headline, told
from verilog_taskapp.icarus.compare import OutputComparison
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.verdict import Reason, Verdict
from verilog_taskapp.icarus.waveform import Waveform, WaveformRow
from verilog_taskapp.settings import Feedback

OUTPUTS = (OutputComparison("q", 8, 3, 2), OutputComparison("valid", 1, 0, None))
ROW = WaveformRow(2, 25, ("1",), ("10101010", "1"), ("11111111", "1"), (True, False))
TABLE = Waveform((Port("clk", "input", 1),), (Port("q", "output", 8), Port("valid", "output", 1)), (ROW,))
FAILED = Verdict(
    False, "mismatch", "golden", 60, 3, OUTPUTS, 2, TABLE, "hello\n", cpu_s=0.25, wall_s=0.5
)  # fmt: skip
PASSED = Verdict(True, "match", "golden", 60, 0, (OutputComparison("q", 8, 0, None),), design_output="hello\n")


def test_a_verdict_alone_tells_how_many_samples_mismatch() -> None:
    assert told(FAILED, "verdict", 0) == "failed: 3 of 60 samples mismatch"


def test_hints_tell_which_output_how_often_and_where_first() -> None:
    assert told(FAILED, "hints", 0).splitlines() == [
        "failed: 3 of 60 samples mismatch",
        "output q (8 bits): 3 mismatches, first at sample 2",
        "output valid (1 bit): no mismatches",
    ]


def test_only_the_waveform_shows_expected_values() -> None:
    assert "haa" in told(FAILED, "waveform", 0)
    for feedback in ("verdict", "hints"):
        assert "haa" not in told(FAILED, feedback, 0)
        assert "waveform" not in facts(FAILED, feedback)
    assert facts(FAILED, "waveform")["waveform"]["rows"][0]["expected"] == ("10101010", "1")


def test_hints_are_told_with_all_feedback_but_the_verdict_alone() -> None:
    hinted = replace(FAILED, hints=("q looks inverted.",))
    for feedback in ("hints", "waveform"):
        assert told(hinted, feedback, 0).splitlines()[3] == "hint: q looks inverted."
        assert facts(hinted, feedback)["hints"] == ["q looks inverted."]
    assert "inverted" not in told(hinted, "verdict", 0)
    assert "hints" not in facts(hinted, "verdict")


@pytest.mark.parametrize("feedback", ["verdict", "hints", "waveform"])
def test_a_pass_is_a_line_and_the_designs_own_words(feedback: Feedback) -> None:
    assert told(PASSED, feedback, 100) == (
        "passed: 60 samples match\nprinted by the design itself (not by the testbench):\nhello"
    )
    assert told(PASSED, feedback, 0) == "passed: 60 samples match"


def test_the_designs_words_are_cut() -> None:
    loud = Verdict(True, "match", "golden", 1, design_output="x" * 50)
    assert told(loud, "hints", 10).endswith("\nxxxxxxxxxx\n... 40 more characters")


REASONS: dict[Reason, str] = {
    "compile_error": "failed: the design does not compile",
    "missing_samples": "failed: the simulation ended early: the design must not call $finish or $stop",
    "time_limit": "failed: the simulation used up its CPU time: "
    "look for a loop that never waits or a clock of your own",
    "memory_limit": "failed: the simulation used up its memory",
    "output_limit": "failed: the simulation printed more than is allowed",
    "file_limit": "failed: the simulation wrote more to files than is allowed",
    "crashed": "failed: the simulator crashed on this design",
    "malformed": "failed: the simulation's result is not the testbench's own",
    "surplus_samples": "failed: the simulation's result is not the testbench's own",
    "rejected": "failed: the design was rejected",
    "mismatch": "failed: mismatches",
}


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_its_words(reason: Reason) -> None:
    assert headline(Verdict(False, reason, "golden")) == REASONS[reason]


def test_a_pass_without_a_count_is_told_too() -> None:
    assert headline(Verdict(True, "match", "classic")) == "passed"


def test_machines_get_the_numbers() -> None:
    assert facts(FAILED, "hints") == {
        "verdict": "fail",
        "reason": "mismatch",
        "judge": "golden",
        "samples": 60,
        "mismatches": 3,
        "outputs": {
            "q": {"width": 8, "mismatches": 3, "first_sample": 2},
            "valid": {"width": 1, "mismatches": 0, "first_sample": None},
        },
        "first_mismatch": 2,
        "ms": 500.0,
        "cpu_ms": 250.0,
    }
