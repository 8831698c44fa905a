"""Where the tools are, and what a sandboxed child must be able to load to run them."""

import os
import shutil
from glob import glob
from pathlib import Path

from verilog_taskapp.errors import EnvironmentFailed

LIBRARY_FOLDERS = ("/lib/*-linux-*", "/usr/lib/*-linux-*", "/lib64", "/usr/lib64", "/usr/local/lib64")
LOADER_FILES = ("/etc/ld.so.cache", "/lib/ld-linux-aarch64.so.1", "/lib64/ld-linux-x86-64.so.2")


def locate(iverilog: str) -> tuple[Path, Path]:
    """Absolute paths of the compiler and of the simulator beside it.

    Raises `EnvironmentFailed`, saying what to install.
    """
    found = shutil.which(iverilog)
    if found is None:
        raise EnvironmentFailed(
            f"Icarus Verilog was not found ({os.path.basename(iverilog)!r} is not an executable on PATH): "
            "install it (Debian, Ubuntu: apt-get install iverilog) or set VERILOG_IVERILOG",
            stage="initialize",
            retryable=False,
        )
    compiler = Path(found).absolute()
    simulator = compiler.with_name("vvp")
    if not os.access(simulator, os.X_OK):
        raise EnvironmentFailed("vvp was not found beside iverilog", stage="initialize", retryable=False)
    return compiler, simulator


def sandbox_paths(iverilog: str) -> tuple[str, ...]:
    """What a sandboxed child may read and load: the two tools, their passes and modules, the system's libraries.

    Raises `EnvironmentFailed` like `locate`.
    """
    compiler, simulator = locate(iverilog)
    tools = {path.resolve() for path in (compiler, simulator)}
    prefixes = {path.parent.parent for path in (compiler, simulator, *tools)}
    modules = {folder for prefix in prefixes for folder in (*prefix.glob("lib/ivl"), *prefix.glob("lib/*/ivl"))}
    libraries = {Path(folder) for pattern in LIBRARY_FOLDERS for folder in glob(pattern)}
    shell = Path("/bin/sh")  # the compiler's driver starts its passes with it
    found = {compiler, simulator, shell, shell.resolve(), *tools, *modules, *libraries, *map(Path, LOADER_FILES)}
    return tuple(sorted(str(path) for path in found if path.exists()))
