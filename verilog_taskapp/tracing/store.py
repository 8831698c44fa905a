"""Where traces go: written in the background, and found again.

A caller is told that a trace is stored only when it is committed. A database that is full, locked or gone costs a log
line and a counter, never a rollout.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from verilog_taskapp.errors import TracesUnavailable
from verilog_taskapp.settings import Settings
from verilog_taskapp.tracing.location import TraceLocation, trace_location
from verilog_taskapp.tracing.record import TraceRecord
from verilog_taskapp.tracing.rows import parcel
from verilog_taskapp.tracing.sft import SftOutput
from verilog_taskapp.tracing.writer import TraceWriter, WriterCounts, WriterLimits

if TYPE_CHECKING:
    from verilog_taskapp.tracing.queries import TraceQueries

log = logging.getLogger(__name__)


class TraceStore:
    """Keeps traces in the database at `location`; None keeps nothing. An async context manager.

    `wait_s` is how long `save` waits for a commit; `sft` also gets every trace.
    """

    def __init__(
        self,
        location: TraceLocation | None,
        limits: WriterLimits | None = None,
        *,
        wait_s: float = 1.0,
        sft: SftOutput | None = None,
    ) -> None:
        self._writer = TraceWriter(location, limits or WriterLimits()) if location is not None else None
        self._wait_s = wait_s
        self.sft = sft

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What the settings mean. Raises `verilog_taskapp.tracing.location.TraceLocationInvalid`."""
        limits = WriterLimits(
            queue=settings.trace_queue,
            queue_bytes=settings.trace_queue_bytes,
            flush_s=settings.trace_flush_s,
            max_age_s=settings.trace_max_age_s,
            max_bytes=settings.trace_max_bytes,
        )
        return cls(
            trace_location(settings) if settings.tracing_enabled else None,
            limits,
            wait_s=settings.trace_wait_s,
            sft=SftOutput(settings.sft_output_dir) if settings.sft_output_dir is not None else None,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writer is not None:
            await self._writer.close()
        if self.sft is not None:
            await self.sft.close()

    def start(self) -> None:
        """Open the database in the background, unless that has begun; the first use of the store does it, too.

        It takes a moment of every processor's time: a service does it when all else is ready.
        """
        if self._writer is not None:
            self._writer.start()

    @property
    def counts(self) -> WriterCounts:
        """What became of the traces so far."""
        return self._writer.counts if self._writer is not None else WriterCounts()

    @property
    def queued(self) -> int:
        """Traces that wait for the database."""
        return len(self._writer.queue) if self._writer is not None else 0

    @property
    def queued_bytes(self) -> int:
        """What they take in memory."""
        return self._writer.queue.size_bytes if self._writer is not None else 0

    @property
    def failing(self) -> bool:
        """Whether the database cannot be used now."""
        return self._writer is not None and self._writer.outage is not None

    async def save(self, record: TraceRecord) -> bool:
        """Have a trace stored; True once it is committed.

        False: not stored, or not yet; during an outage that is told at once.
        """
        if self.sft is not None:
            self.sft.add(record)
        writer = self._writer
        if writer is None:
            return False
        try:
            packed = parcel(record)
        except (ValueError, TypeError, RecursionError) as error:
            writer.counts.refused += 1
            log.warning("a trace could not be serialised: %s", type(error).__name__)
            return False
        writer.start()
        waiting = writer.queue.put(packed)
        if waiting is None:
            writer.counts.dropped += 1
            return False
        writer.wake()
        if writer.outage is not None:
            return False
        await asyncio.wait([waiting.stored], timeout=self._wait_s)
        return waiting.stored.done() and waiting.stored.result()

    async def load(self, trace_id: str) -> dict[str, Any] | None:
        """The session trace that was stored under an id, or None. Raises `TracesUnavailable`."""
        async with self.reading() as queries:
            found = await queries.get(trace_id)
        return found.document if found is not None else None

    async def queries(self) -> "TraceQueries":
        """Look-ups, once the store has been opened. Raises `TracesUnavailable`."""
        writer = self._writer
        if writer is None:
            raise TracesUnavailable("no traces are kept here: tracing is switched off", retryable=False)
        writer.start()
        await writer.opened.wait()
        if writer.outage is not None or writer.database is None:
            raise TracesUnavailable("the database of traces does not answer now")
        from verilog_taskapp.tracing.queries import TraceQueries

        return TraceQueries(writer.database.readers)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator["TraceQueries"]:
        """The same for a block in which faults of the database become `TracesUnavailable`."""
        queries = await self.queries()
        from verilog_taskapp.tracing.database import faults
        from verilog_taskapp.tracing.faults import TraceDatabaseFailed, TracesRefused

        try:
            with faults():
                yield queries
        except (TraceDatabaseFailed, TracesRefused) as error:
            log.warning("stored traces could not be read: %s", error)
            raise TracesUnavailable("the database of traces does not answer now") from error
