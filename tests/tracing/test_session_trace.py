"""The session trace: one model event and one environment event a step, and the conversation beside them."""

from typing import Any

import pytest

from verilog_taskapp.tracing.session_trace import session_trace

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
    {"role": "tool", "tool_call_id": "c", "content": "done"},
]


def step(**info: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "reward_components": {"step_penalty": -0.01},
        "outcome": "ok",
        "tool_result": "compiled",
        "facts": {"ms": 1},
    }
    return {
        "obs": {"files": {}},
        "tool_calls": [{"tool_name": "compile", "arguments": {}}],
        "reward": -0.01,
        "done": False,
        "truncated": False,
        "info": base | info,
    }


def played() -> dict[str, Any]:
    return step(
        assistant_message="hello",
        model_response={"model": "m", "usage": {"total_tokens": 3}},
        llm_request={"messages": []},
        tokens={"finish_reason": "stop"},
        reasoning="hm",
        retries=[{"status": 500}],
        inference_ms=2.5,
    )


def trace_of(*steps: dict[str, Any], full: bool = False) -> dict[str, Any]:
    made = session_trace("t", "2026-01-01T00:00:00+00:00", {"run_id": "r"}, steps, MESSAGES, full=full)
    assert list(made) == ["session_trace"]
    inner: dict[str, Any] = made["session_trace"]
    return inner


def test_its_parts_have_the_names_that_trainers_read() -> None:
    trace = trace_of(played(), step())
    assert set(trace) == {
        "session_id",
        "created_at",
        "metadata",
        "session_time_steps",
        "event_history",
        "markov_blanket_message_history",
    }
    assert (trace["session_id"], trace["metadata"]) == ("t", {"run_id": "r"})
    assert trace["session_time_steps"] == [
        {"step_id": "t-0", "step_index": 0, "turn_number": 1},
        {"step_id": "t-1", "step_index": 1, "turn_number": 2},
    ]


def test_a_step_without_a_model_has_no_model_event() -> None:
    events = trace_of(played(), step())["event_history"]
    assert [(event["event_type"], event["step_index"]) for event in events] == [
        ("cais", 0),
        ("environment", 0),
        ("environment", 1),
    ]


def test_the_model_event_says_what_the_model_said_and_cost() -> None:
    event = trace_of(played())["event_history"][0]
    assert event == {
        "event_type": "cais",
        "step_index": 0,
        "model_name": "m",
        "usage": {"total_tokens": 3},
        "inference_ms": 2.5,
        "retries": [{"status": 500}],
        "tokens": {"finish_reason": "stop"},
        "text": "hello",
        "reasoning": "hm",
    }


def test_the_environment_event_says_what_was_done_and_earned() -> None:
    override = {"from": None, "reason": "no_tool_call", "to": "compile"}
    event = trace_of(step(auto_override=override, error="no call"))["event_history"][0]
    assert event == {
        "event_type": "environment",
        "step_index": 0,
        "tool_calls": [{"tool_name": "compile", "arguments": {}}],
        "outcome": "ok",
        "tool_result": "compiled",
        "facts": {"ms": 1},
        "reward": -0.01,
        "reward_components": {"step_penalty": -0.01},
        "terminated": False,
        "auto_override": override,
        "compile_blocked": None,
        "error": "no call",
    }


@pytest.mark.parametrize("full", [True, False])
def test_requests_responses_and_observations_are_for_the_full_trace(full: bool) -> None:
    model, environment = trace_of(played(), full=full)["event_history"]
    assert {"request", "response"} <= set(model) if full else not {"request", "response"} & set(model)
    assert ("observation" in environment) is full


def test_every_message_is_kept_whole() -> None:
    told = trace_of()["markov_blanket_message_history"]
    assert [one["message"] for one in told] == MESSAGES
    assert [one["message_type"] for one in told] == ["system", "user", "assistant", "tool"]
    assert told[2]["content"] is None


def test_an_answer_that_the_server_could_not_read_has_no_response() -> None:
    event = trace_of(step(assistant_message="<function", model_response=None))["event_history"][0]
    assert (event["text"], event["model_name"], event["usage"]) == ("<function", None, None)
