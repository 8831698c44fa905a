"""Whose turn it is: a bounded number of places, first come first served, long work not in the way of short work."""

import asyncio
from collections import deque

LONG_S = 1.0
"""Work that holds its place for longer is long: a hundred ordinary simulations would have had their turn."""


class Place:
    """A place that is held."""

    __slots__ = ("is_long", "timer")

    def __init__(self) -> None:
        self.is_long = False
        self.timer: asyncio.TimerHandle | None = None


class Slots:
    """`size` places for short work and as many again for work that has turned out to be long.

    Nobody knows beforehand which design never ends. So everything starts in a short place; what is still there after
    `long_s` seconds moves to a long place, if one is free, and its short place goes to the next in line. Then up to
    twice `size` processes share the cores: the long ones get slower, and the limits on them count CPU time. `long_s`
    None: all work is short.
    """

    def __init__(self, size: int, long_s: float | None = LONG_S) -> None:
        self.size = size
        self._long_s = long_s
        self._short = 0
        self._long = 0
        self._overdue: list[Place] = []
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def busy(self) -> int:
        """Places held, of both kinds."""
        return self._short + self._long

    @property
    def long(self) -> int:
        """Places held by long work."""
        return self._long

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return sum(not one.done() for one in self._queue)

    async def take(self) -> Place:
        """Wait for a place; a cancelled caller leaves the line at once."""
        if self._short < self.size and not self._queue:
            self._short += 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it was our turn just now
                    self._short -= 1
                elif turn in self._queue:  # else another one that left has been past it
                    self._queue.remove(turn)
                self._next()
                raise
        place = Place()
        if self._long_s is not None:
            place.timer = asyncio.get_running_loop().call_later(self._long_s, self._is_overdue, place)
        return place

    def give_back(self, place: Place) -> None:
        """Leave a place."""
        if place.timer is not None:
            place.timer.cancel()
        if place in self._overdue:
            self._overdue.remove(place)
        if place.is_long:
            self._long -= 1
            if self._overdue:
                self._move(self._overdue.pop(0))
        else:
            self._short -= 1
        self._next()

    def _is_overdue(self, place: Place) -> None:
        place.timer = None
        if self._long < self.size:
            self._move(place)
            self._next()
        else:
            self._overdue.append(place)

    def _move(self, place: Place) -> None:
        place.is_long = True
        self._short -= 1
        self._long += 1

    def _next(self) -> None:
        """Call up whoever is first in line while there is room."""
        while self._queue and self._short < self.size:
            turn = self._queue.popleft()
            if not turn.done():
                self._short += 1
                turn.set_result(None)
