"""Two replicas on one Ray cluster: load, a replica that is killed, sessions on both, and nothing left afterwards."""

import asyncio
import contextlib
import itertools
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.cluster import START_S, RayCluster, ray_cluster, until
from tests.support import DEADLINE_S, HANGS, KEY, MIN_MAX, MIN_MAX_PORTS, call, rollout_body, simulators_in

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install '.[ray]'"),
]
DESIGNS = Path(__file__).parents[1] / "problems" / "bundled_wrong"
PROBLEMS = ("vt001_min_max", "vt004_popcount_threshold", "vt010_edge_pulse")
ROLLOUTS, AT_ONCE, KILL_AFTER = 200, 16, 60
SLOW = f"{MIN_MAX_PORTS}  reg x = 0;\n  initial repeat (8000000) x = ~x;\nendmodule\n"
"""A design that is wrong, and needs some seconds to say so."""
STIMULUS_KEY = "a-stimulus-key-nobody-else-has"


@dataclass
class Load:
    """Scripted rollouts whose outcome is known, each repeated until it is answered."""

    client: httpx.AsyncClient
    outcomes: Counter[bool] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def one(self, number: int, design: Path) -> None:
        content = design.read_text("utf-8")
        ops = [call("write_file", path="TopModule.sv", content=content), call("submit")]
        body = rollout_body(ops=ops, env={"problem": design.parent.name}, run_id=f"run-{number}")
        while True:
            response = await self.client.post("/rollout", json=body)
            if response.status_code == 200:
                break
            error = response.json()["error"]
            assert error["retryable"], error
            self.faults[error["code"]] += 1
            await asyncio.sleep(0.2)
        passed = response.json()["metrics"]["details"]["task_completed"]
        self.outcomes[passed] += 1
        if passed != design.stem.startswith("ok_"):
            self.wrong.append(f"{design}: {passed}")

    async def all(self) -> None:
        """`AT_ONCE` callers share the work."""
        designs = itertools.cycle([path for name in PROBLEMS for path in sorted((DESIGNS / name).glob("*.sv"))])
        work = iter([(number, next(designs)) for number in range(ROLLOUTS)])

        async def caller() -> None:
            for number, design in work:
                await self.one(number, design)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(caller())


async def test_two_replicas_serve_survive_a_kill_and_leave_nothing() -> None:
    variables = {
        "VERILOG_STIMULUS_KEY": STIMULUS_KEY,
        "VERILOG_RUN_CPU_S": "100",
        "VERILOG_VERDICT_CACHE": "off",  # every rollout simulates
    }
    async with (
        ray_cluster(replicas=2, variables=variables, num_cpus=0.5, health_check_period_s=1, drain_s=20) as cluster,
        httpx.AsyncClient(base_url=cluster.url, headers={"X-API-Key": KEY}, timeout=DEADLINE_S) as client,
    ):
        await ready(cluster, client)
        await keys_are_asked_for(client)
        await a_session_is_stepped_by_both_replicas(cluster, client)
        await a_step_that_dies_with_its_replica_can_be_repeated(cluster, client)
        await load_with_a_kill_in_the_middle(cluster, client)
        await sessions_that_die_with_their_actor_can_be_opened_anew(cluster, client)
        await a_caller_that_hangs_up_stops_its_simulation(cluster, client)
        no_key_is_in_any_log(cluster)
        await cluster.stop()
        assert cluster.directories == {}, "replicas that stop remove theirs"


async def ready(cluster: RayCluster, client: httpx.AsyncClient) -> None:
    """Wait until every replica gets requests: they open the service before Ray sends them any."""
    async with asyncio.timeout(START_S):
        while len(served_by(cluster, "first-")) < 2:
            assert cluster.process.poll() is None, cluster.output()
            with contextlib.suppress(httpx.ConnectError):
                await client.get("/info", headers={"X-Request-ID": "first-"})
            await asyncio.sleep(0.1)
    assert (await client.get("/ready")).json()["ready"]


def served_by(cluster: RayCluster, request_id: str) -> set[str]:
    """The logs of the replicas that answered requests whose id begins so."""
    return {
        name for name, text in cluster.logs() if name.startswith("worker-") and f'"request_id":"{request_id}' in text
    }


async def keys_are_asked_for(client: httpx.AsyncClient) -> None:
    assert (await client.get("/info", headers={"X-API-Key": "wrong"})).status_code == 401
    health = (await client.get("/health")).json()
    assert health["capacity"]["max_children"] == 1, "half a core each, rounded up"


async def a_replica_that_simulates(cluster: RayCluster, task: "asyncio.Task[Any]") -> int:
    """Its process id; `task` is what makes it simulate."""
    while not task.done():
        for pid, path in cluster.directories.items():
            if simulators_in(path):
                return pid
        await asyncio.sleep(0.01)
    pytest.fail(f"no replica was seen simulating: {task.result()}")


async def answered(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> httpx.Response:
    """The first answer that is not a fault that can be retried."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            response = await client.post(path, json=body)
            if response.status_code == 200 or not response.json()["error"]["retryable"]:
                return response
            await asyncio.sleep(0.2)


async def a_session_is_stepped_by_both_replicas(cluster: RayCluster, client: httpx.AsyncClient) -> None:
    opened = await client.post("/env/verilog/initialize", json={"session_id": "both", "config": MIN_MAX})
    assert opened.json()["env_id"] == "both"
    content, steps = (DESIGNS / "vt001_min_max" / "ok_offset_binary.sv").read_text("utf-8"), 0

    async def step(*calls: dict[str, Any]) -> dict[str, Any]:
        nonlocal steps
        body = {"env_id": "both", "step_id": str(steps), "tool_calls": list(calls)}
        headers = {"X-Request-ID": f"session-step-{steps}"}
        steps += 1
        response = await client.post("/env/verilog/step", json=body, headers=headers)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    await step(call("write_file", path="TopModule.sv", content=content))
    took_part: set[str] = set()
    while len(took_part) < 2:
        assert steps < 20, "one replica took all steps"
        await step(call("write_file", path=f"note{steps}.v", content=f"// {steps}\n"))
        took_part = served_by(cluster, "session-step-")
    last = await step(call("compile", sources=["TopModule.sv"]), call("submit"))
    assert last["info"]["task_completed"], last["info"]
    assert last["info"]["total_reward"] == pytest.approx(0.1 + 10.0 - 0.01 * (steps + 1))
    closed = await client.post("/env/verilog/terminate", json={"env_id": "both"})
    assert closed.json()["task_completed"]


async def a_step_that_dies_with_its_replica_can_be_repeated(cluster: RayCluster, client: httpx.AsyncClient) -> None:
    await client.post("/env/verilog/initialize", json={"session_id": "killed", "config": MIN_MAX})
    calls = [call("write_file", path="TopModule.v", content=SLOW), call("simulate")]
    body = {"env_id": "killed", "step_id": "one", "tool_calls": calls}
    stepping = asyncio.create_task(client.post("/env/verilog/step", json=body))
    before = cluster.replicas

    os.kill(await a_replica_that_simulates(cluster, stepping), signal.SIGKILL)
    lost = await stepping
    assert (lost.status_code, lost.json()["error"]["code"]) == (503, "replica_lost")

    again = await answered(client, "/env/verilog/step", body)
    assert again.status_code == 200, again.text
    outcomes = [result["outcome"] for result in again.json()["info"]["tool_results"]]
    assert outcomes == ["ok", "failed"]
    assert again.json()["info"]["total_reward"] == pytest.approx(-0.02), "nothing of the lost attempt was booked"
    await until(lambda: len(cluster.replicas) == 2, "another replica takes its place")
    assert set(cluster.replicas) != set(before)


async def sessions_that_die_with_their_actor_can_be_opened_anew(cluster: RayCluster, client: httpx.AsyncClient) -> None:
    opening = {"session_id": "anew", "config": MIN_MAX}
    await client.post("/env/verilog/initialize", json=opening)
    (keeper,) = [pid for pid, command in cluster.processes.items() if "KeeperActor" in command]
    os.kill(keeper, signal.SIGKILL)
    step = {"env_id": "anew", "tool_calls": [call("write_file", path="TopModule.v", content="// nothing\n")]}
    gone = await answered(client, "/env/verilog/step", step)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "session_not_found")
    assert (await answered(client, "/env/verilog/initialize", opening)).status_code == 200
    assert (await answered(client, "/env/verilog/step", step)).status_code == 200


async def load_with_a_kill_in_the_middle(cluster: RayCluster, client: httpx.AsyncClient) -> None:
    load = Load(client)
    running = asyncio.create_task(load.all())
    await until(lambda: load.outcomes.total() >= KILL_AFTER or running.done(), "a third of the rollouts is answered")
    before = cluster.replicas
    assert len(before) == 2

    victim = await a_replica_that_simulates(cluster, running)
    os.kill(victim, signal.SIGKILL)
    await running

    assert load.wrong == []
    assert load.outcomes.total() == ROLLOUTS
    assert min(load.outcomes.values()) > 20, "designs of both kinds were among them"
    assert load.faults["replica_lost"] >= 1, "it had been working on something"
    await until(lambda: len(cluster.replicas) == 2, "another replica takes its place")
    assert victim not in cluster.replicas
    assert victim not in cluster.directories, "the new one has swept what the dead one left"


async def a_caller_that_hangs_up_stops_its_simulation(cluster: RayCluster, client: httpx.AsyncClient) -> None:
    ops = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]
    body: dict[str, Any] = rollout_body(ops=ops, env=MIN_MAX, run_id="hangs")
    asking = asyncio.create_task(client.post("/rollout", json=body))

    def simulates() -> bool:
        return any("vvp -n" in command for command in simulators_in(cluster.scratch).values())

    await until(lambda: simulates() or asking.done(), "the simulation starts")
    assert not asking.done()
    asking.cancel()
    await until(lambda: not simulators_in(cluster.scratch), "the simulation stops")


def no_key_is_in_any_log(cluster: RayCluster) -> None:
    texts = dict(cluster.logs())
    assert any("/rollout" in text for text in texts.values()), "the replicas' own lines are among them"
    for secret in (KEY, STIMULUS_KEY):
        assert [name for name, text in texts.items() if secret in text] == []
