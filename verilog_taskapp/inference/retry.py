"""When to try a model call again, and how long to wait before."""

import math
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal

BACKOFF_CAP_S = 20.0
"""Longest wait that we choose ourselves; a server's Retry-After may ask for more."""
RETRY_AFTER_CAP_S = 120.0
"""Longest Retry-After that a call without a deadline waits for."""

Reason = Literal["connection", "timeout", "status", "malformed"]


@dataclass(frozen=True)
class Attempt:
    """One failed attempt of a model call."""

    reason: Reason
    """`connection` (none, or broken off), `timeout`, `status` (see there), `malformed` (the body is not JSON)."""
    status: int | None
    """HTTP status, if there was an answer."""
    wait_s: float
    """Seconds waited after it; 0 for the last one."""


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later: 408, 409, 425, 429 and every 5xx."""
    return status in (408, 409, 425, 429) or 500 <= status <= 599


def backoff_s(base_s: float, failures: int, jitter: float) -> float:
    """Seconds to wait after the `failures`-th failure (1, 2, ...): full jitter on a doubling, capped ceiling.

    `jitter` is uniform in [0, 1). See "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    return float(min(BACKOFF_CAP_S, base_s * 2.0 ** min(failures - 1, 32))) * jitter


def retry_after_s(value: str | None, now: float) -> float | None:
    """Seconds asked for by a Retry-After header (RFC 9110, 10.2.3): a number or a date; None if there is no such thing.

    `now` is the wall clock in seconds since the epoch; a date in the past gives 0.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        # A date without a zone ("-0000") is in UTC too.
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, aware.timestamp() - now)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
