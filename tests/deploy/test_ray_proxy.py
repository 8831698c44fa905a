"""What callers are told when a Ray Serve proxy has no answer of a replica to pass on."""

from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from verilog_taskapp.contracts import ErrorBody
from verilog_taskapp.deploy.ray_proxy import RETRY_AFTER_S, middlewares

Answer = list[dict[str, Any]]


def start(status: int, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": [list(header) for header in headers]}


def body(content: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def proxy(answer: Answer) -> ASGIApp:
    """A proxy that says `answer`, inside of our middlewares, put around it as Ray Serve does."""

    async def inner(_: Scope, __: Receive, send: Send) -> None:
        for message in answer:
            await send(message)

    app: ASGIApp = inner
    for middleware in middlewares():
        app = middleware.cls(app, *middleware.args, **middleware.kwargs)
    return app


async def ask(answer: Answer, path: str = "/rollout") -> httpx.Response:
    transport = httpx.ASGITransport(app=proxy(answer))
    async with httpx.AsyncClient(transport=transport, base_url="http://proxy.test") as client:
        return await client.post(path)


def error_of(response: httpx.Response) -> dict[str, Any]:
    ErrorBody.model_validate(response.json())
    error: dict[str, Any] = response.json()["error"]
    assert response.json()["detail"] == error
    return error


async def test_a_replica_that_dies_is_told_as_an_error_that_can_be_retried() -> None:
    response = await ask([])
    assert response.status_code == 503
    assert response.headers["Retry-After"] == f"{RETRY_AFTER_S:.0f}"
    error = error_of(response)
    assert (error["code"], error["retryable"]) == ("replica_lost", True)


async def test_a_full_queue_is_told_as_overload_with_the_wait_that_ray_names() -> None:
    refused = [start(429, (b"content-type", b"text/plain"), (b"retry-after", b"7")), body(b"queue full")]
    response = await ask(refused)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "7")
    error = error_of(response)
    assert (error["code"], error["retryable"]) == ("overloaded", True)


async def test_no_replica_at_all_can_be_retried_too() -> None:
    response = await ask([start(503, (b"content-type", b"text/plain; charset=utf-8")), body(b"unavailable")])
    assert (response.status_code, error_of(response)["code"]) == (503, "no_replica")
    assert response.headers["Retry-After"] == "5"


@pytest.mark.parametrize("status", [200, 429, 500, 503])
async def test_what_a_replica_answers_passes_untouched(status: int) -> None:
    json_kind = (b"content-type", b"application/json")
    answer = [start(status, json_kind, (b"retry-after", b"3")), body(b'{"a":', more=True), body(b"1}")]
    response = await ask(answer)
    assert (response.status_code, response.json(), response.headers["Retry-After"]) == (status, {"a": 1}, "3")


async def test_text_that_is_no_refusal_passes_too() -> None:
    response = await ask([start(200, (b"content-type", b"text/plain")), body(b"verilog_rollouts 1\n")], "/metrics")
    assert (response.status_code, response.text) == (200, "verilog_rollouts 1\n")


async def test_the_proxy_s_own_health_check_is_left_alone() -> None:
    response = await ask([start(503, (b"content-type", b"text/plain")), body(b"draining")], "/-/healthz")
    assert (response.status_code, response.text) == (503, "draining")


async def test_the_request_s_id_is_named_once() -> None:
    answer = [start(200, (b"x-request-id", b"a"), (b"X-Request-ID", b"a"), (b"x-other", b"a")), body(b"")]
    response = await ask(answer)
    assert response.headers.get_list("x-request-id") == ["a"]
    assert response.headers["x-other"] == "a"
