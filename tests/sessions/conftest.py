"""A store of sessions on the real simulator, without HTTP."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from tests.support import forget_settings, settings_in
from verilog_taskapp.environment.world import World
from verilog_taskapp.sessions.directory import DirectoryBackend, _key
from verilog_taskapp.sessions.memory import MemoryBackend
from verilog_taskapp.sessions.store import SessionStore

OpenStore = Callable[..., AbstractAsyncContextManager[SessionStore]]


@pytest.fixture(scope="module", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        yield


BackendKind = Literal["memory", "directory"]


@pytest.fixture(params=["memory", "directory"])
def kind(request: pytest.FixtureRequest) -> BackendKind:
    """Where the sessions of a test are kept: every promise holds for both."""
    found: BackendKind = request.param
    return found


@pytest.fixture
def session_dir(tmp_path: Path, kind: BackendKind) -> Path | None:
    """The setting that means this kind."""
    return tmp_path / "sessions" if kind == "directory" else None


@pytest.fixture
def open_store(tmp_path: Path, golden_cache: Path, session_dir: Path | None) -> OpenStore:
    """``async with open_store(**settings) as store``."""

    @asynccontextmanager
    async def start(**changes: Any) -> AsyncIterator[SessionStore]:
        settings = settings_in(tmp_path, cache_dir=golden_cache, session_dir=session_dir, **changes)
        async with World.open(settings) as world, SessionStore(world) as store:
            yield store

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, golden_cache: Path) -> AsyncIterator[World]:
    async with World.open(settings_in(tmp_path_factory.mktemp("world"), cache_dir=golden_cache)) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="module")
async def store(world: World, session_dir: Path | None) -> AsyncIterator[SessionStore]:
    """An empty store on the module's world.

    Modules whose tests use it say ``pytestmark = pytest.mark.asyncio(loop_scope="module")``.
    """
    backend = DirectoryBackend(session_dir, "test") if session_dir else MemoryBackend()
    async with SessionStore(world, backend) as store:
        yield store


def made_older(store: SessionStore, name: str, seconds: float) -> None:
    """Let a session have been used so much earlier."""
    backend = store._backend
    if isinstance(backend, MemoryBackend):
        backend._used_at[name] -= seconds
    else:
        assert isinstance(backend, DirectoryBackend)
        path = backend._folder / "open" / _key(name)
        used_at = path.stat().st_mtime - seconds
        os.utime(path, (used_at, used_at))


def waiting_for(store: SessionStore, name: str) -> int:
    """How many requests of this worker have a session or wait for it."""
    backend = store._backend
    assert isinstance(backend, MemoryBackend | DirectoryBackend)
    wanted = backend._locks._wanted.get(name if isinstance(backend, MemoryBackend) else _key(name))
    return wanted.users if wanted else 0
