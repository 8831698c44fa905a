"""Databases to keep traces in: what is promised holds for both kinds."""

import asyncio
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support import forget_settings
from tests.tracing.clusters import cluster
from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.location import TraceLocation, parse_location
from verilog_taskapp.tracing.queries import TraceQueries
from verilog_taskapp.tracing.store import TraceStore
from verilog_taskapp.tracing.writer import WriterLimits

DatabaseKind = Literal["sqlite", "postgresql"]
OpenStore = Callable[..., AbstractAsyncContextManager[TraceStore]]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_settings(monkeypatch)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server of this run's own, with a place for the database's ``{name}``."""
    # A socket's path has room for about a hundred characters: pytest's own folders are too deep.
    with tempfile.TemporaryDirectory(prefix="vt-pg-") as folder:
        with cluster(Path(folder)) as url:
            yield url
        if os.geteuid() == 0:
            os.chown(folder, 0, 0)


async def new_database(server: str) -> str:
    """The URL of an empty database of a test's own."""
    import asyncpg

    name = f"t{uuid.uuid4().hex}"
    connection = await asyncpg.connect(server.format(name="postgres"))
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return server.format(name=name)


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> DatabaseKind:
    """Which database the test is about."""
    found: DatabaseKind = request.param
    return found


@pytest.fixture
def location(kind: DatabaseKind, tmp_path: Path, request: pytest.FixtureRequest) -> TraceLocation:
    """An empty database."""
    if kind == "sqlite":
        return TraceLocation(file=tmp_path / "deep" / "traces.db")
    server: str = request.getfixturevalue("postgresql")
    return parse_location(asyncio.run(new_database(server)))


@pytest.fixture
async def database(location: TraceLocation) -> AsyncIterator[TraceDatabase]:
    """The same, open."""
    database = TraceDatabase(location)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def queries(database: TraceDatabase) -> TraceQueries:
    """Look-ups in it."""
    return TraceQueries(database.readers)


@pytest.fixture
def open_store(location: TraceLocation) -> OpenStore:
    """``async with open_store() as store``: the arguments are those of `WriterLimits`, and ``wait_s``."""

    @asynccontextmanager
    async def start(*, wait_s: float = 30.0, **limits: Any) -> AsyncIterator[TraceStore]:
        async with TraceStore(location, WriterLimits(**limits), wait_s=wait_s) as store:
            store.start()
            yield store

    return start
