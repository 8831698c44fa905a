"""Liveness, readiness and whether a rollout would be admitted; answered from memory."""

import os
from typing import Any

from fastapi import APIRouter, Request, Response

from verilog_taskapp.contracts import Health, Readiness, RolloutHealth, ServiceStatus, Unhealthy
from verilog_taskapp.description import APP_ID
from verilog_taskapp.http.auth import Keyring
from verilog_taskapp.icarus.confinement import described
from verilog_taskapp.services import Services

router = APIRouter(tags=["health"])


def _json(body: Any, status: int = 200) -> Response:
    return Response(body.model_dump_json(exclude_none=True), status_code=status, media_type="application/json")


def _facts(services: Services) -> dict[str, Any]:
    world = services.world
    return {
        "toolchain": {"name": "icarus", "version": world.tools.version, "supported": world.tools.supported},
        "sandbox": described(services.settings.sandbox),
        "dataset": {
            "id": world.problems.id,
            "version": world.problems.version,
            "instances": len(world.problems),
            "skipped": len(world.problems.skipped),
        },
        "capacity": {
            "rollouts_in_flight": services.rollouts.in_flight,
            "rollouts_queued": services.rollouts.admission.waiting,
            "max_rollouts": services.rollouts.admission.capacity,
            "rollout_queue": services.rollouts.admission.queue,
            "children_busy": world.runner.busy,
            "children_waiting": world.runner.waiting,
            "max_children": world.runner.children,
            "sessions": len(services.sessions),
            "max_sessions": services.settings.max_sessions,
        },
    }


def _reasons(services: Services) -> list[str]:
    """Why a rollout would not be admitted now; empty if it would."""
    tools = services.world.tools
    reasons = []
    if not (os.access(tools.iverilog, os.X_OK) and os.access(tools.vvp, os.X_OK)):
        reasons.append("the simulator is gone")
    if refusal := services.rollouts.admission.refusal:
        reasons.append(refusal)
    return reasons


@router.head("/", include_in_schema=False)
@router.get("/")
async def root() -> ServiceStatus:
    """The service is there."""
    return ServiceStatus(service=APP_ID)


@router.get("/health", response_model=Health, responses={503: {"model": Unhealthy}})
async def health(request: Request) -> Response:
    """Whether the service is configured, and for callers with a key what it runs on."""
    keyring: Keyring = request.app.state.keyring
    if not keyring.configured:
        return _json(Unhealthy(), 503)
    authorized = keyring.admits(request)
    facts = _facts(request.app.state.services) if authorized else {}
    return _json(Health.model_validate({"authorized": authorized, "auth": {"required": not keyring.open}, **facts}))


@router.get("/health/rollout", response_model=RolloutHealth, responses={503: {"model": Unhealthy}})
async def rollout_health(request: Request) -> Response:
    """Whether a rollout would be admitted now, and why not."""
    keyring: Keyring = request.app.state.keyring
    if not keyring.configured:
        return _json(Unhealthy(), 503)
    authorized = keyring.admits(request)
    services: Services = request.app.state.services
    reasons = _reasons(services)
    facts = _facts(services) if authorized else {}
    answer = RolloutHealth.model_validate(
        {
            "authorized": authorized,
            "auth": {"required": not keyring.open},
            "ok": not reasons,
            "reason": "; ".join(reasons) or None,
            **facts,
        }
    )
    return _json(answer)


@router.get("/ready", response_model=Readiness, responses={503: {"model": Readiness}})
async def ready(request: Request) -> Response:
    """Whether the simulator and the problems are there and the server is not shutting down, for orchestrators."""
    services: Services = request.app.state.services
    tools = services.world.tools
    there = os.access(tools.iverilog, os.X_OK) and os.access(tools.vvp, os.X_OK)
    reasons = [] if there else ["the simulator is gone"]
    if services.rollouts.admission.draining:
        reasons.append(services.rollouts.admission.refusal)
    return _json(Readiness(ready=not reasons, reasons=reasons), 503 if reasons else 200)
