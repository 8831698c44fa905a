"""Health, small acknowledgements and the one shape of every error body."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, computed_field

from verilog_taskapp.contracts._fields import Answer, OpenAnswer

REQUEST_PARTS = frozenset({"body", "query", "path", "header", "cookie"})


class ServiceStatus(Answer):
    """The answer to ``GET /``."""

    status: Literal["ok"] = "ok"
    service: str


class Done(Answer):
    """The answer to ``POST /done``."""

    ok: Literal[True] = True
    service: str


class AuthRequirement(Answer):
    """Whether protected routes ask for a key."""

    required: bool = True


class Health(OpenAnswer):
    """The answer to ``GET /health`` of a server that has a key; authorised callers get facts as further keys."""

    status: Literal["healthy", "unhealthy"] = "healthy"
    healthy: bool = True
    authorized: bool = False
    """Whether the caller sent a valid key."""
    auth: AuthRequirement = Field(default_factory=AuthRequirement)


class RolloutHealth(Health):
    """The answer to ``GET /health/rollout``."""

    ok: bool
    """Whether a rollout would be admitted now."""
    reason: str | None = None
    """Why not."""


class Unhealthy(OpenAnswer):
    """The body of the 503 that a server without a key answers to health probes."""

    status: Literal["unhealthy"] = "unhealthy"
    detail: str = "Missing ENVIRONMENT_API_KEY"


class Readiness(OpenAnswer):
    """The answer to ``GET /ready``, with status 200 or 503."""

    ready: bool
    reasons: list[str] = Field(default_factory=list)
    """What is missing, when not ready."""


class FieldError(Answer):
    """One offending field of a 422."""

    field: str
    """Where it is, in the request's own terms: ``policy.config.temperature``, ``tool_calls.0``."""
    message: str
    type: str
    """Pydantic's name of the rule, e.g. ``float_type``."""


class ErrorInfo(OpenAnswer):
    """What went wrong; extras such as ``stage``, ``retryable``, ``run_id`` or ``errors`` are further keys."""

    code: str
    """A stable word in snake_case."""
    message: str
    """For people; holds no key and no server path."""


class ErrorBody(Answer):
    """The body of every error answer."""

    error: ErrorInfo

    @computed_field  # type: ignore[prop-decorator]
    @property
    def detail(self) -> ErrorInfo:
        """The same object again, where FastAPI clients look for it."""
        return self.error


def field_errors(errors: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    """Pydantic's or FastAPI's ``errors()`` by field, without the rejected values: those may be secrets."""
    found = []
    for error in errors:
        location = [str(part) for part in error["loc"]]
        if error["type"] == "json_invalid":
            location = location[:1]
        elif len(location) > 1 and location[0] in REQUEST_PARTS:
            del location[0]
        message = str(error["msg"]).removeprefix("Value error, ")
        found.append(FieldError(field=".".join(location), message=message, type=str(error["type"])))
    return found
