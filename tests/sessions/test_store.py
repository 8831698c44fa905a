"""Sessions: each request can be repeated, every call is paid once, and what is abandoned goes."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import until
from tests.sessions.conftest import OpenStore, made_older, waiting_for
from tests.support import HANGS, MIN_MAX, call, files_in, simulators_in
from verilog_taskapp.contracts import (
    InitializeRequest,
    InitializeResponse,
    StepRequest,
    StepResponse,
    TerminateRequest,
)
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.errors import EnvironmentFailed, InvalidRequest, Overloaded, ProblemNotFound, SessionNotFound
from verilog_taskapp.scripted.designs import designs_of
from verilog_taskapp.sessions.store import REMEMBERED_STEPS, SessionStore

pytestmark = pytest.mark.asyncio(loop_scope="module")

PENALTY = -0.01


async def opened(store: SessionStore, **given: Any) -> InitializeResponse:
    return await store.initialize(InitializeRequest.model_validate({"config": MIN_MAX, **given}))


async def stepped(store: SessionStore, env_id: str, *calls: dict[str, Any], step_id: str | None = None) -> StepResponse:
    request = {"env_id": env_id, "tool_calls": list(calls), "step_id": step_id}
    return await store.step(StepRequest.model_validate(request))


async def terminated(store: SessionStore, env_id: str) -> dict[str, Any]:
    return (await store.terminate(TerminateRequest(env_id=env_id))).model_dump()


def write(store: SessionStore, kind: str = "right") -> dict[str, Any]:
    designs = designs_of(store._world.problems.get(MIN_MAX["problem"]))
    return call("write_file", path="TopModule.v", content=getattr(designs, kind))


def results(answer: StepResponse) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.info["tool_results"]
    return found


async def test_a_session_from_beginning_to_end(store: SessionStore) -> None:
    begun = await opened(store)
    assert begun.observation["files"].keys() == {"TopModule.v"}
    assert [message["role"] for message in begun.prompt] == ["system", "user"]
    assert store._world.problems.get(MIN_MAX["problem"]).prompt.strip() in begun.prompt[1]["content"]
    assert [tool["function"]["name"] for tool in begun.tools] == ["write_file", "compile", "simulate", "submit"]
    assert (begun.done, begun.info["problem"], begun.info["judge"]) == (False, MIN_MAX["problem"], "golden")
    calls = (write(store), call("compile"), call("simulate"), call("submit"))
    answers = [await stepped(store, begun.env_id, one) for one in calls]
    assert [one.reward for one in answers] == pytest.approx([PENALTY, 0.09, 0.99, 9.99], abs=1e-9)
    assert [one.done for one in answers] == [False, False, False, True]
    assert answers[-1].info["task_completed"] is True
    assert answers[-1].info["total_reward"] == pytest.approx(11.06, abs=1e-9)
    assert answers[-1].observation["terminated"] is True
    facts = await terminated(store, begun.env_id)
    assert facts == {
        "ok": True,
        "known": True,
        "env_id": begun.env_id,
        "status": "terminated",
        "total_reward": pytest.approx(11.06, abs=1e-9),
        "task_completed": True,
        "steps": 4,
        "done": True,
        "truncated": False,
        "trace_id": None,
    }
    assert await terminated(store, begun.env_id) == facts, "once more changes nothing"
    assert len(store) == 0


async def test_several_calls_of_one_step_are_paid_together(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    answer = await stepped(
        store, env_id, write(store), call("compile"), call("simulate"), call("submit"), call("compile")
    )
    assert [one["tool"] for one in results(answer)] == ["write_file", "compile", "simulate", "submit"]
    assert answer.reward == pytest.approx(11.06, abs=1e-9)
    assert sum(one["reward"] for one in results(answer)) == pytest.approx(answer.reward, abs=1e-9)
    assert answer.done is True


async def test_calls_in_the_style_of_openai_keep_their_ids(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    answer = await stepped(
        store,
        env_id,
        {"id": "call_1", "type": "function", "function": {"name": "compile", "arguments": "{}"}},
        {"id": "call_2", "type": "function", "function": {"name": "compile", "arguments": "{broken"}},
        {"id": "call_3", "type": "function", "function": {"name": "Compile ", "arguments": None}},
    )
    assert [(one["id"], one["outcome"]) for one in results(answer)] == [
        ("call_1", "failed"),
        ("call_2", "refused"),
        ("call_3", "failed"),
    ]


async def test_bad_calls_cost_the_penalty_and_say_why(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    bad: list[tuple[dict[str, Any], str]] = [
        ({"tool": "dance", "args": {}}, "dance"),
        ({}, "no tool"),
        ({"tool": "write_file", "args": []}, "must be a JSON object"),
        ({"tool": "write_file", "args": {"path": "a.v"}}, "content is missing"),
        ({"tool": "write_file", "args": {"path": "../a.v", "content": ""}}, "inside the workspace"),
        ({"tool": "compile", "args": {"sources": ["none.v"]}}, "no such file"),
    ]
    for request, said in bad:
        answer = await stepped(store, env_id, request)
        (result,) = results(answer)
        assert result["outcome"] == "refused", request
        assert answer.reward == pytest.approx(PENALTY), request
        assert said in result["message"]
    empty = await stepped(store, env_id)
    assert results(empty)[0]["message"] == "the step has no tool call"
    assert empty.reward == pytest.approx(PENALTY)
    assert empty.info["total_reward"] == pytest.approx(7 * PENALTY)


async def test_every_result_has_the_same_keys(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    answers = [
        await stepped(store, env_id, call("compile"), {"tool": "dance"}),
        await stepped(store, env_id),
        await stepped(store, env_id, call("submit")),
        await stepped(store, env_id, call("compile")),
    ]
    keys = {tuple(sorted(one)) for answer in answers for one in results(answer)}
    assert len(keys) == 1


async def test_after_the_end_nothing_happens_and_nothing_is_paid(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    end = await stepped(store, env_id, call("submit"))
    for calls in ([write(store), call("submit")], []):
        answer = await stepped(store, env_id, *calls)
        assert (answer.done, answer.reward, answer.truncated) == (True, 0.0, False)
        assert [one["outcome"] for one in results(answer)] == ["refused"]
        assert answer.observation == end.observation


async def test_max_steps_truncates(store: SessionStore) -> None:
    begun = await opened(store, config={**MIN_MAX, "max_steps": 3})
    assert (begun.info["max_steps"], begun.observation["steps_left"]) == (3, 3)
    first = await stepped(store, begun.env_id, call("compile"))
    assert (first.done, first.observation["steps_left"]) == (False, 2)
    last = await stepped(store, begun.env_id, call("compile"), {"tool": "dance"}, write(store), call("submit"))
    assert len(results(last)) == 2, "the rest comes too late"
    assert (last.done, last.truncated, last.info["stop_reason"]) == (True, True, "max_steps")
    assert (await terminated(store, begun.env_id))["truncated"] is True


async def test_a_submission_as_the_last_step_is_no_truncation(store: SessionStore) -> None:
    begun = await opened(store, config={**MIN_MAX, "max_steps": 2})
    answer = await stepped(store, begun.env_id, write(store), call("submit"))
    assert (answer.done, answer.truncated, answer.info["stop_reason"]) == (True, False, None)
    assert answer.info["task_completed"] is True


async def test_opening_again_by_the_same_name_opens_nothing_new(store: SessionStore) -> None:
    first = await opened(store, session_id="mine")
    await stepped(store, "mine", write(store), call("compile"))
    assert await opened(store, session_id="mine") == first
    assert len(store) == 1
    assert (await stepped(store, "mine", call("simulate"))).info["total_reward"] == pytest.approx(1.1 - 0.03, abs=1e-9)


async def test_opening_the_same_name_at_the_same_time_opens_one(store: SessionStore) -> None:
    answers = await asyncio.gather(*(opened(store, session_id="mine") for _ in range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert len(store) == 1


async def test_sessions_without_a_name_are_apart(store: SessionStore) -> None:
    first, second = await opened(store), await opened(store)
    await stepped(store, first.env_id, write(store, "wrong"))
    answer = await stepped(store, second.env_id, call("compile"))
    assert answer.observation["files"] == second.observation["files"]
    assert first.env_id != second.env_id


async def test_the_same_step_twice_is_one_step(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    first = await stepped(store, env_id, write(store), call("compile"), step_id="1")
    again = await stepped(store, env_id, write(store), call("compile"), step_id="1")
    assert again == first
    other = await stepped(store, env_id, call("compile"), step_id="2")
    assert other.reward == pytest.approx(PENALTY)
    assert (await stepped(store, env_id, call("compile"), step_id="1")) == first, "even after another"
    assert other.info["total_reward"] == pytest.approx(0.1 + 3 * PENALTY, abs=1e-9)


async def test_the_same_step_at_the_same_time_is_one_step(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    answers = await asyncio.gather(
        *(stepped(store, env_id, write(store), call("simulate"), step_id="1") for _ in range(6))
    )
    assert all(answer == answers[0] for answer in answers)
    assert answers[0].info["total_reward"] == pytest.approx(1.0 + 2 * PENALTY, abs=1e-9)


async def test_steps_of_one_session_follow_one_another(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    answers = await asyncio.gather(*(stepped(store, env_id, call("compile")) for _ in range(5)))
    totals = [answer.info["total_reward"] for answer in answers]
    assert totals == pytest.approx([PENALTY * number for number in range(1, 6)])


async def test_answers_are_remembered_up_to_a_number(store: SessionStore) -> None:
    env_id = (await opened(store, config={**MIN_MAX, "max_steps": 1})).env_id
    first = await stepped(store, env_id, call("compile"), step_id="0")
    for number in range(1, REMEMBERED_STEPS):
        await stepped(store, env_id, step_id=str(number))
    assert await stepped(store, env_id, call("compile"), step_id="0") == first
    await stepped(store, env_id, step_id="one more")
    assert results(await stepped(store, env_id, call("compile"), step_id="0"))[0]["outcome"] == "refused"


class Failing:
    """Makes an episode's calls of one tool fail through a fault of ours, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tool: str, times: int) -> None:
        self.executed: list[str] = []
        self.times = times
        step = Episode.step

        async def failing(episode: Episode, request: Any) -> Any:
            if request.tool == tool and self.times:
                self.times -= 1
                raise EnvironmentFailed("the simulator went away")
            self.executed.append(request.tool)
            return await step(episode, request)

        monkeypatch.setattr(Episode, "step", failing)


async def test_a_step_that_we_failed_goes_on_where_it_stopped(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_id = (await opened(store)).env_id
    failing = Failing(monkeypatch, "simulate", times=2)
    calls = (write(store), call("compile"), call("simulate"), call("submit"))
    for _ in range(2):
        with pytest.raises(EnvironmentFailed):
            await stepped(store, env_id, *calls, step_id="1")
    answer = await stepped(store, env_id, *calls, step_id="1")
    assert failing.executed == ["write_file", "compile", "simulate", "submit"]
    assert answer.reward == pytest.approx(11.06, abs=1e-9), "what the first try earned comes with the answer"
    assert await stepped(store, env_id, *calls, step_id="1") == answer


async def test_a_step_that_we_failed_can_be_given_up_for_another(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_id = (await opened(store)).env_id
    Failing(monkeypatch, "simulate", times=1)
    with pytest.raises(EnvironmentFailed):
        await stepped(store, env_id, write(store), call("simulate"), step_id="1")
    answer = await stepped(store, env_id, call("simulate"), step_id="2")
    assert answer.reward == pytest.approx(0.99, abs=1e-9)
    assert answer.info["total_reward"] == pytest.approx(0.98, abs=1e-9), "the write was executed and is paid"


async def test_a_cancelled_step_stops_and_can_be_repeated(open_store: OpenStore) -> None:
    async with open_store(run_cpu_s=60) as store:
        env_id = (await opened(store)).env_id
        scratch = store._world.runner.scratch
        calls = (call("write_file", path="TopModule.v", content=HANGS), call("simulate"))
        step = asyncio.create_task(stepped(store, env_id, *calls, step_id="1"))
        async with asyncio.timeout(60):
            while not any("vvp -n" in command for command in simulators_in(scratch).values()):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert simulators_in(scratch) == {}
        assert files_in(scratch) == []
        answer = await stepped(store, env_id, calls[0], write(store), call("submit"), step_id="1")
        assert [one["tool"] for one in results(answer)] == ["write_file", "write_file", "submit"]
        assert answer.info["task_completed"] is True
        assert answer.reward == pytest.approx(10.0 + 3 * PENALTY)


async def test_unknown_and_terminated_sessions_are_not_found(store: SessionStore) -> None:
    with pytest.raises(SessionNotFound, match="'nothing'"):
        await stepped(store, "nothing", call("compile"))
    assert await terminated(store, "nothing") == {"ok": True, "known": False}
    env_id = (await opened(store)).env_id
    await terminated(store, env_id)
    with pytest.raises(SessionNotFound):
        await stepped(store, env_id, call("compile"))


async def test_a_step_that_waited_while_its_session_was_terminated_is_not_found(store: SessionStore) -> None:
    env_id = (await opened(store)).env_id
    async with store._backend.hold(env_id):  # so that all three wait, in this order
        first = asyncio.create_task(stepped(store, env_id, write(store), call("simulate")))
        await until(lambda: waiting_for(store, env_id) == 2)
        ending = asyncio.create_task(terminated(store, env_id))
        await until(lambda: waiting_for(store, env_id) == 3)
        late = asyncio.create_task(stepped(store, env_id, call("compile")))
        await until(lambda: waiting_for(store, env_id) == 4)
    assert (await first).info["total_reward"] == pytest.approx(0.98)
    assert (await ending)["steps"] == 2
    with pytest.raises(SessionNotFound):
        await late


async def test_a_terminated_name_can_be_used_again(store: SessionStore) -> None:
    await opened(store, session_id="mine")
    await stepped(store, "mine", write(store), call("compile"))
    await terminated(store, "mine")
    fresh = await opened(store, session_id="mine")
    assert fresh.observation["total_reward"] == 0
    assert (await terminated(store, "mine"))["steps"] == 0


async def test_idle_sessions_expire_and_busy_ones_do_not(open_store: OpenStore) -> None:
    async with open_store(session_ttl_s=1000) as store:
        idle, used = (await opened(store)).env_id, (await opened(store)).env_id
        made_older(store, idle, 900)
        assert await store.sweep() == 0
        made_older(store, idle, 101)
        assert await store.sweep() == 1
        assert (len(store), store.expired) == (1, 1)
        with pytest.raises(SessionNotFound):
            await stepped(store, idle, call("compile"))
        assert (await terminated(store, idle))["status"] == "expired"
        made_older(store, used, 10_000)
        async with store._backend.hold(used):
            assert await store.sweep() == 0, "not in the middle of a step"
        await stepped(store, used, call("compile"))
        assert await store.sweep() == 0, "the step used it"


async def test_using_a_session_keeps_it(open_store: OpenStore) -> None:
    async with open_store(session_ttl_s=1000) as store:
        await opened(store, session_id="mine")
        uses = [
            stepped(store, "mine", call("compile"), step_id="1"),
            stepped(store, "mine", call("compile"), step_id="1"),
            opened(store, session_id="mine"),
        ]
        for use in uses:
            made_older(store, "mine", 1001)
            await use
            assert await store.sweep() == 0


async def test_abandoned_sessions_are_freed(open_store: OpenStore, session_dir: Path | None) -> None:
    async with open_store(max_sessions=200) as store:
        names = [(await opened(store)).env_id for _ in range(200)]
        with pytest.raises(Overloaded):
            await opened(store)
        for name in names:
            made_older(store, name, 601)
        assert await store.sweep() == 200
        assert len(store) == 0
        assert files_in(store._world.runner.scratch) == []
        if session_dir:
            assert [path.parent.name for path in files_in(session_dir)] == ["closed"] * 200
            for path in files_in(session_dir):
                os.utime(path, (0, 0))
            await store.sweep()
            assert files_in(session_dir) == []
        assert (await opened(store)).done is False


async def test_more_sessions_than_the_server_takes_are_sent_away(open_store: OpenStore) -> None:
    async with open_store(max_sessions=2) as store:
        first = await opened(store, session_id="a")
        await opened(store)
        with pytest.raises(Overloaded, match="2 sessions") as refused:
            await opened(store)
        assert refused.value.retry_after_s
        assert await opened(store, session_id="a") == first, "an open one can still be asked for"
        await terminated(store, "a")
        await opened(store)


async def test_openings_at_the_same_time_respect_the_limit(open_store: OpenStore) -> None:
    async with open_store(max_sessions=3) as store:
        answers = await asyncio.gather(*(opened(store) for _ in range(8)), return_exceptions=True)
        assert sum(isinstance(answer, Overloaded) for answer in answers) == 5
        assert len(store) == 3


async def test_what_cannot_be_opened_leaves_nothing_behind(store: SessionStore) -> None:
    with pytest.raises(ProblemNotFound):
        await opened(store, session_id="mine", config={"problem": "no such"})
    with pytest.raises(InvalidRequest):
        await store._world.choose(split="dev")
    assert waiting_for(store, "mine") == 0
    assert (len(store), store._opening) == (0, 0)
    assert (await opened(store, session_id="mine")).env_id == "mine"


async def test_the_configuration_of_a_session_is_its_own(store: SessionStore) -> None:
    config = {**MIN_MAX, "rewards": {"compile_success": 5}, "feedback": "waveform"}
    env_id = (await opened(store, config=config)).env_id
    answer = await stepped(store, env_id, write(store, "wrong"), call("compile"), call("simulate"))
    assert answer.reward == pytest.approx(5 + 3 * PENALTY)
    assert "waveform" in results(answer)[-1]["facts"]
    plain = await stepped(store, (await opened(store)).env_id, write(store, "wrong"), call("simulate"))
    assert "waveform" not in results(plain)[-1]["facts"]


async def test_a_seed_chooses_the_problem(store: SessionStore) -> None:
    problems = store._world.problems
    for seed in (0, 3, None):
        begun = await opened(store, seed=seed, config={})
        assert begun.info["problem"] == problems.select("val", seed).id
