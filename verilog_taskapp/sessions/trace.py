"""A session as a trace: what was called and answered. What its policy said, only its trainer knows."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from verilog_taskapp import __version__
from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.environment.world import World
from verilog_taskapp.icarus.store import JUDGE_VERSION
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.problems.splits import effective_split
from verilog_taskapp.sessions.record import OpenSession
from verilog_taskapp.tracing.record import TraceFacts, TraceRecord, TraceStatus
from verilog_taskapp.tracing.session_trace import session_trace


def session_record(session: OpenSession, world: World, problem: Problem | None, how: TraceStatus) -> TraceRecord:
    """The trace of a session that is being closed.

    `how` it is closed counts where its episode had not ended; `problem` is None when this process does not know it.
    """
    episode = session.episode
    status = _status(session, how)
    scored = status in ("completed", "truncated")
    steps = list(_steps(session))
    facts = TraceFacts(
        id=session.trace_id,
        kind="session",
        run_id=session.id,
        created_at=session.created_at,
        finished_at=datetime.now(UTC),
        status=status,
        outcome=_outcome(session, status),
        passed=episode.task_completed if scored else None,
        episode_return=episode.booked.total if scored else None,
        dataset=world.problems.id,
        dataset_version=world.problems.version,
        problem_id=episode.problem_id,
        problem_hash=episode.problem_hash,
        split=effective_split(problem) if problem is not None else None,
        seed=session.seed,
        steps=episode.counts.steps,
        tool_s=sum((step["info"]["facts"].get("ms") or 0.0) for step in steps) / 1000,
        service_version=__version__,
        judge_version=str(JUDGE_VERSION),
        simulator_version=f"icarus {world.tools.version}",
    )
    settings = {
        "rewards": asdict(episode.options.rewards),
        "feedback": episode.options.feedback,
        "max_steps": session.max_steps,
    }
    metadata = {
        "run_id": session.id,
        "status": status,
        "stop_reason": "max_steps" if episode.truncated else None,
        "finished_at": facts.finished_at.isoformat(),
        "error": None,
        "problem": {"id": episode.problem_id, "content_hash": episode.problem_hash},
        "dataset": {"id": world.problems.id, "version": world.problems.version},
        "seed": session.seed,
        "versions": {"service": __version__, "judge": JUDGE_VERSION, "simulator": facts.simulator_version},
        **settings,
        "total_reward": episode.booked.total,
        "task_completed": episode.task_completed,
    }
    created = session.created_at.isoformat()
    document = session_trace(session.trace_id, created, metadata, steps, list(_messages(session)), full=True)
    return TraceRecord(facts, settings, document)


def _status(session: OpenSession, how: TraceStatus) -> TraceStatus:
    if session.episode.done:
        return "completed"
    return "truncated" if session.episode.truncated else how


def _outcome(session: OpenSession, status: TraceStatus) -> str:
    if session.episode.task_completed:
        return "passed"
    return {"completed": "wrong", "truncated": "max_steps"}.get(status, status)


def _steps(session: OpenSession) -> Iterator[dict[str, Any]]:
    """One a call, as `session_trace` reads them; a call that could not be read has its own words."""
    before = session.opened.observation
    for played in session.played:
        results = played.answer.info["tool_results"]
        for number, result in enumerate(results):
            call = played.calls[number] if number < len(played.calls) else None
            yield {
                "obs": before,
                "tool_calls": [] if call is None else [{"tool_name": call.tool, "arguments": call.args}],
                "reward": result["reward"],
                "done": played.answer.done and number == len(results) - 1,
                "info": {
                    "outcome": result["outcome"],
                    "tool_result": result["message"],
                    "facts": result["facts"],
                    "reward_components": result["reward_components"],
                },
            }
        before = played.answer.observation


def _messages(session: OpenSession) -> Iterator[dict[str, Any]]:
    """The conversation as far as the environment saw it: native calls without the words around them."""
    yield from session.opened.prompt
    for turn, played in enumerate(session.played):
        names = [call.id or f"call-{turn}-{number}" for number, call in enumerate(played.calls)]
        if played.calls:
            calls = [_call(name, call) for name, call in zip(names, played.calls, strict=True)]
            yield {"role": "assistant", "content": None, "tool_calls": calls}
        for name, result in zip(names, played.answer.info["tool_results"], strict=False):
            yield {"role": "tool", "tool_call_id": name, "content": result["message"]}


def _call(name: str, call: ToolCallRequest) -> dict[str, Any]:
    arguments = call.args if isinstance(call.args, str) else json.dumps(call.args)
    return {"id": name, "type": "function", "function": {"name": call.tool, "arguments": arguments}}
