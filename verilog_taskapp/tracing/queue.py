"""Traces that wait for the database: bounded in number and in memory."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from verilog_taskapp.tracing.rows import Parcel


@dataclass
class Waiting:
    """A trace, and who may wait for it."""

    parcel: Parcel
    stored: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def tell(self, stored: bool) -> None:
        """Let the caller go on; later calls change nothing."""
        if not self.stored.done():
            self.stored.set_result(stored)


class TraceQueue:
    """First in, first out."""

    def __init__(self, length: int, size_bytes: int) -> None:
        self._length = length
        self._limit_bytes = size_bytes
        self._waiting: deque[Waiting] = deque()
        self._taken: list[Waiting] = []
        self.size_bytes = 0
        """Of all in it and of those that are being written."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._taken)

    def put(self, parcel: Parcel) -> Waiting | None:
        """Add a trace; None when there is no room for it."""
        if len(self) >= self._length or self.size_bytes + parcel.size_bytes > self._limit_bytes:
            return None
        waiting = Waiting(parcel)
        self._waiting.append(waiting)
        self.size_bytes += parcel.size_bytes
        return waiting

    def take(self, number: int, size_bytes: int) -> list[Waiting]:
        """The oldest, at least one if there is one; they count until `done` or come back with `put_back`."""
        left = size_bytes
        while self._waiting and len(self._taken) < number and (not self._taken or left > 0):
            waiting = self._waiting.popleft()
            left -= waiting.parcel.size_bytes
            self._taken.append(waiting)
        return list(self._taken)

    def done(self) -> None:
        """What was taken is gone for good."""
        self.size_bytes -= sum(one.parcel.size_bytes for one in self._taken)
        self._taken.clear()

    def put_back(self) -> None:
        """What was taken is the oldest again; whoever waits for anything here is told that it is not stored yet."""
        self._waiting.extendleft(reversed(self._taken))
        self._taken.clear()
        for one in self._waiting:
            one.tell(stored=False)
