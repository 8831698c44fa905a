"""What an answer means when it is not the one that was asked for.

TaskAppError                 `verilog_taskapp.errors`: raised here as the service raised it, code by code
├── ServiceUnreachable       no connection, one that broke, or a proxy that says so      retryable
├── UnreadableAnswer         something answered, but not in this service's words
└── DeadlinePassed           the time that the caller gave is over                       retryable
"""

import inspect
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx

from verilog_taskapp import errors
from verilog_taskapp.errors import CallerFault, NotFound, Overloaded, ServiceFault, TaskAppError, Unauthorized
from verilog_taskapp.inference.retry import retry_after_s

EXCERPT_CHARS = 200
PROXY_STATUSES = frozenset({502, 503, 504})
"""What a proxy answers for a server that it cannot reach."""
_TOLD = frozenset({"code", "message", "stage", "retryable", "retry_after_s"})


class ServiceUnreachable(ServiceFault):
    """There is no connection to the service, or it broke before the answer was complete."""

    code = "service_unreachable"
    status = 503
    default_retryable = True


class UnreadableAnswer(ServiceFault):
    """The answer is not one of this service: another server's, a proxy's page, or another version's."""

    code = "unreadable_answer"
    status = 502


class DeadlinePassed(ServiceFault):
    """The caller's deadline passed; what was asked for may still have happened."""

    code = "deadline_passed"
    status = 504
    default_retryable = True


FAULTS: Mapping[str, type[TaskAppError]] = {
    found.code: found
    for found in vars(errors).values()
    if inspect.isclass(found) and issubclass(found, TaskAppError) and "code" in vars(found)
}
"""The exception of each code that the service answers with."""


def fault_of(told: Mapping[str, Any], status: int, waits_s: float | None = None) -> TaskAppError:
    """The exception that an error object of the service stands for.

    Fields that `TaskAppError` has no place for are its ``extras``; so is ``code`` where this version does not know it.
    `waits_s` is what the answer's Retry-After header asks for, in seconds.
    """
    code = str(told.get("code", ""))
    kind = FAULTS.get(code) or (CallerFault if 400 <= status <= 499 else ServiceFault)
    extras = {name: value for name, value in told.items() if name not in _TOLD}
    if code not in FAULTS:
        extras["code"] = code
    asked_s = told.get("retry_after_s")
    error = kind(
        str(told.get("message") or f"the service answered {status}"),
        stage=told.get("stage"),
        retryable=bool(told.get("retryable", False)),
        retry_after_s=asked_s if isinstance(asked_s, int | float) else waits_s,
        extras=extras,
    )
    error.status = status
    return error


def refusal(response: httpx.Response) -> TaskAppError:
    """What an answer outside 2xx means: the service's own error, or what stands between it and us."""
    waits_s = retry_after_s(response.headers.get("Retry-After"), time.time())
    status = response.status_code
    told = _error_object(response.content)
    if told is not None:
        return fault_of(told, status, waits_s)
    said = f"{response.request.url.path} was answered {status}: {response.text[:EXCERPT_CHARS]!r}"
    error: TaskAppError
    if status == 429:
        error = Overloaded(said, retry_after_s=waits_s)
    elif status in PROXY_STATUSES:
        error = ServiceUnreachable(said, retry_after_s=waits_s)
    elif status in (401, 403):
        error = Unauthorized(said)
    elif status == 404:
        error = NotFound(said)
    else:
        error = UnreadableAnswer(said)
    error.status = status
    return error


def _error_object(content: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(content)
    except ValueError:
        return None
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) and isinstance(error.get("code"), str) else None
