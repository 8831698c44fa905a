"""The floor: the bare tools, as the published flow calls them, with ``xargs -P`` and nothing around them.

Each item is a folder with design, bench and reference; it is compiled once and simulated once.
"""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accounting import reaped_cpu_s
from verilog_taskapp.icarus.bench import HIDDEN_FOLDER, Bench
from verilog_taskapp.icarus.official import ROOT
from verilog_taskapp.icarus.toolchain import Toolchain

PROGRAM = "program.vvp"
SOME_FAILED = 123
"""The exit status of xargs when a command failed: a design that does not compile."""


class FloorBroken(Exception):
    """The bare tools did not do what they must."""


@dataclass(frozen=True)
class Cost:
    """What a run of the bare tools took."""

    items: int
    cpu_s: float
    """Compiler, simulator, their shells and xargs."""
    wall_s: float


def lay_out(folder: Path, bench: Bench, design_path: str, design: str) -> Path:
    """Write an item's files into a fresh folder."""
    texts: Mapping[str, str] = {
        design_path: design,
        "bench.sv": bench.testbench,
        "reference.sv": bench.reference,
        **bench.hidden_paths,
    }
    (folder / HIDDEN_FOLDER).mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def command(tools: Toolchain, bench: Bench, design_path: str) -> str:
    """The shell command that compiles and simulates an item, in its folder."""
    sources = (design_path, "bench.sv", "reference.sv", *bench.hidden_sources)
    compile_it = tools.compile_argv(sources, PROGRAM, roots=(ROOT,), legacy_bench=True)
    # As the published flow runs it: with the waveform dump that its benches ask for.
    return f"{shlex.join(compile_it)} && exec {shlex.join((str(tools.vvp), '-n', PROGRAM))}"


def run_floor(items: Sequence[tuple[Path, str]], processes: int | None = None, *, may_fail: bool = False) -> Cost:
    """Run each item's command in its folder, `processes` (default: the number of cores) at once.

    `may_fail`: some designs need not compile. Raises `FloorBroken`.
    """
    argv = ["xargs", "-0", "-n2", f"-P{processes or os.cpu_count() or 1}", "sh", "-c", 'cd "$0" && eval "$1"']
    given = "".join(f"{folder}\0{shell}\0" for folder, shell in items).encode()
    return _cost(argv, len(items), given=given, may_fail=may_fail)


def run_one(folder: Path, shell: str) -> Cost:
    """Run one item's command alone, without xargs. Raises `FloorBroken`."""
    return _cost(["sh", "-c", shell], 1, folder=folder)


def _cost(
    argv: Sequence[str], items: int, *, given: bytes = b"", folder: Path | None = None, may_fail: bool = False
) -> Cost:
    cpu_s, started = reaped_cpu_s(), time.perf_counter()
    process = subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.communicate(given)
    except BaseException:
        with suppress(ProcessLookupError):  # they ended meanwhile
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0 and not (may_fail and process.returncode == SOME_FAILED):
        raise FloorBroken(f"{argv[0]} ended with status {process.returncode}")
    return Cost(items, reaped_cpu_s() - cpu_s, time.perf_counter() - started)
