"""The service as a process of its own: what it told as stored is there after SIGKILL, and its metrics tell the rest."""

import asyncio
import sqlite3
from pathlib import Path

import httpx
import pytest

from tests.app.running import server_in
from tests.support import DEADLINE_S, KEY, MIN_MAX, call, rollout_body, traces_in
from verilog_taskapp.tracing.location import TraceLocation
from verilog_taskapp.tracing.record import TraceFacts
from verilog_taskapp.tracing.store import TraceStore

OPS = [call("compile"), call("submit")]


@pytest.fixture
def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(headers={"X-API-Key": KEY}, timeout=DEADLINE_S)


async def test_a_killed_server_has_stored_all_that_it_told(
    tmp_path: Path, location: TraceLocation, client: httpx.AsyncClient
) -> None:
    where = str(location.file or (location.url and location.url.get_secret_value()))
    told: list[str] = []

    async def ask(url: str) -> None:
        while True:
            try:
                answer = await client.post(f"{url}/rollout", json=rollout_body(ops=OPS, env=MIN_MAX))
            except httpx.HTTPError:  # it was killed
                return
            trace_id = answer.json()["metrics"]["details"]["trace_id"]
            assert trace_id is not None
            told.append(trace_id)

    async with client, server_in(tmp_path, VERILOG_TRACE_DB_URL=where, VERILOG_TRACE_WAIT_S="60") as server:
        asking = [asyncio.create_task(ask(server.url)) for _ in range(4)]
        async with asyncio.timeout(DEADLINE_S):
            while len(told) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        server.process.kill()
        await asyncio.gather(*asking)
    async with TraceStore(location) as store:
        assert [one for one in told if await store.load(one) is None] == []


async def test_a_session_is_stored_when_it_is_closed(tmp_path: Path, client: httpx.AsyncClient) -> None:
    async with client, server_in(tmp_path) as server:
        opened = (await client.post(f"{server.url}/env/verilog/initialize", json={"config": MIN_MAX, "seed": 7})).json()
        named = {"env_id": opened["env_id"]}
        step = {**named, "tool_calls": OPS, "step_id": "one"}
        for _ in range(2):  # a repeated step is one step
            await client.post(f"{server.url}/env/verilog/step", json=step)
        told = (await client.post(f"{server.url}/env/verilog/terminate", json=named)).json()
        again = (await client.post(f"{server.url}/env/verilog/terminate", json=named)).json()
        store = TraceStore(TraceLocation(file=server.folder / "cache" / "traces" / "traces.db"))
        async with store, store.reading() as queries:
            found = await queries.get(told["trace_id"])
    assert told == again
    assert found is not None
    facts: TraceFacts = found.facts
    assert (facts.kind, facts.run_id, facts.status, facts.outcome) == ("session", named["env_id"], "completed", "wrong")
    assert (facts.passed, facts.steps, facts.seed, facts.model) == (False, 2, 7, None)
    assert facts.episode_return == pytest.approx(told["total_reward"])
    assert facts.problem_id == MIN_MAX["problem"]
    (trace,) = traces_in(server.folder / "cache")
    events = trace["event_history"]
    assert [one["tool_calls"][0]["tool_name"] for one in events] == ["compile", "submit"]
    assert sum(one["reward"] for one in events) == pytest.approx(facts.episode_return)
    assert [one["terminated"] for one in events] == [False, True]
    roles = [one["message_type"] for one in trace["markov_blanket_message_history"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


async def test_metrics_tell_of_an_outage_and_rollouts_go_on(tmp_path: Path, client: httpx.AsyncClient) -> None:
    async with client, server_in(tmp_path) as server:

        async def rollout() -> str | None:
            answer = await client.post(f"{server.url}/rollout", json=rollout_body(ops=OPS, env=MIN_MAX))
            assert answer.status_code == 200
            found: str | None = answer.json()["metrics"]["details"]["trace_id"]
            return found

        async def metric(name: str) -> float:
            text = (await client.get(f"{server.url}/metrics")).text
            return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"{name} ")))

        while await rollout() is None:  # the database is being opened
            pass
        with sqlite3.connect(server.folder / "cache" / "traces" / "traces.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await rollout() is None
            async with asyncio.timeout(DEADLINE_S):
                while not await metric("verilog_traces_failing"):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert await metric("verilog_traces_queued") >= 1
            assert await metric('verilog_traces_total{event="failures"}') >= 1
            other.execute("ROLLBACK")
        other.close()
        async with asyncio.timeout(DEADLINE_S):
            while await metric("verilog_traces_failing") or await metric("verilog_traces_queued"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await rollout() is not None
        lines = [line["message"] for line in server.log if line.get("logger", "").startswith("verilog_taskapp.tracing")]
        assert ["cannot be stored now" in lines[0], "stored again" in lines[1], len(lines)] == [True, True, 2]
