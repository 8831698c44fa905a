"""One lock for each name, there only while somebody has or wants it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class _Wanted:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class NamedLocks:
    """First come, first served among the tasks of one event loop."""

    def __init__(self) -> None:
        self._wanted: dict[str, _Wanted] = {}

    @asynccontextmanager
    async def hold(self, name: str, *, wait: bool = True) -> AsyncIterator[bool]:
        """Have the lock of a name for the block; without `wait` maybe not, and then the value is False."""
        wanted = self._wanted.setdefault(name, _Wanted())
        if wanted.users and not wait:
            yield False
            return
        wanted.users += 1
        try:
            async with wanted.lock:
                yield True
        finally:
            wanted.users -= 1
            if not wanted.users:
                del self._wanted[name]
