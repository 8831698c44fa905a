"""``/env/verilog/*``: the environment step by step."""

from fastapi import APIRouter, Depends, Request

from verilog_taskapp.contracts import (
    InitializeRequest,
    InitializeResponse,
    StepRequest,
    StepResponse,
    TerminateRequest,
    TerminateResponse,
)
from verilog_taskapp.errors import Draining
from verilog_taskapp.http.auth import require_key
from verilog_taskapp.http.disconnect import until_disconnect
from verilog_taskapp.http.json_body import JsonRoute
from verilog_taskapp.rollout.admission import UNKNOWN_WAIT_S
from verilog_taskapp.sessions.store import SessionStore

router = APIRouter(prefix="/env/verilog", tags=["sessions"], dependencies=[Depends(require_key)], route_class=JsonRoute)


def _sessions(request: Request) -> SessionStore:
    store: SessionStore = request.app.state.services.sessions
    return store


@router.post("/initialize")
async def initialize(request: Request, body: InitializeRequest) -> InitializeResponse:
    """Open a session on the problem that the seed or the id means."""
    admission = request.app.state.services.rollouts.admission
    if admission.draining:
        raise Draining(admission.refusal, retry_after_s=UNKNOWN_WAIT_S)
    return await _sessions(request).initialize(body)


@router.post("/step")
async def step(request: Request, body: StepRequest) -> StepResponse:
    """Execute tool calls; a client that hangs up stops the one that is running."""
    return await until_disconnect(request, _sessions(request).step(body))


@router.post("/terminate")
async def terminate(request: Request, body: TerminateRequest) -> TerminateResponse:
    """Close a session; idempotent."""
    return await _sessions(request).terminate(body)
