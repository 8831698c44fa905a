"""The wire's models: defaults, aliases, what is refused and how it is named, and the peer's own JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from pydantic import ValidationError

from verilog_taskapp import contracts
from verilog_taskapp.contracts import (
    AutoOverride,
    EnvConfig,
    ErrorBody,
    ErrorInfo,
    Health,
    InitializeRequest,
    PolicyConfig,
    RewardConfig,
    RolloutDetails,
    RolloutMetrics,
    RolloutRequest,
    RolloutResponse,
    RolloutStep,
    RolloutToolCall,
    StepInfo,
    StepRequest,
    TaskInfo,
    TaskSetInfo,
    TerminateRequest,
    ToolCallRequest,
    field_errors,
)

SAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "peer" / "samples.json").read_text())


def rollout(*, env: dict[str, Any] | None = None, policy: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    """The smallest rollout request, with `env.config` and `policy.config` as given."""
    return {"run_id": "r", "env": {"config": env or {}}, "policy": {"config": policy or {}}, "ops": [], **rest}


def offending_fields(body: Any, model: type[Any] = RolloutRequest) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    return [error.field for error in field_errors(caught.value.errors())]


# --- defaults


def test_the_smallest_rollout_request_has_the_contract_s_defaults() -> None:
    request = RolloutRequest.model_validate({"run_id": "r", "env": {}, "policy": {}, "ops": []})

    assert request.model_dump(exclude={"env", "policy"}) == {
        "run_id": "r",
        "ops": [],
        "record": {
            "trajectories": True,
            "logprobs": False,
            "value": False,
            "return_trace": False,
            "trace_format": "compact",
        },
        "on_done": "reset",
        "safety": {"max_ops": 100_000, "max_time_s": 3600.0},
        "training_session_id": None,
        "synth_base_url": None,
    }
    assert request.env.seed is None
    assert request.env.config == EnvConfig()
    assert request.policy.config == PolicyConfig()
    assert request.script == []


def test_configs_leave_the_server_s_settings_alone_unless_told_otherwise() -> None:
    assert set(EnvConfig().model_dump(exclude={"rewards"}).values()) == {None}
    assert set(RewardConfig().model_dump().values()) == {None}
    assert PolicyConfig().model_dump(exclude_none=True) == {
        "n": 1,
        "tool_mode": "json",
        "heuristics": "full",
        "return_token_ids": False,
    }


def test_null_says_the_same_as_leaving_a_key_out() -> None:
    every_field = dict.fromkeys(PolicyConfig.model_fields)
    assert PolicyConfig.model_validate(every_field) == PolicyConfig()
    assert EnvConfig.model_validate({"split": None, "rewards": None, "feedback": None}) == EnvConfig()


@pytest.mark.parametrize("where", [(), ("env",), ("env", "config"), ("policy", "config"), ("record",), ("safety",)])
def test_unknown_keys_of_a_request_are_ignored(where: tuple[str, ...]) -> None:
    body = rollout(record={}, safety={})
    target = body
    for key in where:
        target = target[key]
    target["surprise"] = {"anything": [1]}

    assert RolloutRequest.model_validate(body) == RolloutRequest.model_validate(rollout(record={}, safety={}))


# --- aliases and other spellings


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_steps": 7}, 7),
        ({"max_llm_calls": 7}, 7),
        ({"max_steps": 3, "max_llm_calls": 7}, 3),
        ({"max_steps": None, "max_llm_calls": 7}, 7),
        ({"max_steps": 0}, 1),
        ({"max_steps": -4}, 1),
        ({"max_steps": 26}, 25),
        ({"max_llm_calls": 10**30}, 25),
        ({}, None),
    ],
)
def test_max_steps_has_an_alias_and_is_clamped(config: dict[str, Any], expected: int | None) -> None:
    assert PolicyConfig.model_validate(config).max_steps == expected


def test_numbers_of_a_javascript_client_are_numbers() -> None:
    config = PolicyConfig.model_validate({"max_tokens": 512.0, "temperature": 1, "stop": "END"})
    assert (config.max_tokens, config.temperature, config.stop) == (512, 1.0, ["END"])
    assert RolloutRequest.model_validate(rollout() | {"env": {"seed": 3.0}}).env.seed == 3


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "compile", "args": {"sources": ["a.v"]}},
        {"tool_name": "compile", "arguments": {"sources": ["a.v"]}},
        {"name": "compile", "arguments": {"sources": ["a.v"]}},
        {"type": "function", "function": {"name": "compile", "arguments": {"sources": ["a.v"]}}},
    ],
)
def test_every_style_of_tool_call_says_the_same(call: dict[str, Any]) -> None:
    assert ToolCallRequest.model_validate(call) == ToolCallRequest(tool="compile", args={"sources": ["a.v"]})


def test_openai_arguments_stay_a_string_and_the_call_keeps_its_id() -> None:
    call = ToolCallRequest.model_validate({"id": "c1", "function": {"name": "write_file", "arguments": "{not json"}})
    assert (call.id, call.tool, call.args) == ("c1", "write_file", "{not json")


@pytest.mark.parametrize(
    ("call", "tool", "args"),
    [
        ({"args": {}}, "", {}),
        ({"tool": "compile", "args": None}, "compile", {}),
        ({"tool": 5, "args": [1]}, "5", [1]),
        ({"function": {}}, "", {}),
    ],
)
def test_what_the_policy_got_wrong_is_left_to_the_environment(call: dict[str, Any], tool: str, args: Any) -> None:
    step = StepRequest.model_validate({"env_id": "e", "tool_calls": [call]})
    assert (step.tool_calls[0].tool, step.tool_calls[0].args) == (tool, args)


def test_a_turn_without_a_call_is_an_empty_list() -> None:
    assert StepRequest.model_validate({"env_id": "e", "tool_calls": None}).tool_calls == []


def test_ops_of_tool_calls_are_a_script_and_ops_of_strings_are_not() -> None:
    scripted = RolloutRequest.model_validate(rollout(ops=[{"tool": "compile", "args": {}}, {"name": "submit"}]))
    assert [call.tool for call in scripted.script] == ["compile", "submit"]

    acted = RolloutRequest.model_validate(rollout(ops=["agent", "env"]))
    assert acted.ops == ["agent", "env"]
    assert acted.script == []


# --- what is refused, and how it is named


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": "0.5"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_steps": "ten"}, "max_steps"),
        ({"max_llm_calls": False}, "max_llm_calls"),
        ({"seed": "1"}, "seed"),
        ({"model": 3}, "model"),
        ({"inference_url": ["http://x"]}, "inference_url"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", 5]}, "stop.1"),
        ({"extra_body": "x"}, "extra_body"),
        ({"api_key_env": "sk-not-a-name"}, "api_key_env"),
        ({"tool_mode": "xml"}, "tool_mode"),
        ({"heuristics": True}, "heuristics"),
        ({"return_token_ids": "yes"}, "return_token_ids"),
        ({"return_token_ids": 1}, "return_token_ids"),
    ],
)
def test_a_wrong_value_in_the_policy_s_config_is_named(config: dict[str, Any], field: str) -> None:
    assert offending_fields(rollout(policy=config)) == [f"policy.config.{field}"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"split": "training"}, "split"),
        ({"problem": 12}, "problem"),
        ({"feedback": "all"}, "feedback"),
        ({"rewards": []}, "rewards"),
        ({"rewards": {"submit_pass": "10"}}, "rewards.submit_pass"),
        ({"rewards": {"partial": float("-inf")}}, "rewards.partial"),
        ({"rewards": {"step_penalty": False}}, "rewards.step_penalty"),
    ],
)
def test_a_wrong_value_in_the_environment_s_config_is_named(config: dict[str, Any], field: str) -> None:
    assert offending_fields(rollout(env=config)) == [f"env.config.{field}"]


@pytest.mark.parametrize("seed", [-1, True, 1.5, "3", [0], float("nan")])
def test_a_seed_is_a_whole_number_from_0(seed: Any) -> None:
    assert offending_fields(rollout() | {"env": {"seed": seed}}) == ["env.seed"]
    assert offending_fields({"seed": seed}, InitializeRequest) == ["seed"]


@pytest.mark.parametrize(
    "ops", ["agent", None, ["agent", {"tool": "compile"}], [{"tool": "compile"}, 3], [{"args": {}}], [{"tool": " "}]]
)
def test_ops_are_all_strings_or_all_tool_calls(ops: Any) -> None:
    assert offending_fields(rollout(ops=ops)) == ["ops"]


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"safety": {"max_ops": -1}}, "safety.max_ops"),
        ({"safety": {"max_time_s": "1h"}}, "safety.max_time_s"),
        ({"record": {"trace_format": "huge"}}, "record.trace_format"),
        ({"policy": {"config": [1]}}, "policy.config"),
        ({"run_id": 5}, "run_id"),
    ],
)
def test_other_wrong_parts_of_a_rollout_are_named(part: dict[str, Any], field: str) -> None:
    assert offending_fields(rollout() | part) == [field]


def test_every_offending_field_is_named_at_once() -> None:
    body = rollout(policy={"temperature": "hot", "max_tokens": "many"}, env={"split": 1})
    assert offending_fields(body) == ["env.config.split", "policy.config.temperature", "policy.config.max_tokens"]


@pytest.mark.parametrize("session_id", ["", "../../etc", "a/b", "-x", "a" * 129, 7])
def test_a_session_id_is_a_plain_name(session_id: Any) -> None:
    assert offending_fields({"session_id": session_id}, InitializeRequest) == ["session_id"]


def test_session_requests_name_what_is_missing() -> None:
    assert offending_fields({}, StepRequest) == ["env_id", "tool_calls"]
    assert offending_fields({"env_id": "e", "tool_calls": ["compile"]}, StepRequest) == ["tool_calls.0"]
    assert offending_fields({}, TerminateRequest) == ["env_id"]


def test_fastapi_answers_422_naming_the_field_and_never_the_rejected_value() -> None:
    app = FastAPI()

    @app.post("/rollout")
    async def echo(body: RolloutRequest) -> dict[str, Any]:
        return body.model_dump()

    @app.exception_handler(RequestValidationError)
    async def refuse(_: Request, fault: RequestValidationError) -> JSONResponse:
        info = ErrorInfo.model_validate(
            {"code": "invalid_request", "message": "bad", "errors": field_errors(fault.errors())}
        )
        return JSONResponse(ErrorBody(error=info).model_dump(), status_code=422)

    client = TestClient(app)
    assert client.post("/rollout", json=SAMPLES["rollout_requests"][1]).status_code == 200

    answer = client.post("/rollout", json=rollout(policy={"api_key_env": "sk-secret"}))
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["error"]["errors"]] == ["policy.config.api_key_env"]
    assert "sk-secret" not in answer.text

    broken = client.post("/rollout", content=b'{"run_id": ', headers={"content-type": "application/json"})
    assert [error["field"] for error in broken.json()["error"]["errors"]] == ["body"]


# --- answers


def test_an_error_body_says_everything_twice() -> None:
    info = ErrorInfo.model_validate({"code": "overloaded", "message": "try later", "retryable": True})
    said = {"code": "overloaded", "message": "try later", "retryable": True}
    assert ErrorBody(error=info).model_dump() == {"error": said, "detail": said}


def test_step_info_has_keys_only_for_what_happened() -> None:
    assert set(StepInfo().model_dump()) == {
        "assistant_message",
        "model_response",
        "llm_request",
        "tokens",
        "reward_components",
    }

    override = AutoOverride(from_="compile", reason="compile_after_success_without_changes", to="simulate")
    dumped = StepInfo(auto_override=override, error="unknown tool").model_dump(mode="json")
    assert dumped["auto_override"] == {
        "from": "compile",
        "reason": "compile_after_success_without_changes",
        "to": "simulate",
    }
    assert dumped["error"] == "unknown tool"
    assert "compile_blocked" not in dumped
    assert StepInfo.model_validate(dumped).auto_override == override


def test_answers_keep_further_keys_where_the_contract_is_open() -> None:
    assert Health.model_validate({"capacity": {"free": 3}}).model_dump()["capacity"] == {"free": 3}
    assert StepInfo.model_validate({"milliseconds": 12}).model_dump()["milliseconds"] == 12
    assert RolloutDetails.model_validate({"judge": "classic"}).model_dump()["judge"] == "classic"


def test_health_without_a_key_says_only_what_the_contract_says() -> None:
    assert Health().model_dump() == {
        "status": "healthy",
        "healthy": True,
        "authorized": False,
        "auth": {"required": True},
    }


def test_requests_and_answers_survive_a_round_trip() -> None:
    request = RolloutRequest.model_validate(
        rollout(
            env={"split": "all", "rewards": {"partial": 1}},
            policy={"max_llm_calls": 6, "stop": "x", "extra_body": {"top_k": 5}},
            ops=[{"id": "c", "function": {"name": "submit", "arguments": "{}"}}],
        )
    )
    assert RolloutRequest.model_validate_json(request.model_dump_json()) == request

    call = RolloutToolCall(tool_name="submit")
    response = RolloutResponse(
        run_id="r",
        trajectories=[],
        metrics=RolloutMetrics(
            episode_returns=[1.0],
            mean_return=1.0,
            num_steps=1,
            details=RolloutDetails(status="truncated", truncated=True, stop_reason="max_steps"),
        ),
    )
    step = RolloutStep(obs={"files": {}}, tool_calls=[call], reward=-0.01)
    assert RolloutStep.model_validate_json(step.model_dump_json()) == step
    assert RolloutResponse.model_validate_json(response.model_dump_json()) == response


# --- the peer's JSON


@pytest.mark.parametrize("index", range(len(SAMPLES["rollout_requests"])))
def test_the_peer_s_rollout_requests_are_accepted(index: int) -> None:
    sample = SAMPLES["rollout_requests"][index]
    request = RolloutRequest.model_validate(sample)

    ours = request.model_dump(mode="json")
    for part in ("run_id", "record", "safety", "on_done", "training_session_id", "synth_base_url"):
        assert ours[part] == sample[part]
    assert request.env.seed == sample["env"]["seed"]
    assert len(request.ops) == len(sample["ops"])


def test_the_peer_s_values_arrive_where_we_read_them() -> None:
    request = RolloutRequest.model_validate(SAMPLES["rollout_requests"][1])
    assert (request.env.config.split, request.policy.config.max_steps) == ("train", 6)
    assert request.policy.config.stop == ["</s>"]
    scripted = RolloutRequest.model_validate(SAMPLES["rollout_requests"][2])
    assert [call.tool for call in scripted.script] == ["compile", "submit"]


def test_the_peer_s_answers_are_accepted() -> None:
    response = RolloutResponse.model_validate(SAMPLES["rollout_response"])
    assert response.metrics.mean_return == 0.5
    assert response.trajectories[0].steps[0].reward == 0.0
    assert TaskInfo.model_validate(SAMPLES["task_info"]).task.id == "t"


def test_what_the_peer_s_client_sends_to_a_session_is_accepted() -> None:
    models = {
        "/env/verilog/initialize": InitializeRequest,
        "/env/verilog/step": StepRequest,
        "/env/verilog/terminate": TerminateRequest,
    }
    bodies = {call["path"]: call["body"] for call in SAMPLES["client_requests"]}
    for path, model in models.items():
        assert model.model_validate(bodies[path]).model_dump(exclude_unset=True).keys() == bodies[path].keys()


def test_task_info_without_a_seed_is_a_task_set_and_a_task_info() -> None:
    body = SAMPLES["task_info"] | {"taskset": {"id": "bundled", "instance_count": 12, "licence": "MIT"}}
    answer = TaskSetInfo.model_validate(body)
    assert answer.taskset.model_dump(exclude_none=True) == {"id": "bundled", "instance_count": 12, "licence": "MIT"}
    assert TaskInfo.model_validate(answer.model_dump()).environment == "verilog"


def test_the_public_names_are_listed_once_and_documented() -> None:
    assert len(set(contracts.__all__)) == len(contracts.__all__)
    for name in contracts.__all__:
        thing = getattr(contracts, name)
        if isinstance(thing, type):
            assert thing.__doc__, f"{name} has no docstring"
