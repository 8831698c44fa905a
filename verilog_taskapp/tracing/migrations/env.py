"""What alembic runs: the steps that are due, on the connection that `verilog_taskapp.tracing.migrations.run` gives."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], target_metadata=None)
with context.begin_transaction():
    context.run_migrations()
