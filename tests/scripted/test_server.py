"""The server on a real socket, with real clients."""

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from verilog_taskapp.environment.actions import TOOLS
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer, mixed_is_correct
from verilog_taskapp.scripted.designs import designs_of

CONVERSATIONS = 200
DEADLINE_S = 60.0


@pytest.fixture
async def server(problems: tuple[Problem, ...]) -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(ScriptedOptions(), problems) as server:
        yield server


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


def asking(problem: Problem) -> list[ChatCompletionMessageParam]:
    return [
        {"role": "system", "content": "You are a digital design engineer."},
        {"role": "user", "content": f"Your task:\n{problem.prompt}\n\nStep 0."},
    ]


async def test_the_openai_client_is_answered(client: openai.AsyncOpenAI, problems: tuple[Problem, ...]) -> None:
    answer = await client.chat.completions.create(model="scripted", messages=asking(problems[0]))
    content = answer.choices[0].message.content
    assert content is not None
    assert json.loads(content)["args"]["content"] == designs_of(problems[0]).right
    assert answer.system_fingerprint == "scripted-not-a-model"
    (model,) = [model async for model in client.models.list()]
    assert model.id == "scripted"


async def test_the_openai_client_streams_text(client: openai.AsyncOpenAI, problems: tuple[Problem, ...]) -> None:
    content = ""
    reasons = []
    chunks = await client.chat.completions.create(model="scripted", messages=asking(problems[1]), stream=True)
    async for chunk in chunks:
        content += chunk.choices[0].delta.content or ""
        reasons.append(chunk.choices[0].finish_reason)
    assert json.loads(content)["args"]["content"] == designs_of(problems[1]).right
    assert reasons[-1] == "stop"


async def test_the_openai_client_accumulates_streamed_tool_calls(
    client: openai.AsyncOpenAI, problems: tuple[Problem, ...]
) -> None:
    tools: list[ChatCompletionToolParam] = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": {**t.parameters}}}
        for t in TOOLS
    ]
    async with client.chat.completions.stream(model="scripted", messages=asking(problems[2]), tools=tools) as stream:
        final = await stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls or []
    assert call.function.name == "write_file"
    assert json.loads(call.function.arguments)["content"] == designs_of(problems[2]).right


async def test_the_openai_client_sees_our_errors_as_its_own(
    client: openai.AsyncOpenAI, problems: tuple[Problem, ...]
) -> None:
    messages = asking(problems[0])
    with pytest.raises(openai.InternalServerError, match="an injected 500"):
        await client.chat.completions.create(model="scripted:http500", messages=messages)
    with pytest.raises(openai.RateLimitError) as limited:
        await client.chat.completions.create(model="scripted:http500,status_code=429,retry_after=7", messages=messages)
    assert limited.value.response.headers["retry-after"] == "7"
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "Hello"}])
    assert refused.value.code == "unknown_problem"


async def test_a_retrying_client_gets_through(server: ScriptedServer, problems: tuple[Problem, ...]) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=2) as client:
        model = "scripted:fail_first=2,status_code=503,retry_after=0.01"
        answer = await client.chat.completions.create(model=model, messages=asking(problems[0]))
    assert answer.choices[0].finish_reason == "stop"
    assert server.stats.by_status == {"503": 2, "200": 1}


async def test_many_conversations_at_once_each_get_their_own_answers(
    server: ScriptedServer, problems: tuple[Problem, ...]
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        # one pool of 200 connections is slow in httpx itself, so there are ten of twenty
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=server.url, timeout=DEADLINE_S))
            for _ in range(CONVERSATIONS // 20)
        ]

        async def converse(number: int) -> tuple[int, str, list[str]]:
            problem, client = problems[number % len(problems)], clients[number % len(clients)]
            messages: list[Any] = list(asking(problem))
            tools, written = [], ""
            while "submit" not in tools:
                body = {"model": "scripted:mode=mixed,latency_ms=5", "messages": messages, "seed": number}
                message = (await client.post("/v1/chat/completions", json=body)).json()["choices"][0]["message"]
                call = json.loads(message["content"])
                tools.append(call["tool"])
                written = call["args"].get("content", written)
                messages += [message, {"role": "user", "content": f"{problem.id}: {call['tool']} was done."}]
            return number, written, tools

        results = await asyncio.gather(*(converse(number) for number in range(CONVERSATIONS)))
    for number, written, tools in results:
        designs = designs_of(problems[number % len(problems)])
        assert written == (designs.right if mixed_is_correct("", number) else designs.wrong)
        assert tools == ["write_file", "compile", "simulate", "submit"]
    assert server.stats.requests == 4 * CONVERSATIONS
    assert server.stats.by_episode == {"solve": 2 * CONVERSATIONS, "wrong_submitted": 2 * CONVERSATIONS}
    assert server.stats.max_in_flight > CONVERSATIONS // 4


async def wait_for_in_flight(server: ScriptedServer, number: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while server.stats.in_flight != number:  # noqa: ASYNC110 - a count, and it is not ours to signal
            await asyncio.sleep(0.001)


async def test_a_hanging_request_ends_when_its_client_goes(
    server: ScriptedServer, problems: tuple[Problem, ...]
) -> None:
    body = {"model": "scripted:hang", "messages": asking(problems[0])}
    async with httpx.AsyncClient(base_url=server.url) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post("/v1/chat/completions", json=body, timeout=0.2)
    await wait_for_in_flight(server, 0)
    assert server.stats.by_mode == {"hang": 1}
    assert not server.stats.by_status


async def test_a_hanging_request_does_not_stop_the_shutdown(problems: tuple[Problem, ...]) -> None:
    async with httpx.AsyncClient(timeout=DEADLINE_S) as client:
        async with ScriptedServer(ScriptedOptions(mode="hang"), problems) as server:
            body = {"messages": asking(problems[0])}
            asked = asyncio.create_task(client.post(f"{server.url}/v1/chat/completions", json=body))
            await wait_for_in_flight(server, 1)
        assert (await asked).status_code == 503


async def test_the_url_is_known_once_it_listens(problems: tuple[Problem, ...]) -> None:
    server = ScriptedServer(ScriptedOptions(), problems)
    with pytest.raises(RuntimeError, match="not listening yet"):
        _ = server.url
    async with server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        assert host == "127.0.0.1"
        socket.create_connection((host, int(port)), timeout=DEADLINE_S).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=DEADLINE_S)


async def test_a_taken_port_is_an_error(server: ScriptedServer, problems: tuple[Problem, ...]) -> None:
    taken = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"):
        await ScriptedServer(ScriptedOptions(), problems, port=taken).__aenter__()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_the_process_says_where_it_listens_and_stops_cleanly(
    signum: signal.Signals, problems: tuple[Problem, ...], tmp_path: Path
) -> None:
    for number, problem in enumerate(problems, 1):
        stem = f"Prob{number:03}_{problem.id}"
        (tmp_path / f"{stem}_prompt.txt").write_text(problem.prompt)
        (tmp_path / f"{stem}_ref.sv").write_text(problem.reference)
        (tmp_path / f"{stem}_test.sv").write_text(problem.testbench)
    command = [sys.executable, "-m", "verilog_taskapp.scripted", "--mode", "wrong", "--dataset", f"dir:{tmp_path}"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = (await process.stderr.readline()).decode()
            assert line.startswith("listening on http://127.0.0.1:"), line
            async with httpx.AsyncClient(base_url=line.split()[-1]) as client:
                health = (await client.get("/health")).json()
                assert (health["problems"], health["mode"]) == (len(problems), "wrong")
                body = {"messages": asking(problems[3])}
                answer = (await client.post("/v1/chat/completions", json=body)).json()
                assert answer["scripted"]["episode"] == "wrong_submitted"
                process.send_signal(signum)
                assert await process.wait() == 0
            assert await process.stderr.read() == b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--error-rate", "2"], 2, "error_rate must be between 0 and 1"),
        (["--mode", "quick"], 2, "invalid choice: 'quick'"),
        (["--dataset", "dir:/does/not/exist"], 1, "No such file or directory"),
    ],
)
async def test_the_process_refuses_what_does_not_fit(arguments: list[str], code: int, complaint: str) -> None:
    command = [sys.executable, "-m", "verilog_taskapp.scripted", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, errors = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    assert process.returncode == code
    assert complaint in errors.decode()
    assert "Traceback" not in errors.decode()
