"""The service as tests run it in their own process: real simulator, scripted model, no network."""

import json
import os
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from verilog_taskapp.app import create_app
from verilog_taskapp.contracts import RolloutRequest
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.scripted import ScriptedApp, ScriptedOptions, scripted_app
from verilog_taskapp.services import Services
from verilog_taskapp.settings import Settings

KEY = "server-key-0123456789abcdef"
MODEL_URL = "http://model.test/v1/chat/completions"
DEADLINE_S = 60.0
"""For whatever has to happen but cannot be awaited; never reached by a test that passes."""

MIN_MAX = {"problem": "vt001_min_max"}
"""The ``env.config`` of one bundled problem."""
MIN_MAX_PORTS = """module TopModule (input [7:0] a, input [7:0] b, input is_signed,
  output [7:0] min, output [7:0] max, output equal);
"""
HANGS = f"{MIN_MAX_PORTS}  reg x = 0;\n  initial forever x = ~x;\nendmodule\n"
"""A design for it that compiles and never lets the simulation end."""

Reply = httpx.Response | Exception
Answer = Callable[[dict[str, Any]], Reply]


def forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every setting of the developer's own environment away."""
    for name in list(os.environ):
        if name.upper().startswith(("VERILOG_", "TASKAPP_")) or name.upper().endswith(("_API_KEY", "_KEY_ALIASES")):
            monkeypatch.delenv(name)


def settings_in(folder: Path, **changes: Any) -> Settings:
    """Settings whose directories are below `folder`; golden traces are shared by all tests of a run."""
    given: dict[str, Any] = {
        "environment_api_key": KEY,
        "inference_url": MODEL_URL,
        "inference_backoff_s": 0.001,
        "cache_dir": folder / "cache",
        "scratch_dir": folder / "scratch",
        "verdict_cache": "off",  # tests break tools and want to see it
    }
    return Settings(**given | changes)


def completion(text: str | None, **message: Any) -> httpx.Response:
    """A chat completion that says `text`."""
    whole = {"role": "assistant", "content": text, **message}
    return httpx.Response(200, json={"model": "m", "choices": [{"message": whole, "finish_reason": "stop"}]})


def call_text(tool: str, **args: Any) -> str:
    """A tool call as a model writes it in JSON mode."""
    return json.dumps({"tool": tool, "args": args})


def turn_of(body: Mapping[str, Any]) -> int:
    """How many answers the conversation in a request already holds."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def saying(*texts: str) -> Answer:
    """A model that says these, one a turn, and repeats the last."""
    return lambda body: completion(texts[min(turn_of(body), len(texts) - 1)])


class Model(httpx.AsyncBaseTransport):
    """The model's end of the network: the scripted server, unless `answer` is set. It remembers what it was sent."""

    def __init__(self, problems: Iterable[Problem], **options: Any) -> None:
        self.problems = tuple(problems)
        self.requests: list[httpx.Request] = []
        self.forget(ScriptedOptions(**options))

    def forget(self, options: ScriptedOptions) -> None:
        """Begin anew, with other options."""
        self.app: ScriptedApp = scripted_app(options, self.problems)
        self.answer: Answer | None = None
        self.requests.clear()
        self._scripted = httpx.ASGITransport(app=self.app)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The chat requests, in the order of their arrival."""
        return [json.loads(request.content) for request in self.requests if request.content]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        if self.answer is None:
            return await self._scripted.handle_async_request(request)
        reply = self.answer(json.loads(request.content) if request.content else {})
        if isinstance(reply, Exception):
            raise reply
        return reply


@dataclass
class Service:
    """The running application, a client that holds its key, and the model behind it."""

    app: FastAPI
    settings: Settings
    services: Services
    client: httpx.AsyncClient
    model: Model

    @property
    def problems(self) -> ProblemSet:
        return self.services.world.problems

    async def post(self, path: str, body: Any, status: int = 200) -> dict[str, Any]:
        """The JSON answer of a POST that must have `status`."""
        response = await self.client.post(path, json=body)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def rollout(self, *, status: int = 200, **given: Any) -> dict[str, Any]:
        """The answer of ``POST /rollout``; see `rollout_body`."""
        return await self.post("/rollout", rollout_body(**given), status)

    async def error(self, status: int, **given: Any) -> dict[str, Any]:
        """The error object of a rollout that must fail with `status`."""
        error: dict[str, Any] = (await self.rollout(status=status, **given))["error"]
        return error


def rollout_body(
    seed: int | None = 0,
    *,
    model: str = "scripted",
    ops: Iterable[Any] = (),
    env: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A rollout request: `env` and `policy` are the two configs, `fields` further keys of the request."""
    return {
        "run_id": "run-1",
        "env": {"seed": seed, "config": dict(env or {})},
        "policy": {"config": {"model": model, **(policy or {})}},
        "ops": list(ops),
        **fields,
    }


def rollout_request(seed: int | None = 0, **given: Any) -> RolloutRequest:
    """The same as a model."""
    return RolloutRequest.model_validate(rollout_body(seed, **given))


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A scripted tool call."""
    return {"tool": tool, "args": args}


@asynccontextmanager
async def serving(settings: Settings, **options: Any) -> AsyncIterator[Service]:
    """The application with its lifespan; `options` are those of the scripted model."""
    model = Model(load_problem_set(settings), **options)
    app = create_app(settings, transport=model)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://service.test", headers={"X-API-Key": KEY}, timeout=DEADLINE_S
        ) as client:
            yield Service(app, settings, app.state.services, client, model)


def traces_in(cache: Path) -> list[dict[str, Any]]:
    """The session traces in a cache directory, the oldest first; a server may be writing there."""
    path = cache / "traces" / "traces.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=DEADLINE_S)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trace_bodies'").fetchone():
            return []
        rows = connection.execute("SELECT body FROM trace_bodies ORDER BY trace_id").fetchall()
    return [json.loads(zlib.decompress(body))["session_trace"] for (body,) in rows]


def processes_in(folder: Path) -> dict[int, str]:
    """Command lines, by process id, of the processes that work below `folder` or are told of it."""
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            cwd = os.readlink(process / "cwd")
        except OSError:
            continue
        if str(folder) in command or cwd.startswith(str(folder)):
            found[int(process.name)] = command
    return found


def simulators_in(folder: Path) -> dict[int, str]:
    """Those of `processes_in` that are children of a launcher: compilers, simulators and what they started."""
    return {pid: command for pid, command in processes_in(folder).items() if "launcher" not in command}


def files_in(folder: Path) -> list[Path]:
    """All files of jobs below a scratch folder: not the lock files that mark the living."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
