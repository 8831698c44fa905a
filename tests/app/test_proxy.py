"""The OpenAI-compatible proxy: what reaches the upstream, what comes back, and whose key goes where."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import openai
import pytest
import pytest_asyncio
from openai.types.chat import ChatCompletionMessageParam

from tests.app.conftest import Serve
from tests.app.running import Caller, server_in
from tests.support import DEADLINE_S, KEY, Service, call_text, completion
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.rollout.prompts import tool_format_hint
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/proxy/v1/chat/completions"
GROQ_CHAT = "/proxy/groq/v1/chat/completions"
UPSTREAM_KEY = "own-upstream-secret-0123456789"
UPSTREAM = {
    "proxy_openai_url": "http://vllm.test:8000/v1",
    "proxy_api_key_env": "UPSTREAM_KEY",
    "named_keys": {"UPSTREAM_KEY": UPSTREAM_KEY},
}
PLAIN = {"proxy_system_hint": False, "proxy_synthesize_tool_calls": False}
WHOLE_BODY = {
    "model": "any/model",
    "messages": [{"role": "user", "content": "hi", "name": "x"}],
    "temperature": 0.25,
    "max_tokens": 7,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "logit_bias": {"50256": -100},
    "unknown_field": {"nested": [1, None, "ü"]},
}


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(serve: Serve) -> AsyncIterator[Service]:
    """A service whose upstream says ``done``."""
    async with serve(**UPSTREAM) as service:
        service.model.answer = lambda _: completion("done")
        yield service


async def test_a_body_passes_through_as_it_is(serve: Serve) -> None:
    async with serve(**UPSTREAM, **PLAIN) as service:
        answer = {"id": "x", "choices": [{"message": {"content": call_text("compile")}, "odd": 1}], "usage": None}
        service.model.answer = lambda _: httpx.Response(200, json=answer)
        assert await service.post(CHAT, WHOLE_BODY) == answer
        assert service.model.bodies == [WHOLE_BODY]
        (request,) = service.model.requests
        assert str(request.url) == "http://vllm.test:8000/v1/chat/completions"


async def test_only_the_upstream_s_own_key_is_sent_on(proxy: Service) -> None:
    headers = {"Authorization": f"Bearer {KEY}", "X-API-Keys": KEY, "Cookie": "session=1", "X-Other": "1"}
    answer = await proxy.client.post(CHAT, json=WHOLE_BODY, headers=headers)
    assert answer.status_code == 200
    (request,) = proxy.model.requests
    assert request.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert KEY not in str(request.headers.raw)
    assert not {"x-api-key", "x-api-keys", "cookie", "x-other"} & set(request.headers)
    assert UPSTREAM_KEY not in answer.text + str(answer.headers)


async def test_vendors_get_their_own_keys_and_no_other(serve: Serve) -> None:
    async with serve(groq_api_key="gsk-secret", openai_api_key="sk-secret") as service:
        service.model.answer = lambda _: completion("done")
        await service.post(CHAT, WHOLE_BODY)
        await service.post(GROQ_CHAT, WHOLE_BODY)
        sent = {request.url.host: request.headers["authorization"] for request in service.model.requests}
    assert sent == {"api.openai.com": "Bearer sk-secret", "api.groq.com": "Bearer gsk-secret"}


@pytest.mark.parametrize(("path", "variable"), [(CHAT, "OPENAI_API_KEY"), (GROQ_CHAT, "GROQ_API_KEY")])
async def test_a_missing_key_names_its_variable(service: Service, path: str, variable: str) -> None:
    error = (await service.post(path, WHOLE_BODY, 424))["error"]
    assert (error["code"], error["variable"]) == ("inference_key_missing", variable)
    assert not service.model.requests


async def test_the_hint_is_put_in_once(proxy: Service) -> None:
    user = {"role": "user", "content": "hi"}
    await proxy.post(CHAT, {"model": "m", "messages": [user]})
    sent = proxy.model.bodies[0]["messages"]
    assert sent == [{"role": "system", "content": tool_format_hint()}, user]
    await proxy.post(CHAT, {"model": "m", "messages": sent})
    assert proxy.model.bodies[1]["messages"] == sent
    await proxy.post(CHAT, {"model": "m", "messages": [{"role": "system", "content": "Be kind."}, user]})
    content = proxy.model.bodies[2]["messages"][0]["content"]
    assert content == f"Be kind.\n\n{tool_format_hint()}"


async def test_quirks_of_models_reach_the_upstream(serve: Serve) -> None:
    async with serve(**UPSTREAM, **PLAIN, groq_api_key="gsk-secret") as service:
        service.model.answer = lambda _: completion("done")
        await service.post(CHAT, {**WHOLE_BODY, "model": "gpt-5-mini", "thinking_mode": "on", "top_p": 0.5})
        await service.post(GROQ_CHAT, {"model": "m", "messages": [], "max_completion_tokens": 9, "reasoning": {}})
        gpt5, groq = service.model.bodies
    assert gpt5["max_completion_tokens"] == 16_000
    assert gpt5["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert not {"max_tokens", "temperature", "top_p", "thinking_mode"} & set(gpt5)
    assert groq == {"model": "m", "messages": [], "max_tokens": 9}


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_call_in_the_text_becomes_a_tool_call_if_wanted(serve: Serve, wanted: bool) -> None:
    text = f"Let me see.\n```json\n{call_text('write_file', path='a.v', content='x')}\n```"
    async with serve(**UPSTREAM, proxy_synthesize_tool_calls=wanted) as service:
        service.model.answer = lambda _: completion(text)
        (choice,) = (await service.post(CHAT, WHOLE_BODY))["choices"]
    assert choice["message"]["content"] == text
    if not wanted:
        assert (choice["finish_reason"], "tool_calls" in choice["message"]) == ("stop", False)
        return
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["id"].startswith("call_parsed_")
    assert call["function"]["name"] == "write_file"
    assert json.loads(call["function"]["arguments"]) == {"path": "a.v", "content": "x"}


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500, 503])
async def test_an_upstream_s_refusal_keeps_its_status_and_says_what_it_said(proxy: Service, status: int) -> None:
    said = {"error": {"message": f"no: {UPSTREAM_KEY}", "type": "bad"}}
    proxy.model.answer = lambda _: httpx.Response(status, json=said, headers={"Retry-After": "7"})
    answer = await proxy.client.post(CHAT, json={**WHOLE_BODY, "stream": status == 429})
    assert answer.status_code == status
    body = answer.json()
    assert body["error"] == body["detail"]
    error = body["error"]
    assert (error["code"], error["upstream_status"]) == ("upstream_refused", status)
    assert error["upstream_body"] == {"error": {"message": "no: [redacted]", "type": "bad"}}
    assert error["retryable"] is (status in (429, 500, 503))
    assert answer.headers["Retry-After"] == "7"
    assert len(proxy.model.requests) == 1, "trying again is the client's business"


async def test_an_upstream_that_is_down_is_a_502(proxy: Service) -> None:
    for failure in (httpx.ConnectError("refused"), httpx.ReadTimeout("silent"), httpx.RemoteProtocolError("cut")):
        proxy.model.answer = lambda _, failure=failure: failure
        error = (await proxy.post(CHAT, WHOLE_BODY, 502))["error"]
        assert (error["code"], error["stage"], error["retryable"]) == ("inference_failed", "inference", True)


@pytest.mark.parametrize("content", [b"<html>", b"", b"{"])
async def test_an_answer_that_is_no_json_is_a_502(proxy: Service, content: bytes) -> None:
    proxy.model.answer = lambda _: httpx.Response(200, content=content)
    assert (await proxy.post(CHAT, WHOLE_BODY, 502))["error"]["code"] == "inference_failed"


async def test_a_stream_is_passed_on_byte_for_byte(proxy: Service) -> None:
    events = b'data: {"choices": [{"delta": {"content": "\xc3\xbc"}}]}\r\n\r\n: comment\n\ndata: [DONE]\n\n\xff'
    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    proxy.model.answer = lambda _: httpx.Response(200, content=events, headers=headers)
    answer = await proxy.client.post(CHAT, json={**WHOLE_BODY, "stream": True})
    assert answer.content == events
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


async def test_the_upstream_s_models_are_passed_on(proxy: Service) -> None:
    listed = {"object": "list", "data": [{"id": "m", "extra": 1}]}
    proxy.model.answer = lambda _: httpx.Response(200, json=listed)
    answer = await proxy.client.get("/proxy/v1/models")
    assert (answer.status_code, answer.json()) == (200, listed)
    (request,) = proxy.model.requests
    assert (request.method, str(request.url)) == ("GET", "http://vllm.test:8000/v1/models")
    assert request.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    proxy.model.answer = lambda _: httpx.Response(403, json={"detail": "no"})
    refused = await proxy.client.get("/proxy/v1/models")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "upstream_refused")


# --- with real sockets on both sides


class Upstream:
    """Sends a head and the beginning of a body, and then nothing until the other side goes."""

    def __init__(self, content_type: str, beginning: bytes) -> None:
        self.answer = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode() + beginning
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-len"))
        await reader.readexactly(length)
        writer.write(self.answer)
        await writer.drain()
        self.asked.set()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        self.left.set()
        writer.close()


@contextlib.asynccontextmanager
async def stalling(content_type: str, beginning: bytes) -> AsyncIterator[tuple[Upstream, str]]:
    upstream = Upstream(content_type, beginning)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    async with server:
        yield upstream, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def test_a_client_that_hangs_up_hangs_the_upstream_up(tmp_path: Path) -> None:
    async with (
        stalling("text/event-stream", b"data: {}\n\n") as (streaming, url),
        server_in(tmp_path, VERILOG_PROXY_OPENAI_URL=url, VERILOG_PROXY_GROQ_URL="http://127.0.0.1:1") as server,
    ):
        caller = await Caller.post(server.url, CHAT, {**WHOLE_BODY, "stream": True})
        await asyncio.wait_for(streaming.asked.wait(), DEADLINE_S)
        assert b"data: {}" in await caller.received(b"data: {}")
        await caller.hang_up()
        await asyncio.wait_for(streaming.left.wait(), DEADLINE_S)
    (tmp_path / "other").mkdir()
    async with (
        stalling("application/json", b'{"choices": ') as (slow, url),
        server_in(tmp_path / "other", VERILOG_PROXY_OPENAI_URL=url) as server,
    ):
        caller = await Caller.post(server.url, CHAT, WHOLE_BODY)
        await asyncio.wait_for(slow.asked.wait(), DEADLINE_S)
        await caller.hang_up()
        await asyncio.wait_for(slow.left.wait(), DEADLINE_S)


async def test_the_openai_client_works_through_the_proxy(tmp_path: Path) -> None:
    problems = load_problem_set(Settings()).problems
    task: list[ChatCompletionMessageParam] = [{"role": "user", "content": problems[0].prompt}]
    async with ScriptedServer(ScriptedOptions(), problems) as model:
        variables = {"VERILOG_PROXY_OPENAI_URL": f"{model.url}/v1", "VERILOG_PROXY_GROQ_URL": f"{model.url}/v1"}
        async with server_in(tmp_path, **variables) as server:
            for vendor in ("/proxy/v1", "/proxy/groq/v1"):
                async with openai.AsyncOpenAI(base_url=server.url + vendor, api_key=KEY, max_retries=0) as client:
                    answer = await client.chat.completions.create(model="scripted", messages=task)
                    (call,) = answer.choices[0].message.tool_calls or []
                    assert call.type == "function"
                    assert call.function.name == "write_file"
                    content = ""
                    stream = await client.chat.completions.create(model="scripted", messages=task, stream=True)
                    async for chunk in stream:
                        content += chunk.choices[0].delta.content or ""
                    assert content == answer.choices[0].message.content
                    with pytest.raises(openai.RateLimitError) as limited:
                        await client.chat.completions.create(
                            model="scripted:http500,status_code=429,retry_after=3", messages=task
                        )
                    assert limited.value.response.headers["retry-after"] == "3"
            async with openai.AsyncOpenAI(base_url=f"{server.url}/proxy/v1", api_key=KEY, max_retries=0) as client:
                assert [model.id async for model in client.models.list()] == ["scripted"]
            async with openai.AsyncOpenAI(base_url=f"{server.url}/proxy/v1", api_key="no", max_retries=0) as client:
                with pytest.raises(openai.AuthenticationError):
                    await client.chat.completions.create(model="scripted", messages=task)
        assert model.stats.by_status == {"200": 4, "429": 2}
