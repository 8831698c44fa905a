"""Which model acts, and with which parameters it is asked."""

from typing import Any

import pytest

from tests.support import MODEL_URL, forget_settings
from verilog_taskapp.contracts import RolloutRequest
from verilog_taskapp.environment.actions import TOOL_NAMES
from verilog_taskapp.errors import InferenceHostRefused, InferenceKeyMissing, InvalidRequest
from verilog_taskapp.rollout.policy import Policy, resolve_policy
from verilog_taskapp.settings import Settings

MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_settings(monkeypatch)


def policy_of(
    config: dict[str, Any] | None = None,
    *,
    name: str | None = None,
    record: dict[str, Any] | None = None,
    **settings: Any,
) -> Policy:
    body = {
        "run_id": "r",
        "env": {},
        "policy": {"policy_name": name, "config": config or {}},
        "ops": [],
        "record": record or {},
    }
    return resolve_policy(RolloutRequest.model_validate(body), Settings(**{"inference_url": MODEL_URL, **settings}))


def test_the_settings_decide_what_a_request_leaves_open() -> None:
    policy = policy_of(default_model="d", temperature=0.5, max_tokens=9, max_steps=4)
    assert policy.body(MESSAGES) == {"model": "d", "messages": MESSAGES, "temperature": 0.5, "max_tokens": 9}
    assert (policy.endpoint.url, policy.endpoint.key) == (MODEL_URL, None)
    assert (policy.max_steps, policy.heuristics, policy.tool_mode) == (4, "full", "json")


@pytest.mark.parametrize(
    ("config", "name", "model"),
    [({"model": "a"}, "b", "a"), ({}, "b", "b"), ({"model": None}, None, "d"), ({"model": ""}, "", "d")],
)
def test_the_model_is_the_config_s_then_the_name_s_then_the_server_s(
    config: dict[str, Any], name: str | None, model: str
) -> None:
    assert policy_of(config, name=name, default_model="d").model == model


def test_zero_is_a_value() -> None:
    body = policy_of({"temperature": 0, "seed": 0, "max_tokens": 0}).body(MESSAGES)
    assert (body["temperature"], body["seed"]) == (0, 0)
    assert "max_tokens" not in body, "which leaves the limit to the model server"


@pytest.mark.parametrize(("asked", "steps"), [(None, 10), (1, 1), (25, 25), (99, 25), (0, 1)])
def test_turns_are_clamped(asked: int | None, steps: int) -> None:
    assert policy_of({"max_steps": asked}).max_steps == steps
    assert policy_of({"max_llm_calls": asked}).max_steps == steps


def test_everything_that_was_asked_for_is_sent() -> None:
    config = {"top_p": 0.9, "stop": ["a", "b"], "seed": 3, "return_token_ids": True, "extra_body": {"top_k": 5}}
    body = policy_of(config, record={"logprobs": True}).body(MESSAGES)
    sent = {name: body[name] for name in ("top_p", "stop", "seed", "return_token_ids", "top_k", "logprobs")}
    assert sent == {
        "top_p": 0.9,
        "stop": ["a", "b"],
        "seed": 3,
        "return_token_ids": True,
        "top_k": 5,
        "logprobs": True,
    }


def test_extra_keys_may_replace_parameters_but_not_what_the_loop_needs() -> None:
    extra = {"temperature": 1.5, "messages": [], "stream": True, "stream_options": {}, "n": 3}
    body = policy_of({"extra_body": extra}).body(MESSAGES)
    assert (body["temperature"], body["messages"]) == (1.5, MESSAGES)
    assert not {"stream", "stream_options", "n"} & set(body)


@pytest.mark.parametrize(("mode", "sent"), [("json", False), ("native", True), ("auto", True)])
def test_tools_are_sent_to_models_that_may_call_them(mode: str, sent: bool) -> None:
    body = policy_of({"tool_mode": mode}).body(MESSAGES)
    assert ("tools" in body) is sent
    if sent:
        assert tuple(tool["function"]["name"] for tool in body["tools"]) == TOOL_NAMES
        assert body["parallel_tool_calls"] is False


def test_vendors_get_their_own_dialects_and_keys() -> None:
    openai = policy_of({"inference_url": "https://api.openai.com/v1", "model": "gpt-5"}, openai_api_key="sk-secret")
    body = openai.body(MESSAGES)
    assert body["max_completion_tokens"] >= 768
    assert not {"temperature", "max_tokens"} & set(body)
    assert openai.endpoint.key is not None
    assert openai.endpoint.key.get_secret_value() == "sk-secret"
    assert openai.endpoint.url == "https://api.openai.com/v1/chat/completions"
    groq = policy_of({"inference_url": "https://api.groq.com/openai/v1"}, groq_api_key="gsk-secret")
    assert groq.body(MESSAGES)["max_tokens"] == 768
    other = policy_of({"model": "gpt-5"}, openai_api_key="sk-secret")
    assert "max_tokens" in other.body(MESSAGES), "the host decides, not the model's name"
    assert other.endpoint.key is None


def test_a_body_is_made_anew_each_time() -> None:
    policy = policy_of()
    first = policy.body(MESSAGES)
    first["messages"].append({})
    assert policy.body(MESSAGES)["messages"] == MESSAGES


@pytest.mark.parametrize(
    "url", ["ftp://x", "model.test/v1", "http://", "http://a:b@model.test", "http://model.test:99999", "http://a b/"]
)
def test_a_url_that_is_none_is_refused_by_the_name_of_its_field(url: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        policy_of({"inference_url": url})
    assert [one["field"] for one in refused.value.extras["errors"]] == ["policy.config.inference_url"]


def test_hosts_and_keys_that_are_not_allowed_are_refused() -> None:
    with pytest.raises(InferenceHostRefused):
        policy_of({"inference_url": "http://169.254.169.254/v1"})
    with pytest.raises(InferenceHostRefused):
        policy_of({"inference_url": "http://other.test/v1"}, inference_hosts=("model.test",))
    with pytest.raises(InferenceKeyMissing, match="OPENAI_API_KEY"):
        policy_of({"inference_url": "https://api.openai.com/v1"})
    with pytest.raises(InferenceKeyMissing, match="VERILOG_INFERENCE_KEY_ENVS"):
        policy_of({"api_key_env": "HOME"})
