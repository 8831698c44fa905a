"""Why a sample failed, in one code: those of VerilogEval's analyser where they fit, and our own.

The analyser's codes (one character) and rules are in `verilog_taskapp.icarus.official`. They were written for the log
of the classic flow; here they are applied to what the compiler says about the design alone, and to the golden judge's
reason. Codes of ours are words.
"""

from collections.abc import Mapping
from types import MappingProxyType

from verilog_taskapp.contracts import RolloutStep
from verilog_taskapp.icarus.official import ASYNCHRONOUS_RESETS, CATEGORY_NAMES, FLAG_RULES, LINE_RULES

PASS = "."  # noqa: S105 - no password
OTHER_COMPILE, TIME_OUT, MISMATCH, MISMATCH_RESET, UNKNOWN_MODULE, PORT = "C", "T", "R", "r", "m", "p"

OWN_CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "no_design": "no design was written",
        "bad_tool_call": "no answer held a usable tool call",
        "blocked": "ended on a compile that was blocked: nothing had changed since the last failure",
        "not_submitted": "ended without a submission",
        "context_length": "the conversation no longer fitted the model",
        "gate": "the design calls what no design may call",
        "resource": "beyond the memory, file or output limit",
        "crash": "the simulator crashed on the design",
        "early_end": "the simulation ended early or its result was tampered with",
        "unjudged": "this judge cannot judge the problem",
    }
)
ALL_CATEGORIES: Mapping[str, str] = MappingProxyType(
    {**{str(code): name for code, name in CATEGORY_NAMES.items()}, **OWN_CATEGORIES}
)
"""Every code with its meaning."""

_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "time_limit": TIME_OUT,
        "memory_limit": "resource",
        "file_limit": "resource",
        "output_limit": "resource",
        "crashed": "crash",
        "missing_samples": "early_end",
        "surplus_samples": "early_end",
        "malformed": "early_end",
        "rejected": "gate",
    }
)
_OWN_MESSAGES: tuple[tuple[str, str], ...] = (
    ("is not allowed in a design", "gate"),
    ("compiler stopped: time limit", TIME_OUT),
    ("compiler stopped:", "resource"),
    ("the compiler crashed on this design", "crash"),
    ("no module named", UNKNOWN_MODULE),
)
"""Messages of our own compiler wrapper, in the order in which they are looked for."""
_OWN_PORTS = ("is missing: expected", "cannot be connected to the testbench", "expected input", "expected output")


def of_messages(messages: str) -> str:
    """The category of a design that does not compile, from the compiler's messages."""
    lines = [line for line in messages.splitlines() if not line.startswith("hint: ")]
    for line in lines:
        for text, category in LINE_RULES:
            if text in line:
                return category
    for text, own in _OWN_MESSAGES:
        if any(text in line for line in lines):
            return own
    if any(": port " in f": {line}" and text in line for line in lines for text in _OWN_PORTS):
        return PORT
    for text, category in FLAG_RULES:
        if any(text in line for line in lines):
            return category
    return OTHER_COMPILE


def of_verdict(reason: str, messages: str, design: str) -> str:
    """The category of a design that the golden judge failed with `reason`; `messages` are the compiler's."""
    if reason == "compile_error":
        return of_messages(messages)
    if reason == "mismatch":
        return MISMATCH_RESET if any(text in design for text in ASYNCHRONOUS_RESETS) else MISMATCH
    return _REASONS.get(reason, MISMATCH)


def of_unfinished(steps: list[RolloutStep], compile_status: str, stop_reason: str | None) -> str:
    """The category of an episode that ended without a submission."""
    outcomes = [(step.tool_calls, getattr(step.info, "outcome", None)) for step in steps]
    if not any(calls for calls, _ in outcomes):
        return "context_length" if stop_reason == "context_length" else "bad_tool_call"
    if not any(outcome == "ok" and calls[0].tool_name == "write_file" for calls, outcome in outcomes if calls):
        return "no_design"
    if outcomes[-1][1] == "blocked":
        return "blocked"
    head, _, messages = compile_status.partition("\n")
    if head == "Last compile: Failed":
        return of_messages(messages)
    return "context_length" if stop_reason == "context_length" else "not_submitted"
