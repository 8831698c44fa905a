"""``env.config`` and ``policy.config``: JSON objects on the wire, typed here.

Every field is optional, null means the default, unknown keys are ignored, and a wrong type is an error that names the
field (``policy.config.temperature``). A default of None stands for the server's setting.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from verilog_taskapp.contracts._fields import Flag, Integer, NullsAreDefaults, Number, Request

SplitName = Literal["train", "val", "test", "all"]
Feedback = Literal["verdict", "hints", "waveform"]
ToolMode = Literal["json", "native", "auto"]
Heuristics = Literal["full", "guidance", "off"]

MIN_STEPS = 1
MAX_STEPS = 25
MAX_GROUP = 64
"""Samples of one problem that a request may ask for."""


def _clamp_steps(value: int) -> int:
    return min(max(value, MIN_STEPS), MAX_STEPS)


def _one_as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class RewardConfig(NullsAreDefaults, Request):
    """Overrides of the server's rewards for one episode, in reward units; None keeps the server's."""

    compile_success: Number | None = None
    """Paid once, for the first successful compile (0.1 unless the server is set otherwise)."""
    simulate_pass: Number | None = None
    """Paid once, for the first passing simulation (1.0)."""
    submit_pass: Number | None = None
    """Paid for a passing submission (10.0)."""
    step_penalty: Number | None = None
    """Added at every step (-0.01)."""
    partial: Number | None = None
    """Times the share of outputs that never mismatch, on submit (0.0)."""


class EnvConfig(NullsAreDefaults, Request):
    """Which problem an episode is about, what it pays and how much a simulation tells."""

    split: SplitName | None = None
    """Part of the problem set that the seed chooses from; None: the set's default split."""
    problem: str | None = None
    """A problem's id; wins over the seed."""
    rewards: RewardConfig = Field(default_factory=RewardConfig)
    """Overrides of the server's rewards."""
    max_steps: Annotated[Integer, AfterValidator(_clamp_steps)] | None = None
    """Sessions only: steps after which the episode is truncated, clamped to 1..25; a rollout has ``policy.config``."""
    feedback: Feedback | None = None
    """What ``simulate`` tells: pass or fail, hints, or a waveform table with the expected values."""


class PolicyConfig(NullsAreDefaults, Request):
    """Which model acts, how it is sampled, and how its answers are read."""

    model: str | None = None
    """Model name for the inference endpoint; None: ``policy_name``, then the server's default."""
    inference_url: str | None = None
    """Chat-completions endpoint or its base URL; None or empty: the server's default."""
    temperature: Annotated[Number, Field(ge=0)] | None = None
    """Sampling temperature."""
    top_p: Annotated[Number, Field(gt=0, le=1)] | None = None
    """Nucleus sampling mass; None: not sent."""
    max_tokens: Annotated[Integer, Field(ge=0)] | None = None
    """Completion tokens per model turn; 0: not sent."""
    max_steps: Annotated[Integer, AfterValidator(_clamp_steps)] | None = Field(
        None, validation_alias=AliasChoices("max_steps", "max_llm_calls")
    )
    """Model turns per episode, clamped to 1..25; ``max_llm_calls`` says the same."""
    seed: Integer | None = None
    """Sampling seed, passed on to the inference endpoint; in a group, sample i is given ``seed + i``."""
    n: Annotated[Integer, Field(ge=1, le=MAX_GROUP)] = 1
    """Samples of the problem, run at the same time: as many trajectories and returns in one answer."""
    stop: Annotated[list[str], BeforeValidator(_one_as_list)] | None = None
    """Stop sequences; a single string counts as a list of one."""
    extra_body: dict[str, Any] | None = None
    """Further keys of the chat-completions request, passed on as they are."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)] | None = None
    """Name of the server's environment variable that holds the endpoint's key; never a key."""
    tool_mode: ToolMode = "json"
    """How the model calls tools: a JSON object in its text, OpenAI ``tools``, or whichever it uses."""
    heuristics: Heuristics = "full"
    """``full``: guidance, blocked compiles and overrides; ``guidance``: no overrides; ``off``: the bare environment."""
    return_token_ids: Flag = False
    """Ask the endpoint for prompt and completion token ids (vLLM)."""
