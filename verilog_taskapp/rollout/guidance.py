"""What the loop knows about the design between turns: the advice it gives, the calls it replaces or holds back.

`Guidance` is a value: `Guidance.after` gives the next one, `Guidance.decide` says what is executed, `Guidance.line`
what the model is advised. Modes: ``full`` advises, blocks and replaces; ``guidance`` advises and blocks; ``off``
leaves the environment as it is. Whatever was replaced or blocked is recorded in the `Decision`.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from verilog_taskapp.environment.actions import ToolCall, ToolName
from verilog_taskapp.environment.observation import StepResult

Heuristics = Literal["full", "guidance", "off"]
OverrideReason = Literal["no_tool_call", "compile_after_success_without_changes"]
DecisionKind = Literal["execute", "override", "block", "no_op"]

BLOCK_REASON = "design_requires_update_before_compile"
BLOCK_HINT = (
    "Not compiled: the last compile failed and nothing has been written since. "
    "Write the corrected design with write_file first."
)
_COMPILE_FAILED = "Last compile: Failed"


@dataclass(frozen=True)
class AutoOverride:
    """An action that the policy did not choose; ``original`` is None if it chose none."""

    original: ToolName | None
    reason: OverrideReason
    executed: ToolName

    def to_wire(self) -> dict[str, Any]:
        """``info.auto_override`` of the contract."""
        return {"from": self.original, "reason": self.reason, "to": self.executed}


@dataclass(frozen=True)
class Decision:
    """What to do with the model's call."""

    kind: DecisionKind
    call: ToolCall | None = None
    """execute, override: the call to execute; block: the call that is held back; no_op: None."""
    override: AutoOverride | None = None
    """Set whenever ``call`` is not the model's own."""
    hint: str = ""
    """block: what the model is told."""

    def to_info(self) -> dict[str, Any]:
        """``auto_override`` and ``compile_blocked`` for ``step.info``, where they apply."""
        info: dict[str, Any] = {}
        if self.override is not None:
            info["auto_override"] = self.override.to_wire()
        if self.kind == "block":
            info["compile_blocked"] = {"reason": BLOCK_REASON, "hint": self.hint}
        return info


@dataclass(frozen=True)
class Guidance:
    """The state of the design as the tools' results have shown it."""

    dirty: bool = False
    """Written since the last compile."""
    compiled: Literal["never", "ok", "failed"] = "never"
    """The last compile; a write clears a failure, so ``failed`` means that an update is needed."""
    simulated: Literal["no", "passed", "failed"] = "no"
    """The simulation since the last compile."""

    @property
    def needs_update(self) -> bool:
        """The last compile failed and nothing was written since."""
        return self.compiled == "failed"

    @property
    def clean(self) -> bool:
        """Compiled without errors and unchanged since."""
        return self.compiled == "ok" and not self.dirty

    def after(self, result: StepResult) -> "Guidance":
        """The state after a tool ran; refused and blocked calls change nothing."""
        if result.outcome in ("refused", "blocked"):
            return self
        tool = result.call.tool
        if tool == "write_file":
            return replace(self, dirty=True, compiled="never" if self.needs_update else self.compiled)
        if tool == "compile":
            return Guidance(compiled="ok" if result.outcome == "ok" else "failed")
        if tool == "simulate":  # which compiles first where something changed
            if result.observation.compile_status.startswith(_COMPILE_FAILED):
                return Guidance(compiled="failed")
            return Guidance(compiled="ok", simulated="passed" if result.outcome == "ok" else "failed")
        return self

    def decide(self, call: ToolCall | None, mode: Heuristics, task_completed: bool) -> Decision:
        """What is executed for the model's ``call``; None is an answer without a usable call."""
        if call is None and mode != "full":
            return Decision("no_op")
        override: AutoOverride | None = None
        if call is None:
            call = ToolCall("submit" if task_completed else "compile", {})
            override = AutoOverride(None, "no_tool_call", call.tool)
        elif mode == "full" and call.tool == "compile" and self.clean and self.simulated == "no":
            call = ToolCall("simulate", {})
            override = AutoOverride("compile", "compile_after_success_without_changes", call.tool)
        if mode != "off" and call.tool == "compile" and self.needs_update:
            return Decision("block", call, override, BLOCK_HINT)
        return Decision("override" if override else "execute", call, override)

    def line(self, step: int, completed: bool, *, mode: Heuristics, top: str = "TopModule") -> str:
        """Advice for the turn after ``step`` turns; empty in mode ``off`` and once the task is completed."""
        if mode == "off" or completed:
            return ""
        advice: list[str] = []
        if step == 0:
            advice.append(f"Begin by writing {top} with write_file.")
        if self.needs_update:
            advice.append(
                "The compile failed: update the design with write_file to match the required ports and behaviour "
                "before compiling again."
            )
        if self.dirty:
            advice.append("The code changed: compile before you simulate or submit.")
        if self.clean:
            advice.append(
                {
                    "no": "The design compiles: run simulate.",
                    "passed": "The checks passed: submit.",
                    "failed": "The checks failed: do not submit yet, edit the design and compile it.",
                }[self.simulated]
            )
        return " ".join(advice)
