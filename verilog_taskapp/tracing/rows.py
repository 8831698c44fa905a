"""Traces as rows, and back. Nothing that a client sends can break a row: texts are cut and cleaned first."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from pydantic_core import to_json

from verilog_taskapp.tracing.lists import microseconds
from verilog_taskapp.tracing.record import StoredTrace, TraceFacts, TraceRecord

NAME_CHARS = 160
WORD_CHARS = 64
MESSAGE_CHARS = 2000
"""What `verilog_taskapp.tracing.schema` has room for: of run ids, models and problem ids, of words, of an error."""
ZLIB_JSON = 1
"""How a body is encoded."""
MAX_INTEGER = 2**63 - 1
_FAST = 1
"""zlib's level: most of the gain for the least time."""
_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""PostgreSQL's text has no NUL, and UTF-8 no half of a pair."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FACT_COLUMNS = (
    *("id", "kind", "run_id", "created_us", "finished_us", "status", "outcome", "passed", "episode_return"),
    *("dataset", "dataset_version", "split", "problem_id", "problem_hash", "seed", "model", "steps", "model_s"),
    *("tool_s", "prompt_tokens", "completion_tokens", "error_code", "error_stage", "error_message"),
    *("service_version", "judge_version", "simulator_version", "body_bytes"),
)
"""What a list reads, in the order of `facts_of`."""


@dataclass(frozen=True)
class Parcel:
    """A trace on its way into the database."""

    row: dict[str, Any]
    body: bytes
    """JSON, not compressed yet."""

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, roughly."""
        return len(self.body) + 2048

    @property
    def id(self) -> str:
        """Of the trace."""
        return str(self.row["id"])


def parcel(record: TraceRecord) -> Parcel:
    """Serialise a trace once. Raises ValueError or TypeError for what is no JSON at all."""
    facts = record.facts
    run_id, problem_id = name(facts.run_id), name(facts.problem_id)
    row = {
        "id": facts.id,
        "kind": facts.kind,
        "run_id": run_id,
        "group_key": replace(facts, run_id=run_id, problem_id=problem_id).group_key,
        "created_us": microseconds(facts.created_at),
        "finished_us": microseconds(facts.finished_at),
        "total_us": microseconds(facts.finished_at) - microseconds(facts.created_at),
        "status": facts.status,
        "outcome": word(facts.outcome),
        "passed": facts.passed,
        "episode_return": facts.episode_return,
        "dataset": name(facts.dataset),
        "dataset_version": word(facts.dataset_version),
        "split": None if facts.split is None else word(facts.split),
        "problem_id": problem_id,
        "problem_hash": word(facts.problem_hash),
        "seed": _integer(facts.seed),
        "model": None if facts.model is None else name(facts.model),
        "steps": facts.steps,
        "model_s": facts.model_s,
        "tool_s": facts.tool_s,
        "prompt_tokens": _integer(facts.prompt_tokens),
        "completion_tokens": _integer(facts.completion_tokens),
        "error_code": None if facts.error_code is None else word(facts.error_code),
        "error_stage": None if facts.error_stage is None else word(facts.error_stage),
        "error_message": None if facts.error_message is None else clean(facts.error_message)[:MESSAGE_CHARS],
        "service_version": word(facts.service_version),
        "judge_version": word(facts.judge_version),
        "simulator_version": word(facts.simulator_version),
        "settings_json": _json(record.settings).decode().replace("\\u0000", "\\ufffd"),
        "body_bytes": 0,
    }
    return Parcel(row, _json(record.document))


def compressed(parcels: list[Parcel]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of both tables."""
    rows, bodies = [], []
    for one in parcels:
        body = zlib.compress(one.body, _FAST)
        rows.append({**one.row, "body_bytes": len(body)})
        bodies.append({"trace_id": one.id, "encoding": ZLIB_JSON, "body": body})
    return rows, bodies


def facts_of(row: tuple[Any, ...]) -> TraceFacts:
    """A row of `FACT_COLUMNS`."""
    found = dict(zip(FACT_COLUMNS, row, strict=True))
    created, finished = moment(found.pop("created_us")), moment(found.pop("finished_us"))
    return TraceFacts(created_at=created, finished_at=finished, **found)


def stored_trace(facts: TraceFacts, settings_json: str, encoding: int, body: bytes) -> StoredTrace:
    """One trace whole. Raises ValueError for a body that cannot be read."""
    if encoding != ZLIB_JSON:
        raise ValueError(f"the body of trace {facts.id} is of an unknown kind: {encoding}")
    try:
        return StoredTrace(facts, orjson.loads(settings_json), orjson.loads(zlib.decompress(body)))
    except zlib.error as error:
        raise ValueError(f"the body of trace {facts.id} is damaged") from error


def moment(microseconds_: int) -> datetime:
    """The reverse of `verilog_taskapp.tracing.lists.microseconds`."""
    return _EPOCH + timedelta(microseconds=microseconds_)


def clean(text: str) -> str:
    """Without what a database does not take."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def name(text: str) -> str:
    """A run, model or problem as it stands in a column; filters ask for the same."""
    return clean(text)[:NAME_CHARS]


def word(text: str) -> str:
    """A short word in a column."""
    return clean(text)[:WORD_CHARS]


def _integer(value: int | None) -> int | None:
    return value if value is not None and -MAX_INTEGER <= value <= MAX_INTEGER else None


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return to_json(value, fallback=str, inf_nan_mode="null")
    except ValueError:  # half of a surrogate pair somewhere
        return to_json(_cleaned(value), fallback=str, inf_nan_mode="null")


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    if hasattr(value, "model_dump"):
        return _cleaned(value.model_dump())
    return value
