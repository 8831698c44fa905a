"""Many rollouts in one request: a line for each as it ends, signs of life, and an end for all when the client goes."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve
from tests.app.running import Caller, server_in, until
from tests.support import (
    HANGS,
    KEY,
    MIN_MAX,
    Reply,
    Service,
    call,
    call_text,
    completion,
    rollout_body,
    simulators_in,
)
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def lines(service: Service, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    response = await service.client.post("/rollout/batch", json={"requests": list(requests)})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


async def test_every_request_is_answered_by_its_index(service: Service) -> None:
    answers = await lines(service, *(rollout_body(seed, run_id=f"run-{seed}") for seed in range(5)))
    assert sorted(one["index"] for one in answers) == [0, 1, 2, 3, 4]
    for one in answers:
        assert (set(one), one["status"]) == ({"index", "status", "response"}, 200)
        assert one["response"]["run_id"] == f"run-{one['index']}"
        assert one["response"]["metrics"]["mean_return"] == pytest.approx(11.06)


async def test_what_ends_first_is_told_first(service: Service) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        if json.loads(request.content)["seed"] == 0:
            await until(lambda: service.services.rollouts.in_flight == 1, "the other one has ended")
        return completion(call_text("submit"))

    service.model.handle_async_request = answer  # type: ignore[method-assign]
    try:
        answers = await lines(service, *(rollout_body(policy={"seed": seed}) for seed in range(2)))
    finally:
        del service.model.handle_async_request
    assert [one["index"] for one in answers] == [1, 0]


async def test_one_that_fails_has_its_error_and_the_others_their_answers(serve: Serve) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        return httpx.Response(500) if body["seed"] == 1 else completion(call_text("submit"))

    async with serve(inference_retries=1) as service:
        service.model.answer = answer
        answers = await lines(
            service,
            *(rollout_body(env=MIN_MAX, policy={"seed": seed}, run_id=f"run-{seed}") for seed in range(3)),
            rollout_body(env={"problem": "no-such-problem"}, policy={"seed": 7}),
        )
        by_index = {one["index"]: one for one in answers}
        assert [by_index[number]["status"] for number in range(4)] == [200, 502, 200, 404]
        assert by_index[1]["error"]["code"] == "inference_failed"
        assert (by_index[1]["error"]["run_id"], by_index[3]["error"]["code"]) == ("run-1", "problem_not_found")


async def test_a_batch_of_groups(service: Service) -> None:
    answers = await lines(service, *(rollout_body(seed, policy={"n": 3}) for seed in range(2)))
    assert [len(one["response"]["trajectories"]) for one in answers] == [3, 3]


async def test_bad_requests_and_bad_sizes_are_refused_before_anything_runs(service: Service) -> None:
    bad = rollout_body(policy={"temperature": "hot"})
    response = await service.client.post("/rollout/batch", json={"requests": [rollout_body(), bad]})
    assert response.status_code == 422
    assert response.json()["error"]["errors"][0]["field"] == "requests.1.policy.config.temperature"
    bodies: tuple[Any, ...] = ({"requests": []}, {}, [])
    for body in bodies:
        assert (await service.client.post("/rollout/batch", json=body)).status_code == 422
    assert service.model.requests == []


async def test_without_a_key_nobody_is_let_in(service: Service) -> None:
    response = await service.client.post("/rollout/batch", json={"requests": []}, headers={"X-API-Key": "wrong"})
    assert response.status_code == 401


async def test_a_silent_batch_shows_that_it_lives_and_dies_with_its_client(tmp_path: Path) -> None:
    problems = load_problem_set(Settings()).problems
    async with (
        ScriptedServer(ScriptedOptions(), problems) as model,
        server_in(tmp_path, VERILOG_BATCH_HEARTBEAT_S="0.05", VERILOG_VERDICT_CACHE="off") as server,
    ):
        hanging = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]
        requests = [
            rollout_body(model="scripted:mode=hang", policy={"inference_url": model.url}, env=MIN_MAX, run_id="asks"),
            rollout_body(ops=hanging, env=MIN_MAX, run_id="simulates"),
            rollout_body(policy={"inference_url": model.url}, env=MIN_MAX, run_id="ends"),
        ]
        caller = await Caller.post(server.url, "/rollout/batch", {"requests": requests})
        await caller.received(b'{"heartbeat":{"ended":0,"total":3}}')
        await caller.received(b'"run_id":"ends"')
        await caller.received(b'{"heartbeat":{"ended":1,"total":3}}')
        await until(server.simulating, "the design is simulated")
        await caller.hang_up()
        await until(lambda: model.stats.in_flight == 0, "the model is no longer asked")
        await until(lambda: not simulators_in(server.scratch), "the simulation is stopped")
    stored = {one["metadata"]["run_id"]: one["metadata"]["status"] for one in server.traces}
    assert stored == {"asks": "aborted", "simulates": "aborted", "ends": "completed"}
    assert KEY not in str(server.log)
