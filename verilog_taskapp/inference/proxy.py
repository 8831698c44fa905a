"""The chat-completions proxy as pure functions: what is changed in a request, in an answer and in a refusal.

Everything not named here passes through unchanged, and no argument is ever modified. Streamed answers are passed on as
they are.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import SecretStr

from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.inference.answers import encode_json, parse_json
from verilog_taskapp.inference.endpoint import Vendor
from verilog_taskapp.inference.redaction import excerpt, redact_json
from verilog_taskapp.inference.retry import is_retryable, retry_after_s

DROPPED_FIELDS = ("stop_after_tool_calls", "thinking_mode", "thinking_budget", "reasoning")
"""Fields that trainers of this family send and that chat-completions servers refuse."""
GPT5_MIN_COMPLETION_TOKENS = 16_000
"""GPT-5 counts its hidden reasoning as completion tokens: with less, the answer is often empty."""
UPSTREAM_BODY_BYTES = 16 * 1024
"""A refusal's JSON is passed on up to this size; anything else is cut to `UPSTREAM_TEXT_CHARS`."""
UPSTREAM_TEXT_CHARS = 500

ParseToolCall = Callable[[str], tuple[str, dict[str, Any]] | None]
"""From an answer's text to the tool's name and arguments, or None if it holds no tool call of ours."""


class UpstreamRefused(TaskAppError):
    """A proxied request was refused by the upstream: its status, and its body in `extras["upstream_body"]`."""

    code = "upstream_refused"
    default_stage = "inference"

    def __init__(
        self, status: int, body: object, *, content_type: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(
            f"the upstream answered {status}",
            retryable=is_retryable(status),
            retry_after_s=retry_after_s,
            extras={"upstream_status": status, "upstream_body": body, "upstream_content_type": content_type},
        )
        # A redirect or an odd success is no error status: it becomes a bad gateway here.
        self.status = status if 400 <= status <= 599 else 502


def adapt_request(body: Mapping[str, Any], vendor: Vendor, hint: str | None = None) -> dict[str, Any]:
    """The request to send upstream for a client's `body`; `hint`, if any, is put into the system message once."""
    adapted = {name: value for name, value in body.items() if name not in DROPPED_FIELDS}
    if hint and isinstance(adapted.get("messages"), list):
        adapted["messages"] = with_hint(adapted["messages"], hint)
    if vendor == "groq":
        _rename(adapted, "max_completion_tokens", "max_tokens")
    elif _is_gpt5(adapted.get("model")):
        _adapt_gpt5(adapted)
    return adapted


def with_hint(messages: list[Any], hint: str) -> list[Any]:
    """`messages` with `hint` at the end of the first system (or developer) message, which is made if there is none.

    If any of those holds the hint already, nothing changes.
    """
    system = [index for index, message in enumerate(messages) if _is_system(message)]
    if any(hint in text_of(messages[index].get("content")) for index in system):
        return messages
    if not system:
        return [{"role": "system", "content": hint}, *messages]
    first = messages[system[0]]
    content = first.get("content")
    if isinstance(content, list):
        extended: Any = [*content, {"type": "text", "text": hint}]
    else:
        extended = f"{content}\n\n{hint}" if content else hint
    changed = list(messages)
    changed[system[0]] = {**first, "content": extended}
    return changed


def synthesize_tool_calls(response: Mapping[str, Any], parse: ParseToolCall) -> dict[str, Any]:
    """`response` where each choice without a tool call, but with one of ours in its text, has it in `tool_calls`.

    Such a choice's `finish_reason` becomes ``tool_calls`` and its text stays; the call's id starts with
    ``call_parsed_``, so that a trainer can tell it from the model server's own. For whole answers, not for streams.
    """
    choices = response.get("choices")
    if not isinstance(choices, list):
        return dict(response)
    return {**response, "choices": [_with_tool_call(choice, parse) for choice in choices]}


def refusal(
    status: int, body: bytes, headers: Mapping[str, str], key: SecretStr | None, *, now: float = 0.0
) -> UpstreamRefused:
    """The fault that passes an upstream's error answer on, with its key taken out.

    `headers` are looked up in lower case; `now`, seconds since the epoch, is what a dated Retry-After is counted from.
    """
    shown: object
    try:
        if len(body) > UPSTREAM_BODY_BYTES:
            raise ValueError("too long to be passed on whole")
        shown = redact_json(parse_json(body), key)
    except ValueError:
        shown = excerpt(body.decode(errors="replace"), key, UPSTREAM_TEXT_CHARS)
    return UpstreamRefused(
        status,
        shown,
        content_type=headers.get("content-type", ""),
        retry_after_s=retry_after_s(headers.get("retry-after"), now),
    )


def text_of(content: object) -> str:
    """The text of a message's `content`: a string, or the text parts of a list joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _is_system(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _is_gpt5(model: object) -> bool:
    return isinstance(model, str) and model.rpartition("/")[2].lower().startswith("gpt-5")


def _adapt_gpt5(adapted: dict[str, Any]) -> None:
    """What GPT-5 refuses (sampling parameters, `max_tokens`), and one tool call per turn if there are tools."""
    _rename(adapted, "max_tokens", "max_completion_tokens")
    limit = adapted.get("max_completion_tokens")
    if isinstance(limit, int) and not isinstance(limit, bool):
        adapted["max_completion_tokens"] = max(limit, GPT5_MIN_COMPLETION_TOKENS)
    adapted.pop("temperature", None)
    adapted.pop("top_p", None)
    tools = adapted.get("tools")
    if not isinstance(tools, list) or not tools:
        return
    adapted["parallel_tool_calls"] = False
    function = tools[0].get("function") if isinstance(tools[0], dict) else None
    if adapted.get("tool_choice") is None and isinstance(function, dict) and isinstance(function.get("name"), str):
        adapted["tool_choice"] = {"type": "function", "function": {"name": function["name"]}}


def _rename(adapted: dict[str, Any], old: str, new: str) -> None:
    """Move `old` to `new`; a `new` that is there already wins."""
    value = adapted.pop(old, None)
    if value is not None and adapted.get(new) is None:
        adapted[new] = value


def _with_tool_call(choice: Any, parse: ParseToolCall) -> Any:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or message.get("tool_calls") or message.get("function_call"):
        return choice
    text = text_of(message.get("content"))
    found = parse(text) if text.strip() else None
    if found is None:
        return choice
    name, arguments = found
    call = {
        "id": f"call_parsed_{uuid.uuid4().hex[:24]}",
        "type": "function",
        "function": {"name": name, "arguments": encode_json(arguments).decode()},
    }
    return {**choice, "message": {**message, "tool_calls": [call]}, "finish_reason": "tool_calls"}
