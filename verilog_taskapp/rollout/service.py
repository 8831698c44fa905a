"""``POST /rollout`` without HTTP: from a request to a response, with every fault classified and nothing lost."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from verilog_taskapp.contracts import (
    RolloutMetrics,
    RolloutRequest,
    RolloutResponse,
    RolloutTrajectory,
)
from verilog_taskapp.contracts.config import EnvConfig
from verilog_taskapp.contracts.rollout import FinalInfo, RolloutDetails, RolloutFinal
from verilog_taskapp.environment.state import EpisodeOptions
from verilog_taskapp.environment.world import World, options_of
from verilog_taskapp.errors import Draining, EnvironmentFailed, Overloaded, TaskAppError
from verilog_taskapp.inference.client import ChatClient
from verilog_taskapp.rollout.admission import Admission
from verilog_taskapp.rollout.agent import AgentLoop, play_script
from verilog_taskapp.rollout.outcome import Progress, StepFacts, step_facts, tool_and_outcome
from verilog_taskapp.rollout.policy import resolve_policy
from verilog_taskapp.rollout.record import RunningRollout, rollout_record, rollout_trace
from verilog_taskapp.rubric import EpisodeEvents, Rubrics, events_score, outcome_score
from verilog_taskapp.tracing.record import TraceStatus, new_trace_id
from verilog_taskapp.tracing.spans import NO_SPANS, Spans
from verilog_taskapp.tracing.store import TraceStore

RETRY_AFTER_ABORT_S = 5.0
"""By then an orchestrator has another process listening."""

log = logging.getLogger(__name__)


def episode_options(config: EnvConfig, world: World, max_steps: int) -> EpisodeOptions:
    """The settings' options with what ``env.config`` overrides."""
    base = options_of(world.settings)
    given = {name: value for name, value in vars(config.rewards).items() if value is not None}
    return replace(
        base,
        rewards=replace(base.rewards, **given),
        feedback=config.feedback or base.feedback,
        max_steps=max_steps,
    )


class RolloutService:
    """Runs rollouts; safe for any number at once: `admission` decides how many run and how many wait."""

    def __init__(
        self, world: World, chat: ChatClient, rubrics: Rubrics, traces: TraceStore, spans: Spans = NO_SPANS
    ) -> None:
        self.world = world
        self._spans = spans
        self.admission = Admission(world.settings.max_rollouts, world.settings.rollout_queue)
        self._running: set[asyncio.Task[RolloutResponse]] = set()
        self.observe_step: Callable[[StepFacts], None] | None = None
        """Told of the steps of every rollout that ended, failed ones included."""
        self.steps_taken: Counter[tuple[str, str]] = Counter()
        """Steps of all rollouts so far, failed ones included, by tool and outcome."""
        self._chat = chat
        self._rubrics = rubrics
        self._traces = traces

    @property
    def in_flight(self) -> int:
        """Rollouts running now."""
        return self.admission.in_flight

    async def run(self, request: RolloutRequest, *, is_let_in: bool = False) -> RolloutResponse:
        """Run one rollout to its end; `is_let_in` as in `Admission.place`.

        Raises a `TaskAppError`, with ``run_id``, ``trace_id`` and the steps so far in its extras, when the rollout
        could not be brought to an end by the policy or by the episode's limits. Cancellation stops it at once.
        """
        try:
            async with self.admission.place(is_let_in=is_let_in):
                return await self._abortable(request)
        except (Overloaded, Draining) as error:
            raise error.with_extras({"run_id": request.run_id}) from error

    async def abort(self) -> None:
        """Stop every rollout at once; their callers are told that the server is shutting down."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _abortable(self, request: RolloutRequest) -> RolloutResponse:
        """In a task of its own, so that `abort` can be told from a caller that goes away."""
        task = asyncio.create_task(self._admitted(request))
        self._running.add(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():  # the caller went away
                task.cancel()
                while not task.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([task])
                raise
            raise Draining("the server is shutting down", retry_after_s=RETRY_AFTER_ABORT_S) from None
        finally:
            self._running.discard(task)

    async def _admitted(self, request: RolloutRequest) -> RolloutResponse:
        try:
            running = await self._begin(request)
        except TaskAppError as error:
            raise error.with_extras({"run_id": request.run_id}) from error
        try:
            await self._play_in_span(running)
        except TaskAppError as error:
            raise await self._failed(running, error) from error
        except asyncio.CancelledError:
            await asyncio.shield(self._store(running, "aborted", None))
            raise
        except Exception as error:
            log.exception("a rollout failed through a fault of this service")
            failure = EnvironmentFailed(f"an internal error ended the rollout ({type(error).__name__})")
            raise await self._failed(running, failure) from error
        finally:
            self.steps_taken.update(tool_and_outcome(step) for step in running.progress.steps)
            if self.observe_step is not None:
                for step in running.progress.steps:
                    self.observe_step(step_facts(step))
        return await self._response(running)

    async def _begin(self, request: RolloutRequest) -> RunningRollout:
        world, config = self.world, request.env.config
        policy = None if request.script else resolve_policy(request, world.settings)
        chosen = await world.choose(split=config.split, seed=request.env.seed, problem_id=config.problem)
        max_steps = policy.max_steps if policy else len(request.script)
        episode = world.begin(chosen, episode_options(config, world, max_steps))
        return RunningRollout(request, new_trace_id(), datetime.now(UTC), episode, policy, Progress())

    async def _play_in_span(self, running: RunningRollout) -> None:
        model = running.policy.model if running.policy is not None else None
        with self._spans.rollout(running.request.run_id, running.episode.problem.id, model) as span:
            await self._play(running)
            episode = running.episode
            span.note(
                {
                    "verilog.trace_id": running.trace_id,
                    "verilog.return": episode.total_reward,
                    "verilog.passed": episode.task_completed,
                    "verilog.stop_reason": running.progress.stop_reason,
                }
            )

    async def _play(self, running: RunningRollout) -> None:
        request, settings = running.request, self.world.settings
        deadline = asyncio.get_running_loop().time() + request.safety.max_time_s
        if running.policy is None:
            await play_script(
                running.episode,
                request.script,
                running.progress,
                deadline=deadline,
                max_ops=request.safety.max_ops,
                spans=self._spans,
            )
            return
        loop = AgentLoop(
            running.episode,
            running.policy,
            self._chat,
            running.progress,
            deadline=deadline,
            max_ops=request.safety.max_ops,
            simulator=self.world.tools.version,
            preview_chars=settings.file_preview_chars,
            spans=self._spans,
        )
        await loop.run()

    async def _failed(self, running: RunningRollout, error: TaskAppError) -> TaskAppError:
        """The error as the caller is told it, once the trace is stored."""
        stored = await self._store(running, "failed", error)
        told = error.with_extras(
            {
                "run_id": running.request.run_id,
                "trace_id": running.trace_id if stored else None,
                "partial_trajectory": self._trajectory(running).model_dump(mode="json"),
            }
        )
        told.stage = told.stage or "tool"
        return told

    async def _store(self, running: RunningRollout, status: TraceStatus, error: TaskAppError | None) -> bool:
        return await self._traces.save(rollout_record(running, self.world, status, error))

    def _trajectory(self, running: RunningRollout) -> RolloutTrajectory:
        request, episode, progress = running.request, running.episode, running.progress
        url = running.policy.endpoint.url if running.policy else None
        if episode.truncated and progress.steps:
            progress.steps[-1].truncated = True
        return RolloutTrajectory(
            env_id=request.env.env_id or request.env.env_name or "verilog",
            policy_id=request.policy.policy_id or request.policy.policy_name or "policy",
            steps=progress.steps if request.record.trajectories else [],
            final=RolloutFinal(
                observation=episode.observation().to_wire(),
                reward=episode.total_reward,
                done=episode.done,
                truncated=episode.truncated,
                info=FinalInfo.model_validate(
                    {
                        "total_reward": episode.total_reward,
                        "task_completed": episode.task_completed,
                        "policy_model": running.policy.model if running.policy else None,
                        "inference_url": url,
                        "problem": episode.problem.id,
                    }
                ),
            ),
            length=len(progress.steps),
            inference_url=url,
        )

    async def _response(self, running: RunningRollout) -> RolloutResponse:
        request, episode, progress = running.request, running.episode, running.progress
        status: TraceStatus = "truncated" if episode.truncated else "completed"
        trajectory = self._trajectory(running)
        stored = await self._store(running, status, None)
        total = episode.total_reward
        details = RolloutDetails.model_validate(
            {
                "task_completed": episode.task_completed,
                "total_reward": total,
                "steps": len(progress.steps),
                "truncated": episode.truncated,
                "status": status,
                "stop_reason": progress.stop_reason,
                "outcome_rubric": outcome_score(self._rubrics.outcome, episode.task_completed),
                "problem": episode.problem.id,
                "trace_id": running.trace_id if stored else None,
                "overrides": episode.counts.overrides,
                "blocks": episode.counts.blocks,
            }
        )
        trace = None
        if request.record.return_trace:
            full = request.record.trace_format == "full"
            trace = rollout_trace(running, self.world, status, None, full=full)
        return RolloutResponse(
            run_id=request.run_id,
            trajectories=[trajectory],
            metrics=RolloutMetrics(
                episode_returns=[total],
                mean_return=total,
                num_steps=len(progress.steps),
                outcome_score=total,
                events_score=events_score(self._rubrics.events, EpisodeEvents(**vars(episode.counts))),
                details=details,
            ),
            ops_executed=progress.ops_executed,
            trace=trace,
        )
