"""Sessions: idempotent create, step and close; idle ones expire.

Nothing of a session stays here between two requests: any worker that shares the backend can take the next step.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
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
from verilog_taskapp.errors import EnvironmentFailed, Overloaded, ProblemNotFound, SessionNotFound
from verilog_taskapp.icarus.store import JUDGE_VERSION
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.rollout.parsing import read_call
from verilog_taskapp.rollout.prompts import simulator_line, system_message, task_message
from verilog_taskapp.rollout.service import episode_options
from verilog_taskapp.sessions.backend import SessionBackend
from verilog_taskapp.sessions.directory import DirectoryBackend
from verilog_taskapp.sessions.memory import MemoryBackend
from verilog_taskapp.sessions.record import ClosedSession, OpenSession, PlayedStep, Unfinished
from verilog_taskapp.sessions.trace import session_record
from verilog_taskapp.tracing.record import TraceStatus, new_trace_id
from verilog_taskapp.tracing.store import TraceStore

REMEMBERED_STEPS = 64
"""Answers kept per session for repeated step ids."""
RETRY_AFTER_S = 10.0
SWEEP_S = 10.0
"""Idle sessions are looked for at least this often."""

log = logging.getLogger(__name__)


class SessionStore:
    """The sessions that `backend` keeps; an async context manager that sweeps idle ones while it is open.

    `backend` None: the one that the settings mean. `traces` None: closed sessions are not stored.
    """

    def __init__(
        self, world: World, backend: SessionBackend | None = None, *, traces: TraceStore | None = None
    ) -> None:
        self._world = world
        self._traces = traces or TraceStore(None)
        self._backend = backend or backend_of(world)
        self._ttl_s = world.settings.session_ttl_s
        self._opening = 0
        self._sweeper: asyncio.Task[None] | None = None
        self.expired = 0
        """Sessions that this worker found idle and closed."""

    async def __aenter__(self) -> "SessionStore":
        await self._backend.open()
        self._sweeper = asyncio.create_task(self._sweep_regularly())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        if isinstance(self._backend, MemoryBackend):  # others keep them for the next process
            left = [await self._backend.load(name) for name in await self._backend.unused(-1)]
            await asyncio.gather(*(self._close(one, "aborted") for one in left if isinstance(one, OpenSession)))
        await self._backend.close()

    def __len__(self) -> int:
        """Open sessions over all workers, as this one saw them last."""
        return self._backend.last_count()

    async def initialize(self, request: InitializeRequest) -> InitializeResponse:
        """Open a session; with the name of an open one, answer what opening it answered.

        Raises `Overloaded` when too many sessions are open, and the faults of choosing a problem.
        """
        name = request.session_id or uuid.uuid4().hex
        if request.session_id is not None and (known := await self._opened(name)) is not None:
            return known
        async with self._backend.hold(name):
            if request.session_id is not None and (known := await self._opened(name)) is not None:
                return known
            limit = self._world.settings.max_sessions
            if await self._backend.count() + self._opening >= limit:
                told = f"{limit} sessions are open, the most that this server takes"
                raise Overloaded(told, retry_after_s=RETRY_AFTER_S)
            self._opening += 1
            try:
                session = await self._begin(name, request)
                await self._backend.save(session)
            finally:
                self._opening -= 1
        return session.opened

    async def _opened(self, name: str) -> InitializeResponse | None:
        record = await self._backend.load(name)
        if not isinstance(record, OpenSession):
            return None
        await self._backend.touch(name)
        return record.opened

    async def _begin(self, name: str, request: InitializeRequest) -> OpenSession:
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
        return OpenSession(
            name,
            opened,
            max_steps,
            episode.snapshot(),
            trace_id=new_trace_id(),
            created_at=datetime.now(UTC),
            seed=request.seed,
        )

    async def step(self, request: StepRequest) -> StepResponse:
        """Execute tool calls in order; a repeated ``step_id`` answers the first answer again.

        Raises `SessionNotFound`, and `EnvironmentFailed` when there is no honest answer: repeating the request (with
        its ``step_id``) then goes on where it stopped. A worker that dies in the middle leaves the session as it was
        before the step.
        """
        async with self._backend.hold(request.env_id):
            session = await self._backend.load(request.env_id)
            if not isinstance(session, OpenSession):
                raise _not_found(request.env_id)
            if request.step_id is not None and request.step_id in session.answers:
                await self._backend.touch(session.id)
                return session.answers[request.step_id]
            try:
                episode = await self._world.restore(session.episode)
            except ProblemNotFound as error:
                raise SessionNotFound(f"{error.message}: call initialize") from error
            return await self._step(session, episode, request)

    async def _step(self, session: OpenSession, episode: Episode, request: StepRequest) -> StepResponse:
        was_over = episode.done or episode.truncated
        step_id, unfinished = request.step_id, session.unfinished
        results: list[dict[str, Any]] = []
        if unfinished is not None and unfinished.step_id == step_id:
            results = list(unfinished.results)
        try:
            await _execute_all(episode, request, results, session.max_steps)
        except BaseException:
            kept = Unfinished(step_id, tuple(results)) if step_id is not None else unfinished
            await self._backend.save(replace(session, episode=episode.snapshot(), unfinished=kept))
            raise
        answer = _answer(session.id, episode, results)
        answers, unfinished = dict(session.answers), None
        if step_id is not None:
            answers[step_id] = answer
            for oldest in list(answers)[:-REMEMBERED_STEPS]:
                del answers[oldest]
        else:
            unfinished = session.unfinished
        played = session.played if was_over else (*session.played, PlayedStep(tuple(request.tool_calls), answer))
        stepped = replace(session, answers=answers, unfinished=unfinished, played=played)
        await self._backend.save(replace(stepped, episode=episode.snapshot()))
        return answer

    async def terminate(self, request: TerminateRequest) -> TerminateResponse:
        """Close a session and tell its final facts; closing it again, or one that expired, is no error."""
        record = await self._backend.load(request.env_id)
        if isinstance(record, OpenSession):
            async with self._backend.hold(request.env_id):
                record = await self._backend.load(request.env_id)
                if isinstance(record, OpenSession):
                    return await self._close(record, "terminated")
        if record is not None:
            return record.facts
        return TerminateResponse.model_validate({"ok": True, "known": False})

    async def _close(self, session: OpenSession, status: TraceStatus) -> TerminateResponse:
        episode = session.episode
        stored = await self._traces.save(session_record(session, self._world, self._problem(session), status))
        facts = TerminateResponse.model_validate(
            {
                "ok": True,
                "known": True,
                "env_id": session.id,
                "status": status,
                "total_reward": episode.booked.total,
                "task_completed": episode.task_completed,
                "steps": episode.counts.steps,
                "done": episode.done or episode.truncated,
                "truncated": episode.truncated,
                "trace_id": session.trace_id if stored else None,
            }
        )
        await self._backend.save(ClosedSession(session.id, facts))
        return facts

    def _problem(self, session: OpenSession) -> Problem | None:
        try:
            return self._world.problems.get(session.episode.problem_id)
        except ProblemNotFound:  # opened by a process with other problems
            return None

    async def sweep(self) -> int:
        """Expire what has been idle for longer than the limit and is not worked on; returns how many sessions."""
        expired = 0
        for name in await self._backend.unused(self._ttl_s):
            async with self._backend.hold(name, wait=False) as held:
                if not held or await self._backend.idle_s(name) <= self._ttl_s:
                    continue
                session = await self._backend.load(name)
                if isinstance(session, OpenSession):
                    await self._close(session, "expired")
                    expired += 1
        self.expired += expired
        return expired

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(min(self._ttl_s / 4, SWEEP_S))
            try:
                await self.sweep()
                await self._backend.count()
            except EnvironmentFailed as error:
                log.warning("idle sessions could not be looked for: %s", error.message)


def backend_of(world: World) -> SessionBackend:
    """A directory for several workers where the settings name one, else this process's memory."""
    folder = world.settings.session_dir
    if folder is None:
        return MemoryBackend()
    return DirectoryBackend(folder, simulator_of(world))


def simulator_of(world: World) -> str:
    """Names the judge and the tools: what a kept compilation or verdict is good for."""
    return f"judge {JUDGE_VERSION}, icarus {world.tools.version}"


async def _execute_all(episode: Episode, request: StepRequest, results: list[dict[str, Any]], max_steps: int) -> None:
    """Execute the calls that have no result yet, and add theirs to `results` one by one."""
    if episode.done or episode.truncated:
        results.append(_refused("the episode is over", {}))
    elif not request.tool_calls and not results:
        results.append(_refused("the step has no tool call", episode.idle()))
    for call in request.tool_calls[len(results) :]:
        if episode.done or episode.truncated:
            break
        results.append(await _execute(episode, call))
        if not episode.done and episode.counts.steps >= max_steps:
            episode.truncate()
    if not episode.done and episode.counts.steps >= max_steps:
        episode.truncate()


def _answer(name: str, episode: Episode, results: list[dict[str, Any]]) -> StepResponse:
    return StepResponse(
        env_id=name,
        observation=episode.observation().to_wire(),
        reward=sum(result["reward"] for result in results),
        done=episode.done or episode.truncated,
        truncated=episode.truncated,
        info={
            "tool_results": results,
            "total_reward": episode.total_reward,
            "task_completed": episode.task_completed,
            "stop_reason": "max_steps" if episode.truncated else None,
        },
    )


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
