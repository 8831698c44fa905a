"""The command line: one module per command, below `verilog_taskapp.cli.root`.

Modules here import only what ``--help`` needs; a command imports the service when it runs.
"""


def main() -> None:
    """Run ``verilog-taskapp`` with the arguments of the process; always ends in SystemExit."""
    try:
        from verilog_taskapp.cli.root import app

        app()
    except KeyboardInterrupt:  # before there is a command to interrupt
        raise SystemExit(130) from None
