"""Who may come in: a bounded number of rollouts, a bounded line before them, nobody any more during a drain."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from verilog_taskapp.errors import Draining, InvalidRequest, Overloaded
from verilog_taskapp.icarus.slots import Slots

UNKNOWN_WAIT_S = 5.0
"""Told where too few rollouts have ended to know a rate."""
SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
REMEMBERED_ENDS = 128
"""Ends of rollouts that the rate is worked out from."""


class Admission:
    """`capacity` rollouts at once and `queue` more in line, first come first served."""

    def __init__(self, capacity: int, queue: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.capacity = capacity
        self.queue = queue
        self.draining = False
        self.observe_wait: Callable[[float], None] | None = None
        """Told how many seconds each rollout stood in line."""
        self._slots = Slots(capacity, long_s=None)
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=REMEMBERED_ENDS)
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def in_flight(self) -> int:
        """Rollouts running now."""
        return self._slots.busy

    @property
    def waiting(self) -> int:
        """Rollouts in line."""
        return self._slots.waiting

    @property
    def refusal(self) -> str:
        """Why a rollout would not be let in now; empty if it would."""
        if self.draining:
            return "the server is shutting down"
        if self.in_flight >= self.capacity and self.waiting >= self.queue:
            return f"{self.in_flight} rollouts are in flight and {self.waiting} wait, the most that this server takes"
        return ""

    def let_in(self, count: int) -> None:
        """Whether `count` rollouts that belong together may come in, now or in line; each then takes its `place`.

        Raises `InvalidRequest` if there is never room for so many, `Draining` and `Overloaded` as `place` does.
        """
        most = self.capacity + self.queue
        if count > most:
            raise InvalidRequest(
                f"{count} rollouts at once are more than this server takes ({most}: VERILOG_MAX_ROLLOUTS and "
                "VERILOG_ROLLOUT_QUEUE)"
            )
        if self.draining:
            raise Draining(self.refusal, retry_after_s=UNKNOWN_WAIT_S)
        taken = self.in_flight + self.waiting
        if taken + count > most:
            refusal = f"{taken} rollouts are in flight or wait; with {count} more there would be over {most}"
            raise Overloaded(refusal, retry_after_s=self.retry_after_s())

    @asynccontextmanager
    async def place(self, *, is_let_in: bool = False) -> AsyncIterator[None]:
        """Stand in line if need be; the place is held for the duration of the context.

        `is_let_in`: as one of several that `let_in` has let in. Raises `Draining` and `Overloaded`, both with the
        seconds after which to try again.
        """
        if self.draining:
            raise Draining(self.refusal, retry_after_s=UNKNOWN_WAIT_S)
        if not is_let_in and (refusal := self.refusal):
            raise Overloaded(refusal, retry_after_s=self.retry_after_s())
        self._empty.clear()
        began = self._clock()
        try:
            place = await self._slots.take()
        except asyncio.CancelledError:
            self._look()
            raise
        if self.observe_wait is not None:
            self.observe_wait(self._clock() - began)
        try:
            yield
        finally:
            self._slots.give_back(place)
            self._ends.append(self._clock())
            self._look()

    def retry_after_s(self) -> float:
        """When there is room behind the end of the line, at the rate at which rollouts ended lately."""
        if len(self._ends) < 2:
            return UNKNOWN_WAIT_S
        elapsed = max(self._clock() - self._ends[0], 1e-3)
        rate = (len(self._ends) - 1) / elapsed
        return min(max((self.waiting + 1) / rate, SHORTEST_WAIT_S), LONGEST_WAIT_S)

    async def drain(self, limit_s: float) -> bool:
        """Let nobody in any more and wait for those who are; False if some are left after `limit_s` seconds."""
        self.draining = True
        try:
            async with asyncio.timeout(limit_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def _look(self) -> None:
        if not self.in_flight and not self.waiting:
            self._empty.set()
