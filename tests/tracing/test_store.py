"""The store: told is committed, faults cost a line and a counter, and nothing waits for ever."""

import asyncio
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import until
from tests.tracing.clusters import cluster, program
from tests.tracing.conftest import DatabaseKind, OpenStore, new_database
from tests.tracing.synthetic import synthetic_records
from verilog_taskapp.errors import TracesUnavailable
from verilog_taskapp.tracing import database as database_module
from verilog_taskapp.tracing import writer as writer_module
from verilog_taskapp.tracing.lists import TraceFilter
from verilog_taskapp.tracing.location import TraceLocation, parse_location
from verilog_taskapp.tracing.record import TraceRecord, new_trace_id
from verilog_taskapp.tracing.rows import Parcel
from verilog_taskapp.tracing.store import TraceStore
from verilog_taskapp.tracing.writer import WriterLimits

RECORDS = list(synthetic_records(300, steps=1))
RECORD = RECORDS[0]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage is looked at often."""
    monkeypatch.setattr(writer_module, "LONGEST_PAUSE_S", 0.1)
    monkeypatch.setattr(database_module, "BUSY_S", 0.1)


def fresh() -> TraceRecord:
    """A record that is not stored yet."""
    return replace(RECORD, facts=replace(RECORD.facts, id=new_trace_id()))


async def is_stored(store: TraceStore, record: TraceRecord) -> bool:
    return await store.load(record.facts.id) == record.document


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log holds since it was read last."""
    found = [one.getMessage() for one in caplog.records if one.name.startswith("verilog_taskapp")]
    caplog.clear()
    return found


async def test_what_is_told_as_stored_can_be_loaded_by_another_process(
    open_store: OpenStore, location: TraceLocation
) -> None:
    async with open_store() as store:
        assert await store.save(RECORD) is True
        async with TraceStore(location) as other:
            assert await is_stored(other, RECORD)
            assert await other.load("no such") is None
        assert (store.counts.stored, store.queued, store.queued_bytes) == (1, 0, 0)


async def test_many_at_once_are_committed_together(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = database_module.TraceDatabase.write

    async def counting(self: database_module.TraceDatabase, parcels: list[Parcel]) -> None:
        sizes.append(len(parcels))
        await write(self, parcels)

    monkeypatch.setattr(database_module.TraceDatabase, "write", counting)
    async with open_store() as store:
        assert all(await asyncio.gather(*(store.save(record) for record in RECORDS)))
        assert await (await store.queries()).count(TraceFilter()) == len(RECORDS)
    assert sum(sizes) == len(RECORDS)
    assert len(sizes) < 10


async def test_without_a_location_nothing_is_kept() -> None:
    async with TraceStore(None) as store:
        assert await store.save(RECORD) is False
        with pytest.raises(TracesUnavailable, match="switched off"):
            await store.load(RECORD.facts.id)


async def test_what_cannot_be_serialised_costs_only_that_trace(open_store: OpenStore) -> None:
    class Odd:
        def __str__(self) -> str:
            raise TypeError

    loop: list[Any] = []
    loop.append(loop)
    async with open_store() as store:
        assert await store.save(replace(RECORD, document={"loop": loop})) is False
        assert await store.save(replace(RECORD, document={"odd": Odd()})) is False
        assert await store.save(RECORD) is True
        assert (store.counts.refused, store.counts.stored) == (2, 1)


async def test_one_bad_row_does_not_take_its_batch_along(
    open_store: OpenStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verilog_taskapp.tracing.store.parcel", spoiling(RECORDS[3].facts.id))
    async with open_store() as store:
        told = await asyncio.gather(*(store.save(record) for record in RECORDS[:6]))
        assert told == [True, True, True, False, True, True]
        assert (store.counts.stored, store.counts.refused, store.failing) == (5, 1, False)
    assert [RECORDS[3].facts.id in line for line in lines(caplog)] == [True]


def spoiling(trace_id: str) -> Callable[[TraceRecord], Parcel]:
    from verilog_taskapp.tracing.rows import parcel

    def spoilt(record: TraceRecord) -> Parcel:
        made = parcel(record)
        return Parcel({**made.row, "steps": None}, made.body) if made.id == trace_id else made

    return spoilt


async def outage_and_end(
    store: TraceStore, caplog: pytest.LogCaptureFixture, begin: Callable[[], object], end: Callable[[], object]
) -> str:
    """Store before, during and after an outage; everything is stored in the end. Returns the line that began it."""
    records = [fresh() for _ in range(6)]
    assert await store.save(records[0]) is True
    begin()
    lines(caplog)
    assert await store.save(records[1]) is False
    assert store.failing
    told = await asyncio.wait_for(asyncio.gather(*(store.save(one) for one in records[2:5])), 5)
    assert told == [False] * 3, "at once, without waiting"
    failures = store.counts.failures
    await until(lambda: store.counts.failures >= failures + 3)
    (began,) = lines(caplog)
    end()
    await until(lambda: store.queued == 0)
    assert not store.failing
    assert await store.save(records[5]) is True
    assert [await is_stored(store, one) for one in records] == [True] * 6
    (ended,) = lines(caplog)
    assert "stored again" in ended
    assert (store.counts.stored, store.counts.dropped) == (6, 0)
    return began


async def test_a_locked_database_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "traces.db"
    async with TraceStore(TraceLocation(file=path), wait_s=30) as store:
        other: list[sqlite3.Connection] = []

        def lock() -> None:
            other.append(sqlite3.connect(path, isolation_level=None))
            other[0].execute("BEGIN IMMEDIATE")

        began = await outage_and_end(store, caplog, lock, lambda: other[0].close())
    assert "locked" in began


@contextmanager
def own_disk(folder: Path, size: str) -> Iterator[Path]:
    """A small file system of the test's own."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting needs root")
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("this container may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_full_disk_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with own_disk(tmp_path / "disk", "2m") as disk:
        async with TraceStore(TraceLocation(file=disk / "traces.db"), wait_s=30) as store:
            filler = disk / "filler"

            def fill() -> None:
                with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
                    file.writelines(bytes(4096) for _ in range(10_000))

            await store.queries()
            # The log has pages that are written again before it has to grow: leave none.
            for _ in range(3):
                await store.save(fresh())
            store.counts.stored = 0
            began = await outage_and_end_on_a_full_disk(store, caplog, fill, filler.unlink)
    assert "full" in began


async def outage_and_end_on_a_full_disk(
    store: TraceStore, caplog: pytest.LogCaptureFixture, fill: Callable[[], object], empty: Callable[[], object]
) -> str:
    fill()
    lines(caplog)
    kept = []
    while not store.failing:
        kept.append(fresh())
        await store.save(kept[-1])
    failures = store.counts.failures
    await until(lambda: store.counts.failures >= failures + 3)
    (began,) = lines(caplog)
    empty()
    await until(lambda: store.queued == 0)
    assert [await is_stored(store, one) for one in kept] == [True] * len(kept)
    assert store.counts.dropped == 0
    return began


async def test_a_disk_that_becomes_read_only_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with own_disk(tmp_path / "disk", "8m") as disk:

        def remount(how: str) -> None:
            subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)

        path = disk / "own" / "traces.db"
        async with TraceStore(TraceLocation(file=path), wait_s=30) as store:
            # A file that is open for writing keeps a disk writable: it is closed by an outage of another kind first.
            assert await store.save(fresh()) is True
            assert store._writer is not None
            assert store._writer.database is not None
            await store._writer.database.close()
            await store._writer.database.open()
            await store._writer.database.writer.dispose()
            remount("ro")
            lines(caplog)
            assert await store.save(RECORD) is False
            failures = store.counts.failures
            await until(lambda: store.counts.failures >= failures + 2)
            assert len(lines(caplog)) == 1
            remount("rw")
            await until(lambda: store.queued == 0)
            assert await is_stored(store, RECORD)


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_file_that_vanishes_is_made_again_and_nothing_told_is_in_the_old_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    path = tmp_path / "traces.db"
    async with TraceStore(TraceLocation(file=path), wait_s=30) as store:
        assert await store.save(fresh()) is True
        for name in ("traces.db", "traces.db-wal", "traces.db-shm"):
            (tmp_path / name).unlink()
        if how == "replaced":
            path.touch()
        records = [fresh() for _ in range(3)]
        await store.save(records[0])
        await until(lambda: store.queued == 0)
        for record in records[1:]:
            assert await store.save(record) is True
        assert [await is_stored(store, one) for one in records] == [True] * 3
        assert len(lines(caplog)) == 2


async def test_a_database_server_that_goes_away_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory(prefix="vt-pg-") as name:
        folder = Path(name)
        with cluster(folder) as server:
            location = parse_location(await new_database(server))
            pg_ctl = [*(["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []), program("pg_ctl") or ""]

            def server_does(*what: str) -> None:
                command = [*pg_ctl, "-D", str(folder / "data"), "-w", *what]
                subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

            options = f"-k {folder} -c listen_addresses= -c fsync=off"
            async with TraceStore(location, wait_s=30) as store:
                await outage_and_end(
                    store,
                    caplog,
                    lambda: server_does("-m", "immediate", "stop"),
                    lambda: server_does("-l", str(folder / "log"), "-o", options, "start"),
                )
        if os.geteuid() == 0:
            os.chown(folder, 0, 0)


async def test_an_outage_takes_bounded_memory_and_the_end_of_the_process_bounded_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    limits = WriterLimits(queue=5, flush_s=0.3)
    async with TraceStore(TraceLocation(file=tmp_path / "file" / "traces.db"), limits) as store:
        with pytest.raises(TracesUnavailable, match="does not answer"):
            await store.queries()
        assert [await store.save(record) for record in RECORDS[:9]] == [False] * 9
        assert (store.queued, store.counts.dropped) == (5, 4)
    assert store.counts.dropped == 9
    assert ["cannot be stored now" in line for line in lines(caplog)] == [True, False]


async def test_the_queue_is_bounded_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    limits = WriterLimits(queue_bytes=1_000_000, flush_s=0)
    async with TraceStore(TraceLocation(file=tmp_path / "file" / "traces.db"), limits, wait_s=0) as store:
        for _ in range(9):
            await store.save(replace(fresh(), document={"session_trace": "x" * 300_000}))
        assert (store.queued, store.counts.dropped) == (3, 6)
        assert store.queued_bytes < 1_000_000


async def test_what_waits_at_the_end_is_written(open_store: OpenStore, location: TraceLocation) -> None:
    async with open_store(wait_s=0) as store:
        await asyncio.gather(*(store.save(record) for record in RECORDS))
    async with TraceStore(location) as after:
        assert await (await after.queries()).count(TraceFilter()) == len(RECORDS)


async def test_an_answer_waits_for_a_commit_only_so_long(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = asyncio.Event()
    write = database_module.TraceDatabase.write

    async def late(self: database_module.TraceDatabase, parcels: list[Parcel]) -> None:
        await may_write.wait()
        await write(self, parcels)

    monkeypatch.setattr(database_module.TraceDatabase, "write", late)
    async with open_store(wait_s=0.05) as store:
        await store.queries()
        assert await store.save(RECORD) is False
        may_write.set()
        await until(lambda: store.counts.stored == 1)
        assert await is_stored(store, RECORD)


async def test_a_fault_of_the_writer_itself_is_logged_and_it_goes_on(
    open_store: OpenStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "compressed", lambda _: 1 / 0)
        async with open_store() as store:
            assert await store.save(RECORD) is False
            patch.undo()
            await until(lambda: store.counts.stored == 1)
    assert any(one.exc_info for one in caplog.records if one.levelno == logging.ERROR)


WRITES = """
import asyncio, sys
from dataclasses import replace
from tests.tracing.synthetic import synthetic_records
from verilog_taskapp.tracing.location import parse_location
from verilog_taskapp.tracing.record import new_trace_id
from verilog_taskapp.tracing.store import TraceStore

async def main():
    async with TraceStore(parse_location(sys.argv[1]), wait_s=60) as store:
        for record in synthetic_records(int(sys.argv[2]), steps=1):
            mine = replace(record, facts=replace(record.facts, id=new_trace_id(), run_id=sys.argv[3]))
            while not await store.save(mine):
                pass
            print(mine.facts.id, flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def writing(location: TraceLocation, number: int, run: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that stores traces and tells each id once it is told that it is stored."""
    where = str(location.file or (location.url and location.url.get_secret_value()))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WRITES, where, str(number), run),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_two_processes_that_start_at_once_share_a_database(location: TraceLocation) -> None:
    async with writing(location, 60, "one") as one, writing(location, 60, "two") as two:
        said = await asyncio.gather(one.communicate(), two.communicate())
    assert (one.returncode, two.returncode) == (0, 0)
    told = {line for out, _ in said for line in out.decode().split()}
    async with TraceStore(location) as store:
        queries = await store.queries()
        assert {trace.facts.id async for trace in queries.whole(TraceFilter())} == told
        assert [await queries.count(TraceFilter(run_id=run)) for run in ("one", "two")] == [60, 60]


async def test_a_kill_loses_nothing_that_was_told_as_stored(location: TraceLocation) -> None:
    async with writing(location, 100_000, "killed") as process:
        assert process.stdout is not None
        told = [(await process.stdout.readline()).decode().strip() for _ in range(40)]
        process.kill()
        told += (await process.stdout.read()).decode().split()
    whole = [one for one in told if len(one) == 32]
    assert len(whole) >= 40
    async with TraceStore(location) as store:
        assert [one for one in whole if await store.load(one) is None] == []


async def test_the_kind_is_what_the_test_says(kind: DatabaseKind, location: TraceLocation) -> None:
    assert (location.url is None) is (kind == "sqlite")
