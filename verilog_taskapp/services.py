"""Everything that one process of the service holds while it runs, opened and closed together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from verilog_taskapp.environment.world import World
from verilog_taskapp.inference.client import ChatClient
from verilog_taskapp.rollout.service import RolloutService
from verilog_taskapp.rubric import Rubrics, load_rubrics
from verilog_taskapp.sessions.backend import SessionBackend
from verilog_taskapp.sessions.store import SessionStore
from verilog_taskapp.settings import Settings
from verilog_taskapp.tracing.spans import open_spans
from verilog_taskapp.tracing.store import TraceStore


@dataclass(frozen=True)
class Services:
    """The parts that routes and commands call."""

    settings: Settings
    world: World
    chat: ChatClient
    rubrics: Rubrics
    traces: TraceStore
    rollouts: RolloutService
    sessions: SessionStore


@asynccontextmanager
async def open_services(
    settings: Settings,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    session_backend: Callable[[World], SessionBackend] | None = None,
) -> AsyncIterator[Services]:
    """Open all parts; leaving the context stops every process and removes every directory they made.

    `transport` replaces the network of the inference client, and what `session_backend` makes keeps the sessions, in
    place of what the settings mean. Raises `DatasetUnavailable`, `EnvironmentFailed`, `RubricInvalid`,
    `TraceLocationInvalid` and `SpansUnavailable`.
    """
    rubrics = load_rubrics(settings)
    async with (
        TraceStore.of(settings) as traces,
        open_spans(settings) as spans,
        World.open(settings) as world,
        ChatClient(settings, transport) as chat,
        SessionStore(world, session_backend(world) if session_backend else None, traces=traces) as sessions,
    ):
        rollouts = RolloutService(world, chat, rubrics, traces, spans)
        traces.start()
        yield Services(settings, world, chat, rubrics, traces, rollouts, sessions)
