"""Sessions in a directory that several processes share: one file each, and a lock that dies with its process.

    <folder>/open/KEY     an open session
    <folder>/closed/KEY   the final facts of one that was closed, until they are as old as an idle session may be
    <folder>/parts/KEY    a file that is being written; it is moved into its place whole
    <folder>/locks/KEY    there while somebody works on the session

KEY is the SHA-256 of the client's name for the session. Ages are told by the files' times.
"""

import asyncio
import fcntl
import hashlib
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.sessions.encoding import decode, encode
from verilog_taskapp.sessions.locks import NamedLocks
from verilog_taskapp.sessions.record import OpenSession, SessionRecord

REMEMBERED_CLOSED = 4096
"""Closed sessions whose final facts are kept at most."""
LEFTOVER_S = 60.0
"""A lock or a half-written file of this age belongs to nobody, unless the lock cannot be taken."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.05
"""Between two attempts to take a lock that another process has."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class DirectoryBackend:
    """A `SessionBackend` for processes of one user on one machine. `simulator` names the judge and its tools."""

    def __init__(self, folder: Path, simulator: str) -> None:
        self._folder = folder
        self._simulator = simulator
        self._locks = NamedLocks()
        self._held: dict[str, SessionRecord | None] = {}
        """By key what is kept under the names that are held here, which nobody else can change."""
        self._count = 0
        self._counting = threading.Lock()
        """Held where a session begins or ends and while they are counted: a count must not miss one of either."""

    async def open(self) -> None:
        """See `SessionBackend`. Raises `EnvironmentFailed` for a directory that others could read or change."""
        await _files(self._make_folders)
        await self.count()

    async def close(self) -> None:
        """See `SessionBackend`. What is kept stays."""

    @asynccontextmanager
    async def hold(self, name: str, *, wait: bool = True) -> AsyncIterator[bool]:
        """See `SessionBackend`."""
        key = _key(name)
        async with self._locks.hold(key, wait=wait) as first:
            if not first:
                yield False
                return
            lock = FileLock(self._folder / "locks" / key)
            try:
                yield await self._take(lock, key, wait=wait)
            finally:
                self._held.pop(key, None)
                await _files(lock.release)

    async def _take(self, lock: "FileLock", key: str, *, wait: bool) -> bool:
        """Wait without a thread, so that any number can wait and a cancelled caller is let go at once."""

        def attempt() -> bool:
            if not lock.take():
                return False
            self._held[key] = self._read(key)
            return True

        pause_s = FIRST_PAUSE_S
        while not await _files(attempt):
            if not wait:
                return False
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        return True

    async def load(self, name: str) -> SessionRecord | None:
        """See `SessionBackend`. A damaged record counts as none."""
        key = _key(name)
        return self._held[key] if key in self._held else await _files(lambda: self._read(key))

    async def save(self, record: SessionRecord) -> None:
        """See `SessionBackend`."""
        key = _key(record.id)
        await _files(lambda: self._write(key, record))

    async def touch(self, name: str) -> None:
        """See `SessionBackend`."""
        await _files(lambda: self._touch(_key(name)))

    async def count(self) -> int:
        """See `SessionBackend`."""

        def listed() -> int:
            with self._counting:
                self._count = len(os.listdir(self._folder / "open"))
                return self._count

        return await _files(listed)

    def last_count(self) -> int:
        """See `SessionBackend`."""
        return self._count

    async def unused(self, idle_s: float) -> Sequence[str]:
        """See `SessionBackend`. Clears away what dead workers and closed sessions left, too."""
        return await _files(lambda: self._unused(idle_s))

    async def idle_s(self, name: str) -> float:
        """See `SessionBackend`."""
        return await _files(lambda: _age_s(self._folder / "open" / _key(name)))

    # --- blocking, in threads

    def _make_folders(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("open", "closed", "parts", "locks"):
            path = self._folder / name
            path.mkdir(mode=0o700, exist_ok=True)
            facts = path.lstat()
            if path.is_symlink() or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
                raise EnvironmentFailed(f"{name} in the session directory is not a private directory of this user")

    def _read(self, key: str) -> SessionRecord | None:
        # A session is closed by adding to one folder before it is taken from the other: nobody sees it in neither.
        for folder in ("closed", "open", "closed"):
            with suppress(FileNotFoundError):
                data = (self._folder / folder / key).read_bytes()
                try:
                    return decode(data, self._simulator)
                except ValueError as error:
                    log.warning("a kept session cannot be read: %s", error)
                    return None
        return None

    def _write(self, key: str, record: SessionRecord) -> None:
        data = encode(record, self._simulator)
        if isinstance(record, OpenSession):
            (self._folder / "closed" / key).unlink(missing_ok=True)
            with self._counting:
                self._count += not (self._folder / "open" / key).exists()
                self._replace("open", key, data)
        else:
            self._replace("closed", key, data)
            with self._counting, suppress(FileNotFoundError):
                (self._folder / "open" / key).unlink()
                self._count = max(0, self._count - 1)  # other workers opened sessions since this one counted
        if key in self._held:
            self._held[key] = record

    def _replace(self, folder: str, key: str, data: bytes) -> None:
        part = self._folder / "parts" / key
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            part.replace(self._folder / folder / key)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _touch(self, key: str) -> None:
        with suppress(FileNotFoundError):
            os.utime(self._folder / "open" / key)

    def _unused(self, idle_s: float) -> list[str]:
        self._clear(idle_s)
        names = []
        for path in _older(self._folder / "open", idle_s):
            record = self._read(path.name)
            if isinstance(record, OpenSession):
                names.append(record.id)
            else:  # damaged, or left by a worker that died while it closed it
                path.unlink(missing_ok=True)
        return names

    def _clear(self, idle_s: float) -> None:
        for path in _older(self._folder / "closed", idle_s):
            path.unlink(missing_ok=True)
        kept = sorted((-_age_s(path), path) for path in (self._folder / "closed").iterdir())
        for _, path in kept[: max(0, len(kept) - REMEMBERED_CLOSED)]:
            path.unlink(missing_ok=True)
        for path in [*_older(self._folder / "parts", LEFTOVER_S), *_older(self._folder / "locks", LEFTOVER_S)]:
            lock = FileLock(self._folder / "locks" / path.name)
            if lock.take():
                (self._folder / "parts" / path.name).unlink(missing_ok=True)
                lock.release()


class FileLock:
    """An exclusive lock that the kernel releases when its process dies; its file is there only while it is held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Try once; False when somebody else has it. Raises OSError."""
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_at_its_place(descriptor):
                    self._descriptor = descriptor
                    return True
            except BlockingIOError:
                return False
            finally:
                if self._descriptor is None:
                    os.close(descriptor)

    def _is_at_its_place(self, descriptor: int) -> bool:
        """Whether the file was not removed, by the holder before, between opening and locking it."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.stat(self._path), os.fstat(descriptor))
        return False

    def release(self) -> None:
        """Let others have it; nothing happens when it is not held."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            self._path.unlink(missing_ok=True)
        finally:
            # Not by closing alone: a child that is being started may have a copy of the descriptor for a moment.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


async def _files(work: Callable[[], T]) -> T:
    """Do blocking work in a thread, to its end even if cancelled. An OSError becomes `EnvironmentFailed`."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            with suppress(asyncio.CancelledError):  # cancelled again: the work still has to end first
                await asyncio.wait([working])
        if not working.cancelled() and (error := working.exception()) is not None:
            log.warning("a session's file could not be written or read: %s", error)
        raise
    except OSError as error:
        raise EnvironmentFailed(f"the session cannot be kept: {error.strerror}") from error


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _older(folder: Path, age_s: float) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if _age_s(Path(entry.path)) > age_s:
                yield Path(entry.path)


def _age_s(path: Path) -> float:
    """Seconds since a file was written or touched; 0 when it is gone."""
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime
    return 0.0
