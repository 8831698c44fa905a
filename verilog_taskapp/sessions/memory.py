"""Sessions of one process."""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from verilog_taskapp.sessions.locks import NamedLocks
from verilog_taskapp.sessions.record import ClosedSession, OpenSession, SessionRecord

REMEMBERED_CLOSED = 4096
"""Closed sessions whose final facts can still be asked for."""


class MemoryBackend:
    """A `SessionBackend` for a single worker: records are kept as they are. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._locks = NamedLocks()
        self._open: dict[str, OpenSession] = {}
        self._closed: OrderedDict[str, ClosedSession] = OrderedDict()
        self._used_at: dict[str, float] = {}

    async def open(self) -> None:
        """See `SessionBackend`."""

    async def close(self) -> None:
        """See `SessionBackend`."""
        for kept in (self._open, self._closed, self._used_at):
            kept.clear()

    @asynccontextmanager
    async def hold(self, name: str, *, wait: bool = True) -> AsyncIterator[bool]:
        """See `SessionBackend`."""
        async with self._locks.hold(name, wait=wait) as held:
            yield held

    async def load(self, name: str) -> SessionRecord | None:
        """See `SessionBackend`."""
        return self._open.get(name) or self._closed.get(name)

    async def save(self, record: SessionRecord) -> None:
        """See `SessionBackend`."""
        if isinstance(record, OpenSession):
            self._closed.pop(record.id, None)
            self._open[record.id] = record
        else:
            self._open.pop(record.id, None)
            self._closed[record.id] = record
            while len(self._closed) > REMEMBERED_CLOSED:
                name, _ = self._closed.popitem(last=False)
                del self._used_at[name]
        self._used_at[record.id] = self._clock()

    async def touch(self, name: str) -> None:
        """See `SessionBackend`."""
        if name in self._used_at:
            self._used_at[name] = self._clock()

    async def count(self) -> int:
        """See `SessionBackend`."""
        return len(self._open)

    def last_count(self) -> int:
        """See `SessionBackend`."""
        return len(self._open)

    async def unused(self, idle_s: float) -> Sequence[str]:
        """See `SessionBackend`."""
        now = self._clock()
        return [name for name in self._open if now - self._used_at[name] > idle_s]

    async def idle_s(self, name: str) -> float:
        """See `SessionBackend`."""
        return self._clock() - self._used_at[name] if name in self._used_at else 0.0
