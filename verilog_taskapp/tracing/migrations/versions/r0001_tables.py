"""The tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NAME, WORD = sa.String(160), sa.String(64)


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "traces",
        sa.Column("id", WORD, primary_key=True),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("group_key", WORD, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("finished_us", sa.BigInteger, nullable=False),
        sa.Column("total_us", sa.BigInteger, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("outcome", WORD, nullable=False),
        sa.Column("passed", sa.Boolean),
        sa.Column("episode_return", sa.Float(53)),
        sa.Column("dataset", NAME, nullable=False),
        sa.Column("dataset_version", WORD, nullable=False),
        sa.Column("split", WORD),
        sa.Column("problem_id", NAME, nullable=False),
        sa.Column("problem_hash", WORD, nullable=False),
        sa.Column("seed", sa.BigInteger),
        sa.Column("model", NAME),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("model_s", sa.Float(53), nullable=False),
        sa.Column("tool_s", sa.Float(53), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("error_code", WORD),
        sa.Column("error_stage", WORD),
        sa.Column("error_message", sa.String(2000)),
        sa.Column("service_version", WORD, nullable=False),
        sa.Column("judge_version", WORD, nullable=False),
        sa.Column("simulator_version", WORD, nullable=False),
        sa.Column("settings_json", sa.Text, nullable=False),
        sa.Column("body_bytes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "trace_bodies",
        sa.Column("trace_id", WORD, sa.ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("encoding", sa.SmallInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_traces_created", "traces", ["created_us", "id"])
