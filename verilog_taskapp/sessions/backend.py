"""Where sessions are kept, and who may work on one: the seam between one worker, several, and several machines."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from verilog_taskapp.sessions.record import SessionRecord


class SessionBackend(Protocol):
    """Keeps one record per name and lets one caller at a time work on it.

    Names are chosen by clients and may be any text. Every method may raise `EnvironmentFailed`; what was kept before
    is then kept still. Cancellation never loses a hold and never leaves half a record. Records of closed sessions may
    be forgotten once they are older than an idle session may be, or when there are thousands.
    """

    async def open(self) -> None:
        """Called once before everything else."""

    async def close(self) -> None:
        """Called once after everything else, with no hold left."""

    def hold(self, name: str, *, wait: bool = True) -> AbstractAsyncContextManager[bool]:
        """Keep a name, open or not, to oneself over all workers until the block ends.

        Waits its turn; with `wait` False it enters at once, and with False where somebody else holds the name. The
        hold of a worker that dies ends.
        """

    async def load(self, name: str) -> SessionRecord | None:
        """The record as it was saved last. Without a hold it may be replaced at any moment, but is never half."""

    async def save(self, record: SessionRecord) -> None:
        """Replace the record of its name, as used now. The caller holds the name."""

    async def touch(self, name: str) -> None:
        """Note that the session was used now; nothing happens when there is none."""

    async def count(self) -> int:
        """Open sessions, over all workers; closed ones do not count."""

    def last_count(self) -> int:
        """The same from memory: as this worker saw it last."""

    async def unused(self, idle_s: float) -> Sequence[str]:
        """Names of open sessions that were not saved or touched for longer than that many seconds.

        Others may sweep at the same time: hold a name, and ask `idle_s` before it is believed.
        """

    async def idle_s(self, name: str) -> float:
        """Seconds since a name was saved or touched; 0 when there is no record of it."""
