"""Which model acts in a rollout and what it is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from verilog_taskapp.contracts import PolicyConfig, RolloutRequest
from verilog_taskapp.environment.actions import TOOLS
from verilog_taskapp.errors import InvalidRequest
from verilog_taskapp.inference.endpoint import Endpoint, endpoint_for
from verilog_taskapp.inference.proxy import adapt_request
from verilog_taskapp.rollout.guidance import Heuristics
from verilog_taskapp.settings import Settings

OPENAI_HOST = "api.openai.com"
GROQ_HOST = "api.groq.com"
_RESERVED = frozenset({"messages", "stream", "stream_options", "n"})
"""Keys of ``extra_body`` that the loop needs for itself."""


@dataclass(frozen=True)
class Policy:
    """A model at an endpoint, with its sampling parameters."""

    endpoint: Endpoint
    model: str
    parameters: Mapping[str, Any]
    """Everything of the chat-completions request but the messages."""
    max_steps: int
    heuristics: Heuristics
    tool_mode: Literal["json", "native", "auto"]

    def body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The chat-completions request for a conversation."""
        body = {"model": self.model, "messages": list(messages), **self.parameters}
        host = urlsplit(self.endpoint.url).hostname
        if host in (OPENAI_HOST, GROQ_HOST):
            return adapt_request(body, "groq" if host == GROQ_HOST else "openai")
        return body


def resolve_policy(request: RolloutRequest, settings: Settings) -> Policy:
    """The policy that a request asks for, with the server's defaults.

    Raises `InvalidRequest`, `InferenceHostRefused` and `InferenceKeyMissing`.
    """
    config = request.policy.config
    return Policy(
        endpoint=_endpoint(config, settings),
        model=config.model or request.policy.policy_name or settings.default_model,
        parameters=_parameters(config, settings, logprobs=request.record.logprobs),
        max_steps=config.max_steps or settings.max_steps,
        heuristics=config.heuristics,
        tool_mode=config.tool_mode,
    )


def _endpoint(config: PolicyConfig, settings: Settings) -> Endpoint:
    try:
        return endpoint_for(config.inference_url, settings, config.api_key_env)
    except InvalidRequest as error:
        for one in error.extras.get("errors", ()):
            one["field"] = f"policy.config.{one['field']}"
        raise


def _parameters(config: PolicyConfig, settings: Settings, *, logprobs: bool) -> dict[str, Any]:
    max_tokens = settings.max_tokens if config.max_tokens is None else config.max_tokens
    parameters: dict[str, Any] = {
        "temperature": settings.temperature if config.temperature is None else config.temperature
    }
    optional = {"top_p": config.top_p, "max_tokens": max_tokens or None, "seed": config.seed, "stop": config.stop}
    parameters |= {name: value for name, value in optional.items() if value is not None}
    if config.tool_mode != "json":
        parameters["tools"] = [tool.to_openai() for tool in TOOLS]
        parameters["parallel_tool_calls"] = False
    if logprobs:
        parameters["logprobs"] = True
    if config.return_token_ids:
        parameters["return_token_ids"] = True
    return parameters | {name: value for name, value in (config.extra_body or {}).items() if name not in _RESERVED}
