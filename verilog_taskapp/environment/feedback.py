"""What a policy is told about a verdict. Expected values appear only in ``waveform`` feedback."""

from collections.abc import Iterable
from typing import Any

from verilog_taskapp.icarus.verdict import Verdict
from verilog_taskapp.settings import Feedback

_STOPPED = {
    "time_limit": "the simulation used up its CPU time: look for a loop that never waits or a clock of your own",
    "memory_limit": "the simulation used up its memory",
    "file_limit": "the simulation wrote more to files than is allowed",
    "output_limit": "the simulation printed more than is allowed",
    "crashed": "the simulator crashed on this design",
    "missing_samples": "the simulation ended early: the design must not call $finish or $stop",
    "surplus_samples": "the simulation's result is not the testbench's own",
    "malformed": "the simulation's result is not the testbench's own",
    "rejected": "the design was rejected",
}


def headline(verdict: Verdict) -> str:
    """Pass or fail in one line."""
    if verdict.passed:
        return f"passed: {verdict.samples} samples match" if verdict.samples else "passed"
    if verdict.reason == "compile_error":
        return "failed: the design does not compile"
    if verdict.reason == "mismatch":
        count = f"{verdict.mismatches} of {verdict.samples} samples mismatch" if verdict.samples else "mismatches"
        return f"failed: {count}"
    return f"failed: {_STOPPED[verdict.reason]}"


def hints(verdict: Verdict) -> str:
    """Which outputs mismatch, how often and where first, and what that may come from; no expected values."""
    lines = []
    for output in verdict.outputs:
        if output.mismatches:
            lines.append(
                f"output {output.name} ({_bits(output.width)}): {output.mismatches} mismatches, first at sample "
                f"{output.first_sample}"
            )
        else:
            lines.append(f"output {output.name} ({_bits(output.width)}): no mismatches")
    return "\n".join([*lines, advice(verdict.hints)]).rstrip()


def advice(hints: Iterable[str]) -> str:
    """Hints as lines of a message."""
    return "\n".join(f"hint: {hint}" for hint in hints)


def told(verdict: Verdict, feedback: Feedback, output_chars: int) -> str:
    """The answer of ``simulate``."""
    parts = [headline(verdict)]
    if feedback != "verdict" and not verdict.passed:
        parts.append(hints(verdict))
        if feedback == "waveform" and verdict.waveform is not None:
            parts.append(
                f"samples around the first mismatch (values just before the sample):\n{verdict.waveform.table()}"
            )
    if verdict.design_output.strip() and output_chars:
        parts.append(
            f"printed by the design itself (not by the testbench):\n{_cut(verdict.design_output, output_chars)}"
        )
    return "\n".join(part for part in parts if part)


def facts(verdict: Verdict, feedback: Feedback) -> dict[str, Any]:
    """The verdict for machines, without expected values unless the feedback shows them anyway."""
    found: dict[str, Any] = {
        "verdict": "pass" if verdict.passed else "fail",
        "reason": verdict.reason,
        "judge": verdict.judge,
        "samples": verdict.samples,
        "mismatches": verdict.mismatches,
        "outputs": {
            one.name: {"width": one.width, "mismatches": one.mismatches, "first_sample": one.first_sample}
            for one in verdict.outputs
        },
        "first_mismatch": verdict.first_mismatch,
        "ms": round(verdict.wall_s * 1000, 3),
        "cpu_ms": round(verdict.cpu_s * 1000, 3),
    }
    if verdict.cached:
        found["cached"] = True
    if feedback != "verdict" and verdict.hints:
        found["hints"] = list(verdict.hints)
    if feedback == "waveform" and verdict.waveform is not None:
        found["waveform"] = verdict.waveform.to_json()
    return found


def _bits(width: int) -> str:
    return "1 bit" if width == 1 else f"{width} bits"


def _cut(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else f"{text[:limit]}\n... {len(text) - limit} more characters"
