"""Which Icarus Verilog is installed, and how each version is called."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.bench import HIDDEN_FOLDER
from verilog_taskapp.icarus.location import locate
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step

SUPPORTED_MAJORS = (11, 12, 13)
_VERSION = re.compile(r"Icarus Verilog version (\d+)\.(\d+)")

COMMON_FLAGS = ("-g2012", "-Wall", "-Winfloop", "-Wno-timescale")
LEGACY_BENCH_FLAGS = ("-gno-strict-declaration",)


@dataclass(frozen=True)
class Toolchain:
    """The compiler and the simulator, by absolute path, with their version."""

    iverilog: Path
    vvp: Path
    major: int
    minor: int
    accepts_legacy_flags: bool = False
    """Whether `LEGACY_BENCH_FLAGS` are known to this compiler: neither 13.0 nor anything before 13 has them."""

    @property
    def version(self) -> str:
        """For people and for cache keys, e.g. ``"11.0"``."""
        return f"{self.major}.{self.minor}"

    @property
    def supported(self) -> bool:
        """Whether this version is one that the verdicts were tested with."""
        return self.major in SUPPORTED_MAJORS

    def compile_argv(
        self, sources: tuple[str, ...], output: str, *, roots: tuple[str, ...] = (), legacy_bench: bool = False
    ) -> tuple[str, ...]:
        """The command line that compiles `sources` (relative to the working directory) into `output`.

        `legacy_bench` is for a problem's own bench: its hidden files are found by their plain names, and names used
        before their declaration are accepted where this version refuses them by default and can.
        """
        flags = [*COMMON_FLAGS, *(("-I", HIDDEN_FOLDER) if legacy_bench else ())]
        if legacy_bench and self.accepts_legacy_flags:
            flags += LEGACY_BENCH_FLAGS
        for root in roots:
            flags += ["-s", root]
        return (str(self.iverilog), *flags, "-I", ".", "-o", output, *sources)

    def run_argv(self, program: str) -> tuple[str, ...]:
        """The command line that simulates `program`: never interactive, no waveform dumps."""
        return (str(self.vvp), "-n", program, "-none")


async def find(iverilog: str, runner: Runner) -> Toolchain:
    """Locate the tools and ask the compiler for its version. Raises `EnvironmentFailed`."""
    compiler, simulator = await asyncio.to_thread(locate, iverilog)
    result = (await runner.run(Job(steps=(Step((str(compiler), "-V"), Limits(), stage="compile"),)))).last
    match = _VERSION.search(result.stdout)
    if not match:
        raise EnvironmentFailed("iverilog -V did not print a version", stage="initialize", retryable=False)
    major, minor = int(match[1]), int(match[2])
    legacy = False
    if major >= 13:
        probe = Step(
            (str(compiler), *LEGACY_BENCH_FLAGS, "-o", "probe.vvp", "probe.v"), Limits(), "probe.vvp", "compile"
        )
        tried = (await runner.run(Job(steps=(probe,), files={"probe.v": b"module probe; endmodule\n"}))).last
        legacy = tried.succeeded and "nknown" not in tried.stderr + tried.stdout
    return Toolchain(compiler, simulator, major, minor, legacy)


async def self_test(tools: Toolchain, runner: Runner) -> None:
    """Compile and run the smallest program there is. Raises `EnvironmentFailed` when even that does not work."""
    job = Job(
        steps=(
            Step(tools.compile_argv(("probe.v",), "probe.vvp"), Limits(), "probe.vvp", "compile"),
            Step(tools.run_argv("probe.vvp"), Limits()),
        ),
        files={"probe.v": b'module probe; initial $display("alive"); endmodule\n'},
    )
    result = await runner.run(job)
    if len(result.steps) < 2 or not result.last.succeeded or "alive" not in result.last.stdout:
        raise EnvironmentFailed("the installed simulator does not run the smallest program")
