"""Indexes for filters, orders and sums over very many traces."""

from alembic import op

revision = "0002"
down_revision = "0001"

INDEXES = {
    "ix_traces_kind": ["kind", "created_us", "id"],
    "ix_traces_split": ["split", "created_us", "id"],
    "ix_traces_finished": ["finished_us", "id", "body_bytes"],
    "ix_traces_model": ["model", "created_us", "id"],
    "ix_traces_problem": ["problem_id", "created_us", "id"],
    "ix_traces_status": ["status", "created_us", "id"],
    "ix_traces_outcome": ["outcome", "created_us", "id"],
    "ix_traces_passed": ["passed", "created_us", "id"],
    "ix_traces_return": ["episode_return", "id"],
    "ix_traces_steps": ["steps", "id"],
    "ix_traces_total": ["total_us", "id"],
    "ix_traces_tokens": ["completion_tokens", "id"],
    "ix_traces_run": ["run_id", "created_us", "id", "passed", "episode_return", "outcome"],
    "ix_traces_group": ["group_key", "created_us", "run_id", "problem_id", "passed", "episode_return"],
    "ix_traces_rates": ["problem_id", "model", "dataset", "passed", "episode_return", "steps", "split"],
}


def upgrade() -> None:
    """Make them."""
    for name, columns in INDEXES.items():
        op.create_index(name, "traces", columns)
