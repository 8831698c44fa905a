"""``POST /rollout``: one episode, run from the first prompt to its end."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from verilog_taskapp.contracts._fields import (
    Answer,
    Integer,
    NullsAreDefaults,
    Number,
    OpenAnswer,
    Request,
    Seed,
)
from verilog_taskapp.contracts.config import EnvConfig, PolicyConfig
from verilog_taskapp.contracts.tool_calls import RolloutToolCall, ToolCallRequest

TraceFormat = Literal["compact", "full"]
EpisodeStatus = Literal["completed", "truncated"]
MemberStatus = Literal["completed", "truncated", "failed"]
StopReason = Literal["max_steps", "max_ops", "max_time_s", "max_tokens", "context_length", "ops_exhausted"]
"""Why an episode was truncated; ``ops_exhausted``: a script ended without a submit."""


def is_absent(value: object) -> bool:
    return value is None


class RolloutEnvSpec(Request):
    """The environment of the episode."""

    env_id: str | None = None
    """The caller's name of the environment; returned in the trajectory."""
    env_name: str | None = None
    config: EnvConfig = Field(default_factory=EnvConfig)
    seed: Seed | None = None
    """Chooses the problem; None: 0."""


class RolloutPolicySpec(Request):
    """The policy that acts in the episode."""

    policy_id: str | None = None
    """The caller's name of the policy; returned in the trajectory."""
    policy_name: str | None = None
    """Model name when ``config.model`` gives none."""
    config: PolicyConfig = Field(default_factory=PolicyConfig)


class RolloutRecordConfig(Request):
    """What the answer carries besides the metrics."""

    trajectories: bool = True
    """False leaves the steps out."""
    logprobs: bool = False
    """Ask the inference server for log-probabilities and return them per turn."""
    value: bool = False
    """Accepted for compatibility; there is no value head here."""
    return_trace: bool = False
    """Put the session trace into ``trace``."""
    trace_format: TraceFormat = "compact"


class RolloutSafetyConfig(Request):
    """Limits that end an episode as truncated."""

    max_ops: Annotated[Integer, Field(ge=0)] = 100_000
    """Tool calls executed."""
    max_time_s: Annotated[Number, Field(ge=0)] = 3600.0
    """Wall-clock seconds from the start of the episode."""


class RolloutRequest(Request):
    """One episode to run. ``ops`` of strings let the policy act; ``ops`` of tool calls are a script."""

    run_id: str
    """The caller's name of the rollout; returned as it is."""
    env: RolloutEnvSpec
    policy: RolloutPolicySpec
    ops: list[str] | list[ToolCallRequest]
    """Empty or strings such as ``"agent"``: the policy acts at every step. Tool calls: they are executed in order and
    no model is asked."""
    record: RolloutRecordConfig = Field(default_factory=RolloutRecordConfig)
    on_done: str = "reset"
    """Accepted for compatibility; an episode is always one problem."""
    safety: RolloutSafetyConfig = Field(default_factory=RolloutSafetyConfig)
    training_session_id: str | None = None
    synth_base_url: str | None = None

    @field_validator("ops", mode="before")
    @classmethod
    def _one_kind_of_op(cls, ops: Any) -> Any:
        if not isinstance(ops, list):
            raise ValueError("must be a list")
        if all(isinstance(op, str) for op in ops):
            return ops
        calls = []
        for index, op in enumerate(ops):
            if not isinstance(op, dict | ToolCallRequest):
                raise ValueError(f"item {index}: either all items are strings or all are tool calls")
            call = ToolCallRequest.model_validate(op)
            if not call.tool.strip():
                raise ValueError(f'item {index} names no tool; expected {{"tool": ..., "args": {{...}}}}')
            calls.append(call)
        return calls

    @property
    def script(self) -> list[ToolCallRequest]:
        """The scripted tool calls; empty when the policy acts."""
        return [op for op in self.ops if isinstance(op, ToolCallRequest)]


class AutoOverride(OpenAnswer):
    """An action that was replaced before it ran."""

    from_: str | None = Field(None, alias="from")
    """The tool that the model asked for; None when it asked for none."""
    reason: str
    """``no_tool_call`` or ``compile_after_success_without_changes``."""
    to: str
    """The tool that ran."""


class CompileBlocked(OpenAnswer):
    """A compile that did not run because nothing had changed since the last one failed."""

    reason: str
    """``design_requires_update_before_compile``."""
    hint: str


class TurnTokens(OpenAnswer):
    """Tokens of one model turn exactly as the inference server gave them; None where it gave none."""

    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: dict[str, Any] | list[Any] | None = None
    """The ``logprobs`` object of the chat completion."""
    finish_reason: str | None = None


class StepInfo(OpenAnswer):
    """What happened in a step besides its effect. The keys of things that did not happen are absent."""

    assistant_message: str | None = None
    """The model's text."""
    model_response: dict[str, Any] | None = None
    """The chat completion as received."""
    llm_request: dict[str, Any] | None = None
    """The chat-completions request as sent, without credentials."""
    tokens: TurnTokens | None = None
    """None when no model was asked."""
    reward_components: dict[str, float] = Field(default_factory=dict)
    """Parts of the step's reward by name; they sum to it."""
    auto_override: AutoOverride | None = Field(None, exclude_if=is_absent)
    compile_blocked: CompileBlocked | None = Field(None, exclude_if=is_absent)
    error: str | None = Field(None, exclude_if=is_absent)
    """What was wrong with the model's answer or call, as the model was told."""


class RolloutStep(NullsAreDefaults, Answer):
    """One step: the observation acted on, the call, and what it earned."""

    obs: dict[str, Any]
    """The observation; its keys are the environment's (``files``, ``compile_status``, ...)."""
    tool_calls: list[RolloutToolCall]
    reward: float = 0.0
    done: bool = False
    truncated: bool = False
    info: StepInfo = Field(default_factory=StepInfo)


class FinalInfo(OpenAnswer):
    """Facts about the whole episode."""

    total_reward: float = 0.0
    task_completed: bool = False
    """True exactly when a submission passed."""
    policy_model: str | None = None
    inference_url: str | None = None


class RolloutFinal(NullsAreDefaults, Answer):
    """The state in which the episode ended."""

    observation: dict[str, Any] = Field(default_factory=dict)
    reward: float = 0.0
    """The episode's return: the sum of the step rewards."""
    done: bool = False
    truncated: bool = False
    info: FinalInfo = Field(default_factory=FinalInfo)


class RolloutTrajectory(Answer):
    """One episode's steps."""

    env_id: str
    policy_id: str
    steps: list[RolloutStep]
    """Empty when the request's ``record.trajectories`` is false."""
    final: RolloutFinal | None = None
    length: int
    """Steps taken, whether or not they are listed."""
    inference_url: str | None = None
    decision_samples: list[dict[str, Any]] | None = None
    status: MemberStatus | None = Field(None, exclude_if=is_absent)
    """Of a member of a group, how it ended; a failed one has no return and no ``final``."""
    error: dict[str, Any] | None = Field(None, exclude_if=is_absent)
    """Why a member of a group failed: the error object that a rollout of its own would have been answered with."""
    trace_id: str | None = Field(None, exclude_if=is_absent)
    """Of a member of a group; that of a single rollout is in the metrics' details."""


class RolloutDetails(OpenAnswer):
    """How the episode ended."""

    task_completed: bool = False
    """True exactly when a submission passed."""
    total_reward: float = 0.0
    steps: int = 0
    truncated: bool = False
    status: EpisodeStatus | None = None
    stop_reason: StopReason | None = None
    """Why a truncated episode was cut; None for a completed one."""
    outcome_rubric: float | None = None
    """The outcome rubric's score in [0, 1]; in a group the mean of it."""
    passed: int | None = Field(None, exclude_if=is_absent)
    """In a group: how many members passed."""
    failed: int | None = Field(None, exclude_if=is_absent)
    """In a group: how many members failed through no fault of the policy."""


class RolloutMetrics(Answer):
    """Numbers of the episode. ``mean_return``, ``episode_returns[0]`` and ``outcome_score`` are the same return.

    In a group there is a return for each member, null for one that failed, and the other numbers are means over those
    that did not; ``num_steps`` counts the steps of all.
    """

    episode_returns: list[float | None]
    mean_return: float
    num_steps: int
    num_episodes: int = 1
    outcome_score: float | None = None
    events_score: float | None = None
    """The events rubric's score in [0, 1]."""
    details: RolloutDetails = Field(default_factory=RolloutDetails)


class RolloutResponse(Answer):
    """The answer to a rollout that ran to its end, completed or truncated."""

    run_id: str
    trajectories: list[RolloutTrajectory]
    branches: dict[str, list[str]] = Field(default_factory=dict)
    """Always empty: episodes do not branch."""
    metrics: RolloutMetrics
    aborted: bool = False
    ops_executed: int = 0
    """Tool calls executed."""
    trace: dict[str, Any] | None = None
    """The session trace, when the request's ``record.return_trace`` asked for it."""
