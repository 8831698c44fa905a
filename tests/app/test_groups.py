"""Several samples of one problem in one request: what each of them got, and what a failed one costs the others."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve
from tests.support import MIN_MAX, Reply, Service, call, call_text, completion, rollout_body, turn_of
from verilog_taskapp.rollout.service import RolloutService

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUBMITS_NOTHING = -0.01
"""The return of a policy whose first turn is a submission without a design."""


def by_seed(replies: Mapping[int, Reply | None]) -> Any:
    """A model that answers by the sampling seed; None: it submits at once."""

    def answer(body: dict[str, Any]) -> Reply:
        return replies.get(body["seed"]) or completion(call_text("submit"))

    return answer


async def test_a_group_has_a_trajectory_and_a_return_for_each_sample(service: Service) -> None:
    answer = await service.rollout(env=MIN_MAX, policy={"n": 4, "seed": 10})
    metrics = answer["metrics"]
    assert metrics["num_episodes"] == len(answer["trajectories"]) == 4
    assert metrics["episode_returns"] == [one["final"]["reward"] for one in answer["trajectories"]]
    assert metrics["mean_return"] == metrics["outcome_score"] == pytest.approx(11.06)
    assert metrics["num_steps"] == sum(one["length"] for one in answer["trajectories"]) == 16
    assert {one["status"] for one in answer["trajectories"]} == {"completed"}
    assert len({one["trace_id"] for one in answer["trajectories"]}) == 4
    details = metrics["details"]
    assert (details["passed"], details["failed"], details["task_completed"]) == (4, 0, True)
    assert details["problem"] == MIN_MAX["problem"]
    assert answer["ops_executed"] == 16
    assert sorted({body["seed"] for body in service.model.bodies}) == [10, 11, 12, 13]
    assert all("n" not in body for body in service.model.bodies)


async def test_one_sample_is_an_ordinary_rollout(service: Service) -> None:
    answer = await service.rollout(env=MIN_MAX, policy={"n": 1})
    (trajectory,) = answer["trajectories"]
    assert {"status", "error", "trace_id"} & set(trajectory) == set()
    assert {"passed", "failed"} & set(answer["metrics"]["details"]) == set()


async def test_members_run_at_the_same_time(service: Service) -> None:
    together = asyncio.Barrier(3)

    class Waiting(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await asyncio.wait_for(together.wait(), 20)
            return completion(call_text("submit"))

    service.model.handle_async_request = Waiting().handle_async_request  # type: ignore[method-assign]
    try:
        answer = await service.rollout(env=MIN_MAX, policy={"n": 3})
    finally:
        del service.model.handle_async_request
    assert answer["metrics"]["episode_returns"] == [pytest.approx(SUBMITS_NOTHING)] * 3


async def test_a_member_that_fails_does_not_lose_the_others(serve: Serve) -> None:
    async with serve(inference_retries=1) as service:
        service.model.answer = by_seed({2: httpx.Response(500, text="oops")})
        answer = await service.rollout(env=MIN_MAX, policy={"n": 3, "seed": 1}, record={"return_trace": True})
        metrics = answer["metrics"]
        assert metrics["episode_returns"] == [pytest.approx(SUBMITS_NOTHING), None, pytest.approx(SUBMITS_NOTHING)]
        assert metrics["mean_return"] == pytest.approx(SUBMITS_NOTHING)
        assert (metrics["details"]["failed"], metrics["details"]["passed"], metrics["num_episodes"]) == (1, 0, 3)
        good, failed, _ = answer["trajectories"]
        assert (good["status"], failed["status"], failed["final"]) == ("completed", "failed", None)
        error = failed["error"]
        assert (error["code"], error["stage"], error["retryable"]) == ("inference_failed", "inference", True)
        assert "partial_trajectory" not in error
        stored = await service.services.traces.load(failed["trace_id"])
        assert stored is not None
        assert stored["session_trace"]["metadata"]["status"] == "failed"
        assert len(answer["trace"]["session_traces"]) == 2
        text = (await service.client.get("/metrics")).text
        assert 'verilog_rollouts_total{status="completed"} 2.0' in text
        assert 'verilog_rollouts_total{status="inference_failed"} 1.0' in text
        assert 'verilog_inference_retries_total{reason="status"} 2.0' in text


async def test_the_steps_of_a_failed_member_are_kept(serve: Serve) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        if body["seed"] == 1 and turn_of(body) == 2:
            return httpx.Response(500)
        return completion(call_text("compile" if turn_of(body) < 2 else "submit"))

    async with serve(inference_retries=1) as service:
        service.model.answer = answer
        (failed, whole) = (await service.rollout(env=MIN_MAX, policy={"n": 2, "seed": 1}))["trajectories"]
        assert (failed["length"], len(failed["steps"]), whole["length"]) == (2, 2, 3)


async def test_only_if_all_fail_is_the_answer_an_error(serve: Serve) -> None:
    async with serve(inference_retries=1) as service:
        service.model.answer = lambda _: httpx.Response(500)
        error = await service.error(502, env=MIN_MAX, policy={"n": 3})
        assert (error["code"], error["run_id"]) == ("inference_failed", "run-1")
        assert [one["code"] for one in error["members"]] == ["inference_failed"] * 3
        assert len({one["trace_id"] for one in error["members"]}) == 3


@pytest.mark.parametrize("n", [0, 65, 1.5, "4", True])
async def test_a_size_that_is_none_is_named(service: Service, n: object) -> None:
    error = await service.error(422, policy={"n": n})
    assert error["errors"][0]["field"] == "policy.config.n"


async def test_a_group_that_never_fits_is_told_so_and_one_that_does_not_fit_now_comes_again(serve: Serve) -> None:
    async with serve(max_rollouts=2, rollout_queue=1) as service:
        error = await service.error(422, policy={"n": 4})
        assert "VERILOG_MAX_ROLLOUTS" in error["message"]
        service.model.answer = lambda _: completion(call_text("submit"))
        assert len((await service.rollout(env=MIN_MAX, policy={"n": 3}))["trajectories"]) == 3
        async with service.services.rollouts.admission.place():
            response = await service.client.post("/rollout", json=rollout_body(policy={"n": 3}))
        assert (response.status_code, response.json()["error"]["code"]) == (429, "overloaded")
        assert int(response.headers["retry-after"]) >= 1


async def test_a_script_may_be_sampled_too(service: Service) -> None:
    answer = await service.rollout(env=MIN_MAX, policy={"n": 2}, ops=[call("compile"), call("submit")])
    assert answer["metrics"]["episode_returns"] == [pytest.approx(-0.02)] * 2


async def test_cancelling_a_group_stops_every_member(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.Semaphore(0)
    whole = RolloutService._play

    async def slow(self: RolloutService, running: Any) -> None:
        began.release()
        await asyncio.sleep(3600)
        await whole(self, running)

    monkeypatch.setattr(RolloutService, "_play", slow)
    task = asyncio.create_task(service.client.post("/rollout", json=rollout_body(env=MIN_MAX, policy={"n": 3})))
    for _ in range(3):
        await asyncio.wait_for(began.acquire(), 20)
    assert service.services.rollouts.in_flight == 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert service.services.rollouts.in_flight == 0
