"""Stopping work when nobody waits for its answer any more."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from verilog_taskapp.errors import Aborted

T = TypeVar("T")


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run `work`; when the client goes away first, cancel it, wait until it has cleaned up, and raise `Aborted`."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise Aborted("the client went away")
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
