"""Stand-ins for Icarus that fail in the ways that real installations do."""

from pathlib import Path

from verilog_taskapp.icarus.toolchain import Toolchain


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fake_tools(folder: Path, tools: Toolchain, *, iverilog: str | None = None, vvp: str | None = None) -> Toolchain:
    """`tools` with the compiler or the simulator replaced by a shell script; ``$REAL`` in it is the real one."""
    folder.mkdir(exist_ok=True)
    compiler, simulator = tools.iverilog, tools.vvp
    if iverilog is not None:
        compiler = script(folder / "iverilog", iverilog.replace("$REAL", str(tools.iverilog)))
    if vvp is not None:
        simulator = script(folder / "vvp", vvp.replace("$REAL", str(tools.vvp)))
    return Toolchain(compiler, simulator, tools.major, tools.minor, tools.accepts_legacy_flags)
