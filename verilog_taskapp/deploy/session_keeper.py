"""Sessions of many processes, kept by one: who works on which, and the records between two requests.

Plain asyncio without Ray: `verilog_taskapp.deploy.ray_sessions` makes an actor of it. Records are opaque bytes here.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

LEASE_S = 8.0
"""The holds of a worker that has not been heard of for so long end."""
BEAT_S = 2.0
"""How often a worker says that it lives."""
MISSED_BEATS = 2
"""A hold that its worker leaves out so often was given up, though the word of it was lost."""
REMEMBERED_CLOSED = 4096
"""Closed sessions whose final facts can still be asked for."""


@dataclass
class _Hold:
    worker: str
    token: str
    missed: int = 0


@dataclass
class _Waiting:
    worker: str
    token: str
    turn: asyncio.Future[bool]

    def answer(self, granted: bool) -> bool:
        """Wake the caller up; False when nobody waits for the answer any more."""
        if self.turn.done():
            return False
        self.turn.set_result(granted)
        return True


@dataclass
class _Name:
    """All about one session's name."""

    hold: _Hold | None = None
    queue: deque[_Waiting] = field(default_factory=deque)


class SessionKeeper:
    """Holds and records by name; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._names: dict[str, _Name] = {}
        self._open: dict[str, bytes] = {}
        self._closed: OrderedDict[str, bytes] = OrderedDict()
        self._used_at: dict[str, float] = {}
        self._heard_of: dict[str, float] = {}
        self._last_heard = clock()

    async def beat(self, worker: str, tokens: Collection[str]) -> int:
        """A worker lives and has or wants these holds; answers how many sessions are open."""
        self._heard_of[worker] = self._last_heard = self._clock()
        for name, entry in list(self._names.items()):
            if entry.hold is not None and entry.hold.worker == worker:
                entry.hold.missed = 0 if entry.hold.token in tokens else entry.hold.missed + 1
                if entry.hold.missed >= MISSED_BEATS:
                    self._pass_on(name, entry)
        self.end_leases()
        return await self.count()

    async def acquire(self, worker: str, name: str, token: str, wait: bool) -> bool:
        """Give a name to a worker for itself, in turn; False without `wait` if another has it, or if withdrawn."""
        self._heard_of[worker] = self._last_heard = self._clock()
        self.end_leases()
        entry = self._names.setdefault(name, _Name())
        if entry.hold is None:
            entry.hold = _Hold(worker, token)
            return True
        if not wait:
            return False
        waiting = _Waiting(worker, token, asyncio.get_running_loop().create_future())
        entry.queue.append(waiting)
        return await waiting.turn

    async def take(self, worker: str, name: str, token: str, wait: bool) -> tuple[bool, bytes | None]:
        """`acquire`, and what `load` would then answer: one call instead of two."""
        granted = await self.acquire(worker, name, token, wait)
        return granted, await self.load(name) if granted else None

    async def release(self, name: str, token: str) -> None:
        """End a hold, or withdraw the wish for it."""
        entry = self._names.get(name)
        if entry is None:
            return
        if entry.hold is not None and entry.hold.token == token:
            self._pass_on(name, entry)
            return
        for waiting in [one for one in entry.queue if one.token == token]:
            entry.queue.remove(waiting)
            waiting.answer(False)

    async def load(self, name: str) -> bytes | None:
        """The record as it was saved last."""
        return self._open.get(name) or self._closed.get(name)

    async def save(self, name: str, token: str, data: bytes, is_open: bool) -> bool:
        """Replace a record, as used now; False, and nothing is done, when the hold is no longer the caller's."""
        if not self._holds(name, token):
            return False
        self._forget(name)
        (self._open if is_open else self._closed)[name] = data
        self._used_at[name] = self._clock()
        while len(self._closed) > REMEMBERED_CLOSED:
            self._forget(next(iter(self._closed)))
        return True

    async def touch(self, name: str) -> None:
        """The session was used now."""
        if name in self._used_at:
            self._used_at[name] = self._clock()

    async def count(self) -> int:
        """Open sessions."""
        return len(self._open)

    async def unused(self, idle_s: float) -> list[str]:
        """Names of open sessions that were not saved or touched for longer than that; closed ones are forgotten."""
        now = self._clock()
        old = [name for name, used_at in self._used_at.items() if now - used_at > idle_s]
        for name in old:
            if name in self._closed:
                self._forget(name)
        return [name for name in old if name in self._open]

    async def idle_s(self, name: str) -> float:
        """Seconds since a name was saved or touched; 0 when there is no record of it."""
        now = self._clock()
        return now - self._used_at.get(name, now)

    def silence_s(self) -> float:
        """Seconds since any worker was heard of."""
        return self._clock() - self._last_heard

    def end_leases(self) -> None:
        """Take the holds of workers that are gone, and give them to who waits."""
        now = self._clock()
        for worker in [worker for worker, heard in self._heard_of.items() if now - heard > LEASE_S]:
            del self._heard_of[worker]
        for name, entry in list(self._names.items()):
            if entry.hold is not None and entry.hold.worker not in self._heard_of:
                self._pass_on(name, entry)

    def _holds(self, name: str, token: str) -> bool:
        entry = self._names.get(name)
        return entry is not None and entry.hold is not None and entry.hold.token == token

    def _pass_on(self, name: str, entry: _Name) -> None:
        entry.hold = None
        while entry.queue:
            waiting = entry.queue.popleft()
            alive = waiting.worker in self._heard_of
            if waiting.answer(alive) and alive:
                entry.hold = _Hold(waiting.worker, waiting.token)
                return
        del self._names[name]

    def _forget(self, name: str) -> None:
        for kept in (self._open, self._closed, self._used_at):
            kept.pop(name, None)
