"""Sessions of all replicas of a Ray Serve application, kept by one named actor.

An actor and not a directory: replicas on several nodes find it, and no disk has to be mounted anywhere. A session
outlives the replica that opened it and a redeployment of the application; it does not outlive the actor, which Ray
starts again, empty, when it dies. The steps of its sessions are then answered 404, as those of an expired one.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from verilog_taskapp import __version__
from verilog_taskapp.deploy.session_keeper import BEAT_S, SessionKeeper
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.sessions.encoding import decode, encode
from verilog_taskapp.sessions.record import OpenSession, SessionRecord

log = logging.getLogger(__name__)
NAMESPACE = "verilog-taskapp"
ANSWER_S = 10.0
"""For the actor's answer to anything that does not wait its turn."""
LEAST_SILENCE_S = 60.0
"""The actor ends when no replica was heard of for the life of an idle session, and never sooner than this."""
CALLS = 100_000
"""Calls to the actor at once: each waiting step of a session is one."""


class KeeperActor(SessionKeeper):
    """The keeper as an actor that ends by itself when its application is gone."""

    def __init__(self, silence_s: float) -> None:
        super().__init__()
        self._silence_s = max(silence_s, LEAST_SILENCE_S)
        ray.get_runtime_context().current_actor.watch.remote()

    async def watch(self) -> None:
        """Runs as long as the actor: only from a call of its own can it end itself."""
        while self.silence_s() < self._silence_s:
            await asyncio.sleep(BEAT_S / 2)
            self.end_leases()
        ray.actor.exit_actor()


def keeper_of(application: str, silence_s: float) -> Any:
    """The actor of an application, started if it is not there. Blocking. Raises RayError."""
    actor = ray.remote(KeeperActor).options(
        name=f"sessions of {application}, version {__version__}",
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        max_restarts=-1,
        max_concurrency=CALLS,
    )
    return actor.remote(silence_s)


@dataclass
class _Held:
    token: str
    data: bytes | None
    """The record, which nobody else can change meanwhile."""


class RayBackend:
    """A `SessionBackend` for the replicas of one application. `simulator` names the judge and its tools."""

    def __init__(self, application: str, simulator: str, ttl_s: float) -> None:
        self._application = application
        self._simulator = simulator
        self._ttl_s = ttl_s
        self._worker = uuid.uuid4().hex
        self._tokens: set[str] = set()
        """Of all holds that this replica has or wants."""
        self._held: dict[str, _Held] = {}
        """Those it has, by name."""
        self._keeper: Any = None
        self._beating: asyncio.Task[None] | None = None
        self._count = 0

    async def open(self) -> None:
        """See `SessionBackend`. Finds the actor, or starts it."""
        try:
            self._keeper = await asyncio.to_thread(keeper_of, self._application, self._ttl_s)
        except (RayError, ValueError) as error:
            raise EnvironmentFailed(
                "the actor that keeps the sessions cannot be started", stage="initialize"
            ) from error
        await self._beat()
        self._beating = asyncio.create_task(self._beat_regularly())

    async def close(self) -> None:
        """See `SessionBackend`. What is kept stays with the actor."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    @asynccontextmanager
    async def hold(self, name: str, *, wait: bool = True) -> AsyncIterator[bool]:
        """See `SessionBackend`. It ends when this replica cannot be heard of for `LEASE_S`; `save` then raises."""
        token = uuid.uuid4().hex
        self._tokens.add(token)
        try:
            granted, data = await self._ask("take", self._worker, name, token, wait, answer_s=None)
            if wait and not granted:
                raise EnvironmentFailed("the session could not be taken: this replica was thought dead", stage="tool")
            if granted:
                self._held[name] = _Held(token, data)
            yield granted
        finally:
            self._tokens.discard(token)
            if name in self._held and self._held[name].token == token:
                del self._held[name]
            # nobody waits for an answer: should this get lost, the beats tell that the token is given up
            self._keeper.release.remote(name, token)

    async def load(self, name: str) -> SessionRecord | None:
        """See `SessionBackend`. A record of another version counts as none."""
        held = self._held.get(name)
        data = await self._ask("load", name) if held is None else held.data
        if data is None:
            return None
        try:
            return decode(data, self._simulator)
        except ValueError as error:
            log.warning("a kept session cannot be read: %s", error)
            return None

    async def save(self, record: SessionRecord) -> None:
        """See `SessionBackend`. Raises `EnvironmentFailed` when the hold was lost: somebody else may work on it."""
        data = encode(record, self._simulator)
        held = self._held.get(record.id, _Held("", None))
        saving = asyncio.ensure_future(self._ask("save", record.id, held.token, data, isinstance(record, OpenSession)))
        try:
            saved = await asyncio.shield(saving)
        except asyncio.CancelledError:
            await asyncio.wait([saving])  # the hold may end only when it is done
            raise
        if not saved:
            raise EnvironmentFailed("the hold on the session was lost: nothing was kept of this step", stage="tool")
        held.data = data

    async def touch(self, name: str) -> None:
        """See `SessionBackend`."""
        await self._ask("touch", name)

    async def count(self) -> int:
        """See `SessionBackend`."""
        self._count = await self._ask("count")
        return self._count

    def last_count(self) -> int:
        """See `SessionBackend`."""
        return self._count

    async def unused(self, idle_s: float) -> Sequence[str]:
        """See `SessionBackend`."""
        names: list[str] = await self._ask("unused", idle_s)
        return names

    async def idle_s(self, name: str) -> float:
        """See `SessionBackend`."""
        idle_s: float = await self._ask("idle_s", name)
        return idle_s

    async def _ask(self, method: str, *arguments: Any, answer_s: float | None = ANSWER_S) -> Any:
        """Call the actor. Raises `EnvironmentFailed` when it is gone or silent; it will be back without its records."""
        try:
            async with asyncio.timeout(answer_s):
                return await getattr(self._keeper, method).remote(*arguments)
        except (RayError, TimeoutError) as error:
            raise EnvironmentFailed("the actor that keeps the sessions does not answer", stage="tool") from error

    async def _beat(self) -> None:
        self._count = await self._ask("beat", self._worker, list(self._tokens))

    async def _beat_regularly(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self._beat()
            except EnvironmentFailed as error:
                log.warning("%s", error.message)
