"""Look-ups in the stored traces. Loaded in the background: it imports SQLAlchemy."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from verilog_taskapp.tracing.lists import (
    Bucket,
    Choice,
    Cursor,
    GroupSummary,
    OutcomeCount,
    ProblemSummary,
    Rate,
    RunSummary,
    SortKey,
    Tally,
    TraceFilter,
    TraceOrder,
    TracePage,
    cursor_of,
    microseconds,
)
from verilog_taskapp.tracing.record import StoredTrace, TraceFacts
from verilog_taskapp.tracing.rows import FACT_COLUMNS, facts_of, moment, name, stored_trace
from verilog_taskapp.tracing.schema import bodies, traces

T = traces.c
NEWEST = TraceOrder()
IDS_AT_ONCE = 10_000
_FACTS = [T[name_] for name_ in FACT_COLUMNS]
_SORTED: dict[SortKey, sa.Column[Any]] = {
    "created_at": T.created_us,
    "episode_return": T.episode_return,
    "steps": T.steps,
    "total_s": T.total_us,
    "completion_tokens": T.completion_tokens,
}
_TALLY = (
    sa.func.count(),
    sa.func.count(T.passed),
    sa.func.coalesce(sa.func.sum(sa.case((T.passed, 1), else_=0)), 0),
    sa.func.avg(T.episode_return),
)


class TraceQueries:
    """Look-ups on one database; each may raise SQLAlchemy's errors, see `TraceStore.queries`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    # --- lists

    async def page(
        self, which: TraceFilter, order: TraceOrder = NEWEST, *, after: str | None = None, limit: int = 50
    ) -> TracePage:
        """`limit` traces behind the cursor `after`. Raises ValueError for a cursor that is none."""
        cursor = Cursor.from_text(after) if after else None
        column = _SORTED[order.key]
        found: list[TraceFacts] = []
        async with self._engine.connect() as connection:
            if cursor is None or cursor.value is not None:
                place = sa.tuple_(column, T.id)
                query = sa.select(*_FACTS).where(*_conditions(which), column.is_not(None))
                if cursor is not None:
                    bound = sa.tuple_(sa.literal(cursor.value, column.type), sa.literal(cursor.id, T.id.type))
                    query = query.where(place < bound if order.descending else place > bound)
                query = query.order_by(*_ordered(order, column, T.id)).limit(limit + 1)
                found = [facts_of(tuple(row)) for row in await connection.execute(query)]
            if len(found) <= limit and column.nullable:
                query = sa.select(*_FACTS).where(*_conditions(which), column.is_(None))
                if cursor is not None and cursor.value is None:
                    query = query.where(T.id < cursor.id if order.descending else T.id > cursor.id)
                query = query.order_by(*_ordered(order, T.id)).limit(limit + 1 - len(found))
                found += [facts_of(tuple(row)) for row in await connection.execute(query)]
        shown = found[:limit]
        more = cursor_of(shown[-1], order.key).to_text() if len(found) > limit else None
        return TracePage(tuple(shown), more)

    async def count(self, which: TraceFilter, *, at_most: int = 10_000) -> int:
        """How many traces there are; counting stops at `at_most`."""
        inner = sa.select(sa.literal(1)).select_from(traces).where(*_conditions(which)).limit(at_most).subquery()
        return await self._one(sa.select(sa.func.count()).select_from(inner)) or 0

    async def latest(self) -> datetime | None:
        """When the newest trace was finished: where that has not changed, nothing has been added."""
        found = await self._one(sa.select(sa.func.max(T.finished_us)))
        return None if found is None else moment(found)

    async def choices(self, column: Choice, *, limit: int = 1000) -> tuple[str, ...]:
        """The different values of a column, sorted."""
        values = T[column]
        if column in _UNSORTED:
            distinct = sa.select(values).where(values.is_not(None)).distinct().order_by(values).limit(limit)
            return tuple(str(row[0]) for row in await self._all(distinct))
        # One step through the index per value, where DISTINCT would read all of it.
        first = sa.select(sa.func.min(values).label("value")).cte("found", recursive=True)
        following = sa.select(sa.func.min(values)).where(values > first.c.value).scalar_subquery()
        found = first.union_all(sa.select(following).where(first.c.value.is_not(None)))
        rows = await self._all(sa.select(found.c.value).where(found.c.value.is_not(None)).limit(limit))
        return tuple(str(row[0]) for row in rows)

    # --- one trace

    async def get(self, trace_id: str) -> StoredTrace | None:
        """One trace whole, or None."""
        async for trace in self._whole(sa.select(*_WHOLE).where(T.id == name(trace_id))):
            return trace
        return None

    async def whole(
        self, which: TraceFilter, *, limit: int | None = None, page: int = 100
    ) -> AsyncIterator[StoredTrace]:
        """Whole traces, the oldest first, read `page` at a time."""
        left = limit
        async for ids in self._ids(which, page):
            wanted = ids if left is None else ids[:left]
            async for trace in self._whole(sa.select(*_WHOLE).where(T.id.in_(wanted)).order_by(T.id)):
                yield trace
            left = None if left is None else left - len(wanted)
            if left == 0:
                return

    async def _ids(self, which: TraceFilter, page: int) -> AsyncIterator[list[str]]:
        """In order; a filter may make the database look at all of them, so that it is asked for many at once."""
        after = ""
        while True:
            query = sa.select(T.id).where(*_conditions(which), T.id > after).order_by(T.id).limit(IDS_AT_ONCE)
            found = [row[0] for row in await self._all(query)]
            for start in range(0, len(found), page):
                yield found[start : start + page]
            if len(found) < IDS_AT_ONCE:
                return
            after = found[-1]

    async def _whole(self, query: sa.Select[Any]) -> AsyncIterator[StoredTrace]:
        joined = query.join_from(traces, bodies, bodies.c.trace_id == T.id)
        for row in await self._all(joined):
            yield stored_trace(facts_of(tuple(row[:-3])), row[-3], row[-2], row[-1])

    # --- sums

    async def tally(self, which: TraceFilter) -> Tally:
        """What the traces add up to."""
        rows = await self._all(sa.select(*_TALLY).where(*_conditions(which)))
        return _tally(rows[0])

    async def runs(self, which: TraceFilter, *, limit: int = 100) -> tuple[RunSummary, ...]:
        """Runs, those with the newest trace first."""
        last = sa.func.max(T.created_us)
        query = (
            sa.select(T.run_id, *_TALLY, sa.func.min(T.created_us), last)
            .where(*_conditions(which))
            .group_by(T.run_id)
            .order_by(last.desc(), T.run_id)
            .limit(limit)
        )
        return tuple(
            RunSummary(row[0], _tally(row[1:5]), moment(row[5]), moment(row[6])) for row in await self._all(query)
        )

    async def over_time(self, which: TraceFilter, *, buckets: int = 60) -> tuple[Bucket, ...]:
        """Return and pass rate over time, between the first and the last trace."""
        ends = await self._all(
            sa.select(sa.func.min(T.created_us), sa.func.max(T.created_us)).where(*_conditions(which))
        )
        first, last = ends[0]
        if first is None:
            return ()
        width = max(1, -(-(last - first + 1) // buckets))
        number = ((T.created_us - sa.literal(first, sa.BigInteger)) // sa.literal(width, sa.BigInteger)).label("number")
        query = sa.select(number, *_TALLY).where(*_conditions(which)).group_by(number).order_by(number)
        return tuple(
            Bucket(moment(first + int(row[0]) * width), width / 1e6, _tally(row[1:])) for row in await self._all(query)
        )

    async def outcomes(self, which: TraceFilter) -> tuple[OutcomeCount, ...]:
        """How often traces ended how, the most frequent first."""
        counted = sa.func.count()
        query = sa.select(T.outcome, counted).where(*_conditions(which)).group_by(T.outcome)
        return tuple(OutcomeCount(*row) for row in await self._all(query.order_by(counted.desc(), T.outcome)))

    async def rates(
        self, which: TraceFilter, *, by_model: bool = True, by_problem: bool = True, limit: int = 10_000
    ) -> tuple[Rate, ...]:
        """Pass rates per model and problem, sorted by problem and model."""
        keys = [T.problem_id] * by_problem + [T.model] * by_model
        query = sa.select(*keys, *_TALLY).where(*_conditions(which)).group_by(*keys).order_by(*keys).limit(limit)
        found = []
        for row in await self._all(query):
            problem = row[0] if by_problem else None
            model = row[len(keys) - 1] if by_model else None
            found.append(Rate(model, problem, _tally(row[len(keys) :])))
        return tuple(found)

    async def problems(self, which: TraceFilter, *, limit: int = 10_000) -> tuple[ProblemSummary, ...]:
        """Problems that have traces, sorted."""
        steps = sa.func.avg(sa.case((T.passed.is_not(None), T.steps)))
        query = (
            sa.select(T.problem_id, T.dataset, *_TALLY, steps)
            .where(*_conditions(which))
            .group_by(T.problem_id, T.dataset)
            .order_by(T.problem_id, T.dataset)
            .limit(limit)
        )
        return tuple(
            ProblemSummary(row[0], row[1], _tally(row[2:6]), None if row[6] is None else float(row[6]))
            for row in await self._all(query)
        )

    async def groups(self, which: TraceFilter, *, at_least: int = 2, limit: int = 100) -> tuple[GroupSummary, ...]:
        """Groups of `at_least` samples, those with the newest first; the samples are a `page` of their `group_key`."""
        last = sa.func.max(T.created_us)
        query = (
            sa.select(
                *(T.group_key, sa.func.min(T.run_id), sa.func.min(T.problem_id), *_TALLY),
                *(sa.func.min(T.episode_return), sa.func.max(T.episode_return), last),
            )
            .where(*_conditions(which))
            .group_by(T.group_key)
            .having(sa.func.count() >= at_least)
            .order_by(last.desc(), T.group_key)
            .limit(limit)
        )
        return tuple(
            GroupSummary(row[0], row[1], row[2], _tally(row[3:7]), row[7], row[8], moment(row[9]))
            for row in await self._all(query)
        )

    async def _all(self, query: sa.Executable) -> list[Any]:
        async with self._engine.connect() as connection:
            return list((await connection.execute(query)).all())

    async def _one(self, query: sa.Executable) -> Any:
        async with self._engine.connect() as connection:
            return await connection.scalar(query)


_UNSORTED = frozenset({"dataset"})
"""No index begins with it."""
_WHOLE = [*_FACTS, T.settings_json, bodies.c.encoding, bodies.c.body]


def _ordered(order: TraceOrder, *columns: sa.Column[Any]) -> list[sa.ColumnElement[Any]]:
    return [column.desc() if order.descending else column.asc() for column in columns]


def _conditions(which: TraceFilter) -> list[sa.ColumnElement[bool]]:
    equal = {
        key: value
        for key in ("kind", "run_id", "model", "dataset", "split", "problem_id", "group_key", "status", "outcome")
        if (value := getattr(which, key)) is not None
    }
    found: list[sa.ColumnElement[bool]] = [T[key] == name(value) for key, value in equal.items()]
    if which.passed is not None:
        found.append(T.passed == which.passed)
    if which.min_return is not None:
        found.append(T.episode_return >= which.min_return)
    if which.max_return is not None:
        found.append(T.episode_return <= which.max_return)
    if which.created_from is not None:
        found.append(T.created_us >= microseconds(which.created_from))
    if which.created_until is not None:
        found.append(T.created_us < microseconds(which.created_until))
    return found


def _tally(row: Any) -> Tally:
    traces_, scored, passed, mean = row
    return Tally(int(traces_), int(scored), int(passed), None if mean is None else float(mean))
