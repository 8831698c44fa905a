"""First come first served; what takes long makes room."""

import asyncio

import pytest

from tests.conftest import until
from verilog_taskapp.icarus.slots import Place, Slots


async def line_up(slots: Slots, names: str, got: list[str]) -> dict[str, asyncio.Task[Place]]:
    """Callers in this order; each adds its name to `got` when it has its place."""

    async def take(name: str) -> Place:
        place = await slots.take()
        got.append(name)
        return place

    tasks = {}
    for name in names:
        tasks[name] = asyncio.create_task(take(name))
        await asyncio.sleep(0)
    return tasks


async def test_places_are_given_in_the_order_of_asking() -> None:
    slots, got = Slots(2, long_s=60.0), list[str]()
    tasks = await line_up(slots, "abcde", got)
    assert (got, slots.busy, slots.waiting) == (["a", "b"], 2, 3)
    for name in "abc":
        slots.give_back(await tasks[name])
        await asyncio.sleep(0)
    assert (got, slots.busy, slots.waiting) == (list("abcde"), 2, 0)


async def test_who_comes_later_does_not_overtake_who_was_called_up() -> None:
    slots, got = Slots(1, long_s=60.0), list[str]()
    tasks = await line_up(slots, "ab", got)
    slots.give_back(await tasks["a"])  # b is called up but has not run yet
    later = await line_up(slots, "c", got)
    assert got == ["a", "b"]
    slots.give_back(await tasks["b"])
    await later["c"]
    assert got == ["a", "b", "c"]


@pytest.mark.parametrize("called_up", [False, True])
async def test_who_leaves_the_line_loses_nothing_for_the_others(called_up: bool) -> None:
    slots, got = Slots(1, long_s=60.0), list[str]()
    tasks = await line_up(slots, "abc", got)
    if called_up:
        slots.give_back(await tasks["a"])
    tasks["b"].cancel()
    await asyncio.wait([tasks["b"]])
    if not called_up:
        assert (slots.busy, slots.waiting) == (1, 1)
        slots.give_back(await tasks["a"])
    await tasks["c"]
    assert (got, slots.busy, slots.waiting) == (["a", "c"], 1, 0)


async def test_long_work_makes_room_for_as_many_again() -> None:
    slots, got = Slots(2, long_s=0.01), list[str]()
    tasks = await line_up(slots, "abcdef", got)
    await until(lambda: got == list("abcd"))
    assert (slots.busy, slots.long) == (4, 2)
    await asyncio.sleep(0.05)  # c and d are overdue too, but the long places are taken
    assert got == list("abcd")
    slots.give_back(await tasks["a"])  # c takes over its long place, e the short one of c
    await asyncio.sleep(0)
    assert (got, slots.busy, slots.long) == (list("abcde"), 4, 2)
    for name in "bcde":
        slots.give_back(await tasks[name])
    slots.give_back(await tasks["f"])
    assert (slots.busy, slots.long, slots.waiting) == (0, 0, 0)


async def test_random_coming_and_going_keeps_the_limits() -> None:
    slots, most = Slots(3, long_s=0.002), 0

    async def one(number: int) -> None:
        nonlocal most
        place = await slots.take()
        try:
            most = max(most, slots.busy)
            assert slots.busy - slots.long <= 3
            assert slots.long <= 3
            await asyncio.sleep((number % 7) / 1000)
        finally:
            slots.give_back(place)

    tasks = [asyncio.create_task(one(number)) for number in range(300)]
    for task in tasks[::5]:
        asyncio.get_running_loop().call_later(0.01, task.cancel)
    await asyncio.wait(tasks)
    assert not [task for task in tasks if not task.cancelled() and task.exception()]
    assert (slots.busy, slots.long, slots.waiting) == (0, 0, 0)
    assert most > 3


async def test_many_who_leave_at_once_end_as_cancelled_and_nothing_else() -> None:
    slots, got = Slots(2, long_s=60.0), list[str]()
    tasks = await line_up(slots, "abcdefgh", got)
    slots.give_back(await tasks["a"])  # c is called up, and leaves with all the others
    for name in "cdefg":
        tasks[name].cancel()
    ended = await asyncio.gather(*(tasks[name] for name in "cdefg"), return_exceptions=True)
    assert [type(one) for one in ended] == [asyncio.CancelledError] * 5
    await tasks["h"]
    assert (got, slots.busy, slots.waiting) == (["a", "b", "h"], 2, 0)
