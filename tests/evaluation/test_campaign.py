"""Running many samples: retries, errors apart, stopping, going on."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.evaluation.builders import sample
from verilog_taskapp.evaluation.backend import SampleFault
from verilog_taskapp.evaluation.campaign import FLOW_PATIENCE_S, Campaign, tasks_of
from verilog_taskapp.evaluation.config import EvalConfig
from verilog_taskapp.evaluation.journal import Journal, read_samples
from verilog_taskapp.evaluation.samples import Sample, Task
from verilog_taskapp.problems.model import Problem

NAMES = ("p1", "p2", "p3")


def tasks(n: int = 2) -> list[Task]:
    config = EvalConfig.model_validate({"eval": {"n": n}, "policy": {"models": ["m"]}})
    return tasks_of(config, [Problem(name, "", "", "") for name in NAMES])


class Drawing:
    """Draws samples that pass, after the faults that are listed for their problem."""

    def __init__(self, **faults: list[SampleFault]) -> None:
        self.faults = faults
        self.drawn: Counter[tuple[str, int]] = Counter()
        self.waits: list[float] = []

    async def __call__(self, task: Task) -> Sample:
        self.drawn[task.problem, task.sample] += 1
        await asyncio.sleep(0)
        if waiting := self.faults.get(task.problem):
            raise waiting.pop(0)
        return sample(task.problem, task.sample, seed=task.seed)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    """An empty one."""
    with Journal(tmp_path / "results.jsonl") as opened:
        yield opened


def campaign(journal: Journal, draw: Drawing, *, n: int = 2, retries: int = 2) -> Campaign:
    return Campaign(tasks(n), draw, journal, concurrency=2, retries=retries, sleep=draw.sleep)


def broken(retry_after_s: float | None = None) -> SampleFault:
    return SampleFault("environment_failed", "no space", retryable=True, retry_after_s=retry_after_s)


def kept(journal: Journal) -> list[Sample]:
    return read_samples(journal._path)[0]


async def test_every_sample_is_drawn_once_and_all_problems_come_before_their_second_sample(journal: Journal) -> None:
    draw = Drawing()
    run = campaign(journal, draw)
    await run.run()
    assert list(draw.drawn) == [(name, number) for number in (0, 1) for name in NAMES]
    assert set(draw.drawn.values()) == {1}
    assert (run.tally.done, run.tally.passed, run.tally.in_flight) == (6, 6, 0)


async def test_a_fault_that_passes_is_retried_and_counted_as_nothing(journal: Journal) -> None:
    draw = Drawing(p2=[broken(), broken(3.0)])
    run = campaign(journal, draw, n=1)
    await run.run()
    assert {one.problem: one.attempts for one in kept(journal)} == {"p1": 1, "p2": 3, "p3": 1}
    assert (run.tally.errors, run.tally.passed) == (0, 3)
    assert len(draw.waits) == 2
    assert draw.waits[1] >= 3.0


async def test_a_fault_that_stays_is_an_error_and_no_failure(journal: Journal) -> None:
    run = campaign(journal, Drawing(p2=[broken() for _ in range(3)]), n=1)
    await run.run()
    errors = [one for one in kept(journal) if one.status == "error"]
    assert [(one.problem, one.passed, one.attempts, one.error and one.error.code) for one in errors] == [
        ("p2", None, 3, "environment_failed")
    ]
    assert (run.tally.passed, run.tally.failed, run.tally.errors) == (2, 0, 1)


async def test_what_no_retry_can_help_is_not_retried(journal: Journal) -> None:
    draw = Drawing(p2=[SampleFault("inference_rejected", "too long", upstream_status=400)])
    run = campaign(journal, draw, n=1)
    await run.run()
    assert draw.drawn["p2", 0] == 1
    assert run.tally.errors == 1


async def test_a_full_service_is_waited_for_as_it_asks_without_using_up_retries(journal: Journal) -> None:
    full = [SampleFault("overloaded", "full", retryable=True, retry_after_s=20.0) for _ in range(8)]
    draw = Drawing(p2=full)
    run = campaign(journal, draw, n=1, retries=0)
    await run.run()
    assert run.tally.passed == 3
    assert len(draw.waits) == 8
    assert all(20.0 <= wait <= 25.0 for wait in draw.waits)


async def test_a_service_that_stays_full_is_given_up(journal: Journal) -> None:
    full = [SampleFault("overloaded", "full", retryable=True, retry_after_s=FLOW_PATIENCE_S) for _ in range(8)]
    run = campaign(journal, Drawing(p2=full), n=1, retries=1)
    await run.run()
    assert run.tally.errors == 1


async def test_a_fault_that_all_samples_would_meet_ends_the_run_without_errors(journal: Journal) -> None:
    draw = Drawing(p1=[SampleFault("unauthorized", "wrong key")])
    run = campaign(journal, draw, n=50)
    await run.run()
    assert run.fatal is not None
    assert run.fatal.message == "wrong key"
    assert run.tally.errors == 0
    assert sum(draw.drawn.values()) < 10


async def test_stopping_finishes_what_is_in_flight_and_begins_nothing_more(journal: Journal) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def draw(task: Task) -> Sample:
        begun.set()
        await go.wait()
        return sample(task.problem, task.sample)

    run = Campaign(tasks(), draw, journal, concurrency=2, retries=0)
    running = asyncio.create_task(run.run())
    async with asyncio.timeout(DEADLINE_S):
        await begun.wait()
        in_flight = run.tally.in_flight
        run.stopping.set()
        go.set()
        await running
    assert in_flight >= 1
    assert len(kept(journal)) == in_flight


async def test_stopping_does_not_wait_for_the_next_attempt(journal: Journal) -> None:
    waiting = asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    draw = Drawing(**{name: [broken(), broken()] for name in NAMES})
    run = Campaign(tasks(), draw, journal, concurrency=2, retries=5, sleep=sleep)
    running = asyncio.create_task(run.run())
    async with asyncio.timeout(DEADLINE_S):
        await waiting.wait()
        run.stopping.set()
        await running
    assert kept(journal) == []


async def test_a_run_that_was_cancelled_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    third = asyncio.Event()

    async def draw(task: Task) -> Sample:
        if (task.problem, task.sample) == ("p3", 0):
            third.set()
            await asyncio.Event().wait()
        return sample(task.problem, task.sample, seed=task.seed)

    with Journal(path) as journal:
        running = asyncio.create_task(Campaign(tasks(), draw, journal, concurrency=1, retries=0).run())
        async with asyncio.timeout(DEADLINE_S):
            await third.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert len(read_samples(path)[0]) == 2
    again = Drawing()
    with Journal(path) as journal:
        run = Campaign(tasks(), again, journal, concurrency=1, retries=0)
        assert run.tally.before == 2
        await run.run()
    assert list(again.drawn) == [("p3", 0), ("p1", 1), ("p2", 1), ("p3", 1)]
    assert [one.key for one in read_samples(path)[0]] == [task.key for task in tasks()]


async def test_errors_are_drawn_again_when_a_run_goes_on(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl") as journal:
        await campaign(journal, Drawing(p2=[broken()]), n=1, retries=0).run()
    again = Drawing()
    with Journal(tmp_path / "results.jsonl") as journal:
        await campaign(journal, again, n=1).run()
        assert list(again.drawn) == [("p2", 0)]
        assert {one.status for one in kept(journal)} == {"done"}


async def test_a_disk_that_cannot_be_written_ends_the_run(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Sample) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "append", full)
    with pytest.raises(OSError, match="No space left"):
        await campaign(journal, Drawing()).run()


async def test_a_cancelled_run_ends_after_the_line_that_it_writes(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go, append = threading.Event(), threading.Event(), journal.append

    def slow(one: Sample) -> None:
        writing.set()
        go.wait(DEADLINE_S)
        append(one)

    monkeypatch.setattr(journal, "append", slow)
    running = asyncio.create_task(campaign(journal, Drawing()).run())
    assert await asyncio.to_thread(writing.wait, DEADLINE_S)
    running.cancel()
    for _ in range(100):
        await asyncio.sleep(0)
    assert not running.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(kept(journal)) == 1
