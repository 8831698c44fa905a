"""``POST /rollout/batch``: newline-delimited JSON, a line for each rollout as it ends."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Depends, Request, Response

from verilog_taskapp.contracts import ErrorBody
from verilog_taskapp.contracts.batch import BatchHeartbeat, BatchLine, RolloutBatchRequest
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.http.auth import require_key
from verilog_taskapp.http.json_body import JsonRoute
from verilog_taskapp.http.line_stream import LineStream, Put
from verilog_taskapp.http.metrics import Metrics
from verilog_taskapp.rollout.groups import error_object, run_group
from verilog_taskapp.services import Services

router = APIRouter(tags=["rollout"], dependencies=[Depends(require_key)], route_class=JsonRoute)
ERRORS = {status: {"model": ErrorBody} for status in (401, 422, 429, 503)}


@router.post("/rollout/batch", response_model=BatchLine, responses=ERRORS)  # type: ignore[arg-type]
async def rollout_batch(request: Request, body: RolloutBatchRequest) -> Response:
    """Run many rollouts at the same time and answer in the order in which they end.

    Each line is a JSON object: ``index`` and ``response``, or ``index`` and ``error``, or ``heartbeat``. A client that
    hangs up stops all of them.
    """
    services: Services = request.app.state.services
    metrics: Metrics = request.app.state.metrics
    services.rollouts.admission.let_in(sum(one.policy.config.n for one in body.requests))
    total, ended = len(body.requests), 0

    async def run(index: int, put: Put) -> None:
        nonlocal ended
        started = time.perf_counter()
        try:
            response = await run_group(services.rollouts, body.requests[index], is_let_in=True)
        except TaskAppError as error:
            metrics.failed(error)
            line = BatchLine(index=index, status=error.status, error=error_object(error))
        else:
            metrics.ended(response, time.perf_counter() - started)
            line = BatchLine(index=index, status=200, response=response)
        ended += 1
        put(line.model_dump_json().encode())

    async def run_all(put: Put) -> None:
        async with asyncio.TaskGroup() as group:
            for index in range(total):
                group.create_task(run(index, put))

    def heartbeat() -> bytes:
        return BatchLine(heartbeat=BatchHeartbeat(ended=ended, total=total)).model_dump_json().encode()

    work: Callable[[Put], Awaitable[None]] = run_all
    return LineStream(work, heartbeat, services.world.settings.batch_heartbeat_s)
