"""Who is let in, who waits, who is sent away and for how long."""

import asyncio

import pytest

from tests.conftest import DEADLINE_S, until
from verilog_taskapp.errors import Draining, Overloaded
from verilog_taskapp.rollout.admission import LONGEST_WAIT_S, SHORTEST_WAIT_S, UNKNOWN_WAIT_S, Admission


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Guests:
    """Rollouts that stay until they are told to go."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.inside: list[str] = []
        self.doors: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def _stay(self, name: str) -> None:
        async with self.admission.place():
            self.inside.append(name)
            await self.doors[name].wait()

    async def come(self, names: str) -> None:
        for name in names:
            self.doors[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._stay(name))
            await asyncio.sleep(0)

    async def go(self, names: str) -> None:
        for name in names:
            self.doors[name].set()
            await self.tasks[name]
            await asyncio.sleep(0)


async def test_who_finds_no_room_waits_in_line_and_beyond_it_is_sent_away() -> None:
    guests = Guests(Admission(2, 2))
    await guests.come("abcd")
    assert guests.inside == ["a", "b"]
    assert (guests.admission.in_flight, guests.admission.waiting) == (2, 2)
    assert guests.admission.refusal.startswith("2 rollouts are in flight and 2 wait")
    with pytest.raises(Overloaded) as caught:
        async with guests.admission.place():
            pass
    assert (caught.value.status, caught.value.retryable, caught.value.retry_after_s) == (429, True, UNKNOWN_WAIT_S)
    await guests.go("b")
    assert guests.inside == ["a", "b", "c"]
    assert guests.admission.refusal == ""
    await guests.go("acd")
    assert (guests.admission.in_flight, guests.admission.waiting) == (0, 0)


async def test_who_leaves_the_line_makes_room_in_it() -> None:
    guests = Guests(Admission(1, 1))
    await guests.come("ab")
    guests.tasks["b"].cancel()
    await asyncio.wait([guests.tasks["b"]])
    await guests.come("c")
    await guests.go("ac")
    assert guests.inside == ["a", "c"]


async def test_the_time_to_wait_comes_from_the_rate_at_which_rollouts_end() -> None:
    clock = Clock()
    guests = Guests(Admission(1, 100, clock))
    for name in "abcde":  # one every 4 s
        await guests.come(name)
        clock.now += 4.0
        await guests.go(name)
    await guests.come("vwxyz")
    assert guests.admission.waiting == 4
    assert guests.admission.retry_after_s() == pytest.approx((4 + 1) * 4.0)
    clock.now += 3600.0
    assert guests.admission.retry_after_s() == LONGEST_WAIT_S
    await guests.go("vwxyz")
    for name in "fghij":
        await guests.come(name)
        await guests.go(name)
    clock.now += 0.001
    fresh = Guests(Admission(1, 0, clock))
    for name in "ab":
        await fresh.come(name)
        await fresh.go(name)
    assert fresh.admission.retry_after_s() == SHORTEST_WAIT_S


async def test_the_time_in_line_is_told() -> None:
    clock, told = Clock(), list[float]()
    guests = Guests(Admission(1, 1, clock))
    guests.admission.observe_wait = told.append
    await guests.come("ab")
    clock.now += 7.0
    await guests.go("ab")
    assert told == [0.0, 7.0]


async def test_a_drain_lets_nobody_in_and_waits_for_those_who_are_in_or_in_line() -> None:
    guests = Guests(Admission(1, 1))
    await guests.come("ab")
    drain = asyncio.create_task(guests.admission.drain(DEADLINE_S))
    await until(lambda: guests.admission.draining)
    with pytest.raises(Draining) as caught:
        async with guests.admission.place():
            pass
    assert (caught.value.status, caught.value.code) == (503, "draining")
    await guests.go("a")
    assert not drain.done()
    await guests.go("b")
    assert await drain is True
    assert guests.inside == ["a", "b"]


async def test_a_drain_has_an_end_of_its_own() -> None:
    guests = Guests(Admission(1, 1))
    await guests.come("a")
    assert await guests.admission.drain(0.01) is False
    await guests.go("a")
    assert await guests.admission.drain(0.01) is True
