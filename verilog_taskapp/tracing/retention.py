"""Removing the oldest traces: by age, and by what all of them take.

Every call removes a few in a transaction that looks for itself, so that several processes never remove too much.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from verilog_taskapp.tracing.database import TraceDatabase, faults
from verilog_taskapp.tracing.schema import bodies, traces

BATCH = 200
"""Traces removed at once."""
ROW_BYTES = 3072
"""Of the row and its place in the indexes, beside the body; measured on SQLite."""
FREED_PAGES = 5000
"""That SQLite gives back to the disk at once."""
RETENTION_LOCK = 0x7461736B61707075
"""Of PostgreSQL's advisory locks ("taskappu")."""


async def prune(database: TraceDatabase, *, now_s: float, max_age_s: float, max_bytes: int) -> int:
    """Remove a batch of what is too much, and tell how many; below `BATCH` nothing is left to do. A limit of 0 is none.

    Raises `verilog_taskapp.tracing.faults.TraceDatabaseFailed`.
    """
    with faults():
        async with database.writer.begin() as connection:
            if database.location.file is None:
                lock = sa.select(sa.func.pg_try_advisory_xact_lock(RETENTION_LOCK))
                if not await connection.scalar(lock):
                    return 0  # another process is at it
            doomed = await _too_old(connection, now_s, max_age_s) if max_age_s else []
            if max_bytes and not doomed:
                doomed = await _too_much(connection, max_bytes)
            if doomed:
                await connection.execute(sa.delete(bodies).where(bodies.c.trace_id.in_(doomed)))
                await connection.execute(sa.delete(traces).where(traces.c.id.in_(doomed)))
        if doomed and database.location.file is not None:
            await _give_room_back(database)
    return len(doomed)


async def _give_room_back(database: TraceDatabase) -> None:
    async with database.writer.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        # Python steps a statement without columns only once, which would free one page; a script it steps to its end.
        await raw.executescript(f"PRAGMA incremental_vacuum({FREED_PAGES})")


async def _too_old(connection: AsyncConnection, now_s: float, max_age_s: float) -> list[str]:
    limit = int((now_s - max_age_s) * 1e6)
    query = sa.select(traces.c.id).where(traces.c.finished_us < limit)
    return list((await connection.scalars(_oldest(query))).all())


async def _too_much(connection: AsyncConnection, max_bytes: int) -> list[str]:
    taken = sa.select(sa.func.coalesce(sa.func.sum(traces.c.body_bytes), 0), sa.func.count())
    held, rows = (await connection.execute(taken)).one()
    excess = int(held) + rows * ROW_BYTES - max_bytes
    doomed: list[str] = []
    if excess > 0:
        for trace_id, size in await connection.execute(_oldest(sa.select(traces.c.id, traces.c.body_bytes))):
            if excess <= 0:
                break
            doomed.append(trace_id)
            excess -= size + ROW_BYTES
    return doomed


def _oldest(query: sa.Select[Any]) -> sa.Select[Any]:
    return query.order_by(traces.c.finished_us, traces.c.id).limit(BATCH)
