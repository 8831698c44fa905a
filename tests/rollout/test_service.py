"""A rollout without HTTP: its response, its trace, its failures, and what is counted."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.rollout.conftest import OpenParts, Parts
from tests.support import (
    HANGS,
    MIN_MAX,
    MODEL_URL,
    call,
    completion,
    rollout_request,
    simulators_in,
    traces_in,
    turn_of,
)
from verilog_taskapp import __version__
from verilog_taskapp.contracts.config import EnvConfig
from verilog_taskapp.errors import EnvironmentFailed, InferenceFailed, Overloaded, ProblemNotFound, TaskAppError
from verilog_taskapp.rollout.service import RolloutService, episode_options
from verilog_taskapp.tracing.store import TraceStore

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def stored(parts: Parts, trace_id: Any) -> dict[str, Any]:
    found = await parts.services.traces.load(trace_id)
    assert found is not None
    inner: dict[str, Any] = found["session_trace"]
    return inner


async def test_a_rollout_is_played_to_its_end(parts: Parts) -> None:
    answer = await parts.services.rollouts.run(rollout_request(env=MIN_MAX))
    assert answer.metrics.mean_return == pytest.approx(11.06, abs=1e-9)
    assert answer.metrics.details.status == "completed"
    assert answer.ops_executed == 4
    assert parts.services.rollouts.in_flight == 0
    assert parts.services.rollouts.steps_taken == {
        ("write_file", "ok"): 1,
        ("compile", "ok"): 1,
        ("simulate", "ok"): 1,
        ("submit", "ok"): 1,
    }


async def test_the_trace_says_under_which_conditions_it_was_played(parts: Parts) -> None:
    env = {**MIN_MAX, "feedback": "verdict", "rewards": {"partial": 2}}
    answer = await parts.services.rollouts.run(rollout_request(env=env, policy={"heuristics": "guidance"}))
    trace = await stored(parts, answer.metrics.details.model_extra["trace_id"])  # type: ignore[index]
    metadata = trace["metadata"]
    world = parts.services.world
    assert metadata["problem"]["id"] == MIN_MAX["problem"]
    assert metadata["problem"]["content_hash"] == world.problems.get(MIN_MAX["problem"]).content_hash
    assert metadata["dataset"] == {"id": "bundled", "version": world.problems.version}
    assert metadata["versions"]["service"] == __version__
    assert metadata["versions"]["simulator"] == f"icarus {world.tools.version}"
    assert metadata["policy"] == {"model": "scripted", "inference_url": MODEL_URL, "heuristics": "guidance"}
    assert (metadata["feedback"], metadata["rewards"]["partial"]) == ("verdict", 2)
    assert (metadata["status"], metadata["stop_reason"], metadata["error"]) == ("completed", None, None)
    assert (metadata["total_reward"], metadata["task_completed"]) == (pytest.approx(11.06), True)


async def test_what_the_request_says_wins_over_the_settings(open_parts: OpenParts) -> None:
    async with open_parts(reward_submit_pass=7, reward_step_penalty=-1, feedback="verdict") as parts:
        world = parts.services.world
        plain = episode_options(EnvConfig(), world, 5)
        assert (plain.rewards.submit_pass, plain.rewards.step_penalty) == (7, -1)
        assert (plain.feedback, plain.max_steps) == ("verdict", 5)
        config = EnvConfig.model_validate({"rewards": {"submit_pass": 0}, "feedback": "waveform"})
        changed = episode_options(config, world, 6)
        assert (changed.rewards.submit_pass, changed.rewards.step_penalty) == (0, -1)
        assert (changed.feedback, changed.max_steps) == ("waveform", 6)


async def test_a_failure_carries_what_was_played_before_it(open_parts: OpenParts) -> None:
    async with open_parts(inference_retries=0) as parts:
        service = parts.services.rollouts
        parts.model.answer = lambda body: completion("hm") if turn_of(body) < 2 else httpx.Response(500)
        with pytest.raises(InferenceFailed) as failed:
            await service.run(rollout_request(env=MIN_MAX, policy={"heuristics": "off"}))
        extras = failed.value.extras
        assert extras["run_id"] == "run-1"
        assert len(extras["partial_trajectory"]["steps"]) == 2
        trace = await stored(parts, extras["trace_id"])
        assert trace["metadata"]["status"] == "failed"
        assert trace["metadata"]["error"]["code"] == "inference_failed"
        assert service.in_flight == 0
        assert service.steps_taken == {("none", "refused"): 2}


async def test_a_rollout_that_does_not_begin_names_itself_and_stores_nothing(
    open_parts: OpenParts, tmp_path: Path
) -> None:
    async with open_parts(cache_dir=tmp_path / "own") as parts:
        with pytest.raises(ProblemNotFound) as failed:
            await parts.services.rollouts.run(rollout_request(env={"problem": "no such"}))
        assert failed.value.extras["run_id"] == "run-1"
    assert traces_in(tmp_path / "own") == []


async def test_a_bug_is_an_environment_failure_and_is_logged(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise KeyError("inner")

    monkeypatch.setattr(parts.services.world.judge, "compile", broken)
    with pytest.raises(EnvironmentFailed) as failed:
        await parts.services.rollouts.run(rollout_request(env=MIN_MAX))
    assert isinstance(failed.value.__cause__, KeyError)
    assert "KeyError" in failed.value.message
    assert "inner" not in failed.value.message
    assert "a rollout failed through a fault of this service" in caplog.text
    assert (failed.value.stage, failed.value.extras["partial_trajectory"]["length"]) == ("tool", 1)


async def test_a_fault_without_a_stage_gets_one(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise TaskAppError("somewhere")

    monkeypatch.setattr(parts.services.world.judge, "compile", broken)
    with pytest.raises(TaskAppError) as failed:
        await parts.services.rollouts.run(rollout_request(env=MIN_MAX))
    assert failed.value.stage == "tool"


async def test_no_more_than_the_limit_run_at_once(open_parts: OpenParts) -> None:
    async with open_parts(max_rollouts=2, rollout_queue=0) as parts:
        service = parts.services.rollouts
        answers = await asyncio.gather(
            *(service.run(rollout_request(env=MIN_MAX, run_id=f"r{number}")) for number in range(5)),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, Overloaded)]
        assert [error.extras["run_id"] for error in refused] == ["r2", "r3", "r4"]
        assert all(error.retry_after_s for error in refused)
        assert (service.in_flight, service.admission.capacity) == (0, 2)
        assert (await service.run(rollout_request(env=MIN_MAX))).metrics.details.task_completed is True


async def test_a_cancelled_rollout_is_stored_as_aborted_and_frees_its_place(
    open_parts: OpenParts, tmp_path: Path
) -> None:
    async with open_parts(run_cpu_s=60, cache_dir=tmp_path / "own") as parts:
        services = parts.services
        scratch = services.world.runner.scratch
        await services.world.choose(problem_id=MIN_MAX["problem"])
        ops = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]
        rollout = asyncio.create_task(services.rollouts.run(rollout_request(ops=ops, env=MIN_MAX)))
        async with asyncio.timeout(60):
            while not any("vvp -n" in command for command in simulators_in(scratch).values()):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert services.rollouts.in_flight == 1
        rollout.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rollout
        assert services.rollouts.in_flight == 0
        assert simulators_in(scratch) == {}
    (trace,) = traces_in(tmp_path / "own")
    assert (trace["metadata"]["status"], trace["metadata"]["run_id"]) == ("aborted", "run-1")


async def test_traces_that_cannot_be_stored_have_no_id(parts: Parts) -> None:
    services = parts.services
    service = RolloutService(services.world, services.chat, services.rubrics, TraceStore(None))
    answer = await service.run(rollout_request(env=MIN_MAX))
    assert answer.metrics.details.model_extra is not None
    assert answer.metrics.details.model_extra["trace_id"] is None


async def test_the_rubrics_score_the_episode(parts: Parts) -> None:
    run = parts.services.rollouts.run
    good = await run(rollout_request(env=MIN_MAX))
    wrong = await run(rollout_request(env=MIN_MAX, model="scripted:mode=wrong"))
    wasteful = await run(rollout_request(env=MIN_MAX, model="scripted:episode=compile_loop"))
    assert [one.metrics.details.outcome_rubric for one in (good, wrong, wasteful)] == [1.0, 0.0, 1.0]
    assert good.metrics.events_score == 1.0
    assert wasteful.metrics.events_score is not None
    assert 0 < wasteful.metrics.events_score < 1
