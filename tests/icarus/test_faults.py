"""Which end of a child is whose."""

import signal
from dataclasses import replace

import pytest

from verilog_taskapp.icarus.faults import NEEDS_CANARY, OURS, Cause, cause
from verilog_taskapp.icarus.runner import Limits, StepResult

LIMITS = Limits(cpu_s=10.0, wall_s=30.0)
ENDED = StepResult("exited", 0, None, 0.1, 0.1, 10_000_000, "", "", output_cut=False)


def by_signal(number: signal.Signals, cpu_s: float = 0.1, stderr: str = "") -> StepResult:
    return replace(ENDED, exit_code=None, signal=number, cpu_s=cpu_s, stderr=stderr)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (ENDED, "ok"),
        (replace(ENDED, exit_code=1), "exit_status"),
        (replace(ENDED, exit_code=255), "exit_status"),
        # our limits
        (by_signal(signal.SIGXCPU, 10.0), "time_limit"),
        (by_signal(signal.SIGXCPU, 8.4), "time_limit"),
        (by_signal(signal.SIGKILL, 11.0), "time_limit"),
        (by_signal(signal.SIGXFSZ), "file_limit"),
        (by_signal(signal.SIGABRT, stderr="terminate called after throwing 'std::bad_alloc'"), "memory_limit"),
        (replace(ENDED, exit_code=1, stderr="ivl: Cannot allocate memory"), "memory_limit"),
        (replace(ENDED, end="output_limit", exit_code=None, signal=signal.SIGKILL), "output_limit"),
        (replace(ENDED, end="wall_limit", exit_code=None, signal=signal.SIGKILL, cpu_s=6.0), "time_limit"),
        # the simulator's own bugs
        (by_signal(signal.SIGSEGV), "crashed"),
        (by_signal(signal.SIGSEGV, stderr="what():  std::bad_alloc"), "memory_limit"),
        (by_signal(signal.SIGABRT, stderr="Assertion failed"), "crashed"),
        (by_signal(signal.SIGFPE), "crashed"),
        (by_signal(signal.SIGILL), "crashed"),
        # not the design's doing
        (by_signal(signal.SIGKILL), "killed"),
        (by_signal(signal.SIGKILL, 5.0), "killed"),
        (replace(ENDED, end="wall_limit", exit_code=None, signal=signal.SIGKILL, cpu_s=4.9), "stalled"),
        # a driver tells how its own child ended
        (replace(ENDED, exit_code=128 + signal.SIGXCPU), "time_limit"),
        (replace(ENDED, exit_code=128 + signal.SIGXFSZ), "file_limit"),
        (replace(ENDED, exit_code=128 + signal.SIGSEGV), "crashed"),
        (replace(ENDED, exit_code=128 + signal.SIGKILL), "killed"),
        (replace(ENDED, exit_code=128 + signal.SIGABRT), "crashed"),
        (replace(ENDED, exit_code=128 + signal.SIGABRT, stderr="bad_alloc"), "memory_limit"),
        (replace(ENDED, exit_code=128 + signal.SIGSEGV, stderr="bad_alloc"), "memory_limit"),
    ],
)
def test_each_end_has_one_cause(step: StepResult, expected: Cause) -> None:
    assert cause(step, LIMITS) == expected


def test_what_is_ours_is_never_excused_by_a_canary() -> None:
    assert not OURS & NEEDS_CANARY
    assert not {"ok", "exit_status"} & (OURS | NEEDS_CANARY)
