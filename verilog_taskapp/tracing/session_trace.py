"""A rollout as a session trace: the shape that trainers of this family read."""

from collections.abc import Mapping, Sequence
from typing import Any


def session_trace(
    trace_id: str,
    created_at: str,
    metadata: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    messages: Sequence[Mapping[str, Any]],
    *,
    full: bool,
) -> dict[str, Any]:
    """Build the trace.

    `steps` are rollout steps as JSON objects, `messages` the whole conversation. `full` keeps observations, requests
    and raw responses; without it only the actions, rewards and texts are kept.
    """
    time_steps = []
    events: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        info = step["info"]
        time_steps.append({"step_id": f"{trace_id}-{number}", "step_index": number, "turn_number": number + 1})
        if info.get("assistant_message") is not None:
            events.append(_model_event(number, info, full=full))
        events.append(_environment_event(number, step, full=full))
    return {
        "session_trace": {
            "session_id": trace_id,
            "created_at": created_at,
            "metadata": dict(metadata),
            "session_time_steps": time_steps,
            "event_history": events,
            "markov_blanket_message_history": [
                {"message_type": message["role"], "content": message.get("content"), "message": dict(message)}
                for message in messages
            ],
        }
    }


def _model_event(number: int, info: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    response = info.get("model_response") or {}
    event = {
        "event_type": "cais",
        "step_index": number,
        "model_name": response.get("model"),
        "usage": response.get("usage"),
        "inference_ms": info.get("inference_ms"),
        "retries": info.get("retries", []),
        "tokens": info.get("tokens"),
        "text": info["assistant_message"],
        "reasoning": info.get("reasoning", ""),
    }
    if full:
        event |= {"request": info.get("llm_request"), "response": response}
    return event


def _environment_event(number: int, step: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    info = step["info"]
    event = {
        "event_type": "environment",
        "step_index": number,
        "tool_calls": step["tool_calls"],
        "outcome": info.get("outcome"),
        "tool_result": info.get("tool_result"),
        "facts": info.get("facts", {}),
        "reward": step["reward"],
        "reward_components": info["reward_components"],
        "terminated": step["done"],
        "auto_override": info.get("auto_override"),
        "compile_blocked": info.get("compile_blocked"),
        "error": info.get("error"),
    }
    if full:
        event["observation"] = step["obs"]
    return event
