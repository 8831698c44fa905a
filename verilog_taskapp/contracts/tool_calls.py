"""Tool calls as clients send them and as trajectories report them."""

from typing import Any

from pydantic import Field, JsonValue, model_validator

from verilog_taskapp.contracts._fields import Answer, Request


def _first_given(call: dict[str, Any], *keys: str) -> Any:
    return next((call[key] for key in keys if call.get(key) is not None), None)


class ToolCallRequest(Request):
    """One call as the policy made it, in any of three styles.

    ``{"tool", "args"}``, ``{"tool_name" or "name", "arguments"}`` and OpenAI's ``{"function": {"name", "arguments"}}``.
    What a policy gets wrong is for the environment to tell it, so an empty name or arguments of a wrong type are kept;
    only something that is not a JSON object is an invalid request.
    """

    tool: str = ""
    """The tool's name as sent; empty when the call names none."""
    args: JsonValue = Field(default_factory=dict)
    """An object, or as OpenAI clients send it a string that should hold one; not checked here."""
    id: str | None = None
    """OpenAI's ``tool_call_id``, where there is one."""

    @model_validator(mode="before")
    @classmethod
    def _from_any_style(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        function = data.get("function")
        call = function if isinstance(function, dict) else data
        name = _first_given(call, "tool", "tool_name", "name")
        args = _first_given(call, "args", "arguments")
        call_id = data.get("id")
        return {
            "tool": "" if name is None else str(name),
            "args": {} if args is None else args,
            "id": call_id if isinstance(call_id, str) else None,
        }


class RolloutToolCall(Answer):
    """The call that a step executed, after any override."""

    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
