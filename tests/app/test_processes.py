"""The service as a process of its own, behind a real socket: clients that hang up, signals, and what they leave."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.app.running import Caller, Server, server_in, until
from tests.support import (
    DEADLINE_S,
    HANGS,
    KEY,
    MIN_MAX,
    call,
    files_in,
    processes_in,
    rollout_body,
    simulators_in,
)
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

HANG = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(headers={"X-API-Key": KEY}, timeout=DEADLINE_S) as client:
        yield client


async def record(server: Server, client: httpx.AsyncClient) -> None:
    """Have the problem's golden trace made: what is simulated from now on is a design."""
    body = rollout_body(ops=[call("submit")], env=MIN_MAX, run_id="recording")
    assert (await client.post(f"{server.url}/rollout", json=body)).status_code == 200


async def in_flight(server: Server, client: httpx.AsyncClient) -> int:
    health = (await client.get(f"{server.url}/health")).json()
    count: int = health["capacity"]["rollouts_in_flight"]
    return count


async def idle(server: Server, client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await in_flight(server, client):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_client_that_hangs_up_stops_its_simulation_its_model_call_and_its_session_step(
    tmp_path: Path, client: httpx.AsyncClient
) -> None:
    problems = load_problem_set(Settings()).problems
    async with ScriptedServer(ScriptedOptions(mode="hang"), problems) as model, server_in(tmp_path) as server:
        await record(server, client)

        # in the middle of a simulation
        caller = await Caller.post(server.url, "/rollout", rollout_body(ops=HANG, env=MIN_MAX, run_id="simulating"))
        await until(server.simulating, "the simulation starts")
        assert (await client.get(f"{server.url}/health")).status_code == 200, "answered while it hangs"
        assert await in_flight(server, client) == 1
        await caller.hang_up()
        await until(lambda: not simulators_in(server.scratch), "the simulation stops")
        await idle(server, client)
        assert files_in(server.scratch) == []

        # in the middle of a model call
        policy = {"inference_url": model.url}
        caller = await Caller.post(server.url, "/rollout", rollout_body(policy=policy, env=MIN_MAX, run_id="asking"))
        await until(lambda: model.stats.in_flight == 1, "the model is asked")
        await caller.hang_up()
        await until(lambda: model.stats.in_flight == 0, "the model is no longer asked")
        await idle(server, client)

        # in the middle of a session's step, which can then be repeated
        opened = (await client.post(f"{server.url}/env/verilog/initialize", json={"config": MIN_MAX})).json()
        step = {"env_id": opened["env_id"], "tool_calls": HANG, "step_id": "one"}
        caller = await Caller.post(server.url, "/env/verilog/step", step)
        await until(server.simulating, "the session simulates")
        await caller.hang_up()
        await until(lambda: not simulators_in(server.scratch), "the session's simulation stops")
        fixed = [HANG[0], call("compile")]
        answer = await client.post(f"{server.url}/env/verilog/step", json={**step, "tool_calls": fixed})
        assert [one["tool"] for one in answer.json()["info"]["tool_results"]] == ["write_file", "compile"]
        assert answer.json()["reward"] == pytest.approx(0.1 - 0.02), "the write was executed once"

    stored = {trace["metadata"]["run_id"]: trace["metadata"]["status"] for trace in server.traces}
    ended = {"recording": "completed", "simulating": "aborted", "asking": "aborted"}
    assert stored == {**ended, opened["env_id"]: "aborted"}
    aborted = [line for line in server.log if line.get("status") == 499]
    assert [line["path"] for line in aborted] == ["/rollout", "/rollout", "/env/verilog/step"]
    assert [line for line in server.log if line["level"] in ("warning", "error")] == []


async def test_after_sigterm_what_runs_may_finish_and_nothing_new_is_let_in(
    tmp_path: Path, client: httpx.AsyncClient
) -> None:
    problems = load_problem_set(Settings()).problems
    options = ScriptedOptions(latency_ms=300.0)
    async with ScriptedServer(options, problems) as model, server_in(tmp_path, VERILOG_DRAIN_S="60") as server:
        await record(server, client)
        body = rollout_body(policy={"inference_url": model.url}, env=MIN_MAX, run_id="running")
        running = asyncio.create_task(client.post(f"{server.url}/rollout", json=body))
        await until(lambda: model.stats.in_flight == 1, "the model is asked")
        server.process.terminate()
        async with asyncio.timeout(DEADLINE_S):
            while (await client.get(f"{server.url}/ready")).status_code != 503:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        health = (await client.get(f"{server.url}/health/rollout")).json()
        assert (health["ok"], health["reason"]) == (False, "the server is shutting down")
        for path, given in (("/rollout", rollout_body(ops=HANG, env=MIN_MAX)), ("/env/verilog/initialize", {})):
            refused = await client.post(f"{server.url}{path}", json=given)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
            assert int(refused.headers["Retry-After"]) > 0
        answer = await running
        assert answer.status_code == 200
        assert answer.json()["metrics"]["details"]["task_completed"] is True
        await server.process.wait()
    assert server.process.returncode in (0, -signal.SIGTERM)
    assert processes_in(tmp_path) == {}
    assert server.directories == []


async def test_a_second_signal_does_not_wait(tmp_path: Path, client: httpx.AsyncClient) -> None:
    async with server_in(tmp_path, VERILOG_DRAIN_S="1") as server:
        await record(server, client)
        rollout = asyncio.create_task(client.post(f"{server.url}/rollout", json=rollout_body(ops=HANG, env=MIN_MAX)))
        await until(server.simulating, "the simulation starts")
        server.process.terminate()
        server.process.terminate()
        await server.process.wait()
        with contextlib.suppress(httpx.TransportError):
            assert (await rollout).status_code == 503
    assert processes_in(tmp_path) == {}
    assert server.directories == []


async def test_sigterm_stops_what_runs_and_leaves_nothing(tmp_path: Path, client: httpx.AsyncClient) -> None:
    async with server_in(tmp_path) as server:
        await record(server, client)
        rollout = asyncio.create_task(
            client.post(f"{server.url}/rollout", json=rollout_body(ops=HANG, env=MIN_MAX, run_id="running"))
        )
        await until(server.simulating, "the simulation starts")
        server.process.terminate()
        await server.process.wait()
        with contextlib.suppress(httpx.TransportError):
            answer = await rollout
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "draining")
            assert int(answer.headers["Retry-After"]) > 0
    assert server.process.returncode in (0, -signal.SIGTERM)
    assert processes_in(tmp_path) == {}
    assert server.directories == [], "neither the process's own nor a job's"
    stored = {trace["metadata"]["run_id"]: trace["metadata"]["status"] for trace in server.traces}
    assert stored == {"recording": "completed", "running": "aborted"}


async def test_sigkill_leaves_no_process_and_no_job_and_the_next_start_sweeps_the_rest(
    tmp_path: Path, client: httpx.AsyncClient
) -> None:
    async with server_in(tmp_path) as server:
        await record(server, client)
        caller = await Caller.post(server.url, "/rollout", rollout_body(ops=HANG, env=MIN_MAX))
        await until(server.simulating, "the simulation starts")
        own = server.directories
        assert len(own) == 1
        assert files_in(server.scratch), "the job's"
        server.process.kill()
        await server.process.wait()
        await until(lambda: not processes_in(tmp_path), "launchers and simulators are gone")
        assert files_in(server.scratch) == []
        await caller.hang_up()
    assert server.directories == own
    async with server_in(tmp_path) as server:
        assert own[0] not in server.directories
        answer = await client.post(f"{server.url}/rollout", json=rollout_body(ops=[call("submit")], env=MIN_MAX))
        assert answer.status_code == 200
    assert server.directories == []


async def test_a_server_that_cannot_work_says_why_and_does_not_start(tmp_path: Path) -> None:
    for variables, said in (
        ({"VERILOG_IVERILOG": "no-such-iverilog"}, "Icarus Verilog was not found"),
        ({"VERILOG_DATASET": "dir:/no/such/folder"}, "/no/such/folder"),
        ({"VERILOG_PORT": "many"}, "should be a valid integer"),
    ):
        with pytest.raises(AssertionError, match="stopped") as stopped:
            async with server_in(tmp_path, **variables):
                pass
        assert said in str(stopped.value)
