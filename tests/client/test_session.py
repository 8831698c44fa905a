"""Episodes step by step: nothing is done twice, nothing is left open."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.client.conftest import Network, client_over
from tests.support import MIN_MAX, Service
from verilog_taskapp.client import Client, ServiceUnreachable, SessionNotOpen, tool_messages
from verilog_taskapp.errors import EnvironmentFailed, ProblemNotFound, SessionNotFound
from verilog_taskapp.scripted.designs import designs_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOST = httpx.ReadError("the answer got lost")


def right_design(service: Service) -> str:
    return designs_of(service.problems.get(MIN_MAX["problem"])).right


async def test_an_episode(client: Client, service: Service) -> None:
    async with client.session(config=MIN_MAX) as session:
        assert [one["role"] for one in session.opened.prompt] == ["system", "user"]
        assert session.opened.info["problem"] == MIN_MAX["problem"]
        assert (session.done, session.total_reward, session.last) == (False, 0.0, None)
        assert session.observation["files"]["TopModule.v"] != right_design(service)
        written = await session.step("write_file", {"path": "TopModule.v", "content": right_design(service)})
        assert session.observation["files"]["TopModule.v"] == right_design(service)
        assert tool_messages(written)[0].startswith("wrote")
        submitted = await session.step("submit")
        assert submitted.reward == pytest.approx(9.99)
        assert session.done
        assert session.total_reward == pytest.approx(9.98)
    assert session.final is not None
    assert session.final.model_dump()["total_reward"] == pytest.approx(9.98)
    assert not session.is_open
    assert len(service.services.sessions) == 0


async def test_what_the_policy_does_wrong_is_an_answer(client: Client) -> None:
    async with client.session(config=MIN_MAX) as session:
        for tool, arguments in (("compil", {}), ("write_file", "not json"), ("write_file", {"path": "../x"})):
            answer = await session.step(tool, arguments)
            assert answer.reward == pytest.approx(-0.01)
            assert answer.info["tool_results"][0]["outcome"] == "refused"
        assert (await session.step_calls([])).reward == pytest.approx(-0.01)
        two = await session.step_calls([{"tool": "compile"}, {"function": {"name": "simulate", "arguments": "{}"}}])
        assert len(tool_messages(two)) == 2


async def test_it_is_closed_whatever_happens(client: Client, service: Service) -> None:
    with pytest.raises(ZeroDivisionError):
        async with client.session(config=MIN_MAX):
            raise ZeroDivisionError
    assert len(service.services.sessions) == 0
    entered = asyncio.Event()

    async def for_ever() -> None:
        async with client.session(config=MIN_MAX):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(for_ever())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(service.services.sessions) == 0


async def test_an_opening_without_an_answer_leaves_nothing_open(network: Network, service: Service) -> None:
    network.after = [LOST]
    async with client_over(network, retries=0) as client:
        with pytest.raises(ServiceUnreachable):
            async with client.session(config=MIN_MAX):
                pytest.fail("it was never opened")
    assert network.seen == ["/env/verilog/initialize", "/env/verilog/terminate"]
    assert len(service.services.sessions) == 0


async def test_lost_answers_are_asked_for_again_and_nothing_is_done_twice(
    network: Network, client: Client, service: Service
) -> None:
    network.after = [LOST, None, LOST, None, LOST, LOST]
    async with client.session(config=MIN_MAX) as session:
        assert len(service.services.sessions) == 1
        await session.step("compile")
        assert session.total_reward == pytest.approx(-0.01)
        assert session.observation["steps_left"] == 24
        facts = await session.close()
        assert facts is not None
        assert facts.model_dump()["steps"] == 1
    assert (
        network.seen
        == [f"/env/verilog/{name}" for name in ("initialize", "initialize", "step", "step")]
        + ["/env/verilog/terminate"] * 3
    )


async def test_a_step_that_failed_is_taken_up_by_the_same_call(network: Network, service: Service) -> None:
    async with client_over(network, retries=0) as client, client.session(config=MIN_MAX) as session:
        network.after = [LOST]
        with pytest.raises(ServiceUnreachable):
            await session.step("compile")
        assert session.last is None
        again = await session.step("compile")
        assert again.info["total_reward"] == pytest.approx(-0.01)
        other = await session.step("compile")
        assert other.info["total_reward"] == pytest.approx(-0.02)


async def test_a_fault_of_the_environment_is_no_reward(
    network: Network, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise EnvironmentFailed("no room on the disk")

    async with client_over(network, retries=1) as client, client.session(config=MIN_MAX) as session:
        await session.step("write_file", {"path": "TopModule.v", "content": right_design(service)})
        with monkeypatch.context() as patch:
            patch.setattr(service.services.world.judge, "compile", broken)
            with pytest.raises(EnvironmentFailed, match="no room"):
                await session.step("submit")
        assert not session.done
        assert (await session.step("submit")).reward == pytest.approx(9.99)


async def test_reset_begins_anew(client: Client, service: Service) -> None:
    session = client.session(seed=0, config={"split": "all", "max_steps": 2})
    with pytest.raises(SessionNotOpen):
        await session.step("compile")
    first = await session.reset()
    await session.step("compile")
    second = await session.reset()
    assert second.env_id != first.env_id
    assert second.info == first.info
    assert session.observation == first.observation
    third = await session.reset(seed=1)
    assert third.info["problem"] != first.info["problem"]
    assert third.info["max_steps"] == 2
    fourth = await session.reset(config=MIN_MAX)
    assert fourth.info["problem"] == MIN_MAX["problem"]
    assert len(service.services.sessions) == 1
    await session.close()
    assert await session.close() is None
    assert len(service.services.sessions) == 0
    with pytest.raises(SessionNotOpen):
        _ = session.observation


async def test_faults_of_the_choice(client: Client) -> None:
    with pytest.raises(ProblemNotFound):
        await client.session(config={"problem": "nothing"}).reset()
    with pytest.raises(ValueError, match="max_steps"):
        client.session(config={"max_steps": "many"})


async def test_an_expired_session_is_not_opened_again_in_silence(client: Client, service: Service) -> None:
    async with client.session(config=MIN_MAX) as session:
        await service.post("/env/verilog/terminate", {"env_id": session.id})
        with pytest.raises(SessionNotFound):
            await session.step("compile")
