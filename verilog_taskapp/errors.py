"""Every fault the service can answer with, named after whose fault it is.

    TaskAppError                     code, HTTP status, stage, retryable
    ├── CallerFault                  the request, its credentials or its configuration
    │   ├── InvalidRequest           422 invalid_request
    │   ├── Unauthorized             401 unauthorized
    │   ├── NotFound                 404 not_found
    │   │   ├── ProblemNotFound      404 problem_not_found
    │   │   └── SessionNotFound      404 session_not_found
    │   ├── SessionBusy              409 session_busy
    │   ├── InferenceKeyMissing      424 inference_key_missing
    │   ├── InferenceHostRefused     424 inference_host_refused
    │   └── InferenceRejected        424 inference_rejected    (upstream said 400/401/403/404)
    ├── UpstreamRefused              as upstream, upstream_refused  (proxied requests; see `inference.proxy`)
    ├── InferenceFailed              502 inference_failed      (unreachable, 5xx, 429, not a chat completion)
    ├── DatasetFault                 the problem set
    │   ├── DatasetUnavailable       503 dataset_unavailable
    │   └── ProblemUnusable          409 problem_unusable      (the reference does not pass its own testbench)
    ├── ServiceFault                 ours: never a reward, never a verdict
    │   ├── EnvironmentFailed        500 environment_failed
    │   ├── MissingServerKey         503 missing_environment_api_key
    │   ├── TracesUnavailable        503 traces_unavailable    (looked up, not written: that never fails a rollout)
    │   ├── Overloaded               429 overloaded            Retry-After
    │   └── Draining                 503 draining              Retry-After
    └── Aborted                      499 aborted               (the client went away)

    ContextLengthExceeded            not a fault: the model's context is full, which truncates the episode

What the *policy* does wrong (a syntax error, a hung design, a malformed tool call) is never an exception: it is an
ordinary step with its reward. The table is in ``docs/faults.md``.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

Stage = Literal["dataset", "initialize", "inference", "tool", "verdict", "trace"]


class TaskAppError(Exception):
    """A fault with its place on the wire.

    ``message`` is shown to the caller: it says what happened and what to do, and never holds a key or a server path.
    ``extras`` become further fields of the error object.
    """

    code: ClassVar[str] = "internal_error"
    status: int = 500
    default_stage: ClassVar[Stage | None] = None
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        stage: Stage | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.stage: Stage | None = stage or self.default_stage
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after_s = retry_after_s
        self.extras: dict[str, Any] = dict(extras or {})

    def with_extras(self, extras: Mapping[str, Any]) -> Self:
        """A copy with further extras: one failure may be told to several callers, each with its own ids."""
        copied = Exception.__new__(type(self), *self.args)
        copied.__dict__.update(self.__dict__, extras={**self.extras, **extras})
        return copied


class CallerFault(TaskAppError):
    """The request cannot be served as it is."""

    code = "bad_request"
    status = 400


class InvalidRequest(CallerFault):
    """A field has a wrong type or value; ``extras["errors"]`` names each one."""

    code = "invalid_request"
    status = 422


class Unauthorized(CallerFault):
    """The key is missing or wrong."""

    code = "unauthorized"
    status = 401


class NotFound(CallerFault):
    """No such thing here."""

    code = "not_found"
    status = 404


class ProblemNotFound(NotFound):
    """No problem of that id in the loaded set."""

    code = "problem_not_found"
    default_stage = "dataset"


class SessionNotFound(NotFound):
    """The session never existed, was terminated long ago or expired."""

    code = "session_not_found"


class SessionBusy(CallerFault):
    """Another step of the same session is still running."""

    code = "session_busy"
    status = 409
    default_retryable = True


class InferenceKeyMissing(CallerFault):
    """The server has no key for the model's host; the message names the variable."""

    code = "inference_key_missing"
    status = 424
    default_stage = "inference"


class InferenceHostRefused(CallerFault):
    """The host of ``inference_url`` may not be contacted from this server."""

    code = "inference_host_refused"
    status = 424
    default_stage = "inference"


class InferenceRejected(CallerFault):
    """The inference endpoint refused the request (400, 401, 403, 404 and other 4xx)."""

    code = "inference_rejected"
    status = 424
    default_stage = "inference"


class InferenceFailed(TaskAppError):
    """The inference endpoint could not be reached, kept failing, or did not answer with a chat completion."""

    code = "inference_failed"
    status = 502
    default_stage = "inference"
    default_retryable = True


class DatasetFault(TaskAppError):
    """The problem set is at fault."""

    default_stage = "dataset"


class DatasetUnavailable(DatasetFault):
    """The set cannot be loaded; the message names the alternatives."""

    code = "dataset_unavailable"
    status = 503


class ProblemUnusable(DatasetFault):
    """The reference design does not pass its own testbench with the installed simulator."""

    code = "problem_unusable"
    status = 409


class ServiceFault(TaskAppError):
    """Ours."""


class EnvironmentFailed(ServiceFault):
    """The tools, the sandbox, the disk or our own code broke: no verdict and no reward exist."""

    code = "environment_failed"
    status = 500
    default_stage = "tool"
    default_retryable = True


class MissingServerKey(ServiceFault):
    """No ``ENVIRONMENT_API_KEY`` is configured: the protected routes stay closed."""

    code = "missing_environment_api_key"
    status = 503


class TracesUnavailable(ServiceFault):
    """Stored traces cannot be read: none are kept, or their database does not answer."""

    code = "traces_unavailable"
    status = 503
    default_stage = "trace"
    default_retryable = True


class Overloaded(ServiceFault):
    """More work than the queue takes."""

    code = "overloaded"
    status = 429
    default_retryable = True


class Draining(ServiceFault):
    """The server is shutting down and takes no new work."""

    code = "draining"
    status = 503
    default_retryable = True


class Aborted(TaskAppError):
    """The client went away; nobody reads this answer, logs and traces do."""

    code = "aborted"
    status = 499


class ContextLengthExceeded(Exception):
    """The conversation no longer fits the model: the episode is truncated, not failed."""
