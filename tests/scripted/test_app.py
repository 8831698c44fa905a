"""The application over an in-process transport: routes, faults, shapes."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from verilog_taskapp.environment.actions import TOOLS
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted import ScriptedApp, ScriptedOptions, scripted_app
from verilog_taskapp.scripted.designs import designs_of

CHAT = "/v1/chat/completions"
Messages = list[dict[str, Any]]


@pytest.fixture
def app(problems: tuple[Problem, ...]) -> ScriptedApp:
    return scripted_app(ScriptedOptions(), problems)


@pytest.fixture
async def client(app: ScriptedApp) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scripted") as client:
        yield client


@pytest.fixture
def messages(problems: tuple[Problem, ...]) -> Messages:
    return [{"role": "system", "content": "You are."}, {"role": "user", "content": f"Task:\n{problems[0].prompt}\nGo"}]


async def ask(client: httpx.AsyncClient, messages: Messages, model: str = "scripted", **fields: Any) -> dict[str, Any]:
    response = await client.post(CHAT, json={"model": model, "messages": messages, **fields})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_an_answer_is_a_labelled_chat_completion(
    client: httpx.AsyncClient, messages: Messages, problems: tuple[Problem, ...]
) -> None:
    response = await client.post(CHAT, json={"model": "qwen/qwen3-32b", "messages": messages, "n": 3, "stop": ["x"]})
    body = response.json()
    assert response.headers["x-scripted"] == "not a model"
    assert response.headers["x-scripted-mode"] == "correct"
    assert response.headers["x-scripted-episode"] == "solve"
    assert (body["object"], body["model"]) == ("chat.completion", "scripted")
    assert body["system_fingerprint"] == "scripted-not-a-model"
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "stop"
    assert json.loads(choice["message"]["content"])["args"]["content"] == designs_of(problems[0]).right
    facts = {"mode": "correct", "episode": "solve", "problem_id": "gate", "turn": 0, "correct": True}
    assert body["scripted"] == facts
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_the_turn_is_the_number_of_answers_so_far(client: httpx.AsyncClient, messages: Messages) -> None:
    conversation = list(messages)
    tools = []
    for _ in range(5):
        message = (await ask(client, conversation))["choices"][0]["message"]
        tools.append(json.loads(message["content"])["tool"])
        conversation += [message, {"role": "user", "content": "Feedback"}]
    assert tools == ["write_file", "compile", "simulate", "submit", "submit"]


async def test_tools_are_called_natively_when_offered(client: httpx.AsyncClient, messages: Messages) -> None:
    tools = [tool.to_openai() for tool in TOOLS]
    body = await ask(client, messages, tools=tools)
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["function"]["name"] == "write_file"
    assert json.loads(call["function"]["arguments"])["path"] == "TopModule.v"
    text = await ask(client, messages, tools=tools, tool_choice="none")
    assert "tool_calls" not in text["choices"][0]["message"]


async def test_native_episodes_keep_their_peculiarity(client: httpx.AsyncClient, messages: Messages) -> None:
    tools = [tool.to_openai() for tool in TOOLS]
    thinking = (await ask(client, messages, "scripted:think", tools=tools))["choices"][0]["message"]
    assert thinking["content"].startswith("<think>")
    assert thinking["tool_calls"][0]["function"]["name"] == "write_file"
    one_turn = [*messages, {"role": "assistant", "content": "prose"}]
    broken = (await ask(client, one_turn, "scripted:malformed", tools=tools))["choices"][0]["message"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken["tool_calls"][0]["function"]["arguments"])


async def test_a_model_name_or_a_header_sets_the_knobs(client: httpx.AsyncClient, messages: Messages) -> None:
    assert (await ask(client, messages, "scripted:mode=wrong"))["scripted"]["episode"] == "wrong_submitted"
    assert (await ask(client, messages, "scripted:fenced"))["scripted"]["episode"] == "fenced"
    body = {"messages": messages}
    headed = await client.post(CHAT, json=body, headers={"X-Scripted": "mode=empty"})
    assert headed.json()["choices"][0]["message"]["content"] == ""
    assert (await ask(client, messages))["scripted"]["episode"] == "solve"


async def test_mixed_is_decided_by_the_seed_of_the_request(client: httpx.AsyncClient, messages: Messages) -> None:
    correct = [(await ask(client, messages, "scripted:mixed", seed=s))["scripted"]["correct"] for s in range(4)]
    assert correct == [True, False, True, False]


async def test_demo_plays_another_episode_for_each_problem(
    client: httpx.AsyncClient, problems: tuple[Problem, ...]
) -> None:
    asked = [[{"role": "user", "content": problem.prompt}] for problem in problems]
    played = [(await ask(client, messages, "scripted:demo"))["scripted"]["episode"] for messages in asked]
    assert len(set(played)) == len(problems)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        (b"{}", "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": ["hello"]}', "messages"),
        (b'{"messages": [{"content": "no role"}]}', "messages"),
        (b'{"messages": [{"role": "user", "content": "hello"}]}', "messages"),
        (b'{"messages": [{"role": "user"}], "seed": "one"}', "seed"),
        (b'{"messages": [{"role": "user"}], "top_logprobs": 21}', "top_logprobs"),
        (b'{"model": "scripted:mode=quick", "messages": [{"role": "user"}]}', "model"),
    ],
)
async def test_a_bad_request_is_refused_in_the_api_s_shape(
    client: httpx.AsyncClient, body: bytes, param: str | None
) -> None:
    response = await client.post(CHAT, content=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert set(error) == {"message", "type", "param", "code"}


async def test_other_paths_are_not_found(client: httpx.AsyncClient) -> None:
    for method, path in (("GET", CHAT), ("POST", "/v1/models"), ("GET", "/v1/else")):
        response = await client.request(method, path)
        assert response.status_code == 404
        assert response.json()["error"]["type"] == "invalid_request_error"


async def test_models_health_and_stats(client: httpx.AsyncClient, messages: Messages) -> None:
    (model,) = (await client.get("/v1/models")).json()["data"]
    assert (model["id"], model["owned_by"]) == ("scripted", "verilog-taskapp (scripted, not a model)")
    health = (await client.get("/health")).json()
    assert health == {"status": "ok", "scripted": True, "problems": 6, "mode": "correct"}
    await ask(client, messages)
    await client.post("/chat/completions", json={"model": "scripted:http500", "messages": messages})
    await client.post(CHAT, content=b"{")
    stats = (await client.get("/stats")).json()
    assert stats == {
        "requests": 3,
        "in_flight": 0,
        "max_in_flight": 1,
        "by_mode": {"correct": 1, "http500": 1},
        "by_episode": {"solve": 1},
        "by_status": {"200": 1, "500": 1, "400": 1},
    }


async def test_the_first_requests_fail_and_then_it_works(client: httpx.AsyncClient, messages: Messages) -> None:
    model = "scripted:fail_first=2,status_code=429,retry_after=0"
    answers = [await client.post(CHAT, json={"model": model, "messages": messages}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [429, 429, 200, 200]
    assert answers[0].headers["retry-after"] == "0"
    assert answers[0].json()["error"]["type"] == "rate_limit_error"
    again = await client.post(CHAT, json={"model": f"{model},tag=other", "messages": messages})
    assert again.status_code == 429


async def test_an_error_rate_is_exact(client: httpx.AsyncClient, messages: Messages) -> None:
    body = {"model": "scripted:error_rate=0.25", "messages": messages}
    statuses = [(await client.post(CHAT, json=body)).status_code for _ in range(40)]
    assert statuses.count(500) == 10
    assert statuses[:8] == [200, 200, 200, 500] * 2


async def test_the_latency_is_waited_for(client: httpx.AsyncClient, messages: Messages) -> None:
    begin = time.perf_counter()
    await ask(client, messages, "scripted:latency_ms=60")
    assert time.perf_counter() - begin >= 0.06


async def test_empty_and_malformed_stay_so(client: httpx.AsyncClient, messages: Messages) -> None:
    empty = (await ask(client, [{"role": "user", "content": "anything"}], "scripted:empty"))["choices"][0]
    assert (empty["message"]["content"], empty["finish_reason"]) == ("", "stop")
    later = messages + [{"role": "assistant", "content": "x"}] * 9
    assert (await ask(client, later, "scripted:malformed"))["choices"][0]["message"]["content"].startswith("Here is")


async def test_a_body_may_come_in_parts(client: httpx.AsyncClient, messages: Messages) -> None:
    whole = json.dumps({"messages": messages}).encode()

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), 100):
            yield whole[at : at + 100]

    assert (await client.post(CHAT, content=parts())).json()["scripted"]["problem_id"] == "gate"


@pytest.mark.parametrize("received", [[], [{"type": "http.request", "body": b"{", "more_body": True}]])
async def test_a_client_that_leaves_before_its_request_is_complete_is_not_answered(
    app: ScriptedApp, received: list[dict[str, Any]]
) -> None:
    events = iter([*received, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(events)

    async def send(_: Any) -> None:
        raise AssertionError

    await app({"type": "http", "method": "POST", "path": CHAT, "headers": []}, receive, send)
    assert (app.stats.requests, app.stats.in_flight) == (0, 0)


async def test_other_protocols_are_refused(app: ScriptedApp) -> None:
    async def unused(*_: Any) -> Any:
        raise AssertionError

    with pytest.raises(NotImplementedError, match="websocket"):
        await app({"type": "websocket"}, unused, unused)
