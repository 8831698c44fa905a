"""Where rollouts are run: in this process, or on a running service."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
from pydantic import ValidationError

from verilog_taskapp import __version__
from verilog_taskapp.contracts import RolloutRequest, RolloutResponse
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.icarus.store import JUDGE_VERSION
from verilog_taskapp.inference.retry import is_retryable, retry_after_s
from verilog_taskapp.rollout.service import RolloutService

CONNECT_TIMEOUT_S = 10.0
ANSWER_MARGIN_S = 120.0
"""Beyond the episode's own limit: standing in line, and the last verdict."""
FATAL = frozenset(
    {
        "unauthorized",
        "missing_environment_api_key",
        "invalid_request",
        "inference_key_missing",
        "inference_host_refused",
        "problem_not_found",
        "dataset_unavailable",
    }
)
"""Codes that every further sample would meet as well."""
FATAL_UPSTREAM = frozenset({401, 403, 404})
"""The model's endpoint refuses the key or has no such model."""
FLOW = frozenset({"overloaded", "draining"})
"""Codes that ask to come back later; they are no fault of the sample."""


class SampleFault(Exception):
    """A sample could not be drawn through a fault that is not the model's."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        stage: str | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        upstream_status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.stage = stage
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.fatal = code in FATAL or (code == "inference_rejected" and upstream_status in FATAL_UPSTREAM)

    @property
    def is_flow_control(self) -> bool:
        """Whether the service only asks to come back later."""
        return self.code in FLOW


def fault_of(error: TaskAppError) -> SampleFault:
    """The same fault as this part sees it."""
    upstream = error.extras.get("upstream_status")
    return SampleFault(
        error.code,
        error.message,
        stage=error.stage,
        retryable=error.retryable,
        retry_after_s=error.retry_after_s,
        upstream_status=upstream if isinstance(upstream, int) else None,
    )


@dataclass(frozen=True)
class Versions:
    """What gave the verdicts."""

    service: str
    judge: str
    simulator: str
    dataset: str
    """Of the problem set: the beginning of its content hash."""


class Backend(Protocol):
    """Something that runs rollouts."""

    versions: Versions

    async def rollout(self, request: RolloutRequest) -> RolloutResponse:
        """One rollout to its end. Raises `SampleFault`."""
        ...


class InProcess:
    """The service's own rollouts, without HTTP."""

    def __init__(self, rollouts: RolloutService) -> None:
        world = rollouts.world
        simulator = f"icarus {world.tools.version}"
        self.versions = Versions(__version__, JUDGE_VERSION, simulator, world.problems.version)
        self._rollouts = rollouts

    async def rollout(self, request: RolloutRequest) -> RolloutResponse:
        """See `Backend`."""
        try:
            return await self._rollouts.run(request)
        except TaskAppError as error:
            raise fault_of(error) from error


class Remote:
    """A service over HTTP; made by `connect`."""

    def __init__(self, client: httpx.AsyncClient, versions: Versions) -> None:
        self.versions = versions
        self._client = client

    async def rollout(self, request: RolloutRequest) -> RolloutResponse:
        """See `Backend`."""
        body = await _asked(self._client, "POST", "/rollout", request.model_dump(mode="json", by_alias=True))
        try:
            return RolloutResponse.model_validate(body)
        except ValidationError as error:
            raise SampleFault("bad_answer", f"the server's answer is no rollout: {error.errors()[0]['msg']}") from error


@asynccontextmanager
async def connect(
    url: str, key: str | None, *, max_time_s: float, concurrency: int, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Remote]:
    """The service at `url`. Raises `SampleFault` when it does not answer, or refuses the key."""
    async with httpx.AsyncClient(
        base_url=url.rstrip("/"),
        headers={"X-API-Key": key} if key else {},
        timeout=httpx.Timeout(max_time_s + ANSWER_MARGIN_S, connect=CONNECT_TIMEOUT_S, pool=None),
        limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
        transport=transport,
    ) as client:
        info = await _asked(client, "GET", "/info")
        service, dataset = info.get("service") or {}, info.get("dataset") or {}
        yield Remote(
            client,
            Versions(
                str(service.get("version", "unknown")),
                str(service.get("judge", "unknown")),
                str(service.get("simulator", "unknown")),
                str(dataset.get("version", "unknown")),
            ),
        )


async def _asked(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """The JSON object of a 200 answer; every other outcome is a `SampleFault`."""
    try:
        response = await client.request(method, path, json=body)
    except httpx.InvalidURL as error:
        raise SampleFault("invalid_request", f"the server's URL is not valid: {error}") from error
    except httpx.UnsupportedProtocol as error:
        raise SampleFault("invalid_request", "the server's URL must begin with http:// or https://") from error
    except httpx.HTTPError as error:
        said = f"{type(error).__name__} {error}".strip()
        raise SampleFault("server_unreachable", f"{client.base_url}: {said}", retryable=True) from error
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if response.status_code == 200 and isinstance(answer, dict):
        return answer
    raise _refusal(response, answer if isinstance(answer, dict) else {})


def _refusal(response: httpx.Response, answer: dict[str, Any]) -> SampleFault:
    """What an answer that is not 200 means: the service's own error object, or whatever a proxy in between said."""
    error = answer.get("error")
    told: dict[str, Any] = error if isinstance(error, dict) else {}
    waited = response.headers.get("Retry-After")
    upstream = told.get("upstream_status")
    status = response.status_code
    return SampleFault(
        str(told.get("code") or ("overloaded" if status == 429 else f"http_{status}")),
        str(told.get("message") or f"the server answered {status}"),
        stage=told.get("stage"),
        retryable=bool(told.get("retryable", is_retryable(status))),
        retry_after_s=retry_after_s(waited, time.time()),
        upstream_status=upstream if isinstance(upstream, int) else None,
    )
