"""What every place for sessions promises, and what the directory promises to several workers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.conftest import BackendKind
from verilog_taskapp.contracts import InitializeResponse, TerminateResponse
from verilog_taskapp.environment.rewards import Booked
from verilog_taskapp.environment.state import EpisodeCounts, EpisodeOptions, EpisodeSnapshot
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.sessions.backend import SessionBackend
from verilog_taskapp.sessions.directory import DirectoryBackend, FileLock, _key
from verilog_taskapp.sessions.encoding import encode
from verilog_taskapp.sessions.memory import MemoryBackend
from verilog_taskapp.sessions.record import ClosedSession, OpenSession

STRANGE_NAMES = ["a", "../../etc/passwd", "x" * 10_000, "\0", "\ud800", "", "."]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def open_session(name: str, **observation: Any) -> OpenSession:
    state = EpisodeSnapshot(
        problem_id="p",
        problem_hash="h",
        options=EpisodeOptions(),
        files={"TopModule.v": "module"},
        booked=Booked(("compile_success",), 0.1, 0.1),
        counts=EpisodeCounts(steps=1),
        task_completed=False,
        done=False,
        truncated=False,
        chosen=None,
        changed=True,
        compilation=None,
        verdict=None,
        compile_status="",
        simulate_status="",
    )
    seen = {"files": {"TopModule.v": "module"}, **observation}
    return OpenSession(name, InitializeResponse(env_id="e", observation=seen, prompt=[], tools=[]), 25, state)


def closed_session(name: str) -> ClosedSession:
    return ClosedSession(name, TerminateResponse.model_validate({"ok": True, "steps": 3}))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def backend(tmp_path: Path, kind: BackendKind, clock: Clock) -> AsyncIterator[SessionBackend]:
    made: SessionBackend = (
        DirectoryBackend(tmp_path / "sessions", "tools") if kind == "directory" else MemoryBackend(clock)
    )
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def workers(tmp_path: Path) -> tuple[DirectoryBackend, DirectoryBackend]:
    """Two workers on one directory: locks are as apart in one process as in two."""
    both = DirectoryBackend(tmp_path / "sessions", "tools"), DirectoryBackend(tmp_path / "sessions", "tools")
    for one in both:
        await one.open()
    return both


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_a_record_is_loaded_as_it_was_saved(backend: SessionBackend) -> None:
    assert await backend.load("a") is None
    for record in (open_session("a"), open_session("a", reward_last=0.1), closed_session("a"), open_session("a")):
        async with backend.hold("a"):
            await backend.save(record)
        assert await backend.load("a") == record
        assert await backend.load("b") is None


async def test_names_may_be_anything(backend: SessionBackend) -> None:
    for number, name in enumerate(STRANGE_NAMES):
        async with backend.hold(name) as held:
            assert held
            assert await backend.load(name) is None
            if name != "\ud800":  # no JSON request can hold it: it may be asked for, but not be opened
                await backend.save(open_session(name, number=number))
    for number, name in enumerate(STRANGE_NAMES):
        found = await backend.load(name)
        if name != "\ud800":
            assert isinstance(found, OpenSession)
            assert (found.id, found.opened.observation["number"]) == (name, number)


async def test_only_open_sessions_count(backend: SessionBackend) -> None:
    counts = []
    for record in (open_session("a"), open_session("b"), open_session("a"), closed_session("a"), closed_session("b")):
        await backend.save(record)
        assert backend.last_count() == await backend.count()
        counts.append(backend.last_count())
    assert counts == [1, 2, 2, 1, 0]


async def test_a_name_is_held_by_one_at_a_time_in_the_order_of_asking(backend: SessionBackend) -> None:
    order: list[int] = []
    inside = 0

    async def work(number: int) -> None:
        nonlocal inside
        async with backend.hold("a") as held:
            assert held
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.001)
            order.append(number)
            inside -= 1

    await asyncio.gather(*(work(number) for number in range(10)))
    assert order == list(range(10))


async def test_other_names_are_free_meanwhile(backend: SessionBackend) -> None:
    async with backend.hold("a"), backend.hold("b") as other:
        assert other


async def test_without_waiting_a_held_name_is_left_alone(backend: SessionBackend) -> None:
    async with backend.hold("a"), backend.hold("a", wait=False) as again:
        assert not again
    async with backend.hold("a", wait=False) as held:
        assert held


async def test_who_fails_or_is_cancelled_lets_go(backend: SessionBackend) -> None:
    async def cancelled_inside() -> None:
        async with backend.hold("a"):
            await asyncio.Event().wait()

    with pytest.raises(ZeroDivisionError):
        async with backend.hold("a"):
            raise ZeroDivisionError
    has, waits = asyncio.create_task(cancelled_inside()), asyncio.create_task(cancelled_inside())
    await asyncio.sleep(0.01)
    for task in (waits, has):
        task.cancel()
    await asyncio.wait([has, waits])
    async with backend.hold("a", wait=False) as held:
        assert held


def aged(backend: SessionBackend, clock: Clock, seconds: float) -> None:
    """Let time pass for what is kept now."""
    clock.now += seconds
    if isinstance(backend, DirectoryBackend):
        for path in [*backend._folder.glob("*/*")]:
            then = path.stat().st_mtime - seconds
            os.utime(path, (then, then))


async def test_what_is_not_used_is_told(backend: SessionBackend, clock: Clock) -> None:
    for name in ("idle", "saved", "touched", "closed"):
        await backend.save(open_session(name))
    aged(backend, clock, 1000)
    await backend.save(open_session("saved"))
    await backend.touch("touched")
    await backend.save(closed_session("closed"))
    await backend.touch("unknown")
    assert await backend.unused(900) == ["idle"]
    assert await backend.unused(2000) == []
    assert await backend.idle_s("idle") == pytest.approx(1000, abs=50)
    assert await backend.idle_s("touched") == pytest.approx(0, abs=50)
    assert await backend.idle_s("unknown") == 0


async def test_closed_sessions_are_remembered_up_to_a_number(
    backend: SessionBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("memory", "directory"):
        monkeypatch.setattr(f"verilog_taskapp.sessions.{module}.REMEMBERED_CLOSED", 3)
    for number in range(5):
        await backend.save(open_session(str(number)))
        await backend.save(closed_session(str(number)))
        aged(backend, clock, 1)
    await backend.unused(100)
    assert [await backend.load(str(number)) is None for number in range(5)] == [True, True, False, False, False]


# --- the directory


async def test_workers_exclude_each_other(workers: tuple[DirectoryBackend, DirectoryBackend]) -> None:
    inside = 0
    counted = 0

    async def work(backend: DirectoryBackend) -> None:
        nonlocal inside, counted
        for _ in range(20):
            async with backend.hold("a"):
                inside += 1
                assert inside == 1
                before = counted
                await asyncio.sleep(0)
                counted = before + 1
                inside -= 1

    await asyncio.gather(*(work(backend) for backend in workers for _ in range(2)))
    assert counted == 80
    assert files_below(workers[0]._folder) == []


async def test_what_one_worker_saves_the_other_loads(workers: tuple[DirectoryBackend, DirectoryBackend]) -> None:
    one, other = workers
    await one.save(open_session("a"))
    assert await other.load("a") == open_session("a")
    assert await other.count() == 1
    await other.save(closed_session("a"))
    assert await one.load("a") == closed_session("a")
    assert await one.count() == 0


async def test_a_worker_that_is_held_up_does_not_block_the_loop(
    workers: tuple[DirectoryBackend, DirectoryBackend],
) -> None:
    one, other = workers
    async with one.hold("a"):
        waiting = [asyncio.create_task(_held(other, "a")) for _ in range(200)]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(30):  # with a thread for each that waits, none would be left for this
            await other.save(open_session("b"))
            assert await other.load("b") is not None
        for task in waiting[1:]:
            task.cancel()
    async with asyncio.timeout(30):
        assert await waiting[0]
    await asyncio.wait(waiting)


async def _held(backend: SessionBackend, name: str) -> bool:
    async with backend.hold(name) as held:
        return held


async def test_the_hold_of_a_killed_process_ends(workers: tuple[DirectoryBackend, DirectoryBackend]) -> None:
    backend = workers[0]
    path = backend._folder / "locks" / _key("a")
    program = (
        "import sys, pathlib; from verilog_taskapp.sessions.directory import FileLock; "
        "lock = FileLock(pathlib.Path(sys.argv[1])); print(lock.take(), flush=True); sys.stdin.read()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"True\n"
    async with backend.hold("a", wait=False) as held:
        assert not held
    waiting = asyncio.create_task(_held(backend, "a"))
    process.kill()
    await process.wait()
    async with asyncio.timeout(30):
        assert await waiting
    assert files_below(backend._folder) == []


def test_a_lock_that_was_removed_under_its_waiter_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (FileLock(tmp_path / "lock") for _ in range(3))
    assert first.take()
    assert not second.take()
    opened = os.open

    def open_and_lose_the_race(path: Any, *rest: Any) -> int:
        descriptor = opened(path, *rest)
        monkeypatch.undo()
        first.release()
        assert third.take()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose_the_race)
    assert not second.take(), "the file that it opened is nobody's any more"
    third.release()
    assert second.take()
    second.release()
    second.release()
    assert list(tmp_path.iterdir()) == []


async def test_everything_is_private(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        backend = DirectoryBackend(tmp_path / "deep" / "sessions", "tools")
        await backend.open()
        async with backend.hold("a"):
            await backend.save(open_session("a"))
            modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "deep").rglob("*") if path.is_file()}
            folders = {path.stat().st_mode & 0o777 for path in (tmp_path / "deep" / "sessions").iterdir()}
    finally:
        os.umask(mask)
    assert (modes, folders) == ({0o600}, {0o700})
    (tmp_path / "deep" / "sessions" / "open").chmod(0o755)
    with pytest.raises(EnvironmentFailed, match="open in the session directory is not a private directory"):
        await backend.open()


async def test_a_link_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "closed").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFailed, match="closed in the session directory"):
        await DirectoryBackend(tmp_path / "sessions", "tools").open()


async def test_a_save_that_fails_leaves_what_was_there(
    workers: tuple[DirectoryBackend, DirectoryBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = workers[0]
    await backend.save(open_session("a"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        for record in (open_session("a", number=2), closed_session("a")):
            with pytest.raises(EnvironmentFailed, match="No space left on device") as failure:
                await backend.save(record)
            assert failure.value.retryable
    assert await backend.load("a") == open_session("a")
    assert files_below(backend._folder) == [f"open/{_key('a')}"]
    assert await backend.count() == 1


async def test_a_save_that_is_cancelled_is_done_all_the_same(
    workers: tuple[DirectoryBackend, DirectoryBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = workers[0]
    begun, go = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(*given: Any) -> bytes:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result()
        return encode(*given)

    monkeypatch.setattr("verilog_taskapp.sessions.directory.encode", slow)
    saving = asyncio.create_task(backend.save(open_session("a")))
    await begun.wait()
    for _ in range(3):
        saving.cancel()
        await asyncio.sleep(0)
    assert not saving.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert await backend.load("a") == open_session("a")


async def test_a_damaged_record_counts_as_none_and_goes_in_time(
    workers: tuple[DirectoryBackend, DirectoryBackend], caplog: pytest.LogCaptureFixture
) -> None:
    backend = workers[0]
    await backend.save(open_session("a"))
    path = backend._folder / "open" / _key("a")
    for damage in (b"", path.read_bytes()[:-9], b"\0" * 64, b"{}"):
        path.write_bytes(damage)
        assert await backend.load("a") is None
        assert "a kept session cannot be read" in caplog.text
    assert await backend.unused(100) == []
    assert path.exists()
    os.utime(path, (0, 0))
    assert await backend.unused(100) == []
    assert not path.exists()


async def test_what_dead_workers_left_goes_in_time(workers: tuple[DirectoryBackend, DirectoryBackend]) -> None:
    backend, other = workers
    folder = backend._folder
    await backend.save(open_session("a"))
    # died between adding the closed record and removing the open one
    (folder / "closed" / _key("b")).write_bytes(b"facts")
    (folder / "open" / _key("b")).write_bytes(b"old")
    # died while it wrote; died while it held
    (folder / "parts" / _key("c")).write_bytes(b"half")
    (folder / "locks" / _key("d")).touch()
    for path in folder.glob("*/*"):
        os.utime(path, (0, 0))
    await backend.touch("a")
    async with other.hold("e"):
        os.utime(folder / "locks" / _key("e"), (0, 0))
        assert await backend.unused(100) == []
        assert files_below(folder) == sorted([f"locks/{_key('e')}", f"open/{_key('a')}"])
    assert files_below(folder) == [f"open/{_key('a')}"]
