"""What can be asked of stored traces, and the answers, as plain values."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson

from verilog_taskapp.tracing.record import TraceFacts

SortKey = Literal["created_at", "episode_return", "steps", "total_s", "completion_tokens"]
Choice = Literal["run_id", "model", "dataset", "split", "problem_id", "status", "outcome"]


@dataclass(frozen=True)
class TraceFilter:
    """Which traces are meant; None: any."""

    kind: str | None = None
    run_id: str | None = None
    model: str | None = None
    dataset: str | None = None
    split: str | None = None
    problem_id: str | None = None
    group_key: str | None = None
    status: str | None = None
    outcome: str | None = None
    passed: bool | None = None
    min_return: float | None = None
    max_return: float | None = None
    """Both limits are included."""
    created_from: datetime | None = None
    """Included; times have a zone."""
    created_until: datetime | None = None
    """Not included."""


@dataclass(frozen=True)
class TraceOrder:
    """How a list is sorted; traces without the value come last either way, and equal ones by id."""

    key: SortKey = "created_at"
    descending: bool = True


@dataclass(frozen=True)
class Cursor:
    """Behind which line a page begins."""

    value: int | float | None
    id: str

    def to_text(self) -> str:
        """For a URL."""
        return base64.urlsafe_b64encode(orjson.dumps([self.value, self.id])).decode().rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> "Cursor":
        """The reverse. Raises ValueError for what `to_text` did not make."""
        try:
            found = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, ValueError) as error:
            raise ValueError("not a cursor") from error
        match found:
            case [None | int() | float() as value, str() as trace_id] if not isinstance(value, bool):
                return cls(value, trace_id)
        raise ValueError("not a cursor")


@dataclass(frozen=True)
class TracePage:
    """One page of a list."""

    traces: tuple[TraceFacts, ...]
    next_cursor: str | None
    """Given as `after` for the next page; None: this is the last."""


@dataclass(frozen=True)
class Tally:
    """What traces add up to."""

    traces: int
    """All of them."""
    scored: int
    """Those that were brought to an end; rates and means are of these."""
    passed: int
    mean_return: float | None
    """None when none was scored."""

    @property
    def pass_rate(self) -> float | None:
        """Between 0 and 1; None when none was scored."""
        return self.passed / self.scored if self.scored else None


@dataclass(frozen=True)
class RunSummary:
    """One run."""

    run_id: str
    tally: Tally
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class Bucket:
    """A stretch of time; those without a trace are left out."""

    start: datetime
    width_s: float
    tally: Tally


@dataclass(frozen=True)
class OutcomeCount:
    """How often traces ended so."""

    outcome: str
    traces: int


@dataclass(frozen=True)
class Rate:
    """Traces of one model, one problem, or both; what was not asked for is None."""

    model: str | None
    problem_id: str | None
    tally: Tally


@dataclass(frozen=True)
class GroupSummary:
    """The samples of one problem in one run."""

    group_key: str
    run_id: str
    problem_id: str
    tally: Tally
    min_return: float | None
    max_return: float | None
    last_at: datetime


@dataclass(frozen=True)
class ProblemSummary:
    """One problem over all runs."""

    problem_id: str
    dataset: str
    tally: Tally
    mean_steps: float | None


def cursor_of(facts: TraceFacts, key: SortKey) -> Cursor:
    """Behind this trace."""
    value: Any = getattr(facts, key)
    if isinstance(value, datetime):
        value = microseconds(value)
    elif key == "total_s":
        value = microseconds(facts.finished_at) - microseconds(facts.created_at)
    return Cursor(value, facts.id)


def microseconds(moment: datetime) -> int:
    """Since 1970, exactly."""
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + moment.microsecond
