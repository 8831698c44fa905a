"""``POST /rollout``."""

import time

from fastapi import APIRouter, Depends, Request, Response

from verilog_taskapp.contracts import ErrorBody, RolloutRequest, RolloutResponse
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.http.auth import require_key
from verilog_taskapp.http.disconnect import until_disconnect
from verilog_taskapp.http.json_body import JsonRoute
from verilog_taskapp.http.metrics import Metrics
from verilog_taskapp.rollout.groups import run_group
from verilog_taskapp.services import Services

router = APIRouter(tags=["rollout"], dependencies=[Depends(require_key)], route_class=JsonRoute)
ERRORS = {status: {"model": ErrorBody} for status in (401, 404, 409, 422, 424, 429, 500, 502, 503)}


@router.post("/rollout", response_model=RolloutResponse, responses=ERRORS)  # type: ignore[arg-type]
async def rollout(request: Request, body: RolloutRequest) -> Response:
    """Run one episode, or a group of them, to its end; a client that hangs up stops it."""
    services: Services = request.app.state.services
    metrics: Metrics = request.app.state.metrics
    started = time.perf_counter()
    try:
        response = await until_disconnect(request, run_group(services.rollouts, body))
    except TaskAppError as error:
        metrics.failed(error)
        raise
    metrics.ended(response, time.perf_counter() - started)
    return Response(response.model_dump_json(), media_type="application/json")
