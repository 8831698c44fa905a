"""An answer of many lines that come when they come; when the client goes away, the work behind them is stopped."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

Put = Callable[[bytes], None]
"""Adds a line, without its end."""

NDJSON = "application/x-ndjson"


class LineStream(Response):
    """Newline-delimited JSON. `work` is given a function that adds lines; the answer ends when it returns.

    After `heartbeat_s` seconds without a line, the line that `heartbeat` makes is sent.
    """

    media_type = NDJSON

    def __init__(
        self, work: Callable[[Put], Awaitable[None]], heartbeat: Callable[[], bytes], heartbeat_s: float
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self.headers["x-accel-buffering"] = "no"  # nginx would hold the lines back
        self._work = work
        self._heartbeat = heartbeat
        self._heartbeat_s = heartbeat_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send lines until the work is done or the client has gone."""
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        work = asyncio.ensure_future(self._work(lines.put_nowait))
        gone = asyncio.ensure_future(_disconnected(receive))
        next_line = asyncio.ensure_future(lines.get())
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while not gone.done() and not (work.done() and lines.empty() and not next_line.done()):
                await asyncio.wait(
                    {work, gone, next_line} if not work.done() else {gone, next_line},
                    timeout=self._heartbeat_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if next_line.done():
                    await _send(send, next_line.result())
                    next_line = asyncio.ensure_future(lines.get())
                elif not work.done() and not gone.done():
                    await _send(send, self._heartbeat())
            if work.done():
                work.result()
                await send({"type": "http.response.body", "body": b""})
        finally:
            for task in (work, gone, next_line):
                task.cancel()
            await asyncio.gather(work, gone, next_line, return_exceptions=True)


async def _send(send: Send, line: bytes) -> None:
    await send({"type": "http.response.body", "body": line + b"\n", "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
