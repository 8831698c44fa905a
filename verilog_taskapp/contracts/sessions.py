"""``/env/verilog/*``: the environment step by step, for trainers that sample themselves."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from verilog_taskapp.contracts._fields import Answer, OpenAnswer, Request, Seed
from verilog_taskapp.contracts.config import EnvConfig
from verilog_taskapp.contracts.tool_calls import ToolCallRequest


def _no_calls(value: Any) -> Any:
    return [] if value is None else value


class InitializeRequest(Request):
    """Open a session: a fresh workspace for one problem."""

    seed: Seed | None = None
    """Chooses the problem; None: 0."""
    config: EnvConfig = Field(default_factory=EnvConfig)
    session_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")] | None = None
    """A name chosen by the client: repeating the request with the same one opens nothing new. Letters, digits and
    ``._:-``, at most 128 characters."""


class InitializeResponse(Answer):
    """An open session and what a policy needs for its first action."""

    env_id: str
    """Names the session in later requests."""
    observation: dict[str, Any]
    """The first observation; its keys are the environment's."""
    prompt: list[dict[str, Any]]
    """Chat messages: the system message and the first user message."""
    tools: list[dict[str, Any]]
    """The tools as OpenAI JSON schemas."""
    done: bool = False
    info: dict[str, Any] = Field(default_factory=dict)


class StepRequest(Request):
    """Tool calls to execute, in order."""

    env_id: str
    tool_calls: Annotated[list[ToolCallRequest], BeforeValidator(_no_calls)]
    """Empty or null: the policy made no call."""
    step_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Repeating a request with the same one returns the first answer and does nothing."""


class StepResponse(Answer):
    """What the calls did."""

    env_id: str
    observation: dict[str, Any]
    reward: float
    """Reward of this step, not of the episode."""
    done: bool
    truncated: bool
    info: dict[str, Any] = Field(default_factory=dict)


class TerminateRequest(Request):
    """Close a session; closing it again is no error."""

    env_id: str


class TerminateResponse(OpenAnswer):
    """The session is closed; final facts follow as further keys."""

    ok: bool = True
