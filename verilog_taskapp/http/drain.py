"""A graceful end: on SIGTERM or SIGINT nothing new is let in, what runs may finish, then the server stops.

uvicorn closes its listening socket as soon as it is told to stop, so that a load balancer's probe and a client's retry
would meet a refused connection. Here the signal first starts a drain, in which ``/ready`` says 503 and new work is
refused with 503 and ``Retry-After``; uvicorn is told when the drain is over. A second signal goes to it at once.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType

from verilog_taskapp.services import Services

SIGNALS = (signal.SIGTERM, signal.SIGINT)
Next = Callable[[int, FrameType | None], object]

log = logging.getLogger(__name__)


class DrainOnSignal:
    """Stands in front of the signal handlers that are installed when it is; only in a process's main thread."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._next: dict[int, Next] = {}
        self._draining: asyncio.Task[None] | None = None

    def install(self) -> None:
        """Take the signals over from whoever handles them now."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._next[number] = handler
                signal.signal(number, self._received)

    def remove(self) -> None:
        """Give the signals back."""
        for number, handler in self._next.items():
            signal.signal(number, handler)
        self._next.clear()

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self._services.rollouts.admission.draining:
            self._next[number](number, frame)
            return
        self._services.rollouts.admission.draining = True
        self._loop.call_soon_threadsafe(self._start, number)

    def _start(self, number: int) -> None:
        self._draining = self._loop.create_task(self._drain(number))

    async def _drain(self, number: int) -> None:
        rollouts, limit_s = self._services.rollouts, self._services.settings.drain_s
        running = rollouts.in_flight + rollouts.admission.waiting
        if running:
            log.info("draining: %d rollouts may finish within %g s", running, limit_s)
        if not await rollouts.admission.drain(limit_s):
            log.warning("aborting %d rollouts that did not finish in time", rollouts.in_flight)
            await rollouts.abort()
        if handler := self._next.get(number):
            handler(number, None)
