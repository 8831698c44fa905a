"""Every error answer has one shape; this is the one mapping from faults to HTTP."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from verilog_taskapp.contracts import ErrorBody, ErrorInfo, field_errors
from verilog_taskapp.errors import MissingServerKey, TaskAppError, Unauthorized

_HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large", 400: "bad_request"}

log = logging.getLogger(__name__)


def error_response(
    status: int, code: str, message: str, extras: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """An error body with its status."""
    body = ErrorBody(error=ErrorInfo(**{**extras, "code": code, "message": message}))
    return Response(
        body.model_dump_json(), status_code=status, media_type="application/json", headers=dict(headers or {})
    )


def fault_response(error: TaskAppError) -> Response:
    """The answer to a fault of the tree in `verilog_taskapp.errors`."""
    extras = {**error.extras, "retryable": error.retryable}
    if error.stage is not None:
        extras["stage"] = error.stage
    headers: dict[str, str] = {}
    if isinstance(error, Unauthorized | MissingServerKey):
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return error_response(error.status, error.code, error.message, extras, headers)


async def _on_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, TaskAppError)  # noqa: S101 - registered for this class
    if error.status >= 500:
        log.error("%s: %s", error.code, error.message, extra={"run_id": error.extras.get("run_id")})
    return fault_response(error)


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    fields = [one.model_dump() for one in field_errors(error.errors())]
    named = "; ".join(f"{one['field'] or 'body'}: {one['message']}" for one in fields[:5])
    return error_response(422, "invalid_request", named, {"errors": fields, "retryable": False})


async def _on_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    code = _HTTP_CODES.get(error.status_code, "http_error")
    return error_response(error.status_code, code, str(error.detail), {"retryable": False}, error.headers)


def bug_response(error: Exception) -> Response:
    """The answer to an error that is not one of ours; `verilog_taskapp.http.middleware.RequestLog` sends it."""
    return error_response(
        500, "internal_error", f"an internal error ({type(error).__name__})", {"retryable": True, "stage": "tool"}
    )


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(TaskAppError, _on_fault)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
