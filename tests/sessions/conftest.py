"""A store of sessions on the real simulator, without HTTP."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import forget_settings, settings_in
from verilog_taskapp.environment.world import World
from verilog_taskapp.sessions.store import SessionStore

OpenStore = Callable[..., AbstractAsyncContextManager[SessionStore]]


@pytest.fixture(scope="module", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        yield


@pytest.fixture
def open_store(tmp_path: Path, golden_cache: Path) -> OpenStore:
    """``async with open_store(**settings) as store``."""

    @asynccontextmanager
    async def start(**changes: Any) -> AsyncIterator[SessionStore]:
        settings = settings_in(tmp_path, cache_dir=golden_cache, **changes)
        async with World.open(settings) as world, SessionStore(world) as store:
            yield store

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, golden_cache: Path) -> AsyncIterator[World]:
    async with World.open(settings_in(tmp_path_factory.mktemp("world"), cache_dir=golden_cache)) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="module")
async def store(world: World) -> AsyncIterator[SessionStore]:
    """An empty store on the module's world.

    Modules whose tests use it say ``pytestmark = pytest.mark.asyncio(loop_scope="module")``.
    """
    async with SessionStore(world) as store:
        yield store
