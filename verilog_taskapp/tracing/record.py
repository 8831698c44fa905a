"""What is stored of one rollout or session: facts that lists are made of, and the whole trace beside them."""

import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

TraceKind = Literal["rollout", "session"]
TraceStatus = Literal["completed", "truncated", "failed", "aborted", "terminated", "expired"]
"""Rollouts are completed, truncated, failed or aborted. A session that was closed before its episode had ended is
terminated or expired, else it is completed or truncated, too."""

GROUP_KEY_BYTES = 12


@dataclass(frozen=True)
class TraceFacts:
    """One line of a list of traces. Texts are cut to what `verilog_taskapp.tracing.schema` has room for."""

    id: str
    """Sorts by time of creation."""
    kind: TraceKind
    run_id: str
    """The caller's; of a session the caller's name for it."""
    created_at: datetime
    finished_at: datetime
    status: TraceStatus
    outcome: str
    """How it ended in a word: ``passed``, ``wrong`` (submitted and refused), why it was truncated, or the code of what
    made it fail."""
    passed: bool | None
    """None: not brought to an end, so there is nothing to count."""
    episode_return: float | None
    """None exactly where `passed` is."""
    dataset: str
    problem_id: str
    problem_hash: str
    split: str | None = None
    seed: int | None = None
    """None as well for one beyond 63 bits."""
    model: str | None = None
    """None: no model was asked."""
    steps: int = 0
    model_s: float = 0.0
    """Seconds of model calls, retries included."""
    tool_s: float = 0.0
    """Seconds of compilations and simulations, as their steps tell them."""
    prompt_tokens: int | None = None
    """None: the model server did not say."""
    completion_tokens: int | None = None
    error_code: str | None = None
    error_stage: str | None = None
    error_message: str | None = None
    dataset_version: str = ""
    service_version: str = ""
    judge_version: str = ""
    simulator_version: str = ""
    body_bytes: int = 0
    """Of the stored trace, compressed; told by the store."""

    @property
    def total_s(self) -> float:
        """Seconds from beginning to end."""
        return (self.finished_at - self.created_at).total_seconds()

    @property
    def group_key(self) -> str:
        """The same for the samples of one problem in one run: what GRPO compares."""
        return group_key(self.run_id, self.problem_id)


@dataclass(frozen=True)
class TraceRecord:
    """One trace to store."""

    facts: TraceFacts
    settings: Mapping[str, Any]
    """Those that mattered: rewards, feedback, sampling parameters, limits."""
    document: Mapping[str, Any]
    """``{"session_trace": {...}}``: see `verilog_taskapp.tracing.session_trace`."""


@dataclass(frozen=True)
class StoredTrace:
    """One trace as it was stored."""

    facts: TraceFacts
    settings: dict[str, Any]
    document: dict[str, Any]


def group_key(run_id: str, problem_id: str) -> str:
    """See `TraceFacts.group_key`; hexadecimal."""
    content = f"{run_id}\0{problem_id}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=GROUP_KEY_BYTES).hexdigest()


def new_trace_id(now_s: float | None = None) -> str:
    """A UUID of version 7 (RFC 9562) in hexadecimal: it begins with the time, so that indexes grow at their end."""
    milliseconds = round((time.time() if now_s is None else now_s) * 1000)
    random = secrets.randbits(74)
    value = milliseconds << 80 | 0x7 << 76 | (random >> 62) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    return f"{value:032x}"
