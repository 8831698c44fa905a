"""``/env/verilog/*`` over HTTP: what the store does not know of."""

import asyncio
from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.support import MIN_MAX, Service, call
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.scripted.designs import designs_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def initialize(service: Service, **given: Any) -> dict[str, Any]:
    return await service.post("/env/verilog/initialize", {"config": MIN_MAX, **given})


async def step(
    service: Service, env_id: str, *calls: dict[str, Any], status: int = 200, **given: Any
) -> dict[str, Any]:
    body = {"env_id": env_id, "tool_calls": list(calls), **given}
    return await service.post("/env/verilog/step", body, status)


async def test_an_episode_step_by_step(service: Service) -> None:
    opened = await initialize(service)
    assert set(opened) == {"env_id", "observation", "prompt", "tools", "done", "info"}
    assert opened["info"]["files_provided"] == ["TopModule.v"]
    right = designs_of(service.problems.get(MIN_MAX["problem"])).right
    answer = await step(service, opened["env_id"], call("write_file", path="TopModule.v", content=right))
    assert set(answer) == {"env_id", "observation", "reward", "done", "truncated", "info"}
    answer = await step(service, opened["env_id"], call("submit"))
    assert (answer["reward"], answer["done"]) == (pytest.approx(9.99), True)
    for _ in range(2):
        ended = await service.post("/env/verilog/terminate", {"env_id": opened["env_id"]})
        assert (ended["ok"], ended["task_completed"], ended["steps"]) == (True, True, 2)
    error = (await step(service, opened["env_id"], call("compile"), status=404))["error"]
    assert error["code"] == "session_not_found"


async def test_tool_calls_may_come_in_three_styles(service: Service) -> None:
    env_id = (await initialize(service))["env_id"]
    answer = await step(
        service,
        env_id,
        {"tool": "compile", "args": {}},
        {"tool_name": "compile", "arguments": {}},
        {"id": "c1", "type": "function", "function": {"name": "compile", "arguments": '{"sources": ["TopModule.v"]}'}},
    )
    assert [one["tool"] for one in answer["info"]["tool_results"]] == ["compile"] * 3
    assert answer["info"]["tool_results"][2]["id"] == "c1"
    assert (await step(service, env_id, tool_calls=None))["reward"] == pytest.approx(-0.01)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("initialize", {"seed": -1}, "seed"),
        ("initialize", {"seed": True}, "seed"),
        ("initialize", {"session_id": "../etc"}, "session_id"),
        ("initialize", {"session_id": ""}, "session_id"),
        ("initialize", {"config": {"max_steps": "many"}}, "config.max_steps"),
        ("step", {"tool_calls": []}, "env_id"),
        ("step", {"env_id": "x"}, "tool_calls"),
        ("step", {"env_id": "x", "tool_calls": ["compile"]}, "tool_calls.0"),
        ("step", {"env_id": "x", "tool_calls": [], "step_id": ""}, "step_id"),
        ("terminate", {}, "env_id"),
    ],
)
async def test_a_wrong_field_is_named(service: Service, path: str, body: dict[str, Any], field: str) -> None:
    error = (await service.post(f"/env/verilog/{path}", body, 422))["error"]
    assert [one["field"] for one in error["errors"]] == [field]


async def test_an_unknown_problem_has_close_ones(service: Service) -> None:
    error = (await service.post("/env/verilog/initialize", {"config": {"problem": "vt001"}}, 404))["error"]
    assert error["close_matches"] == ["vt001_min_max"]


async def test_too_many_sessions_are_a_429(serve: Serve) -> None:
    async with serve(max_sessions=1) as service:
        await initialize(service)
        answer = await service.client.post("/env/verilog/initialize", json={"config": MIN_MAX})
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "overloaded")
        assert int(answer.headers["Retry-After"]) > 0
        health = (await service.client.get("/health")).json()
        assert (health["capacity"]["sessions"], health["capacity"]["max_sessions"]) == (1, 1)


async def test_the_same_step_sent_twice_at_once_is_executed_once(service: Service) -> None:
    env_id = (await initialize(service))["env_id"]
    first, second = await asyncio.gather(*(step(service, env_id, call("compile"), step_id="s") for _ in range(2)))
    assert first == second
    assert first["observation"]["total_reward"] == pytest.approx(-0.01)


async def test_a_fault_of_ours_is_a_500_without_a_reward(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    env_id = (await initialize(service))["env_id"]

    async def broken(*_: object) -> None:
        raise EnvironmentFailed("the simulator is gone")

    with monkeypatch.context() as patch:
        patch.setattr(service.services.world.judge, "compile", broken)
        error = (await step(service, env_id, call("compile"), step_id="s", status=500))["error"]
        assert (error["code"], error["stage"], error["retryable"]) == ("environment_failed", "tool", True)
    answer = await step(service, env_id, call("compile"), step_id="s")
    assert answer["info"]["total_reward"] == pytest.approx(-0.01)
