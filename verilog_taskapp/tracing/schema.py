"""The tables. Times are microseconds since 1970, so that both databases sort and divide them alike.

Bodies stand apart: a list never reads them. Every column that a client can fill has a length that an index of
PostgreSQL takes (a third of a page of 8 KiB, at four bytes a character).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
)

from verilog_taskapp.tracing.rows import MESSAGE_CHARS, NAME_CHARS, WORD_CHARS

REVISION = "0002"
"""The newest migration; a test compares it."""

metadata = MetaData()

traces = Table(
    "traces",
    metadata,
    Column("id", String(WORD_CHARS), primary_key=True),
    Column("kind", String(WORD_CHARS), nullable=False),
    Column("run_id", String(NAME_CHARS), nullable=False),
    Column("group_key", String(WORD_CHARS), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("finished_us", BigInteger, nullable=False),
    Column("total_us", BigInteger, nullable=False),
    Column("status", String(WORD_CHARS), nullable=False),
    Column("outcome", String(WORD_CHARS), nullable=False),
    Column("passed", Boolean),
    Column("episode_return", Float(53)),
    Column("dataset", String(NAME_CHARS), nullable=False),
    Column("dataset_version", String(WORD_CHARS), nullable=False),
    Column("split", String(WORD_CHARS)),
    Column("problem_id", String(NAME_CHARS), nullable=False),
    Column("problem_hash", String(WORD_CHARS), nullable=False),
    Column("seed", BigInteger),
    Column("model", String(NAME_CHARS)),
    Column("steps", Integer, nullable=False),
    Column("model_s", Float(53), nullable=False),
    Column("tool_s", Float(53), nullable=False),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("error_code", String(WORD_CHARS)),
    Column("error_stage", String(WORD_CHARS)),
    Column("error_message", String(MESSAGE_CHARS)),
    Column("service_version", String(WORD_CHARS), nullable=False),
    Column("judge_version", String(WORD_CHARS), nullable=False),
    Column("simulator_version", String(WORD_CHARS), nullable=False),
    Column("settings_json", Text, nullable=False),
    Column("body_bytes", BigInteger, nullable=False),
)

bodies = Table(
    "trace_bodies",
    metadata,
    Column("trace_id", String(WORD_CHARS), ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True),
    Column("encoding", SmallInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

INDEXES = (
    # Lists: every filter that narrows down much, in the usual order, and every other order.
    Index("ix_traces_created", traces.c.created_us, traces.c.id),
    Index("ix_traces_kind", traces.c.kind, traces.c.created_us, traces.c.id),
    Index("ix_traces_split", traces.c.split, traces.c.created_us, traces.c.id),
    Index("ix_traces_model", traces.c.model, traces.c.created_us, traces.c.id),
    Index("ix_traces_problem", traces.c.problem_id, traces.c.created_us, traces.c.id),
    Index("ix_traces_status", traces.c.status, traces.c.created_us, traces.c.id),
    Index("ix_traces_outcome", traces.c.outcome, traces.c.created_us, traces.c.id),
    Index("ix_traces_passed", traces.c.passed, traces.c.created_us, traces.c.id),
    Index("ix_traces_return", traces.c.episode_return, traces.c.id),
    Index("ix_traces_steps", traces.c.steps, traces.c.id),
    Index("ix_traces_total", traces.c.total_us, traces.c.id),
    Index("ix_traces_tokens", traces.c.completion_tokens, traces.c.id),
    # Retention, by age and by size.
    Index("ix_traces_finished", traces.c.finished_us, traces.c.id, traces.c.body_bytes),
    # Sums: these hold all that is summed up.
    Index(
        "ix_traces_run",
        *(traces.c.run_id, traces.c.created_us, traces.c.id),
        *(traces.c.passed, traces.c.episode_return, traces.c.outcome),
    ),
    Index(
        "ix_traces_group",
        *(traces.c.group_key, traces.c.created_us, traces.c.run_id, traces.c.problem_id),
        *(traces.c.passed, traces.c.episode_return),
    ),
    Index(
        "ix_traces_rates",
        *(traces.c.problem_id, traces.c.model, traces.c.dataset, traces.c.passed, traces.c.episode_return),
        *(traces.c.steps, traces.c.split),
    ),
)
"""The list of the newest revision; a test compares it with what the migrations make."""
