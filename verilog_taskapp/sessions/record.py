"""What is kept of a session between two requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from verilog_taskapp.contracts import InitializeResponse, StepResponse, TerminateResponse
from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.environment.state import EpisodeSnapshot

LONG_AGO = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Unfinished:
    """A step that a fault of ours, or a client that went away, interrupted: a retry goes on behind these results."""

    step_id: str
    results: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class PlayedStep:
    """A step that was answered, for the trace."""

    calls: tuple[ToolCallRequest, ...]
    answer: StepResponse


@dataclass(frozen=True)
class OpenSession:
    """A session whose next step can be taken by any worker."""

    id: str
    opened: InitializeResponse
    """What opening it answered."""
    max_steps: int
    episode: EpisodeSnapshot
    answers: Mapping[str, StepResponse] = field(default_factory=dict)
    """Answers by step id, the oldest first."""
    unfinished: Unfinished | None = None
    trace_id: str = ""
    """Under which it is stored once it is closed: closing it twice stores it once."""
    created_at: datetime = LONG_AGO
    seed: int | None = None
    played: tuple[PlayedStep, ...] = ()
    """Up to the end of the episode."""


@dataclass(frozen=True)
class ClosedSession:
    """A session that was terminated or expired."""

    id: str
    facts: TerminateResponse


SessionRecord = OpenSession | ClosedSession
"""Immutable: whoever holds a session saves another record in its place."""
