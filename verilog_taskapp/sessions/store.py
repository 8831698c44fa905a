"""Open sessions: idempotent create, step and close; idle ones expire. One process serves its own sessions."""

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verilog_taskapp.contracts import (
    InitializeRequest,
    InitializeResponse,
    StepRequest,
    StepResponse,
    TerminateRequest,
    TerminateResponse,
)
from verilog_taskapp.contracts.config import MAX_STEPS
from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.environment.actions import TOOLS
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.world import World
from verilog_taskapp.errors import Overloaded, SessionNotFound
from verilog_taskapp.rollout.parsing import read_call
from verilog_taskapp.rollout.prompts import simulator_line, system_message, task_message
from verilog_taskapp.rollout.service import episode_options

REMEMBERED_STEPS = 64
"""Answers kept per session for repeated step ids."""
REMEMBERED_CLOSED = 4096
"""Closed sessions whose final facts can still be asked for."""
RETRY_AFTER_S = 10.0


@dataclass
class Session:
    """One open episode. The lock makes steps follow one another."""

    id: str
    episode: Episode
    opened: InitializeResponse
    max_steps: int
    used_at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    answers: OrderedDict[str, StepResponse] = field(default_factory=OrderedDict)
    unfinished: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Results of a step that a fault of ours interrupted, by step id: a retry goes on behind them."""

    @property
    def over(self) -> bool:
        """Submitted or truncated."""
        return self.episode.done or self.episode.truncated


class SessionStore:
    """The sessions of this process; an async context manager that sweeps idle ones while it is open."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ttl_s = world.settings.session_ttl_s
        self._open: dict[str, Session] = {}
        self._opening: dict[str, asyncio.Future[InitializeResponse]] = {}
        self._closed: OrderedDict[str, TerminateResponse] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None
        self.expired = 0

    async def __aenter__(self) -> "SessionStore":
        self._sweeper = asyncio.create_task(self._sweep_regularly())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._open.clear()

    def __len__(self) -> int:
        return len(self._open)

    async def initialize(self, request: InitializeRequest) -> InitializeResponse:
        """Open a session; with a known ``session_id``, answer what opening it answered.

        Raises `Overloaded` when too many sessions are open, and the faults of choosing a problem.
        """
        name = request.session_id or uuid.uuid4().hex
        known = self._open.get(name)
        if known is not None:
            known.used_at = time.monotonic()
            return known.opened
        if name in self._opening:
            return await asyncio.shield(self._opening[name])
        limit = self._world.settings.max_sessions
        if len(self._open) + len(self._opening) >= limit:
            raise Overloaded(f"{limit} sessions are open, the most that this server takes", retry_after_s=RETRY_AFTER_S)
        opening = asyncio.ensure_future(self._initialize(name, request))
        self._opening[name] = opening
        opening.add_done_callback(lambda _: self._opening.pop(name, None))
        return await asyncio.shield(opening)

    async def _initialize(self, name: str, request: InitializeRequest) -> InitializeResponse:
        world, config = self._world, request.config
        chosen = await world.choose(split=config.split, seed=request.seed, problem_id=config.problem)
        max_steps = config.max_steps or MAX_STEPS
        episode = world.begin(chosen, episode_options(config, world, max_steps))
        observation = episode.observation()
        problem = chosen.problem
        task = task_message(
            problem.prompt,
            problem.top,
            episode.files_provided,
            observation,
            preview_chars=world.settings.file_preview_chars,
        )
        opened = InitializeResponse(
            env_id=name,
            observation=observation.to_wire(),
            prompt=[
                {"role": "system", "content": system_message("native", simulator_line(world.tools.version))},
                {"role": "user", "content": task},
            ],
            tools=[tool.to_openai() for tool in TOOLS],
            info={
                "problem": problem.id,
                "difficulty": problem.difficulty,
                "judge": chosen.prepared.status,
                "files_provided": list(episode.files_provided),
                "max_steps": max_steps,
            },
        )
        self._closed.pop(name, None)
        self._open[name] = Session(name, episode, opened, max_steps, time.monotonic())
        return opened

    async def step(self, request: StepRequest) -> StepResponse:
        """Execute tool calls in order; a repeated ``step_id`` answers the first answer again.

        Raises `SessionNotFound`, and `EnvironmentFailed` when there is no honest answer: repeating the request (with
        its ``step_id``) then goes on where it stopped.
        """
        session = self._session(request.env_id)
        async with session.lock:
            if self._open.get(session.id) is not session:
                raise _not_found(request.env_id)
            session.used_at = time.monotonic()
            if request.step_id is not None and request.step_id in session.answers:
                return session.answers[request.step_id]
            answer = await self._step(session, request)
            session.used_at = time.monotonic()
            if request.step_id is not None:
                session.unfinished.pop(request.step_id, None)
                session.answers[request.step_id] = answer
                while len(session.answers) > REMEMBERED_STEPS:
                    session.answers.popitem(last=False)
            return answer

    async def _step(self, session: Session, request: StepRequest) -> StepResponse:
        episode = session.episode
        results: list[dict[str, Any]] = []
        if request.step_id is not None:
            session.unfinished = {request.step_id: session.unfinished.get(request.step_id, results)}
            results = session.unfinished[request.step_id]
        if session.over:
            results.append(_refused("the episode is over", {}))
        elif not request.tool_calls and not results:
            results.append(_refused("the step has no tool call", episode.idle()))
        for call in request.tool_calls[len(results) :]:
            if session.over:
                break
            results.append(await _execute(episode, call))
            if not episode.done and episode.counts.steps >= session.max_steps:
                episode.truncate()
        if not episode.done and episode.counts.steps >= session.max_steps:
            episode.truncate()
        return StepResponse(
            env_id=session.id,
            observation=episode.observation().to_wire(),
            reward=sum(result["reward"] for result in results),
            done=session.over,
            truncated=episode.truncated,
            info={
                "tool_results": results,
                "total_reward": episode.total_reward,
                "task_completed": episode.task_completed,
                "stop_reason": "max_steps" if episode.truncated else None,
            },
        )

    async def terminate(self, request: TerminateRequest) -> TerminateResponse:
        """Close a session and tell its final facts; closing it again, or one that expired, is no error."""
        session = self._open.get(request.env_id)
        if session is None:
            return self._closed.get(request.env_id) or TerminateResponse.model_validate({"ok": True, "known": False})
        async with session.lock:
            if self._open.get(session.id) is session:
                self._close(session, "terminated")
            return self._closed[request.env_id]

    def _session(self, name: str) -> Session:
        session = self._open.get(name)
        if session is None:
            raise _not_found(name)
        return session

    def _close(self, session: Session, status: str) -> None:
        episode = session.episode
        del self._open[session.id]
        self._closed[session.id] = TerminateResponse.model_validate(
            {
                "ok": True,
                "known": True,
                "env_id": session.id,
                "status": status,
                "total_reward": episode.total_reward,
                "task_completed": episode.task_completed,
                "steps": episode.counts.steps,
                "done": session.over,
                "truncated": episode.truncated,
            }
        )
        while len(self._closed) > REMEMBERED_CLOSED:
            self._closed.popitem(last=False)

    def sweep(self, now: float) -> int:
        """Expire what has been idle for longer than the limit; `now` is monotonic seconds."""
        idle = [
            session
            for session in self._open.values()
            if now - session.used_at > self._ttl_s and not session.lock.locked()
        ]
        for session in idle:
            self._close(session, "expired")
        self.expired += len(idle)
        return len(idle)

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(min(self._ttl_s / 4, 10.0))
            self.sweep(time.monotonic())


async def _execute(episode: Episode, request: ToolCallRequest) -> dict[str, Any]:
    read = read_call(request.tool, request.args)
    if read.call is None:
        return _refused(read.complaint, episode.idle(), request.id)
    result = await episode.step(read.call)
    return {
        "id": request.id,
        "tool": result.call.tool,
        "outcome": result.outcome,
        "message": result.message,
        "notes": list(result.notes),
        "reward": result.reward,
        "reward_components": dict(result.reward_components),
        "facts": dict(result.facts),
    }


def _refused(complaint: str, components: Mapping[str, float], call_id: str | None = None) -> dict[str, Any]:
    return {
        "id": call_id,
        "tool": None,
        "outcome": "refused",
        "message": complaint,
        "notes": [],
        "reward": float(sum(components.values())),
        "reward_components": dict(components),
        "facts": {},
    }


def _not_found(name: str) -> SessionNotFound:
    return SessionNotFound(
        f"no open session {name[:80]!r}: it was never opened, was terminated, or expired; call initialize"
    )
