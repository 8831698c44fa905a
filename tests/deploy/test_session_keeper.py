"""Who may work on a session, and what is kept of it, when the workers are other processes that may die."""

import asyncio
from dataclasses import dataclass

import pytest

from verilog_taskapp.deploy.session_keeper import LEASE_S, REMEMBERED_CLOSED, SessionKeeper


@dataclass
class Clock:
    """Seconds that pass when the test says so."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keeper(clock: Clock) -> SessionKeeper:
    return SessionKeeper(clock)


async def waiting_for(keeper: SessionKeeper, worker: str, token: str) -> "asyncio.Task[bool]":
    """A worker that stands in the queue for the name ``s``."""
    task = asyncio.create_task(keeper.acquire(worker, "s", token, True))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_one_has_a_name_and_the_others_get_it_in_their_turn(keeper: SessionKeeper) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    second, third = await waiting_for(keeper, "b", "2"), await waiting_for(keeper, "a", "3")
    assert not await keeper.acquire("c", "s", "4", False), "who does not wait is told so at once"
    assert await keeper.acquire("c", "other", "5", False), "another name is free"
    await keeper.release("s", "1")
    assert await second
    assert not third.done()
    await keeper.release("s", "2")
    assert await third
    await keeper.release("s", "3")
    assert await keeper.acquire("c", "s", "6", False)


async def test_who_no_longer_wants_it_is_passed_over(keeper: SessionKeeper) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    second, third = await waiting_for(keeper, "b", "2"), await waiting_for(keeper, "c", "3")
    await keeper.release("s", "2")
    assert not await second
    await keeper.release("s", "1")
    assert await third


async def test_a_call_that_was_cancelled_does_not_get_the_name(keeper: SessionKeeper) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    second, third = await waiting_for(keeper, "b", "2"), await waiting_for(keeper, "c", "3")
    second.cancel()
    await keeper.release("s", "1")
    assert await third


async def test_only_who_has_the_name_can_save(keeper: SessionKeeper) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    assert await keeper.save("s", "1", b"record", True)
    assert not await keeper.save("s", "2", b"another", True)
    assert not await keeper.save("s", "", b"another", True)
    await keeper.release("s", "1")
    assert not await keeper.save("s", "1", b"late", True)
    assert await keeper.load("s") == b"record"
    assert await keeper.load("unknown") is None


async def test_who_takes_a_name_gets_its_record_with_it(keeper: SessionKeeper) -> None:
    assert await keeper.take("a", "s", "1", True) == (True, None)
    assert await keeper.save("s", "1", b"record", True)
    assert await keeper.take("b", "s", "2", False) == (False, None)
    await keeper.release("s", "1")
    assert await keeper.take("b", "s", "2", False) == (True, b"record")


async def test_the_hold_of_a_worker_that_dies_ends_and_its_late_word_counts_nothing(
    keeper: SessionKeeper, clock: Clock
) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    dead, alive = await waiting_for(keeper, "dead", "2"), await waiting_for(keeper, "b", "3")
    clock.now += LEASE_S / 2
    await keeper.beat("b", ["3"])
    assert not alive.done(), "a may only be slow"
    clock.now += LEASE_S / 2 + 1
    await keeper.beat("b", ["3"])
    assert await alive, "neither a nor the other that is gone"
    assert not await dead
    assert not await keeper.save("s", "1", b"late", True)
    assert await keeper.save("s", "3", b"right", True)


async def test_a_worker_that_says_that_it_lives_keeps_what_it_has(keeper: SessionKeeper, clock: Clock) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    for _ in range(20):
        clock.now += LEASE_S / 2
        await keeper.beat("a", ["1"])
    assert await keeper.save("s", "1", b"record", True)


async def test_a_hold_whose_end_was_lost_on_the_way_ends_too(keeper: SessionKeeper) -> None:
    assert await keeper.acquire("a", "s", "1", True)
    second = await waiting_for(keeper, "b", "2")
    await keeper.beat("a", [])
    assert not second.done(), "the beat may have been sent before the hold was asked for"
    await keeper.beat("a", [])
    assert await second


async def test_open_sessions_are_counted_and_idle_ones_are_named(keeper: SessionKeeper, clock: Clock) -> None:
    for name in ("x", "y", "z"):
        assert await keeper.acquire("a", name, name, True)
        assert await keeper.save(name, name, b"open", True)
    assert await keeper.save("z", "z", b"closed", False)
    assert (await keeper.count(), await keeper.load("z")) == (2, b"closed")
    clock.now += 5
    await keeper.touch("y")
    clock.now += 6
    assert await keeper.unused(10) == ["x"]
    assert (await keeper.idle_s("x"), await keeper.idle_s("y"), await keeper.idle_s("unknown")) == (11, 6, 0)
    assert await keeper.load("z") is None, "a closed one of that age is forgotten"
    await keeper.touch("unknown")
    assert await keeper.idle_s("unknown") == 0


async def test_closed_sessions_are_remembered_up_to_a_number(keeper: SessionKeeper) -> None:
    for number in range(REMEMBERED_CLOSED + 2):
        name = str(number)
        assert await keeper.acquire("a", name, name, True)
        assert await keeper.save(name, name, b"closed", False)
        await keeper.release(name, name)
    assert [await keeper.load(name) for name in ("0", "1", "2")] == [None, None, b"closed"]


async def test_silence_is_measured_from_the_last_word_of_any_worker(keeper: SessionKeeper, clock: Clock) -> None:
    clock.now += 50
    assert keeper.silence_s() == 50
    await keeper.beat("a", [])
    clock.now += 7
    assert keeper.silence_s() == 7
