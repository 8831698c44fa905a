"""What the judge answers: a compilation, a verdict.

A verdict is pass or fail. That there is no verdict is an exception (`EnvironmentFailed`), never a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from verilog_taskapp.icarus.compare import Comparison, OutputComparison
from verilog_taskapp.icarus.diagnostics import Diagnostic, render
from verilog_taskapp.icarus.faults import Cause
from verilog_taskapp.icarus.waveform import Waveform

JudgeKind = Literal["golden", "classic"]
FailedCompile = Literal["errors", "time_limit", "memory_limit", "file_limit", "output_limit", "crashed"]
Reason = Literal[
    "match",
    "mismatch",
    "compile_error",
    "missing_samples",
    "surplus_samples",
    "malformed",
    "time_limit",
    "memory_limit",
    "file_limit",
    "output_limit",
    "crashed",
    "rejected",
]

REASONS: Mapping[Cause, Reason] = {
    "time_limit": "time_limit",
    "memory_limit": "memory_limit",
    "file_limit": "file_limit",
    "output_limit": "output_limit",
    "crashed": "crashed",
}
"""The verdict's reason for a run that did not end by itself."""


@dataclass(frozen=True)
class Compilation:
    """A design compiled with the bench; ``program`` is None exactly when ``failure`` says why."""

    sources: tuple[str, ...]
    program: bytes | None
    failure: FailedCompile | None
    diagnostics: tuple[Diagnostic, ...]
    """In terms of the design's own files."""
    data_files: Mapping[str, bytes]
    """Files of the design that it may read at run time."""
    cpu_s: float
    wall_s: float
    fingerprint: str = ""
    """SHA-256 (hex) over the design's files and which of them are compiled."""
    stray_override: bool = False
    """A ``defparam`` found no target, or there were too many messages to tell."""
    hints: tuple[str, ...] = ()
    """Short advice on the diagnostics; see `verilog_taskapp.icarus.hints`."""
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The compiled source files."""
    cached: bool = False
    """Taken from equal work done before; the times are of that work."""

    @property
    def succeeded(self) -> bool:
        """Whether there is a program to run."""
        return self.program is not None

    def messages(self, limit_chars: int) -> str:
        """The diagnostics as text for the model."""
        text = render(self.diagnostics, limit_chars)
        if self.failure in (None, "errors"):
            return text
        limit = self.failure.replace("_", " ")
        told = f"compiler stopped: {limit}" if self.failure != "crashed" else "the compiler crashed on this design"
        return f"{told}\n{text}".strip()


@dataclass(frozen=True)
class Verdict:
    """Whether the design behaves as the reference did, decided from files that the design cannot touch."""

    passed: bool
    reason: Reason
    judge: JudgeKind
    samples: int = 0
    """Samples that had to match."""
    mismatches: int = 0
    """Samples in which a checked output bit differed."""
    outputs: tuple[OutputComparison, ...] = ()
    first_mismatch: int | None = None
    """Index of the first sample that differs."""
    waveform: Waveform | None = None
    design_output: str = ""
    """What the design printed: its own words, which never decide anything."""
    compilation: Compilation | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    detail: str = ""
    """For people: what was rejected, or how the run ended."""
    hints: tuple[str, ...] = ()
    """Short advice on a failure, without expected values; see `verilog_taskapp.icarus.behaviour`."""
    cached: bool = False
    """Taken from equal work done before; the times are of that work."""

    @property
    def share_of_outputs(self) -> float:
        """Share of outputs that never mismatched; 0 when the run gave no complete result."""
        if not self.outputs or self.reason not in ("match", "mismatch"):
            return 1.0 if self.passed else 0.0
        return sum(one.mismatches == 0 for one in self.outputs) / len(self.outputs)


def from_comparison(
    comparison: Comparison, waveform: Waveform | None, design_output: str, *, cpu_s: float, wall_s: float
) -> Verdict:
    """The golden judge's verdict on a run that ended within its limits."""
    reason: Reason = comparison.malformation or ("match" if comparison.passed else "mismatch")
    return Verdict(
        passed=comparison.passed,
        reason=reason,
        judge="golden",
        samples=comparison.samples,
        mismatches=comparison.mismatches,
        outputs=comparison.outputs,
        first_mismatch=comparison.first_sample,
        waveform=waveform,
        design_output=design_output,
        cpu_s=cpu_s,
        wall_s=wall_s,
    )
