"""Retention: the oldest go, by age and by size, and never too many."""

import asyncio
from datetime import timedelta

import pytest

from tests.conftest import until
from tests.tracing.conftest import OpenStore
from tests.tracing.synthetic import START, fill, synthetic_records
from verilog_taskapp.tracing import retention, writer
from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.lists import TraceFilter
from verilog_taskapp.tracing.location import TraceLocation
from verilog_taskapp.tracing.queries import TraceQueries
from verilog_taskapp.tracing.retention import ROW_BYTES, prune


@pytest.fixture
def queries(database: TraceDatabase) -> TraceQueries:
    return TraceQueries(database.readers)


async def prune_all(database: TraceDatabase, now_s: float, max_age_s: float, max_bytes: int) -> int:
    removed = 0
    while now := await prune(database, now_s=now_s, max_age_s=max_age_s, max_bytes=max_bytes):
        removed += now
    return removed


async def test_traces_beyond_the_age_go(database: TraceDatabase, queries: TraceQueries) -> None:
    records = list(synthetic_records(300, steps=1))
    await fill(database, 300, steps=1)
    cut = START + timedelta(seconds=250)
    assert await prune(database, now_s=cut.timestamp() + 60, max_age_s=60, max_bytes=0) == retention.BATCH
    await prune_all(database, cut.timestamp() + 60, 60, 0)
    left = [trace.facts async for trace in queries.whole(TraceFilter())]
    assert len(left) == sum(one.facts.finished_at >= cut for one in records)
    assert min(one.finished_at for one in left) >= cut


async def test_the_oldest_go_when_there_is_too_much(database: TraceDatabase, queries: TraceQueries) -> None:
    await fill(database, 500, steps=1)
    before = [one.facts async for one in queries.whole(TraceFilter())]
    room = sum(one.body_bytes + ROW_BYTES for one in before) // 4
    removed = await prune_all(database, 0, 0, room)
    left = [one.facts async for one in queries.whole(TraceFilter())]
    assert removed == len(before) - len(left)
    held = sum(one.body_bytes + ROW_BYTES for one in left)
    assert room - 2 * max(one.body_bytes + ROW_BYTES for one in before) < held <= room
    oldest_first = sorted(before, key=lambda one: (one.finished_at, one.id))
    assert {one.id for one in left} == {one.id for one in oldest_first[-len(left) :]}


async def test_several_processes_at_once_do_not_remove_too_much(
    database: TraceDatabase, queries: TraceQueries, location: TraceLocation
) -> None:
    await fill(database, 500, steps=1)
    room = sum([one.facts.body_bytes + ROW_BYTES async for one in queries.whole(TraceFilter())]) // 2
    others = [TraceDatabase(location) for _ in range(3)]
    for other in others:
        await other.open()
    await asyncio.gather(*(prune_all(one, 0, 0, room) for one in (database, *others)))
    await prune_all(database, 0, 0, room)
    held = [one.facts.body_bytes + ROW_BYTES async for one in queries.whole(TraceFilter())]
    assert room - 2 * max(held) < sum(held) <= room
    for other in others:
        await other.close()


async def test_a_file_gives_its_room_back(database: TraceDatabase, location: TraceLocation) -> None:
    if location.file is None:
        pytest.skip("a server has files of its own")
    await fill(database, 1500, steps=20)
    await database.close()
    full = location.file.stat().st_size
    await database.open()
    await prune_all(database, 0, 0, 1)
    await database.close()
    assert location.file.stat().st_size < full / 4


async def test_no_limit_removes_nothing(database: TraceDatabase) -> None:
    await fill(database, 10, steps=1)
    assert await prune(database, now_s=1e12, max_age_s=0, max_bytes=0) == 0


async def test_a_store_keeps_to_its_limits_by_itself(
    open_store: OpenStore, database: TraceDatabase, queries: TraceQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PRUNE_EVERY_S", 0.05)
    await fill(database, 600, steps=1)
    async with open_store(max_age_s=60.0) as store:
        await until(lambda: store.counts.removed == 600)
    assert await queries.count(TraceFilter()) == 0
