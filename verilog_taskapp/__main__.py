"""``python -m verilog_taskapp``: the same as ``verilog-taskapp``."""

from verilog_taskapp.cli import main

if __name__ == "__main__":
    main()
