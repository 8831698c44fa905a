"""Every error has one shape, whatever went wrong and wherever."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve
from tests.support import Service, call, rollout_body
from verilog_taskapp.errors import EnvironmentFailed

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}


def error_of(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error object of an answer that must be an error of our one shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "detail"}
    assert body["error"] == body["detail"]
    error: dict[str, Any] = body["error"]
    assert error["code"] == code
    assert isinstance(error["message"], str)
    assert error["message"]
    return error


WRONG_FIELDS: list[tuple[dict[str, Any], set[str]]] = [
    ({"run_id": 7}, {"run_id"}),
    ({"env": None}, {"env"}),
    ({"env": {"seed": -1}}, {"env.seed"}),
    ({"env": {"seed": "0"}}, {"env.seed"}),
    ({"env": {"seed": 0.5}}, {"env.seed"}),
    ({"env": {"config": {"split": "dev"}}}, {"env.config.split"}),
    ({"env": {"config": {"feedback": "all"}}}, {"env.config.feedback"}),
    ({"env": {"config": {"rewards": {"submit_pass": "10"}}}}, {"env.config.rewards.submit_pass"}),
    ({"policy": {"config": {"temperature": "hot"}}}, {"policy.config.temperature"}),
    ({"policy": {"config": {"temperature": -1}}}, {"policy.config.temperature"}),
    ({"policy": {"config": {"top_p": 1.5}}}, {"policy.config.top_p"}),
    ({"policy": {"config": {"max_tokens": True}}}, {"policy.config.max_tokens"}),
    ({"policy": {"config": {"max_steps": "ten"}}}, {"policy.config.max_steps"}),
    ({"policy": {"config": {"max_llm_calls": "ten"}}}, {"policy.config.max_llm_calls"}),
    (
        {"policy": {"config": {"model": 3, "inference_url": []}}},
        {"policy.config.model", "policy.config.inference_url"},
    ),
    ({"policy": {"config": {"inference_url": "ftp://model.test"}}}, {"policy.config.inference_url"}),
    ({"policy": {"config": {"inference_url": "http://user:secret@model.test"}}}, {"policy.config.inference_url"}),
    ({"policy": {"config": {"tool_mode": "xml"}}}, {"policy.config.tool_mode"}),
    ({"policy": {"config": {"heuristics": True}}}, {"policy.config.heuristics"}),
    ({"policy": {"config": {"api_key_env": "sk-secret value"}}}, {"policy.config.api_key_env"}),
    ({"policy": {"config": {"extra_body": [1]}}}, {"policy.config.extra_body"}),
    ({"policy": {"config": {"return_token_ids": 1}}}, {"policy.config.return_token_ids"}),
    ({"ops": "agent"}, {"ops"}),
    ({"ops": ["agent", {"tool": "submit"}]}, {"ops"}),
    ({"ops": [{"args": {}}]}, {"ops"}),
    ({"safety": {"max_ops": -1}}, {"safety.max_ops"}),
    ({"safety": {"max_time_s": "1"}}, {"safety.max_time_s"}),
    ({"record": {"trace_format": "xml"}}, {"record.trace_format"}),
]


async def test_a_422_names_each_offending_field(service: Service) -> None:
    for change, fields in WRONG_FIELDS:
        answer = await service.client.post("/rollout", json={**rollout_body(), **change})
        error = error_of(answer, 422, "invalid_request")
        assert {one["field"] for one in error["errors"]} == fields
        assert all(one["message"] for one in error["errors"])
        assert error["retryable"] is False
        assert "secret" not in answer.text, "a rejected value is not repeated"
    assert not service.model.requests


async def test_missing_fields_are_named_too(service: Service) -> None:
    error = error_of(await service.client.post("/rollout", json={}), 422, "invalid_request")
    assert {one["field"] for one in error["errors"]} == {"run_id", "env", "policy", "ops"}
    assert "run_id" in error["message"]


@pytest.mark.parametrize(
    "path", ["/rollout", "/env/verilog/initialize", "/env/verilog/step", "/proxy/v1/chat/completions"]
)
@pytest.mark.parametrize("content", [b"{", b"", b"[]", b'"text"', b"{'a': 1}", b"nonsense"])
async def test_a_body_that_is_no_json_object_is_a_422(service: Service, path: str, content: bytes) -> None:
    error_of(await service.client.post(path, content=content, headers=JSON), 422, "invalid_request")


@pytest.mark.parametrize("content", [b"\xff{}", b"[" * 100_000, b'{"run_id": ' + b"[" * 100_000])
async def test_a_body_that_cannot_even_be_read_as_json_is_a_400(service: Service, content: bytes) -> None:
    error_of(await service.client.post("/rollout", content=content, headers=JSON), 400, "bad_request")


async def test_unknown_routes_and_methods(service: Service) -> None:
    for path in ("/nothing", "/env/verilog", "/env/verilog/reset", "/proxy/v2/models"):
        error_of(await service.client.get(path), 404, "not_found")
    answer = await service.client.get("/rollout")
    error_of(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"
    error_of(await service.client.post("/info"), 405, "method_not_allowed")


async def test_unauthorized_and_missing_sessions(service: Service) -> None:
    error = error_of(
        await service.client.post("/env/verilog/step", json={"env_id": "no-such", "tool_calls": []}),
        404,
        "session_not_found",
    )
    assert error["retryable"] is False
    del service.client.headers["X-API-Key"]
    error_of(await service.client.post("/rollout", json=rollout_body()), 401, "unauthorized")


async def test_a_body_over_the_limit_is_refused_unread(serve: Serve) -> None:
    async with serve(max_body_bytes=1000) as service:
        answer = await service.client.post("/rollout", json=rollout_body(run_id="x" * 1000))
        error = error_of(answer, 413, "body_too_large")
        assert "1000 bytes" in error["message"]
        assert answer.headers["connection"] == "close"
        small = await service.client.post("/rollout", json=rollout_body(ops=[call("submit")]))
        assert small.status_code == 200


async def test_a_body_over_the_limit_of_undeclared_length_is_refused_too(serve: Serve) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    async with serve(max_body_bytes=1000) as service:
        for path in ("/rollout", "/proxy/v1/chat/completions"):
            answer = await service.client.post(path, content=chunks(), headers=JSON)
            error = error_of(answer, 413, "body_too_large")
            assert "1000 bytes" in error["message"]


@pytest.mark.parametrize("length", ["-1", "1e3", "x", " ", "99999999999999999999"])
async def test_a_length_that_is_none_is_refused(service: Service, length: str) -> None:
    answer = await service.client.post("/rollout", content=b"{}", headers={"Content-Length": length, **JSON})
    error_of(answer, 413, "body_too_large")


async def test_a_bug_of_ours_is_an_internal_error_with_its_request_id(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("the inner details stay inside")

    monkeypatch.setattr("verilog_taskapp.routes.info.service_info", broken)
    answer = await service.client.get("/info", headers={"X-Request-ID": "mine"})
    error = error_of(answer, 500, "internal_error")
    assert (error["retryable"], error["stage"]) == (True, "tool")
    assert "inner details" not in answer.text
    assert answer.headers["x-request-id"] == "mine"
    logged = [(one.name, one.levelname, getattr(one, "facts", {}).get("status")) for one in caplog.records]
    assert ("verilog_taskapp.access", "ERROR", None) in logged
    assert ("verilog_taskapp.access", "INFO", 500) in logged


async def test_a_bug_inside_a_rollout_is_an_environment_failure(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the inner details stay inside")

    monkeypatch.setattr("verilog_taskapp.rollout.agent.turn_message", broken)
    answer = await service.client.post("/rollout", json=rollout_body())
    error = error_of(answer, 500, "environment_failed")
    assert error["run_id"] == "run-1"
    assert [step["tool_calls"][0]["tool_name"] for step in error["partial_trajectory"]["steps"]] == ["write_file"]
    assert "inner details" not in answer.text


async def test_a_fault_may_ask_for_patience(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: object, **__: object) -> None:
        raise EnvironmentFailed("no room", retry_after_s=1.2)

    monkeypatch.setattr(service.services.world, "choose", busy)
    answer = await service.client.post("/rollout", json=rollout_body())
    error = error_of(answer, 500, "environment_failed")
    assert answer.headers["retry-after"] == "2"
    assert (error["run_id"], error["stage"], error["retryable"]) == ("run-1", "tool", True)


@pytest.mark.parametrize("text", ["\\ud800", "\\u0000", "\\ud83d\\ude00", "\\udfff\\ud800"])
async def test_no_text_of_a_caller_breaks_an_answer(service: Service, text: str) -> None:
    # as bytes: a client that is less careful than httpx
    ops = f'[{{"tool": "write_file", "args": {{"path": "a{text}.v", "content": "{text}"}}}}, {{"tool": "{text}"}}]'
    body = json.dumps(rollout_body(seed=0, ops=["OPS"])).replace('["OPS"]', ops)
    bodies = {
        "/rollout": [body, body.replace("run-1", text), body.replace('"scripted"', f'"{text}"')],
        "/env/verilog/initialize": [f'{{"config": {{"problem": "{text}"}}}}', f'{{"session_id": "{text}"}}'],
        "/env/verilog/step": [f'{{"env_id": "{text}", "tool_calls": []}}'],
        "/env/verilog/terminate": [f'{{"env_id": "{text}"}}'],
    }
    for path, contents in bodies.items():
        for content in contents:
            answer = await service.client.post(path, content=content.encode(), headers=JSON)
            assert answer.status_code in (200, 404, 422), (path, content, answer.text)
            if answer.status_code != 200:
                error_of(answer, answer.status_code, answer.json()["error"]["code"])


@pytest.mark.parametrize("value", ["1" + "0" * 40, "NaN", "1e999", '"\\ud800"'])
async def test_no_number_of_a_caller_breaks_an_answer(service: Service, value: str) -> None:
    body = json.dumps(rollout_body(policy={"extra_body": {"x": "VALUE"}, "max_steps": 1})).replace('"VALUE"', value)
    answer = await service.client.post("/rollout", content=body.encode(), headers=JSON)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 200:
        assert len(service.model.requests) == 1
        assert answer.json()["metrics"]["details"]["trace_id"], "its trace is stored like any other"
