"""An event loop in a thread of its own, for callers that have none."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

FINISH_S = 10.0
"""How long what was started may still run when the thread is stopped."""


class LoopThread:
    """Runs coroutines for any number of threads. It is a daemon: it never keeps a process alive."""

    def __init__(self, name: str) -> None:
        self._process = os.getpid()
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._started: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name=name, daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()
        if self._started:
            await asyncio.wait(self._started, timeout=FINISH_S)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """The result of `coroutine`; an exception in the waiting thread (KeyboardInterrupt) cancels it.

        Raises RuntimeError in the loop's own thread, after `stop`, and in a forked child, which has no such thread.
        """
        wrong = None
        if os.getpid() != self._process:
            wrong = "a client does not survive a fork: make one in each process"
        elif threading.current_thread() is self._thread:
            wrong = "the client's own event loop cannot wait for itself"
        if wrong is not None:
            coroutine.close()
            raise RuntimeError(wrong)
        with self._lock:
            if self._stopped:
                coroutine.close()
                raise RuntimeError("the client is closed")
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run `coroutine` without waiting for it; from any thread, garbage collection included. No-op after `stop`."""

        def begin() -> None:
            task = self._loop.create_task(coroutine)
            self._started.add(task)
            task.add_done_callback(self._started.discard)

        if os.getpid() != self._process or self._stopped:
            coroutine.close()
            return
        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:  # closed in between
            coroutine.close()

    def stop(self, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `last`, then end the thread; again: no-op."""
        with self._lock:
            stopped, self._stopped = self._stopped, True
        if stopped or os.getpid() != self._process:
            return

        async def finish() -> None:
            if self._started:
                await asyncio.wait(self._started, timeout=FINISH_S)
            try:
                await last()
            finally:
                self._stop.set()

        asyncio.run_coroutine_threadsafe(finish(), self._loop)
        if threading.current_thread() is not self._thread:
            self._thread.join()
