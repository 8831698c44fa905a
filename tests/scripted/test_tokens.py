"""Synthetic ids, log-probabilities and usage agree with each other, streamed or not."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from verilog_taskapp.environment.actions import TOOLS
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted import ScriptedOptions, scripted_app
from verilog_taskapp.scripted.tokens import FIRST_ID

TOOL_SCHEMAS = [tool.to_openai() for tool in TOOLS]
Messages = list[dict[str, Any]]


@pytest.fixture
async def client(problems: tuple[Problem, ...]) -> AsyncIterator[httpx.AsyncClient]:
    app = scripted_app(ScriptedOptions(token_ids=True), problems)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scripted") as client:
        yield client


@pytest.fixture
def messages(problems: tuple[Problem, ...]) -> Messages:
    return [{"role": "user", "content": problems[1].prompt + "\u20ac \U0001f600"}]


async def ask(client: httpx.AsyncClient, messages: Messages, **fields: Any) -> dict[str, Any]:
    body = {"model": "scripted", "messages": messages, "return_token_ids": True, **fields}
    answer: dict[str, Any] = (await client.post("/v1/chat/completions", json=body)).json()
    return answer


async def events(client: httpx.AsyncClient, messages: Messages, **fields: Any) -> list[dict[str, Any]]:
    body = {"messages": messages, "return_token_ids": True, "stream": True, **fields}
    response = await client.post("/v1/chat/completions", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in response.text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


@pytest.mark.parametrize("extra", [{}, {"tools": TOOL_SCHEMAS}, {"model": "scripted:think", "tools": TOOL_SCHEMAS}])
async def test_counts_and_ids_agree_and_a_prompt_continues_the_last_turn(
    client: httpx.AsyncClient, messages: Messages, extra: dict[str, Any]
) -> None:
    conversation = list(messages)
    before: list[int] = []
    for _ in range(3):
        body = await ask(client, conversation, logprobs=True, **extra)
        choice = body["choices"][0]
        prompt, completion = body["prompt_token_ids"], choice["token_ids"]
        assert body["usage"]["prompt_tokens"] == len(prompt)
        assert body["usage"]["completion_tokens"] == len(completion) == len(choice["logprobs"]["content"])
        assert prompt[: len(before)] == before
        assert all(FIRST_ID <= token_id < 2 * FIRST_ID + 16 for token_id in prompt + completion)
        before = prompt + completion
        conversation += [choice["message"], {"role": "user", "content": "Go on."}]


async def test_logprobs_spell_the_answer(client: httpx.AsyncClient, messages: Messages) -> None:
    choice = (await ask(client, messages, logprobs=True, top_logprobs=3))["choices"][0]
    entries = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries[:-1]) == choice["message"]["content"]
    for entry in entries:
        assert entry["logprob"] <= 0
        assert bytes(entry["bytes"]).decode() == entry["token"]
        assert len(entry["top_logprobs"]) == 3
        assert entry["top_logprobs"][0]["logprob"] == entry["logprob"]


async def test_without_being_asked_there_are_none(
    client: httpx.AsyncClient, messages: Messages, problems: tuple[Problem, ...]
) -> None:
    body = await ask(client, messages, return_token_ids=False)
    assert "prompt_token_ids" not in body
    assert "token_ids" not in body["choices"][0]
    assert body["choices"][0]["logprobs"] is None
    plain = await ask(client, messages, model="scripted:token_ids=0")
    assert "prompt_token_ids" not in plain


@pytest.mark.parametrize("extra", [{}, {"tools": TOOL_SCHEMAS}, {"model": "scripted:think", "tools": TOOL_SCHEMAS}])
async def test_a_stream_adds_up_to_the_whole_answer(
    client: httpx.AsyncClient, messages: Messages, extra: dict[str, Any]
) -> None:
    whole = await ask(client, messages, logprobs=True, **extra)
    chunks = await events(client, messages, logprobs=True, stream_options={"include_usage": True}, **extra)
    assert chunks[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert chunks[0]["scripted"] == whole["scripted"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    choices = [chunk["choices"][0] for chunk in chunks[:-1]]
    expected = whole["choices"][0]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [expected["finish_reason"]]
    content = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert content == (expected["message"]["content"] or "")
    assert [i for choice in choices for i in choice.get("token_ids", [])] == expected["token_ids"]
    logprobs = [entry for choice in choices if choice.get("logprobs") for entry in choice["logprobs"]["content"]]
    assert logprobs == expected["logprobs"]["content"]
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls", [])]
    if "tools" in extra:
        assert calls[0]["id"] == expected["message"]["tool_calls"][0]["id"]
        arguments = "".join(call["function"]["arguments"] for call in calls)
        assert arguments == expected["message"]["tool_calls"][0]["function"]["arguments"]
    else:
        assert not calls
        assert len(choices) > 3


async def test_an_empty_answer_is_streamed_too(client: httpx.AsyncClient, messages: Messages) -> None:
    chunks = await events(client, messages, model="scripted:empty")
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [{"role": "assistant", "content": ""}, {}]
