"""What a rollout leaves behind: its steps as they happened, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verilog_taskapp.contracts import RolloutStep, RolloutToolCall, StepInfo, StopReason, TurnTokens
from verilog_taskapp.environment.actions import ToolCall
from verilog_taskapp.environment.observation import Observation, StepResult
from verilog_taskapp.inference.client import Completion


@dataclass
class Progress:
    """The episode so far; kept up to date step by step, so that a failure loses nothing."""

    steps: list[RolloutStep] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    ops_executed: int = 0
    stop_reason: StopReason | None = None


@dataclass(frozen=True)
class Turn:
    """The model's side of a step; all None for scripted steps."""

    assistant_message: str | None = None
    response: Mapping[str, Any] | None = None
    request: Mapping[str, Any] | None = None
    tokens: TurnTokens | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the step's info: reasoning, retries, milliseconds, overrides."""


def turn_tokens(completion: Completion) -> TurnTokens:
    """Tokens exactly as the inference server gave them (vLLM's ``return_token_ids`` and ``logprobs``)."""
    choice = completion.response["choices"][0]
    return TurnTokens(
        prompt_token_ids=_ids(completion.response.get("prompt_token_ids")),
        completion_token_ids=_ids(choice.get("token_ids")),
        logprobs=choice.get("logprobs") if isinstance(choice.get("logprobs"), dict | list) else None,
        finish_reason=completion.finish_reason,
    )


def _ids(value: object) -> list[int] | None:
    return value if isinstance(value, list) and all(isinstance(one, int) for one in value) else None


def tool_and_outcome(step: RolloutStep) -> tuple[str, str]:
    """What a step was, for counting: ``("none", "refused")`` if no tool ran."""
    tool = step.tool_calls[0].tool_name if step.tool_calls else "none"
    return tool, str(getattr(step.info, "outcome", None) or "refused")


@dataclass(frozen=True)
class StepFacts:
    """What is counted of a step."""

    tool: str
    outcome: str
    verdict: tuple[str, str] | None
    """Result and reason, where the step gave a verdict."""
    inference_s: float | None
    """Of the model call before it, retries included; None in a scripted episode."""
    retries: tuple[str, ...]
    """Why attempts of that call failed."""


def step_facts(step: RolloutStep) -> StepFacts:
    """What is counted of a step."""
    extra = step.info.model_extra or {}
    found, asked = extra.get("facts") or {}, extra.get("inference_ms")
    verdict = (str(found["verdict"]), str(found.get("reason"))) if "verdict" in found else None
    retries = tuple(str(one.get("reason")) for one in extra.get("retries") or ())
    return StepFacts(*tool_and_outcome(step), verdict, None if asked is None else float(asked) / 1000, retries)


def executed_step(before: Observation, result: StepResult, turn: Turn, complaint: str = "") -> RolloutStep:
    """A step in which a tool ran or was held back."""
    error = complaint or (result.message if result.outcome == "refused" else None)
    info: dict[str, Any] = {
        "outcome": result.outcome,
        "tool_result": result.message,
        "notes": list(result.notes),
        "facts": dict(result.facts),
        **turn.facts,
    }
    call = result.call
    return _step(before, [call], result.reward, result.reward_components, turn, error, info, done=result.done)


def idle_step(before: Observation, components: Mapping[str, float], turn: Turn, complaint: str) -> RolloutStep:
    """A step in which no tool ran, because the answer held no usable call."""
    return _step(before, [], sum(components.values()), components, turn, complaint, dict(turn.facts), done=False)


def _step(
    before: Observation,
    calls: list[ToolCall],
    reward: float,
    components: Mapping[str, float],
    turn: Turn,
    error: str | None,
    info: Mapping[str, Any],
    *,
    done: bool,
) -> RolloutStep:
    return RolloutStep(
        obs=before.to_wire(),
        tool_calls=[RolloutToolCall(tool_name=call.tool, arguments=dict(call.arguments)) for call in calls],
        reward=reward,
        done=done,
        truncated=False,
        info=StepInfo.model_validate(
            {
                "assistant_message": turn.assistant_message,
                "model_response": turn.response,
                "llm_request": turn.request,
                "tokens": turn.tokens,
                "reward_components": dict(components),
                "error": error,
                **info,
            }
        ),
    )
