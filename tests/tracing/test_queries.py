"""Look-ups: filters, orders, pages and sums, compared with the same done in Python."""

import random
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from statistics import mean
from typing import Any, get_args

import pytest
import pytest_asyncio

from tests.tracing.conftest import DatabaseKind, new_database
from tests.tracing.synthetic import START, synthetic_records
from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.lists import Cursor, SortKey, Tally, TraceFilter, TraceOrder
from verilog_taskapp.tracing.location import TraceLocation, parse_location
from verilog_taskapp.tracing.queries import TraceQueries
from verilog_taskapp.tracing.record import TraceFacts
from verilog_taskapp.tracing.rows import parcel

RECORDS = list(synthetic_records(400, runs=4, steps=1))
FACTS = [record.facts for record in RECORDS]
FILTERS: dict[str, tuple[TraceFilter, Callable[[TraceFacts], bool]]] = {
    "everything": (TraceFilter(), lambda _: True),
    "run": (TraceFilter(run_id="run-001"), lambda one: one.run_id == "run-001"),
    "model": (TraceFilter(model="scripted"), lambda one: one.model == "scripted"),
    "problem": (TraceFilter(problem_id="Prob003"), lambda one: one.problem_id == "Prob003"),
    "group": (TraceFilter(group_key=FACTS[9].group_key), lambda one: one.group_key == FACTS[9].group_key),
    "status": (TraceFilter(status="truncated"), lambda one: one.status == "truncated"),
    "outcome": (TraceFilter(outcome="wrong"), lambda one: one.outcome == "wrong"),
    "passed": (TraceFilter(passed=True), lambda one: one.passed is True),
    "not passed": (TraceFilter(passed=False), lambda one: one.passed is False),
    "return": (
        TraceFilter(min_return=-0.05, max_return=11.05),
        lambda one: one.episode_return is not None and -0.05 <= one.episode_return <= 11.05,
    ),
    "created": (
        TraceFilter(created_from=START + timedelta(seconds=5), created_until=START + timedelta(seconds=9)),
        lambda one: START + timedelta(seconds=5) <= one.created_at < START + timedelta(seconds=9),
    ),
    "split and dataset": (TraceFilter(split="val", dataset="synthetic"), lambda one: one.split == "val"),
    "nothing": (TraceFilter(kind="session"), lambda _: False),
    "several": (
        TraceFilter(kind="rollout", run_id="run-002", passed=True, model="qwen/qwen3-32b"),
        lambda one: one.run_id == "run-002" and one.passed is True and one.model == "qwen/qwen3-32b",
    ),
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=get_args(DatabaseKind))
async def queries(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[TraceQueries]:
    """Look-ups in a database with all of `RECORDS`, written in no order."""
    place = TraceLocation(file=tmp_path_factory.mktemp("queries") / "traces.db")
    if request.param == "postgresql":
        place = parse_location(await new_database(request.getfixturevalue("postgresql")))
    database = TraceDatabase(place)
    await database.open()
    shuffled = [parcel(record) for record in RECORDS]
    random.Random(1).shuffle(shuffled)  # noqa: S311
    await database.write(shuffled)
    yield TraceQueries(database.readers)
    await database.close()


def ids(facts: Iterable[TraceFacts]) -> list[str]:
    return [one.id for one in facts]


def tally(facts: Iterable[TraceFacts]) -> Tally:
    found = list(facts)
    returns = [one.episode_return for one in found if one.episode_return is not None]
    average: Any = pytest.approx(mean(returns)) if returns else None
    return Tally(len(found), len(returns), sum(one.passed is True for one in found), average)


async def walk(queries: TraceQueries, which: TraceFilter, order: TraceOrder, limit: int) -> list[TraceFacts]:
    """All pages."""
    page = await queries.page(which, order, limit=limit)
    found = list(page.traces)
    while page.next_cursor is not None:
        assert len(page.traces) == limit
        page = await queries.page(which, order, after=page.next_cursor, limit=limit)
        found += page.traces
    return found


async def test_a_list_shows_the_facts_as_they_were(queries: TraceQueries) -> None:
    found = await walk(queries, TraceFilter(), TraceOrder(descending=False), 100)
    assert [replace(one, body_bytes=0) for one in found] == FACTS
    assert all(one.body_bytes > 100 for one in found)


@pytest.mark.parametrize("name", FILTERS)
async def test_a_filter_finds_what_it_says(queries: TraceQueries, name: str) -> None:
    which, holds = FILTERS[name]
    expected = [one for one in FACTS if holds(one)]
    assert ids(await walk(queries, which, TraceOrder(), 50)) == ids(reversed(expected))
    assert await queries.count(which) == len(expected)
    assert await queries.tally(which) == tally(expected)
    assert [one.facts.id async for one in queries.whole(which, page=30)] == ids(expected)


@pytest.mark.parametrize("key", get_args(SortKey))
@pytest.mark.parametrize("descending", [True, False])
async def test_pages_of_every_order_hold_everything_once(queries: TraceQueries, key: SortKey, descending: bool) -> None:
    def value(one: TraceFacts) -> Any:
        return getattr(one, key)

    present = [one for one in FACTS if value(one) is not None]
    absent = [one for one in FACTS if value(one) is None]
    by_id = {"key": lambda one: one.id, "reverse": descending}
    expected = sorted(present, key=lambda one: (value(one), one.id), reverse=descending)
    expected += sorted(absent, **by_id)  # type: ignore[call-overload]
    for limit in (7, 133):
        assert ids(await walk(queries, TraceFilter(), TraceOrder(key, descending), limit)) == ids(expected)


async def test_a_page_that_begins_among_those_without_a_value_goes_on_there(queries: TraceQueries) -> None:
    failed = TraceFilter(status="failed")
    order = TraceOrder("episode_return")
    assert len(await walk(queries, failed, order, 3)) == sum(one.status == "failed" for one in FACTS)


@pytest.mark.parametrize("text", ["x", "e30", "WzEsMl0", "W3RydWUsImEiXQ", "é", "a" * 500])
async def test_what_is_no_cursor_is_refused(queries: TraceQueries, text: str) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        await queries.page(TraceFilter(), after=text)


@pytest.mark.parametrize("value", [None, 0, -1.5, 1767225600000000])
async def test_a_cursor_travels_as_text(value: float | None) -> None:
    assert Cursor.from_text(Cursor(value, "ab").to_text()) == Cursor(value, "ab")


async def test_a_trace_is_found_whole(queries: TraceQueries) -> None:
    found = await queries.get(FACTS[3].id)
    assert found is not None
    assert replace(found.facts, body_bytes=0) == FACTS[3]
    assert (found.settings, found.document) == (RECORDS[3].settings, RECORDS[3].document)
    for unknown in ("", "no such", "\0", "\ud800", "x" * 10_000):
        assert await queries.get(unknown) is None


async def test_counting_stops_at_a_limit(queries: TraceQueries) -> None:
    assert await queries.count(TraceFilter(), at_most=17) == 17


async def test_runs_are_summed_up_the_newest_first(queries: TraceQueries) -> None:
    runs = await queries.runs(TraceFilter())
    assert [run.run_id for run in runs] == ["run-003", "run-002", "run-001", "run-000"]
    for run in runs:
        of_it = [one for one in FACTS if one.run_id == run.run_id]
        assert run.tally == tally(of_it)
        assert (run.first_at, run.last_at) == (of_it[0].created_at, of_it[-1].created_at)
    assert len(await queries.runs(TraceFilter(), limit=2)) == 2


async def test_a_run_over_time_is_cut_into_equal_stretches(queries: TraceQueries) -> None:
    of_it = [one for one in FACTS if one.run_id == "run-001"]
    buckets = await queries.over_time(TraceFilter(run_id="run-001"), buckets=8)
    assert len(buckets) == 8
    assert sum(bucket.tally.traces for bucket in buckets) == len(of_it)
    for bucket in buckets:
        end = bucket.start + timedelta(seconds=bucket.width_s)
        assert bucket.tally == tally(one for one in of_it if bucket.start <= one.created_at < end)
    assert await queries.over_time(TraceFilter(run_id="no such")) == ()
    (alone,) = await queries.over_time(TraceFilter(created_from=START, created_until=START + timedelta(seconds=1)))
    assert alone.tally.traces == 1


async def test_outcomes_are_counted_the_most_frequent_first(queries: TraceQueries) -> None:
    found = await queries.outcomes(TraceFilter(run_id="run-000"))
    expected: dict[str, int] = {}
    for one in FACTS:
        if one.run_id == "run-000":
            expected[one.outcome] = expected.get(one.outcome, 0) + 1
    assert {one.outcome: one.traces for one in found} == expected
    assert [one.traces for one in found] == sorted(expected.values(), reverse=True)


@pytest.mark.parametrize(("by_model", "by_problem"), [(True, True), (True, False), (False, True)])
async def test_rates_are_per_model_and_problem(queries: TraceQueries, by_model: bool, by_problem: bool) -> None:
    def key(one: TraceFacts) -> tuple[str, str]:
        return (one.problem_id if by_problem else "", (one.model or "") if by_model else "")

    expected = {
        (problem or None, model or None): tally(found)
        for (problem, model), found in groupby(sorted(FACTS, key=key), key=key)
    }
    rates = await queries.rates(TraceFilter(), by_model=by_model, by_problem=by_problem)
    assert {(one.problem_id, one.model): one.tally for one in rates} == expected


async def test_problems_are_summed_up(queries: TraceQueries) -> None:
    problems = {one.problem_id: one for one in await queries.problems(TraceFilter())}
    assert set(problems) == {one.problem_id for one in FACTS}
    of_it = [one for one in FACTS if one.problem_id == "Prob002"]
    assert problems["Prob002"].tally == tally(of_it)
    assert problems["Prob002"].mean_steps == pytest.approx(mean(one.steps for one in of_it if one.passed is not None))


async def test_groups_are_the_samples_of_one_problem_in_one_run(queries: TraceQueries) -> None:
    groups = await queries.groups(TraceFilter(), limit=1000)
    expected: dict[str, list[TraceFacts]] = {}
    for one in FACTS:
        expected.setdefault(one.group_key, []).append(one)
    assert {one.group_key: one.tally for one in groups} == {key: tally(found) for key, found in expected.items()}
    newest = groups[0]
    assert newest.last_at == FACTS[-1].created_at
    assert (newest.run_id, newest.problem_id) == (FACTS[-1].run_id, FACTS[-1].problem_id)
    returns = [one.episode_return for one in expected[newest.group_key] if one.episode_return is not None]
    assert (newest.min_return, newest.max_return) == (min(returns), max(returns))
    assert await queries.groups(TraceFilter(), at_least=9) == ()


async def test_choices_are_the_different_values(queries: TraceQueries) -> None:
    assert await queries.choices("run_id") == ("run-000", "run-001", "run-002", "run-003")
    assert await queries.choices("run_id", limit=2) == ("run-000", "run-001")
    assert set(await queries.choices("model")) == {one.model for one in FACTS}
    assert await queries.choices("dataset") == ("synthetic",)
    assert await queries.choices("split") == ("test", "train", "val")
