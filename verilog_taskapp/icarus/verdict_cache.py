"""Results by content: the same design, judged in the same way, is compiled and simulated once.

A group of samples of one policy holds many duplicates, and a run depends on nothing but the compiled text, the stimulus
and the simulator. Results are kept by a hash over all of that (the caller's), in memory or in one SQLite file that all
processes of a user share. Equal work that is asked for while it is being done is waited for, not repeated. What could
be our machine's doing (a crash, a failure of ours) is never kept.
"""

import asyncio
import logging
import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

CacheMode = Literal["off", "memory", "disk"]
Value = TypeVar("Value")

log = logging.getLogger(__name__)


class ResultStore(Protocol):
    """Where encoded results are kept. Calls may block and come from several threads; none of them raises."""

    def get(self, key: str) -> bytes | None:
        """The stored result, if there is one."""

    def put(self, key: str, value: bytes) -> int:
        """Keep a result; returns how many others had to go for it."""


class MemoryStore:
    """The most recently used results, up to `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> bytes | None:
        """See `ResultStore`."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def put(self, key: str, value: bytes) -> int:
        """See `ResultStore`."""
        if len(value) > self._limit:
            return 0
        self._bytes += len(value) - len(self._kept.pop(key, b""))
        self._kept[key] = value
        evicted = 0
        while self._bytes > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
            evicted += 1
        return evicted


class DiskStore:
    """One SQLite file, shared by processes; a file that cannot be used costs time, never a verdict.

    A damaged file is put aside and begun anew.
    """

    _SCHEMA = """
        CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, value BLOB NOT NULL, used_s REAL NOT NULL);
        CREATE INDEX IF NOT EXISTS by_use ON results (used_s);
    """
    BUSY_S = 5.0
    """How long to wait for another process."""
    KEPT_SHARE = 0.9
    """How full a file is that had to be thinned out."""
    REFRESH_S = 60.0
    """A use is written down at most this often."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, self.BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                # Losing the last results in a power failure does not matter; waiting for the disk would.
                connection.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {self._SCHEMA}")
            except sqlite3.Error:
                connection.close()
                raise
            self._path.chmod(0o600)
            self._connection = connection
        return self._connection

    def _failed(self, error: Exception) -> None:
        log.warning("the verdict cache cannot be used: %s", error)
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        if damaged:
            for name in (self._path, *(self._path.with_name(self._path.name + end) for end in ("-wal", "-shm"))):
                with suppress(OSError):
                    name.unlink()

    def get(self, key: str) -> bytes | None:
        """See `ResultStore`."""
        with self._lock:
            try:
                connection = self._open()
                row = connection.execute("SELECT value, used_s FROM results WHERE key = ?", (key,)).fetchone()
                if row is None:
                    return None
                if time.time() - row[1] > self.REFRESH_S:
                    connection.execute("UPDATE results SET used_s = ? WHERE key = ?", (time.time(), key))
                return bytes(row[0])
            except (sqlite3.Error, OSError) as error:
                self._failed(error)
                return None

    def put(self, key: str, value: bytes) -> int:
        """See `ResultStore`."""
        with self._lock:
            try:
                connection = self._open()
                connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (key, value, time.time()))
                return self._thin_out(connection)
            except (sqlite3.Error, OSError) as error:
                self._failed(error)
                return 0

    def _thin_out(self, connection: sqlite3.Connection) -> int:
        """Drop what was not used for longest when the file is over its limit."""
        pages, free, page_bytes = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        used = (pages - free) * page_bytes
        if used <= self._limit:
            return 0
        surplus, evicted = used - self._limit * self.KEPT_SHARE, 0
        with closing(connection.execute("SELECT key, length(value) FROM results ORDER BY used_s")) as oldest:
            keys = []
            for key, size in oldest:
                if surplus <= 0:
                    break
                keys.append((key,))
                surplus -= size
        evicted = len(keys)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM results WHERE key = ?", keys)
        connection.execute("COMMIT")
        return evicted

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


@dataclass(frozen=True)
class Kind(Generic[Value]):
    """One kind of result: how it is written down, and which of them may be kept."""

    name: str
    encode: Callable[[Value], bytes]
    decode: Callable[[bytes], Value]
    """Raises ValueError for what it cannot read."""
    lasting: Callable[[Value], bool]


class _Shared(Generic[Value]):
    """Work that several callers wait for; it is stopped when the last of them goes."""

    def __init__(self, task: asyncio.Task[Value]) -> None:
        self.task = task
        self.waiting = 0


class VerdictCache:
    """Asks `store` before doing work, and lets equal work be done once. Counts what it saved."""

    def __init__(self, store: ResultStore | None) -> None:
        self._store = store
        self._running: dict[Hashable, _Shared[Any]] = {}
        self.hits = 0
        """Found in the store, or waited for."""
        self.misses = 0
        self.evictions = 0

    async def result(self, kind: Kind[Value], key: str, work: Callable[[], Awaitable[Value]]) -> tuple[Value, bool]:
        """The result under `key` and whether it was there already; `work` makes it otherwise.

        Raises what `work` raises. A cancelled caller stops the work only if nobody else waits for it.
        """
        if self._store is None:
            return await work(), False
        shared = self._running.get((kind.name, key))
        joined = shared is not None
        if shared is None:
            found = await self._stored(kind, key)
            if found is not None:
                self.hits += 1
                return found, True
            shared = self._running.get((kind.name, key))  # somebody may have begun meanwhile
            joined = shared is not None
        if shared is None:
            self.misses += 1
            shared = _Shared[Any](asyncio.create_task(self._work(kind, key, work)))
            self._running[kind.name, key] = shared
        else:
            self.hits += 1
        return await self._wait((kind.name, key), shared), joined

    async def close(self) -> None:
        """Stop what is still being done and close the store."""
        tasks = [shared.task for shared in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(self._store, DiskStore):
            await asyncio.to_thread(self._store.close)

    async def _stored(self, kind: Kind[Value], key: str) -> Value | None:
        store, name = self._store, f"{kind.name}:{key}"
        if store is None:
            return None
        data = store.get(name) if isinstance(store, MemoryStore) else await asyncio.to_thread(store.get, name)
        if data is None:
            return None
        try:
            return kind.decode(zlib.decompress(data))
        except (ValueError, zlib.error) as error:
            log.warning("a kept result is damaged and will be made again: %s", error)
            return None

    async def _work(self, kind: Kind[Value], key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        value = await work()
        store = self._store
        if store is not None and kind.lasting(value):
            data = await asyncio.to_thread(lambda: zlib.compress(kind.encode(value), 1))
            name = f"{kind.name}:{key}"
            put = store.put
            evicted = put(name, data) if isinstance(store, MemoryStore) else await asyncio.to_thread(put, name, data)
            self.evictions += evicted
        return value

    async def _wait(self, key: Hashable, shared: _Shared[Any]) -> Any:
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        except asyncio.CancelledError:
            if shared.waiting == 1 and not shared.task.done():
                self._forget(key, shared)
                shared.task.cancel()
                while not shared.task.done():
                    with suppress(asyncio.CancelledError):  # cancelled again: the work still has to end first
                        await asyncio.wait([shared.task])
            raise
        finally:
            shared.waiting -= 1
            if shared.task.done():
                self._forget(key, shared)

    def _forget(self, key: Hashable, shared: _Shared[Any]) -> None:
        if self._running.get(key) is shared:
            del self._running[key]


def open_store(mode: CacheMode, folder: Path, limit_bytes: int) -> ResultStore | None:
    """The store of a mode; `folder` is where a disk cache lies."""
    if mode == "memory":
        return MemoryStore(limit_bytes)
    return DiskStore(folder / "verdicts.sqlite", limit_bytes) if mode == "disk" else None
