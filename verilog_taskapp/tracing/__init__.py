"""What happened in rollouts and sessions: recorded, stored, looked up, exported.

Modules that the service imports at its start know nothing of SQLAlchemy: `verilog_taskapp.tracing.store` loads it in
the background.
"""
