"""Whose fault it is when a child process does not end well."""

import signal
from typing import Literal

from verilog_taskapp.icarus.runner import Limits, StepResult

Cause = Literal[
    "ok",
    "exit_status",
    "time_limit",
    "memory_limit",
    "file_limit",
    "output_limit",
    "crashed",
    "stalled",
    "killed",
]
"""ok and exit_status are ordinary ends. time, memory, file and output limits and crashes are the design's doing, if the
problem's own reference runs well in the same sandbox now. stalled (the wall limit without the CPU time to show for it;
a design cannot sleep) and killed (a SIGKILL that we did not send) are ours."""

OURS: frozenset[Cause] = frozenset({"stalled", "killed"})
NEEDS_CANARY: frozenset[Cause] = frozenset({"time_limit", "memory_limit", "file_limit", "crashed"})


def cause(step: StepResult, limits: Limits) -> Cause:
    """Classify how a child ended."""
    used_its_cpu = step.cpu_s >= limits.cpu_s / 2
    if step.end == "output_limit":
        return "output_limit"
    if step.end in ("wall_limit", "cancelled"):
        return "time_limit" if used_its_cpu else "stalled"
    if step.signal is None:
        return _of_exit_status(step)
    # The kernel counts ticks for its limit: what it reports as used afterwards may be a fifth less.
    if step.signal == signal.SIGXCPU or (step.signal == signal.SIGKILL and step.cpu_s >= limits.cpu_s * 0.75):
        return "time_limit"
    if step.signal == signal.SIGXFSZ:
        return "file_limit"
    if step.signal == signal.SIGKILL:
        return "killed"
    return "memory_limit" if _mentions_memory(step) else "crashed"


def _of_exit_status(step: StepResult) -> Cause:
    if step.exit_code == 0:
        return "ok"
    # A shell or a driver reports the signal that ended its child as 128 + number.
    by_signal: dict[int, Cause] = {
        128 + signal.SIGXCPU: "time_limit",
        128 + signal.SIGXFSZ: "file_limit",
        128 + signal.SIGKILL: "killed",
    }
    if found := by_signal.get(step.exit_code or 0):
        return found
    if _mentions_memory(step):
        return "memory_limit"
    return "crashed" if step.exit_code in (128 + signal.SIGABRT, 128 + signal.SIGSEGV) else "exit_status"


def _mentions_memory(step: StepResult) -> bool:
    return any(
        word in step.stderr for word in ("bad_alloc", "out of memory", "Cannot allocate memory", "memory exhausted")
    )
