"""The database of traces: opened, brought to the newest form, written in batches.

Loaded in the background: it imports SQLAlchemy.
"""

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from verilog_taskapp.tracing.faults import TraceDatabaseFailed, TracesRefused
from verilog_taskapp.tracing.location import TraceLocation
from verilog_taskapp.tracing.rows import Parcel, compressed
from verilog_taskapp.tracing.schema import REVISION, bodies, traces

BUSY_S = 5.0
"""How long a statement waits for another process's."""
CONNECT_S = 10.0
ANSWER_S = 30.0
"""For a statement of PostgreSQL."""
READERS = 4
"""Connections for look-ups, of each process."""
MIGRATION_LOCK = 0x7461736B61707074
"""Of PostgreSQL's advisory locks ("taskappt")."""
CHECKPOINT_PAGES = 4000
"""Of 4 KiB: a small commit touches a page of every index, and copying them back is dear."""
REASON_CHARS = 200
REFUSALS = ("22", "54")
"""Classes of SQLSTATE: the data does not fit, or is too much for a limit of the server."""
_REVISIONS = sa.table("alembic_version", sa.column("version_num"))


class TraceDatabase:
    """One database; every method may raise `TraceDatabaseFailed`."""

    def __init__(self, location: TraceLocation) -> None:
        self.location = location
        self._writer: AsyncEngine | None = None
        self._readers: AsyncEngine | None = None
        self._plain: sa.Engine | None = None
        """For writing into a file."""
        self._file: os.stat_result | None = None
        insert = sqlite.insert if location.file is not None else postgresql.insert
        # What was committed although the answer never came is offered again: the second time does nothing.
        self._insert_traces = insert(traces).on_conflict_do_nothing()
        self._insert_bodies = insert(bodies).on_conflict_do_nothing()

    async def open(self) -> None:
        """Connect and run the migrations that are due."""
        await self.close()
        with faults():
            if self.location.file is not None:
                await asyncio.to_thread(_make_file, self.location.file)
            self._writer = self._engine(1, write=True)
            await self._migrate()
            if self.location.file is not None:
                self._file = await asyncio.to_thread(os.stat, self.location.file)
                url = sa.URL.create("sqlite", database=str(self.location.file))
                self._plain = sa.create_engine(url, connect_args={"timeout": BUSY_S}, hide_parameters=True, **_pool(1))
                _prepare_sqlite(self._plain, write=True)

    async def close(self) -> None:
        """Give all connections back."""
        engines, self._writer, self._readers = (self._writer, self._readers), None, None
        plain, self._plain = self._plain, None
        with faults():
            if plain is not None:
                await asyncio.to_thread(plain.dispose)
            for engine in engines:
                if engine is not None:
                    await engine.dispose()

    @property
    def writer(self) -> AsyncEngine:
        """For one transaction at a time; of SQLite it has the write lock from its beginning."""
        if self._writer is None:
            raise RuntimeError("the database is not open")
        return self._writer

    @property
    def readers(self) -> AsyncEngine:
        """For look-ups."""
        if self._readers is None:
            self._readers = self._engine(READERS, write=False)
        return self._readers

    async def write(self, parcels: list[Parcel]) -> None:
        """Store all of them, or none. Raises `TracesRefused` too."""
        if self._plain is not None:
            await asyncio.to_thread(self._write_file, self._plain, parcels)
            return
        rows, packed = await asyncio.to_thread(compressed, parcels)
        with faults():
            async with self.writer.begin() as connection:
                await connection.execute(self._insert_traces, rows)
                await connection.execute(self._insert_bodies, packed)

    def _write_file(self, engine: sa.Engine, parcels: list[Parcel]) -> None:
        """In one thread: to change threads for each statement costs more than the statements."""
        rows, packed = compressed(parcels)
        with faults():
            with engine.begin() as connection:
                connection.execute(self._insert_traces, rows)
                connection.execute(self._insert_bodies, packed)
            self._check_place()

    def _check_place(self) -> None:
        """What is written into a file that was removed or replaced is not stored."""
        if self.location.file is None or self._file is None:
            return
        try:
            now = os.stat(self.location.file)
        except FileNotFoundError:
            raise TraceDatabaseFailed("the file was removed") from None
        if not os.path.samestat(now, self._file):
            raise TraceDatabaseFailed("the file was replaced")

    def _engine(self, connections: int, *, write: bool) -> AsyncEngine:
        pool = _pool(connections)
        if self.location.url is not None:
            url = sa.make_url(self.location.url.get_secret_value())
            arguments = {"timeout": CONNECT_S, "command_timeout": ANSWER_S}
            return create_async_engine(url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True, **pool)
        url = sa.URL.create("sqlite+aiosqlite", database=str(self.location.file))
        engine = create_async_engine(url, connect_args={"timeout": BUSY_S}, hide_parameters=True, **pool)
        _prepare_sqlite(engine.sync_engine, write=write)
        return engine

    async def _migrate(self) -> None:
        async with self.writer.connect() as connection:
            if await self._is_current(connection):
                return
        run = await asyncio.to_thread(import_module, "verilog_taskapp.tracing.migrations.run")
        async with self.writer.begin() as connection:
            # SQLite's write lock is held from the beginning: whoever comes second finds the work done.
            if self.location.file is None:
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            if not await self._is_current(connection):
                await connection.run_sync(run.upgrade)

    async def _is_current(self, connection: AsyncConnection) -> bool:
        def has_revisions(plain: sa.Connection) -> bool:
            return sa.inspect(plain).has_table("alembic_version")

        if not await connection.run_sync(has_revisions):
            return False
        found: Sequence[str] = (await connection.scalars(sa.select(_REVISIONS.c.version_num))).all()
        if found and max(found) > REVISION:
            raise TraceDatabaseFailed(f"its tables are of revision {max(found)}, newer than this program's {REVISION}")
        return list(found) == [REVISION]


def _driver_errors() -> tuple[type[Exception], ...]:
    """asyncpg's own errors come through as they are while a connection is made, and sqlite3's as it is prepared."""
    asyncpg: Any = sys.modules.get("asyncpg")
    own = () if asyncpg is None else (asyncpg.PostgresError, asyncpg.InterfaceError)
    return (SQLAlchemyError, sqlite3.Error, OSError, *own)


@contextlib.contextmanager
def faults() -> Iterator[None]:
    """Turn the errors of the database and its drivers into `TraceDatabaseFailed` or `TracesRefused`."""
    try:
        yield
    except _driver_errors() as error:
        cause = getattr(error, "orig", None) or error  # SQLAlchemy's own text holds the statement
        reason = " ".join(f"{type(cause).__name__}: {cause}".split())[:REASON_CHARS]
        raise (TracesRefused if _is_refusal(error) else TraceDatabaseFailed)(reason) from error


def _is_refusal(error: Exception) -> bool:
    if isinstance(error, DataError | IntegrityError):
        return True
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None) or ""
        return str(state).startswith(REFUSALS)
    return isinstance(error, StatementError)


def _make_file(path: Path) -> None:
    """Only the user may read it; SQLite gives its companions the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _pool(connections: int) -> dict[str, Any]:
    return {"pool_size": connections, "max_overflow": 0, "pool_timeout": CONNECT_S}


def _prepare_sqlite(engine: sa.Engine, *, write: bool) -> None:
    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        cursor = connection.cursor()
        if write:
            cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a file without tables
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        else:
            cursor.execute("PRAGMA query_only = ON")
        # What is committed survives the end of the process, if not that of the machine.
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begins(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
