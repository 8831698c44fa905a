"""The one task of a process that writes traces: many at once, again after an outage, and none twice."""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verilog_taskapp.tracing.faults import TraceDatabaseFailed, TracesRefused
from verilog_taskapp.tracing.location import TraceLocation
from verilog_taskapp.tracing.queue import TraceQueue, Waiting

if TYPE_CHECKING:
    from verilog_taskapp.tracing.database import TraceDatabase

BATCH, BATCH_BYTES = 256, 8 * 1024**2
LINGER_S = 0.01
"""When traces come in company, the next commit waits this long for more; one alone never waits."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0
"""Between attempts during an outage."""
CLOSING_PAUSE_S = 0.2
PRUNE_EVERY_S = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WriterLimits:
    """See the settings of the same names."""

    queue: int = 4096
    queue_bytes: int = 64 * 1024**2
    flush_s: float = 5.0
    max_age_s: float = 0.0
    max_bytes: int = 0


@dataclass
class WriterCounts:
    """Since the start of the process."""

    stored: int = 0
    dropped: int = 0
    """There was no room while the database could not be used, or the process ended first."""
    refused: int = 0
    """Traces that could not be serialised, or that the database did not take."""
    failures: int = 0
    """Failed attempts to use the database."""
    removed: int = 0
    """By retention, by this process."""


class TraceWriter:
    """Start it, put parcels into its queue and `wake` it; `close` writes what is left."""

    def __init__(self, location: TraceLocation, limits: WriterLimits) -> None:
        self.queue = TraceQueue(limits.queue, limits.queue_bytes)
        self.counts = WriterCounts()
        self.database: TraceDatabase | None = None
        """Once it is open; during an outage the one that failed."""
        self.outage: str | None = None
        """Why the database cannot be used now."""
        self.opened = asyncio.Event()
        """The first attempt to open it is over, one way or the other."""
        self._location = location
        self._limits = limits
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._in_company = False
        self._pause_s = FIRST_PAUSE_S
        self._pruned_at = float("-inf")
        self._is_open = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Open the database and write, in the background, unless that has begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="trace writer")

    def wake(self) -> None:
        """There is something in the queue."""
        self._wake.set()

    async def close(self) -> None:
        """Write what is left, for as long as the limit says, and give the database back."""
        self._closing.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self._limits.flush_s)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if left := len(self.queue):
            self.counts.dropped += left
            log.error("%d traces could not be stored before the end: %s", left, self.outage or "there was no time")
            self.queue.put_back()
        if self.database is not None:
            with suppress(TraceDatabaseFailed):  # it is being left anyway
                await self.database.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._work()
            except TraceDatabaseFailed as failure:
                await self._failed(failure)
            except Exception:
                if self.outage is None:
                    log.exception("the writer of traces met a fault of its own")
                await self._failed(TraceDatabaseFailed("an internal error"))
            else:
                return

    async def _work(self) -> None:
        """Until the queue is empty and the writer is to close."""
        if not self._is_open:
            await self._open()
        while True:
            await self._prune()
            if not len(self.queue):
                if self._closing.is_set():
                    return
                await self._until_woken()
                continue
            if self._in_company and not self._closing.is_set():
                await asyncio.sleep(LINGER_S)
            await self._write(self.queue.take(BATCH, BATCH_BYTES))

    async def _open(self) -> None:
        if self.database is None:
            self.database = await asyncio.to_thread(_database_on, self._location)
        await self.database.open()
        self._is_open = True
        self._works_again()

    async def _write(self, batch: list[Waiting]) -> None:
        try:
            await self._opened_database.write([one.parcel for one in batch])
        except TracesRefused:
            await self._write_each(batch)
        else:
            self._stored(batch)
        self._in_company = len(batch) > 1
        self.queue.done()
        self._works_again()

    async def _write_each(self, batch: list[Waiting]) -> None:
        """One of them spoils the batch: find out which."""
        for one in batch:
            try:
                await self._opened_database.write([one.parcel])
            except TracesRefused as refusal:
                self.counts.refused += 1
                one.tell(stored=False)
                log.warning("the trace %s is not stored: %s", one.parcel.id, refusal)
            else:
                self._stored([one])

    @property
    def _opened_database(self) -> "TraceDatabase":
        if self.database is None:
            raise RuntimeError("the database is not open")
        return self.database

    def _stored(self, batch: list[Waiting]) -> None:
        for one in batch:
            one.tell(stored=True)
        self.counts.stored += len(batch)

    async def _failed(self, failure: TraceDatabaseFailed) -> None:
        self.counts.failures += 1
        self._is_open = False
        if self.outage is None:
            log.error("traces cannot be stored now; %s: %s", self._location.told, failure)
        self.outage = str(failure)
        self.opened.set()
        self.queue.put_back()
        pause_s = min(self._pause_s, CLOSING_PAUSE_S) if self._closing.is_set() else self._pause_s
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                if self._closing.is_set():
                    await asyncio.sleep(pause_s)
                else:
                    await self._closing.wait()
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def _works_again(self) -> None:
        if self.outage is not None:
            log.warning("traces are stored again; %d wait, %d were dropped", len(self.queue), self.counts.dropped)
        self.outage = None
        self.opened.set()
        self._pause_s = FIRST_PAUSE_S

    async def _until_woken(self) -> None:
        self._wake.clear()
        if self._limits.max_age_s or self._limits.max_bytes:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._pruned_at + PRUNE_EVERY_S - time.monotonic())):
                    await self._wake.wait()
        else:
            await self._wake.wait()

    async def _prune(self) -> None:
        """A batch of what is too old or too much, when it is time; the next one at once while there is more."""
        limits = self._limits
        if not (limits.max_age_s or limits.max_bytes) or self._closing.is_set():
            return
        if time.monotonic() < self._pruned_at + PRUNE_EVERY_S:
            return
        from verilog_taskapp.tracing.retention import BATCH as PRUNED_AT_ONCE
        from verilog_taskapp.tracing.retention import prune

        removed = await prune(
            self._opened_database, now_s=time.time(), max_age_s=limits.max_age_s, max_bytes=limits.max_bytes
        )
        self.counts.removed += removed
        if removed < PRUNED_AT_ONCE:
            self._pruned_at = time.monotonic()


def _database_on(location: TraceLocation) -> "TraceDatabase":
    """In a thread: this imports SQLAlchemy and the driver."""
    from verilog_taskapp.tracing import queries, retention
    from verilog_taskapp.tracing.database import TraceDatabase

    del queries, retention  # needed a moment later, on the event loop
    return TraceDatabase(location)
