"""The service's routes as methods."""

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Self

import httpx
from pydantic import TypeAdapter

from verilog_taskapp.client.batch import BatchAnswer, answers
from verilog_taskapp.client.calls import Calls
from verilog_taskapp.client.session import Session
from verilog_taskapp.contracts import (
    EnvConfig,
    Health,
    RolloutRequest,
    RolloutResponse,
    ServiceInfo,
    SplitName,
    TaskInfo,
    TaskSetInfo,
)

DEADLINE_S = 600.0
"""For one call with everything that it waits for; enough for a step on a busy server."""
ROLLOUT_MARGIN_S = 120.0
"""Beyond the episode's own limit: standing in line, and the last verdict."""
RETRIES = 6
FIRST_BACKOFF_S = 0.5
MAX_CONNECTIONS = 256
SEEDS_AT_ONCE = 500
"""Seeds in one request; the service takes 1000."""

_HEALTH = TypeAdapter(Health)
_INFO = TypeAdapter(ServiceInfo)
_TASK_SET = TypeAdapter(TaskSetInfo)
_TASK = TypeAdapter(TaskInfo)
_TASKS: TypeAdapter[list[TaskInfo]] = TypeAdapter(list[TaskInfo])
_ROLLOUT = TypeAdapter(RolloutResponse)


class Client:
    """The service at `url`, e.g. ``http://127.0.0.1:8103``; an async context manager that closes its connections.

    `api_key` is sent as ``X-API-Key``. `deadline_s` bounds each call with all its attempts and waits; `retries` and
    `first_backoff_s` see `Calls`. At most `max_connections` requests run at the same time, further ones wait.
    `transport` replaces the network, for tests. Raises `InvalidRequest` for a URL that is none.

    All methods raise `verilog_taskapp.errors.TaskAppError`: the exception that the service raised, or one of
    `verilog_taskapp.client.errors`.
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
        self._deadline_s = deadline_s
        self._calls = Calls(
            url,
            api_key,
            retries=retries,
            first_backoff_s=first_backoff_s,
            max_connections=max_connections,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._calls.aclose()

    async def health(self) -> Health:
        """Whether the service is well, and whether it knows our key (``authorized``)."""
        return await self._calls.ask(_HEALTH, "GET", "/health", deadline_s=self._deadline_s)

    async def info(self) -> ServiceInfo:
        """Versions, data set, rubrics, inference defaults and limits."""
        return await self._calls.ask(_INFO, "GET", "/info", deadline_s=self._deadline_s)

    async def task_set(self) -> TaskSetInfo:
        """The problem set as a whole."""
        return await self._calls.ask(_TASK_SET, "GET", "/task_info", deadline_s=self._deadline_s)

    async def task_info(self, seed: int = 0, split: SplitName | None = None) -> TaskInfo:
        """The problem that a seed chooses; `split` None: the set's default split."""
        params = {"seed": seed, **({"split": split} if split else {})}
        return await self._calls.ask(_TASK, "GET", "/task_info", params=params, deadline_s=self._deadline_s)

    async def task_infos(self, seeds: Sequence[int], split: SplitName | None = None) -> list[TaskInfo]:
        """The problems of several seeds, in their order."""
        found: list[TaskInfo] = []
        for start in range(0, len(seeds), SEEDS_AT_ONCE):
            some = seeds[start : start + SEEDS_AT_ONCE]
            if len(some) == 1:  # the service answers one seed without a list
                found.append(await self.task_info(some[0], split))
                continue
            params = {"seeds": list(some), **({"split": split} if split else {})}
            several = await self._calls.ask(_TASKS, "GET", "/task_info", params=params, deadline_s=self._deadline_s)
            found += several
        return found

    async def rollout(self, request: RolloutRequest, *, deadline_s: float | None = None) -> RolloutResponse:
        """One episode, or a group (``policy.config.n``), run by the service to its end; cancelling stops it there.

        `deadline_s` None: the episode's own ``safety.max_time_s`` and two minutes.
        """
        limit_s = request.safety.max_time_s + ROLLOUT_MARGIN_S if deadline_s is None else deadline_s
        return await self._calls.ask(_ROLLOUT, "POST", "/rollout", request, deadline_s=limit_s)

    def rollout_batch(
        self, requests: Sequence[RolloutRequest], *, deadline_s: float | None = None
    ) -> AsyncGenerator[BatchAnswer, None]:
        """Many rollouts at once: an async iterator over their answers as they end, each once.

        Closing it stops all that still run. `deadline_s` None: as long as the service shows signs of life.
        """
        return answers(self._calls, requests, math.inf if deadline_s is None else deadline_s)

    def session(
        self,
        seed: int | None = None,
        config: EnvConfig | Mapping[str, Any] | None = None,
        *,
        deadline_s: float | None = None,
    ) -> Session:
        """An episode to be played step by step: ``async with client.session(seed=3) as session``.

        `config` is the wire's ``env.config``: ``{"problem": ..., "split": ..., "rewards": {...}, "max_steps": ...}``.
        """
        chosen = EnvConfig() if config is None else EnvConfig.model_validate(config)
        return Session(self._calls, seed, chosen, deadline_s=self._deadline_s if deadline_s is None else deadline_s)
