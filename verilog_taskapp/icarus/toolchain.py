"""Which Icarus Verilog is installed, and how each version is called."""

import asyncio
import re
from dataclasses import dataclass, replace
from pathlib import Path

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.bench import HIDDEN_FOLDER
from verilog_taskapp.icarus.location import locate
from verilog_taskapp.icarus.passes import PROBE, SOURCE_FILE, Passes, Plan, find_passes, normalized
from verilog_taskapp.icarus.runner import MIB, Job, Limits, Runner, Step

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
    passes: Passes | None = None
    """Where designs are compiled without the driver; None: they are compiled with it."""

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
    tools = Toolchain(compiler, simulator, major, minor, legacy)
    passes = await asyncio.to_thread(find_passes, compiler, major)
    if passes is not None and tools.supported and await _same_programs(tools, passes, runner):
        return replace(tools, passes=passes)
    return tools


def plan_steps(plan: Plan, limits: Limits) -> tuple[Step, ...]:
    """The steps of a job that compiles without the driver; its files are the plan's."""
    last = len(plan.commands) - 1
    return tuple(
        Step(argv, limits, stage="pass", stdin=SOURCE_FILE if number == last else None)
        for number, argv in enumerate(plan.commands)
    )


async def _same_programs(tools: Toolchain, passes: Passes, runner: Runner) -> bool:
    """Whether the passes alone give what the driver gives: the same programs, the same messages."""
    out = "probe.vvp"
    for root, name in (("probe", "probe.sv"), ("plain", "plain.sv")):
        texts = {name: PROBE[name]}
        files = {name: text.encode() for name, text in texts.items()}
        plan = passes.plan(texts, (name,), out, root)
        steps = plan_steps(plan, Limits())
        driver = Step(tools.compile_argv((name,), out, roots=(root,)), Limits(), stage="compile")
        by_driver = await runner.run(Job((driver,), files, collect={out: MIB}))
        alone = await runner.run(Job(steps, {**files, **plan.files}, collect={out: MIB}))
        programs = [result.files.get(out) for result in (by_driver, alone)]
        said = [sorted("".join(step.stderr for step in one.steps).splitlines()) for one in (by_driver, alone)]
        if programs[0] is None or programs[1] is None or said[0] != said[1]:
            return False
        if normalized(programs[0]) != normalized(programs[1]):
            return False
    return True


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
