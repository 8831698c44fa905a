"""A rollout as a trace: the facts that it is found by, and everything that happened in it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from verilog_taskapp import __version__
from verilog_taskapp.contracts import RolloutRequest, RolloutStep
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.world import World
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.icarus.store import JUDGE_VERSION
from verilog_taskapp.problems.splits import effective_split
from verilog_taskapp.rollout.outcome import Progress
from verilog_taskapp.rollout.policy import Policy
from verilog_taskapp.tracing.record import TraceFacts, TraceRecord, TraceStatus
from verilog_taskapp.tracing.session_trace import session_trace


@dataclass(frozen=True)
class RunningRollout:
    """One rollout while it runs."""

    request: RolloutRequest
    trace_id: str
    created_at: datetime
    episode: Episode
    policy: Policy | None
    """None: a script."""
    progress: Progress


def rollout_record(
    running: RunningRollout, world: World, status: TraceStatus, error: TaskAppError | None
) -> TraceRecord:
    """The trace to store."""
    settings = rollout_settings(running, world)
    facts = rollout_facts(running, world, status, error)
    return TraceRecord(facts, settings, rollout_trace(running, world, status, error, full=True))


def rollout_facts(running: RunningRollout, world: World, status: TraceStatus, error: TaskAppError | None) -> TraceFacts:
    """What lists show of it."""
    episode, policy, steps = running.episode, running.policy, running.progress.steps
    problem = episode.problem
    scored = status in ("completed", "truncated")
    return TraceFacts(
        id=running.trace_id,
        kind="rollout",
        run_id=running.request.run_id,
        created_at=running.created_at,
        finished_at=datetime.now(UTC),
        status=status,
        outcome=_outcome(running, status, error),
        passed=episode.task_completed if scored else None,
        episode_return=episode.total_reward if scored else None,
        dataset=world.problems.id,
        dataset_version=world.problems.version,
        problem_id=problem.id,
        problem_hash=problem.content_hash,
        split=effective_split(problem),
        seed=running.request.env.seed,
        model=policy.model if policy is not None else None,
        steps=len(steps),
        model_s=sum(_extra(step).get("inference_ms") or 0.0 for step in steps) / 1000,
        tool_s=sum((_extra(step).get("facts") or {}).get("ms") or 0.0 for step in steps) / 1000,
        prompt_tokens=_tokens(steps, "prompt_tokens"),
        completion_tokens=_tokens(steps, "completion_tokens"),
        error_code=error.code if error is not None else None,
        error_stage=error.stage if error is not None else None,
        error_message=error.message if error is not None else None,
        service_version=__version__,
        judge_version=str(JUDGE_VERSION),
        simulator_version=f"icarus {world.tools.version}",
    )


def rollout_settings(running: RunningRollout, world: World) -> dict[str, Any]:
    """The settings that mattered."""
    episode, policy, request = running.episode, running.policy, running.request
    return {
        "rewards": asdict(episode.options.rewards),
        "feedback": episode.options.feedback,
        "max_steps": episode.options.max_steps,
        "file_preview_chars": world.settings.file_preview_chars,
        "tool_mode": policy.tool_mode if policy is not None else None,
        "heuristics": policy.heuristics if policy is not None else "off",
        "sampling": {name: value for name, value in policy.parameters.items() if name != "tools"} if policy else {},
        "safety": {"max_ops": request.safety.max_ops, "max_time_s": request.safety.max_time_s},
    }


def rollout_trace(
    running: RunningRollout, world: World, status: TraceStatus, error: TaskAppError | None, *, full: bool
) -> dict[str, Any]:
    """The session trace."""
    episode, policy = running.episode, running.policy
    metadata = {
        "run_id": running.request.run_id,
        "status": status,
        "stop_reason": running.progress.stop_reason,
        "finished_at": datetime.now(UTC).isoformat(),
        "error": {"code": error.code, "message": error.message, "stage": error.stage} if error else None,
        "problem": {"id": episode.problem.id, "content_hash": episode.problem.content_hash},
        "dataset": {"id": world.problems.id, "version": world.problems.version},
        "seed": running.request.env.seed,
        "versions": {
            "service": __version__,
            "judge": JUDGE_VERSION,
            "simulator": f"icarus {world.tools.version}",
        },
        "policy": {
            "model": policy.model if policy else None,
            "inference_url": policy.endpoint.url if policy else None,
            "heuristics": policy.heuristics if policy else "off",
        },
        **rollout_settings(running, world),
        "total_reward": episode.total_reward,
        "task_completed": episode.task_completed,
    }
    steps = [_step(step) for step in running.progress.steps]
    created = running.created_at.isoformat()
    return session_trace(running.trace_id, created, metadata, steps, running.progress.messages, full=full)


def _outcome(running: RunningRollout, status: TraceStatus, error: TaskAppError | None) -> str:
    if status == "aborted":
        return "aborted"
    if error is not None:
        return error.code
    if running.episode.task_completed:
        return "passed"
    return running.progress.stop_reason or "wrong"


def _extra(step: RolloutStep) -> Mapping[str, Any]:
    return step.info.model_extra or {}


def _tokens(steps: Sequence[RolloutStep], kind: str) -> int | None:
    """The sum over the answers, where the model server counted at all."""
    found = [(step.info.model_response or {}).get("usage") for step in steps]
    counts = [usage[kind] for usage in found if isinstance(usage, dict) and type(usage.get(kind)) is int]
    return sum(counts) if counts else None


def _step(step: RolloutStep) -> dict[str, Any]:
    """The step as `session_trace` reads it; serialised only once, with the whole trace."""
    info = {**vars(step.info), **_extra(step)}
    return {**vars(step), "info": info}
