"""``POST /rollout/batch``: many rollouts in one request, answered one by one as they end."""

from typing import Annotated, Any

from pydantic import Field

from verilog_taskapp.contracts._fields import Answer, Request
from verilog_taskapp.contracts.rollout import RolloutRequest, RolloutResponse, is_absent

MAX_BATCH = 1024
"""Requests in one batch."""


class RolloutBatchRequest(Request):
    """Rollouts to run at the same time; each may be a group."""

    requests: Annotated[list[RolloutRequest], Field(min_length=1, max_length=MAX_BATCH)]


class BatchHeartbeat(Answer):
    """How far a batch has come."""

    ended: int
    """Requests that were answered."""
    total: int


class BatchLine(Answer):
    """One line of the answer, a JSON object: the answer to one request, or a sign of life."""

    index: int | None = Field(None, exclude_if=is_absent)
    """Which of the requests, counted from 0; none in a heartbeat."""
    status: int | None = Field(None, exclude_if=is_absent)
    """What the status of this answer would have been on its own."""
    response: RolloutResponse | None = Field(None, exclude_if=is_absent)
    error: dict[str, Any] | None = Field(None, exclude_if=is_absent)
    """The error object, where there is no response."""
    heartbeat: BatchHeartbeat | None = Field(None, exclude_if=is_absent)
    """Sent when nothing has ended for a while, so that no proxy takes the connection for dead."""
