"""The session backend of replicas, with the keeper in this process in the place of the actor."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from verilog_taskapp.contracts import TerminateResponse
from verilog_taskapp.deploy.session_keeper import SessionKeeper
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.sessions.record import ClosedSession

if TYPE_CHECKING:
    from verilog_taskapp.deploy.ray_sessions import RayBackend

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install '.[ray]'")


class Remote:
    """A keeper that is called as a Ray actor is; `failure` is raised by every call, `slow` holds answers back."""

    def __init__(self, keeper: SessionKeeper) -> None:
        self._keeper = keeper
        self.failure: Exception | None = None
        self.slow = asyncio.Event()
        self.slow.set()

    def __getattr__(self, method: str) -> "Remote.Method":
        return self.Method(self, method)

    class Method:
        """One method of it."""

        def __init__(self, remote: "Remote", name: str) -> None:
            self._remote = remote
            self._name = name

        def remote(self, *arguments: Any) -> Awaitable[Any]:
            """Goes on by itself, whether its answer is awaited or not."""
            return asyncio.shield(asyncio.ensure_future(self._call(*arguments)))

        async def _call(self, *arguments: Any) -> Any:
            if self._name == "save":
                await self._remote.slow.wait()
            if self._remote.failure is not None:
                raise self._remote.failure
            return await getattr(self._remote._keeper, self._name)(*arguments)


@pytest.fixture(autouse=True, scope="module")
def imported() -> None:
    """Ray warns of its own use of other projects when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("verilog_taskapp.deploy.ray_sessions")


@pytest.fixture
async def remote() -> Remote:
    return Remote(SessionKeeper())


@pytest.fixture
async def backends(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple["RayBackend", "RayBackend"]]:
    """Those of two replicas."""
    from verilog_taskapp.deploy import ray_sessions

    monkeypatch.setattr(ray_sessions, "keeper_of", lambda *_: remote)
    both = tuple(ray_sessions.RayBackend("application", "judge 1, icarus 11.0", 600.0) for _ in range(2))
    for backend in both:
        await backend.open()
    yield both[0], both[1]
    for backend in both:
        await backend.close()


def closed(name: str, **facts: Any) -> ClosedSession:
    return ClosedSession(name, TerminateResponse.model_validate({"ok": True, "known": True, "env_id": name, **facts}))


async def test_what_one_replica_saves_another_loads(backends: tuple["RayBackend", "RayBackend"]) -> None:
    one, other = backends
    name = "a name / of the client's ☃"
    async with one.hold(name) as held:
        assert held
        assert await one.load(name) is None
        await one.save(closed(name, steps=2))
        assert await one.load(name) == closed(name, steps=2)
        await one.save(closed(name, steps=3))
    assert await other.load(name) == closed(name, steps=3)
    assert await other.load("unknown") is None
    assert await other.count() == other.last_count() == 0, "it is not open"


async def test_one_replica_at_a_time_works_on_a_session(backends: tuple["RayBackend", "RayBackend"]) -> None:
    one, other = backends
    async with one.hold("s"):
        async with other.hold("s", wait=False) as held:
            assert not held
        waiting = asyncio.create_task(hold_and_save(other, 2))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await one.save(closed("s", steps=1))
    await waiting
    assert await one.load("s") == closed("s", steps=2)


async def hold_and_save(backend: "RayBackend", steps: int) -> None:
    async with backend.hold("s"):
        await backend.save(closed("s", steps=steps))


async def test_giving_up_while_waiting_leaves_the_session_to_the_next(
    backends: tuple["RayBackend", "RayBackend"],
) -> None:
    one, other = backends
    async with one.hold("s"):
        waiting = asyncio.create_task(hold_and_save(other, 2))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5):
        await hold_and_save(one, 3)
    assert await one.load("s") == closed("s", steps=3)


async def test_a_save_that_is_cancelled_is_finished_before_the_hold_ends(
    backends: tuple["RayBackend", "RayBackend"], remote: Remote
) -> None:
    one, other = backends
    remote.slow.clear()
    saving = asyncio.create_task(hold_and_save(one, 1))
    await asyncio.sleep(0.01)
    saving.cancel()
    await asyncio.sleep(0.01)
    async with other.hold("s", wait=False) as held:
        assert not held
    remote.slow.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert await other.load("s") == closed("s", steps=1)
    async with asyncio.timeout(5), other.hold("s") as held:
        assert held


async def test_what_is_saved_without_the_hold_is_refused(backends: tuple["RayBackend", "RayBackend"]) -> None:
    one, _ = backends
    with pytest.raises(EnvironmentFailed, match="hold on the session was lost") as failed:
        await one.save(closed("s"))
    assert failed.value.retryable
    assert await one.load("s") is None


async def test_an_actor_that_is_gone_is_a_fault_of_ours_that_can_be_retried(
    backends: tuple["RayBackend", "RayBackend"], remote: Remote
) -> None:
    from ray.exceptions import RayActorError

    one, _ = backends
    remote.failure = RayActorError()
    with pytest.raises(EnvironmentFailed, match="does not answer") as failed:
        await one.load("s")
    assert failed.value.retryable
    with pytest.raises(EnvironmentFailed):
        await hold_and_save(one, 1)
    remote.failure = None
    await hold_and_save(one, 2)
    assert await one.load("s") == closed("s", steps=2)
