"""``POST /rollout/batch``: answers in the order in which the rollouts end."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from pydantic import TypeAdapter

from verilog_taskapp.client.calls import Calls, parsed
from verilog_taskapp.client.errors import ServiceUnreachable, UnreadableAnswer, fault_of
from verilog_taskapp.contracts import BatchLine, RolloutBatchRequest, RolloutRequest, RolloutResponse
from verilog_taskapp.errors import TaskAppError

PATH = "/rollout/batch"
SILENCE_S = 120.0
"""Longest silence between two lines; the service sends a heartbeat every 10 s unless it is set otherwise."""

_LINE = TypeAdapter(BatchLine)


@dataclass(frozen=True)
class BatchAnswer:
    """How one rollout of a batch ended: `response` or `error`, never both."""

    index: int
    """Which of the requests, counted from 0."""
    response: RolloutResponse | None = None
    error: TaskAppError | None = None
    """Why there is no response; not tried again here."""


async def answers(
    calls: Calls, requests: Sequence[RolloutRequest], deadline_s: float
) -> AsyncGenerator[BatchAnswer, None]:
    """Each answer once. When the connection breaks, those that are missing are asked for again."""
    deadline = asyncio.get_running_loop().time() + deadline_s
    left = dict(enumerate(requests))
    failures = 0
    while left:
        asked = list(left)
        body = RolloutBatchRequest(requests=list(left.values()))
        try:
            async with aclosing(calls.lines(PATH, body, silence_s=SILENCE_S, deadline=deadline)) as lines:
                async for line in lines:
                    answer = _answer(line, asked)
                    if answer is not None and left.pop(answer.index, None) is not None:
                        failures = 0
                        yield answer
            if left:
                raise ServiceUnreachable(f"{PATH} ended with {len(left)} of {len(asked)} rollouts unanswered")
        except TaskAppError as failure:
            failures += 1
            await calls.wait(failure, failures, deadline)


def _answer(line: str, asked: Sequence[int]) -> BatchAnswer | None:
    """What a line answers; None for a sign of life."""
    if not line.strip():
        return None
    read = parsed(_LINE, line, PATH)
    if read.index is None:
        return None
    if not 0 <= read.index < len(asked):
        raise UnreadableAnswer(f"{PATH}: index {read.index} of {len(asked)} requests")
    number = asked[read.index]
    if read.response is not None:
        return BatchAnswer(number, response=read.response)
    return BatchAnswer(number, error=fault_of(read.error or {}, read.status or 500))
