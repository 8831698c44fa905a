"""Several samples of one problem in one request, as GRPO compares them.

The members run at the same time, each as a rollout of its own with its own trace. One that fails through no fault of
the policy does not lose the others: it has no return, and the means leave it out. Only if all fail is the answer an
error.
"""

import asyncio
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from verilog_taskapp.contracts import RolloutMetrics, RolloutRequest, RolloutResponse, RolloutTrajectory
from verilog_taskapp.contracts.rollout import RolloutDetails
from verilog_taskapp.errors import Draining, TaskAppError
from verilog_taskapp.rollout.service import RolloutService

Member = RolloutResponse | TaskAppError


async def run_group(service: RolloutService, request: RolloutRequest, *, is_let_in: bool = False) -> RolloutResponse:
    """Run ``policy.config.n`` samples of the request's problem; with one it is a plain rollout.

    Raises `TaskAppError` when no member ended well, with the errors of all in its extras. Cancellation stops all.
    """
    size = request.policy.config.n
    if size == 1:
        return await service.run(request, is_let_in=is_let_in)
    if not is_let_in:
        try:
            service.admission.let_in(size)
        except TaskAppError as error:
            raise error.with_extras({"run_id": request.run_id}) from error
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_member(service, member_request(request, index))) for index in range(size)]
    members = [task.result() for task in tasks]
    if all(isinstance(one, TaskAppError) for one in members):
        raise _failure([one for one in members if isinstance(one, TaskAppError)])
    return _response(request, members)


def member_request(request: RolloutRequest, index: int) -> RolloutRequest:
    """The request of one member: the same problem, another sampling seed if one is given."""
    config = request.policy.config
    seed = None if config.seed is None else config.seed + index
    policy = request.policy.model_copy(update={"config": config.model_copy(update={"n": 1, "seed": seed})})
    return request.model_copy(update={"policy": policy})


async def _member(service: RolloutService, request: RolloutRequest) -> Member:
    try:
        return await service.run(request, is_let_in=True)
    except TaskAppError as error:
        return error


def error_object(error: TaskAppError) -> dict[str, Any]:
    """An error as it is told inside of an answer: the object of an error body, without the steps so far."""
    told = {name: value for name, value in error.extras.items() if name != "partial_trajectory"}
    if error.stage is not None:
        told["stage"] = error.stage
    if error.retry_after_s is not None:
        told["retry_after_s"] = error.retry_after_s
    return {**told, "code": error.code, "message": error.message, "retryable": error.retryable}


def _failure(errors: Sequence[TaskAppError]) -> TaskAppError:
    """One error for all: a shutdown if there was one, else the first."""
    first = next((one for one in errors if isinstance(one, Draining)), errors[0])
    told = first.with_extras({"members": [error_object(one) for one in errors]})
    told.retryable = any(one.retryable for one in errors)
    return told


def _response(request: RolloutRequest, members: Sequence[Member]) -> RolloutResponse:
    ended = [one for one in members if isinstance(one, RolloutResponse)]
    details = [one.metrics.details for one in ended]
    returns = [one.metrics.mean_return if isinstance(one, RolloutResponse) else None for one in members]
    mean = fmean(value for value in returns if value is not None)
    trajectories = [_trajectory(request, one) for one in members]
    traces = [one.trace for one in members if isinstance(one, RolloutResponse)]
    return RolloutResponse(
        run_id=request.run_id,
        trajectories=trajectories,
        metrics=RolloutMetrics(
            episode_returns=returns,
            mean_return=mean,
            num_steps=sum(one.length for one in trajectories),
            num_episodes=len(members),
            outcome_score=mean,
            events_score=_mean([one.metrics.events_score for one in ended]),
            details=RolloutDetails.model_validate(
                {
                    "task_completed": any(one.task_completed for one in details),
                    "total_reward": mean,
                    "steps": sum(one.length for one in trajectories),
                    "truncated": any(one.truncated for one in details),
                    "status": "truncated" if all(one.truncated for one in details) else "completed",
                    "outcome_rubric": _mean([one.outcome_rubric for one in details]),
                    "passed": sum(one.task_completed for one in details),
                    "failed": len(members) - len(ended),
                    "problem": (details[0].model_extra or {}).get("problem"),
                }
            ),
        ),
        ops_executed=sum(one.ops_executed for one in ended),
        trace={"session_traces": traces} if request.record.return_trace else None,
    )


def _trajectory(request: RolloutRequest, member: Member) -> RolloutTrajectory:
    if isinstance(member, RolloutResponse):
        found = member.metrics.details
        trace_id = (found.model_extra or {}).get("trace_id")
        (own,) = member.trajectories
        return own.model_copy(update={"status": found.status, "trace_id": trace_id})
    so_far = member.extras.get("partial_trajectory")
    if so_far is None:
        own = RolloutTrajectory(
            env_id=request.env.env_id or request.env.env_name or "verilog",
            policy_id=request.policy.policy_id or request.policy.policy_name or "policy",
            steps=[],
            length=0,
        )
    else:
        own = RolloutTrajectory.model_validate(so_far)
    return own.model_copy(
        update={
            "final": None,
            "status": "failed",
            "error": error_object(member),
            "trace_id": member.extras.get("trace_id"),
        }
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
