"""Equal work is done once, and what is kept is what would be found out again."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.conftest import until
from tests.icarus import made
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Job, JobResult, Limits, Runner
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.verdict import Verdict
from verilog_taskapp.icarus.verdict_cache import DiskStore, Kind, MemoryStore, ResultStore, VerdictCache, open_store

TEXT: Kind[str] = Kind("text", str.encode, bytes.decode, lambda value: not value.startswith("passing"))
GOOD = "module TopModule(input clk, input [7:0] d, output reg [7:0] q);\nalways @(posedge clk) q <= d;\nendmodule\n"
BAD = GOOD.replace("<= d", "<= ~d")
BROKEN = GOOD.replace("<= d", "<= e")
ENDLESS = GOOD.replace("always", "initial while (1) ;\nalways")


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    found = open_store(request.param, tmp_path, 2**20)
    assert found is not None
    return found


class Work:
    """Counts how often it was begun; `gate` holds it up."""

    def __init__(self, value: str = "done") -> None:
        self.begun = 0
        self.ended = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.value: str | Exception = value

    async def __call__(self) -> str:
        self.begun += 1
        try:
            await self.gate.wait()
        finally:
            self.ended += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


async def asked(cache: VerdictCache, count: int) -> None:
    """Return when so many callers have found out whether there is a result, and the work has begun."""
    await until(lambda: cache.hits + cache.misses == count)
    await asyncio.sleep(0)


async def test_what_is_kept_is_not_made_again(store: ResultStore) -> None:
    cache, work = VerdictCache(store), Work()
    assert [await cache.result(TEXT, "a", work) for _ in range(3)] == [("done", False), ("done", True), ("done", True)]
    assert await cache.result(TEXT, "b", work) == ("done", False)
    assert (work.begun, cache.hits, cache.misses) == (2, 2, 2)
    await cache.close()


async def test_equal_work_at_the_same_time_is_done_once(store: ResultStore) -> None:
    cache, work = VerdictCache(store), Work()
    work.gate.clear()
    callers = [asyncio.create_task(cache.result(TEXT, "a", work)) for _ in range(16)]
    await asked(cache, 16)
    work.gate.set()
    assert [value for value, _ in await asyncio.gather(*callers)] == ["done"] * 16
    assert (work.begun, cache.misses) == (1, 1)
    await cache.close()


async def test_without_a_store_everything_is_done_each_time() -> None:
    cache, work = VerdictCache(None), Work()
    assert [await cache.result(TEXT, "a", work) for _ in range(2)] == [("done", False)] * 2
    assert (cache.hits, cache.misses) == (0, 0)


async def test_a_passing_state_of_the_machine_is_not_kept(store: ResultStore) -> None:
    cache, work = VerdictCache(store), Work("passing trouble")
    for _ in range(2):
        assert await cache.result(TEXT, "a", work) == ("passing trouble", False)
    work.value = EnvironmentFailed("no")
    with pytest.raises(EnvironmentFailed):
        await cache.result(TEXT, "a", work)
    work.value = "done"
    assert await cache.result(TEXT, "a", work) == ("done", False)
    await cache.close()


async def test_a_caller_that_goes_leaves_the_work_to_the_others_and_the_last_one_ends_it(store: ResultStore) -> None:
    cache, work = VerdictCache(store), Work()
    work.gate.clear()
    first, second = (asyncio.create_task(cache.result(TEXT, "a", work)) for _ in range(2))
    await asked(cache, 2)
    first.cancel()
    await asyncio.wait([first])
    assert work.ended == 0
    second.cancel()
    await asyncio.wait([second])
    assert (work.begun, work.ended) == (1, 1)
    work.gate.set()
    assert await cache.result(TEXT, "a", work) == ("done", False)
    await cache.close()


async def test_damaged_results_are_made_again(store: ResultStore) -> None:
    cache, work = VerdictCache(store), Work()
    store.put("text:a", b"not compressed")
    assert await cache.result(TEXT, "a", work) == ("done", False)
    assert await cache.result(TEXT, "a", work) == ("done", True)
    await cache.close()


def test_memory_keeps_what_was_used_last() -> None:
    store = MemoryStore(30)
    for key in "abc":
        assert store.put(key, bytes(10)) == 0
    store.get("a")
    assert store.put("d", bytes(10)) == 1
    assert [key for key in "abcd" if store.get(key) is not None] == ["a", "c", "d"]
    assert store.put("e", bytes(31)) == 0
    assert store.get("e") is None


def test_a_file_stays_below_its_limit_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "v.sqlite", 400_000)
    evicted = sum(store.put(str(number), bytes([number % 251]) * 20_000) for number in range(60))
    assert evicted > 35
    kept = [number for number in range(60) if store.get(str(number)) is not None]
    assert kept == list(range(evicted, 60))
    assert len(kept) >= 10
    store.close()


def test_two_processes_see_each_others_results(tmp_path: Path) -> None:
    one, other = (DiskStore(tmp_path / "v.sqlite", 2**20) for _ in range(2))
    one.put("a", b"1")
    assert other.get("a") == b"1"
    assert (tmp_path / "v.sqlite").stat().st_mode & 0o777 == 0o600
    one.close()
    other.close()


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "v.sqlite").write_bytes(b"no database at all" * 1000)
    store = DiskStore(tmp_path / "v.sqlite", 2**20)
    assert store.get("a") is None
    store.put("a", b"1")
    assert store.get("a") == b"1"
    store.close()


def test_a_file_that_another_program_holds_costs_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiskStore, "BUSY_S", 0.05)
    store = DiskStore(tmp_path / "v.sqlite", 2**20)
    store.put("a", b"1")
    other = sqlite3.connect(tmp_path / "v.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store.put("b", b"2")
    other.execute("ROLLBACK")
    other.close()
    assert (store.get("a"), store.get("b")) == (b"1", None)
    store.close()


# --- with the judge


class Counting(Runner):
    """A runner that counts its jobs."""

    jobs = 0

    async def run(self, job: Job) -> JobResult:
        self.jobs += 1
        return await super().run(job)


@pytest.fixture
async def counting(scratch: Path) -> AsyncIterator[Counting]:
    runner = Counting(children=2, scratch_root=scratch)
    async with runner:
        yield runner


@pytest.fixture
async def opened(
    counting: Counting, tools: Toolchain, golden_cache: Path, store: ResultStore
) -> AsyncIterator[Callable[..., Judge]]:
    made_here = []

    def open_judge(**options: object) -> Judge:
        judge = Judge(counting, tools, cache_dir=golden_cache, verdicts=VerdictCache(store), **options)  # type: ignore[arg-type]
        made_here.append(judge)
        return judge

    yield open_judge
    for judge in made_here:
        await judge.close()


async def verdict(judge: Judge, text: str, name: str = "TopModule.sv") -> Verdict:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    return await judge.final(prepared, await judge.compile(prepared, {name: text}, (name,)))


@pytest.mark.parametrize("text", [GOOD, BAD, BROKEN])
async def test_the_second_verdict_is_the_first_one_and_starts_no_process(
    text: str, opened: Callable[..., Judge], counting: Counting
) -> None:
    judge = opened()
    first = await verdict(judge, text)
    jobs = counting.jobs
    for again in (judge, opened()):  # the store outlives a judge
        second = await verdict(again, text)
        assert second.compilation is not None
        assert first.compilation is not None
        assert vars(second) | {"cached": 0, "compilation": 0} == vars(first) | {"cached": 0, "compilation": 0}
        assert vars(second.compilation) | {"cached": 0} == vars(first.compilation) | {"cached": 0}
        assert second.compilation.cached
        assert second.cached or text == BROKEN
        assert counting.jobs == jobs


async def test_another_text_another_name_or_another_judge_is_other_work(
    opened: Callable[..., Judge], counting: Counting
) -> None:
    judge = opened()
    await verdict(judge, BAD)
    for again, text, name in (
        (judge, BAD + " ", "TopModule.sv"),
        (judge, BAD, "Other.sv"),
        (opened(waveform_rows=3), BAD, "TopModule.sv"),
        (opened(gated=False), BAD, "TopModule.sv"),
    ):
        before = counting.jobs
        assert not (await verdict(again, text, name)).cached
        assert counting.jobs > before


async def test_a_design_that_never_ends_is_run_once(opened: Callable[..., Judge], counting: Counting) -> None:
    judge = opened(run_limits=Limits(cpu_s=1.0, wall_s=30.0))
    assert (await verdict(judge, ENDLESS)).reason == "time_limit"
    jobs = counting.jobs
    assert (await verdict(judge, ENDLESS)).reason == "time_limit"
    assert counting.jobs == jobs
