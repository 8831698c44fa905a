"""What an episode shows after a step, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from verilog_taskapp.environment.actions import ToolCall

BUILD_DIR = "build"
"""A constant that stands for the build directory; the real one is a server path and stays here."""

Outcome = Literal["ok", "failed", "refused", "blocked"]
"""ok: did what was asked (a write, a clean compile, a pass); failed: ran and did not succeed; refused: the call itself
was wrong (bad path, wrong type); blocked: not run because nothing had changed since the last failure."""


@dataclass(frozen=True)
class Observation:
    """The state of an episode as the policy may see it."""

    problem_name: str
    files: Mapping[str, str]
    files_summary: str
    compile_status: str
    simulate_status: str
    reward_last: float
    total_reward: float
    task_completed: bool
    terminated: bool
    truncated: bool
    steps_left: int
    build_dir: str = BUILD_DIR

    def to_wire(self) -> dict[str, Any]:
        """The observation as the JSON object of the contract."""
        return {
            "files": dict(self.files),
            "files_summary": self.files_summary,
            "task_completed": self.task_completed,
            "reward_last": self.reward_last,
            "total_reward": self.total_reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "compile_status": self.compile_status,
            "simulate_status": self.simulate_status,
            "build_dir": self.build_dir,
            "problem_name": self.problem_name,
            "steps_left": self.steps_left,
        }


@dataclass(frozen=True)
class StepResult:
    """What one tool call did.

    ``message`` is the tool's answer in words, for the model. ``notes`` say what the environment changed or ignored in
    the call (unknown arguments, a fence that was unwrapped). ``facts`` are machine-readable details without paths,
    reference or bench text: verdict, mismatch counts, milliseconds.
    """

    call: ToolCall
    outcome: Outcome
    message: str
    reward: float
    reward_components: Mapping[str, float]
    done: bool
    observation: Observation
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
