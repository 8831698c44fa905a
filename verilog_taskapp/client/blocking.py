"""The client for code without an event loop: the asynchronous one, run in a thread of its own.

Trainers call environments from several threads, and most of them never close one: all methods may be called from any
thread, and what is forgotten is closed by the garbage collector.
"""

import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Self

import httpx

from verilog_taskapp.client.api import (
    DEADLINE_S,
    FIRST_BACKOFF_S,
    MAX_CONNECTIONS,
    RETRIES,
    Client,
)
from verilog_taskapp.client.batch import BatchAnswer
from verilog_taskapp.client.loop_thread import LoopThread
from verilog_taskapp.client.session import Session
from verilog_taskapp.contracts import (
    EnvConfig,
    Health,
    InitializeResponse,
    RolloutRequest,
    RolloutResponse,
    ServiceInfo,
    SplitName,
    StepResponse,
    TaskInfo,
    TaskSetInfo,
    TerminateResponse,
)
from verilog_taskapp.contracts.tool_calls import ToolCallRequest


class SyncClient:
    """`Client` with blocking methods; the arguments are the same. A context manager; `close` ends its thread.

    One for a process is enough: calls of several threads run at the same time. After a fork the child makes its own.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        deadline_s: float = DEADLINE_S,
        retries: int = RETRIES,
        first_backoff_s: float = FIRST_BACKOFF_S,
        max_connections: int = MAX_CONNECTIONS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = Client(
            url,
            api_key,
            deadline_s=deadline_s,
            retries=retries,
            first_backoff_s=first_backoff_s,
            max_connections=max_connections,
            transport=transport,
        )
        self._thread = LoopThread("verilog-taskapp-client")
        self._finalizer = weakref.finalize(self, self._thread.stop, self._client.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection and end the thread; again: no-op."""
        self._finalizer()

    def health(self) -> Health:
        """See `Client.health`."""
        return self._thread.run(self._client.health())

    def info(self) -> ServiceInfo:
        """See `Client.info`."""
        return self._thread.run(self._client.info())

    def task_set(self) -> TaskSetInfo:
        """See `Client.task_set`."""
        return self._thread.run(self._client.task_set())

    def task_info(self, seed: int = 0, split: SplitName | None = None) -> TaskInfo:
        """See `Client.task_info`."""
        return self._thread.run(self._client.task_info(seed, split))

    def task_infos(self, seeds: Sequence[int], split: SplitName | None = None) -> list[TaskInfo]:
        """See `Client.task_infos`."""
        return self._thread.run(self._client.task_infos(seeds, split))

    def rollout(self, request: RolloutRequest, *, deadline_s: float | None = None) -> RolloutResponse:
        """See `Client.rollout`; KeyboardInterrupt stops it on the service too."""
        return self._thread.run(self._client.rollout(request, deadline_s=deadline_s))

    def rollout_batch(
        self, requests: Sequence[RolloutRequest], *, deadline_s: float | None = None
    ) -> Iterator[BatchAnswer]:
        """See `Client.rollout_batch`: leaving the loop early, and closing the iterator, stops what still runs."""
        found = self._client.rollout_batch(requests, deadline_s=deadline_s)
        try:
            while (answer := self._thread.run(_next(found))) is not None:
                yield answer
        finally:
            self._thread.run(found.aclose())

    def session(
        self,
        seed: int | None = None,
        config: EnvConfig | Mapping[str, Any] | None = None,
        *,
        deadline_s: float | None = None,
    ) -> "SyncSession":
        """See `Client.session`: ``with client.session(seed=3) as session``."""
        return SyncSession(self, self._thread, self._client.session(seed, config, deadline_s=deadline_s))


class SyncSession:
    """`Session` with blocking methods; made by `SyncClient.session`.

    One that is forgotten is closed by the garbage collector, in the background; one that is not even collected expires
    on the service.
    """

    def __init__(self, client: SyncClient, thread: LoopThread, session: Session) -> None:
        self._client = client  # not collected before us: it would close our connections
        self._thread = thread
        self._session = session
        self._finalizer = weakref.finalize(self, _forgotten, thread, session.leave)

    def __enter__(self) -> Self:
        self._thread.run(self._session.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.run(self._session.leave())

    @property
    def is_open(self) -> bool:
        """See `Session.is_open`."""
        return self._session.is_open

    @property
    def opened(self) -> InitializeResponse:
        """See `Session.opened`."""
        return self._session.opened

    @property
    def id(self) -> str:
        """See `Session.id`."""
        return self._session.id

    @property
    def last(self) -> StepResponse | None:
        """See `Session.last`."""
        return self._session.last

    @property
    def observation(self) -> dict[str, Any]:
        """See `Session.observation`."""
        return self._session.observation

    @property
    def done(self) -> bool:
        """See `Session.done`."""
        return self._session.done

    @property
    def total_reward(self) -> float:
        """See `Session.total_reward`."""
        return self._session.total_reward

    @property
    def final(self) -> TerminateResponse | None:
        """See `Session.final`."""
        return self._session.final

    def reset(self, seed: int | None = None, config: EnvConfig | Mapping[str, Any] | None = None) -> InitializeResponse:
        """See `Session.reset`."""
        return self._thread.run(self._session.reset(seed, config))

    def step(self, tool: str, arguments: Mapping[str, Any] | str | None = None) -> StepResponse:
        """See `Session.step`."""
        return self._thread.run(self._session.step(tool, arguments))

    def step_calls(self, calls: Sequence[Mapping[str, Any] | ToolCallRequest]) -> StepResponse:
        """See `Session.step_calls`."""
        return self._thread.run(self._session.step_calls(calls))

    def close(self, *, deadline_s: float | None = None) -> TerminateResponse | None:
        """See `Session.close`."""
        return self._thread.run(self._session.close(deadline_s=deadline_s))

    def abandon(self) -> None:
        """Close in the background, without waiting and without an error; the session is of no further use."""
        self._finalizer()


def _forgotten(thread: LoopThread, leave: Callable[[], Coroutine[Any, Any, None]]) -> None:
    thread.start(leave())


async def _next(found: AsyncGenerator[BatchAnswer, None]) -> BatchAnswer | None:
    return await anext(found, None)
