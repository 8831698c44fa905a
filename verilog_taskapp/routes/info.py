"""What the service offers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from verilog_taskapp.contracts import Done, ServiceInfo, TaskInfo, TaskSetInfo
from verilog_taskapp.description import APP_ID, service_info, task_info, task_set_info
from verilog_taskapp.errors import InvalidRequest, NotFound
from verilog_taskapp.http.auth import require_key

MAX_SEEDS = 1000

router = APIRouter(tags=["info"], dependencies=[Depends(require_key)])


@router.get("/info")
async def info(request: Request) -> ServiceInfo:
    """Service, data set, rubrics, inference defaults and limits."""
    return service_info(request.app.state.services)


@router.get("/task_info", response_model=TaskSetInfo | TaskInfo | list[TaskInfo])
async def get_task_info(
    request: Request,
    seed: Annotated[list[int] | None, Query(description="Repeatable")] = None,
    seeds: Annotated[list[int] | None, Query(description="Repeatable")] = None,
    split: Annotated[str | None, Query(description="train, val, test or all")] = None,
) -> TaskSetInfo | TaskInfo | list[TaskInfo]:
    """The data set, or one instance per seed in the order asked."""
    services = request.app.state.services
    asked = [*(seed or ()), *(seeds or ())]
    if len(asked) > MAX_SEEDS:
        raise InvalidRequest(f"at most {MAX_SEEDS} seeds can be asked for at once")
    if not asked:
        return task_set_info(services)
    found = [await task_info(services, one, split) for one in asked]
    return found[0] if len(found) == 1 else found


@router.post("/done")
async def done() -> Done:
    """Trainers say that they are done; nothing to do here."""
    return Done(service=APP_ID)


@router.get("/debug/env")
async def debug_env(request: Request) -> dict[str, bool]:
    """Which keys are configured: yes or no, never a value."""
    settings = request.app.state.services.settings
    if not settings.debug_env:
        raise NotFound("not found: /debug/env is switched off (VERILOG_DEBUG_ENV)")
    return {
        "ENVIRONMENT_API_KEY": (settings.environment_api_key or settings.dev_environment_api_key) is not None,
        "ENVIRONMENT_API_KEY_ALIASES": settings.environment_api_key_aliases is not None,
        "GROQ_API_KEY": settings.groq_api_key is not None,
        "OPENAI_API_KEY": settings.openai_api_key is not None,
        **{name: name in settings.named_keys for name in settings.inference_key_envs},
    }


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Prometheus text format."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
