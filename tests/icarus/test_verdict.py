"""What a verdict and a compilation say of themselves."""

import pytest

from verilog_taskapp.icarus.compare import Comparison, OutputComparison
from verilog_taskapp.icarus.diagnostics import Diagnostic
from verilog_taskapp.icarus.verdict import Compilation, FailedCompile, Reason, Verdict, from_comparison

OUTPUTS = (OutputComparison("a", 1, 0, None), OutputComparison("b", 8, 3, 2), OutputComparison("c", 1, 0, None))


def compilation(failure: FailedCompile | None, *diagnostics: Diagnostic) -> Compilation:
    return Compilation(("a.v",), None if failure else b"program", failure, diagnostics, {}, 0.1, 0.1)


@pytest.mark.parametrize(
    ("comparison", "passed", "reason"),
    [
        (Comparison(10, 0, (), None), True, "match"),
        (Comparison(10, 3, OUTPUTS, 2), False, "mismatch"),
        (Comparison(10, 0, (), None, "missing_samples", 4), False, "missing_samples"),
        (Comparison(10, 3, OUTPUTS, 2, "malformed", 4), False, "malformed"),
        (Comparison(10, 0, (), None, "surplus_samples", 10), False, "surplus_samples"),
    ],
)
def test_a_verdict_follows_from_the_comparison(comparison: Comparison, passed: bool, reason: Reason) -> None:
    verdict = from_comparison(comparison, None, "said", cpu_s=0.1, wall_s=0.2)
    assert (verdict.passed, verdict.reason, verdict.judge, verdict.samples) == (passed, reason, "golden", 10)
    assert (verdict.mismatches, verdict.first_mismatch) == (comparison.mismatches, comparison.first_sample)


def test_the_share_of_outputs_counts_only_after_a_whole_run() -> None:
    assert Verdict(False, "mismatch", "golden", outputs=OUTPUTS).share_of_outputs == pytest.approx(2 / 3)
    assert Verdict(True, "match", "golden", outputs=OUTPUTS[:1]).share_of_outputs == 1.0
    for reason in ("missing_samples", "malformed", "time_limit", "compile_error", "crashed"):
        assert Verdict(False, reason, "golden", outputs=OUTPUTS).share_of_outputs == 0.0
    assert Verdict(True, "match", "classic").share_of_outputs == 1.0
    assert Verdict(False, "mismatch", "classic").share_of_outputs == 0.0


def test_messages_tell_which_limit_stopped_the_compiler() -> None:
    warning = Diagnostic("warning", "careful", "a.v", 1)
    assert compilation(None, warning).messages(100) == "a.v:1: warning: careful"
    assert compilation("errors", warning).messages(100) == "a.v:1: warning: careful"
    assert compilation("time_limit").messages(100) == "compiler stopped: time limit"
    assert compilation("memory_limit", warning).messages(100) == (
        "compiler stopped: memory limit\na.v:1: warning: careful"
    )
    assert compilation("crashed").messages(100) == "the compiler crashed on this design"


def test_a_compilation_succeeded_when_there_is_a_program() -> None:
    assert compilation(None).succeeded
    assert not compilation("errors").succeeded
