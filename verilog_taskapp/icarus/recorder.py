"""Recording golden traces: run a trusted bench with the reference in the design's place and write down the ports.

Everything here runs only texts of the problem itself, never a model's, and still inside the same limits.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from verilog_taskapp.icarus import benches
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.benches import (
    DUMMIES,
    EDGES_FILE,
    EVENTS_FILE,
    OBSERVED,
    PROGRAM_FILE,
    REPLAY_FILE,
    REPLAY_ROOT,
    RESULT_FILE,
    SAMPLES_FILE,
)
from verilog_taskapp.icarus.compare import compare
from verilog_taskapp.icarus.diagnostics import parse
from verilog_taskapp.icarus.program import ModuleInstance, modules
from verilog_taskapp.icarus.runner import Job, JobResult, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.trace import GoldenTrace, Interface, TraceError, build_trace

RECORD_CPU_S = 120.0
"""CPU seconds that a bench may take to be recorded; it is trusted, so this is only against endless ones."""
EVENTS_BYTES = 512 * 1024**2
PROGRAM_BYTES = 64 * 1024**2
_MISMATCHES = re.compile(r"^Mismatches: (\d+) in (\d+) samples\s*$", re.M)
_SCOREBOARD = re.compile(r"\bstats1\b")


class BenchFault(Exception):
    """The problem itself does not work with this simulator; the message says why."""


class NotReplayable(Exception):
    """The bench works, but not as an open-loop recording: it needs the classic judge. The message says why."""


@dataclass(frozen=True)
class BenchFacts:
    """What elaboration tells about a bench."""

    interface: Interface
    root: str
    """Module name of the bench's root."""
    design_path: tuple[str, ...]
    """Instance names from the root to the design."""


def as_bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    """Texts as a job's files."""
    return {name: text.encode() for name, text in files.items()}


def replay_depth(rows: int) -> int:
    """Rows of memory to compile into a replay bench: room for a secret stimulus of up to about twice the length."""
    return int(2 ** (max(rows, 32) * 2 - 1).bit_length())


class Recorder:
    """Records the benches of problems with one toolchain."""

    def __init__(self, runner: Runner, tools: Toolchain, limits: Limits) -> None:
        self._runner = runner
        self._tools = tools
        self._limits = replace(limits, cpu_s=RECORD_CPU_S, wall_s=RECORD_CPU_S * 5, file_size_bytes=EVENTS_BYTES)

    async def facts(self, bench: Bench) -> BenchFacts:
        """Elaborate reference and bench. Raises `BenchFault` when they do not compile."""
        alone = await self._compile(bench, {}, (), roots=(bench.reference_top,), with_bench=False)
        instance = _instance(alone, bench.reference_top)
        if instance is None:
            raise BenchFault(f"the reference does not declare module {bench.reference_top}")
        if any(port.direction == "inout" for port in instance.ports):
            raise NotReplayable("the interface has inout ports")
        if not any(port.direction == "output" for port in instance.ports):
            raise BenchFault("the reference has no outputs")
        guess = Interface(instance.ports, -12, -12)
        stand_in = benches.wrapper(guess, bench.top, bench.reference_top)
        program = await self._compile(bench, {"vt_dut.sv": stand_in}, ("vt_dut.sv",))
        design = _instance(program, bench.top)
        if design is None:
            raise BenchFault(f"the testbench does not instantiate {bench.top}")
        root = next(one for one in modules(program) if one.path == design.path[:1])
        return BenchFacts(Interface(instance.ports, root.unit, root.precision), root.module, design.path)

    async def record(self, bench: Bench, facts: BenchFacts, draws: int) -> GoldenTrace:
        """Record one stimulus; `draws` values of both random streams are drawn ahead of the bench.

        The trace that comes back is known to be right: the reference was replayed on it without a mismatch.

        Raises `NotReplayable` when the bench cannot be observed that way and `BenchFault` when the reference does not
        pass under its own bench.
        """
        if not _SCOREBOARD.search(bench.testbench):
            raise NotReplayable("the testbench keeps no score board named stats1")
        events, times, _ = await self._recorded(bench, facts, draws)
        try:
            return await self._replayed(bench, build_trace(facts.interface, events, times))
        except NotReplayable:
            if not facts.interface.clocks:
                raise
        except TraceError as error:
            raise NotReplayable(str(error)) from error
        # The bench may change inputs with blocking assignments at the clock's edge: find out what the reference saw.
        observed = replace(bench, reference=_with_observer(bench, benches.edge_observer(facts.interface)))
        events, times, edges = await self._recorded(observed, facts, draws)
        return await self._replayed(bench, build_trace(facts.interface, events, times, edges))

    async def _recorded(self, bench: Bench, facts: BenchFacts, draws: int) -> tuple[bytes, list[int], bytes]:
        """One recording run: events, times of the samples, and the edges where the reference has an observer."""
        stand_in = benches.recorder(facts.interface, bench.top, bench.reference_top)
        files = {"vt_dut.sv": stand_in, "vt_monitor.sv": benches.sample_monitor(facts.interface, facts.root)}
        try:
            result = await self._observe(bench, facts, files, draws, (EVENTS_FILE, EDGES_FILE, SAMPLES_FILE))
        except BenchFault as fault:
            raise NotReplayable(f"the score board cannot be observed ({fault})") from fault
        line = _MISMATCHES.findall(result.last.stdout)
        if not line:
            raise NotReplayable("the testbench does not print the count of mismatches and samples")
        mismatches, samples = map(int, line[-1])
        if mismatches:
            raise BenchFault(f"the reference fails its own testbench: {mismatches} of {samples} samples mismatch")
        times = [int(one) for one in result.files.get(SAMPLES_FILE, b"").split()]
        if len(times) != samples:
            raise NotReplayable(f"{samples} samples were counted and {len(times)} observed")
        seen = [line for line in result.files.get(EDGES_FILE, b"").splitlines() if OBSERVED.encode() in line]
        return result.files.get(EVENTS_FILE, b""), times, b"\n".join(line.partition(b" ")[2] for line in seen)

    async def open_loop_fault(self, bench: Bench, facts: BenchFacts, trace: GoldenTrace) -> str | None:
        """Whether the stimulus depends on what the design answers: the reason, or None for an open-loop bench."""
        for kind in DUMMIES:
            files = {"vt_dut.sv": benches.dummy(facts.interface, bench.top, kind)}
            result = await self._observe(bench, facts, files, 0, (EVENTS_FILE,))
            seen = _inputs_by_time(result.files.get(EVENTS_FILE, b""))
            if not _same_inputs(trace, seen):
                return f"its stimulus changes when the outputs are {kind}"
        return None

    async def check_replay(self, bench: Bench, trace: GoldenTrace) -> float:
        """Replay the reference; returns its CPU seconds. Raises `NotReplayable` if a sample mismatches."""
        files = {
            REPLAY_FILE: benches.replay_bench(trace.interface, bench.top, replay_depth(trace.rows), trace.clock_start),
            "vt_dut.sv": benches.wrapper(trace.interface, bench.top, bench.reference_top),
            bench.REFERENCE_FILE: bench.reference,
            **bench.hidden_paths,
        }
        sources = (REPLAY_FILE, bench.REFERENCE_FILE, *bench.hidden_sources, "vt_dut.sv")
        job = Job(
            steps=(
                Step(self._tools.compile_argv(sources, PROGRAM_FILE, roots=(REPLAY_ROOT,)), self._limits, PROGRAM_FILE),
                Step((*self._tools.run_argv(PROGRAM_FILE), f"+vt_rows={trace.rows}"), self._limits, RESULT_FILE),
            ),
            files={**as_bytes(files), benches.STIMULUS_FILE: trace.stimulus},
            collect={RESULT_FILE: len(trace.expected)},
        )
        result = await self._runner.run(job)
        comparison = compare(trace, result.files.get(RESULT_FILE, b""))
        if not comparison.passed:
            what = comparison.malformation or f"{comparison.mismatches} of {comparison.samples} samples mismatch"
            raise NotReplayable(f"the reference does not replay ({what})")
        return result.last.cpu_s

    async def _replayed(self, bench: Bench, trace: GoldenTrace) -> GoldenTrace:
        return replace(trace, reference_cpu_s=await self.check_replay(bench, trace))

    async def _observe(
        self, bench: Bench, facts: BenchFacts, files: Mapping[str, str], draws: int, collect: tuple[str, ...]
    ) -> JobResult:
        roots = [facts.root]
        extra = dict(files)
        if "vt_monitor.sv" in files:
            roots.append("vt_monitor")
        if draws:
            extra["vt_predraw.sv"] = benches.predraw(draws)
            roots.append("vt_predraw")
        result = await self._runner.run(
            Job(
                steps=(
                    self._compile_step(bench, tuple(extra), tuple(roots)),
                    Step(self._tools.run_argv(PROGRAM_FILE), self._limits),
                ),
                files=as_bytes(self._files(bench, extra)),
                collect=dict.fromkeys(collect, EVENTS_BYTES),
            )
        )
        _check_compiled(result)
        if not result.last.succeeded:
            raise BenchFault(f"the testbench does not run to its end ({result.last.end}, signal {result.last.signal})")
        return result

    async def _compile(
        self,
        bench: Bench,
        extra: Mapping[str, str],
        sources: tuple[str, ...],
        *,
        roots: tuple[str, ...] = (),
        with_bench: bool = True,
    ) -> bytes:
        step = self._compile_step(bench, sources, roots, with_bench=with_bench)
        job = Job(steps=(step,), files=as_bytes(self._files(bench, extra)), collect={PROGRAM_FILE: PROGRAM_BYTES})
        result = await self._runner.run(job)
        _check_compiled(result)
        return result.files.get(PROGRAM_FILE, b"")

    def _files(self, bench: Bench, extra: Mapping[str, str]) -> dict[str, str]:
        fixed = {bench.BENCH_FILE: bench.quiet_testbench, bench.REFERENCE_FILE: bench.reference}
        return {**fixed, **bench.hidden_paths, **extra}

    def _compile_step(
        self, bench: Bench, extra: tuple[str, ...], roots: tuple[str, ...], *, with_bench: bool = True
    ) -> Step:
        sources = (
            *((bench.BENCH_FILE,) if with_bench else ()),
            bench.REFERENCE_FILE,
            *bench.hidden_sources,
            *extra,
        )
        argv = self._tools.compile_argv(sources, PROGRAM_FILE, roots=roots, legacy_bench=True)
        return Step(argv, self._limits, PROGRAM_FILE)


def _check_compiled(result: JobResult) -> None:
    first = result.steps[0]
    if first.succeeded:
        return
    errors = [one.message for one in parse(first.stderr + first.stdout) if one.severity == "error"]
    raise BenchFault(f"does not compile: {errors[0] if errors else f'{first.end}, exit status {first.exit_code}'}")


def _with_observer(bench: Bench, observer: str) -> str:
    """The reference with statements added at the end of its top module."""
    start = re.search(rf"\bmodule\s+{re.escape(bench.reference_top)}\b", bench.reference)
    end = re.compile(r"\bendmodule\b").search(bench.reference, start.end()) if start else None
    if end is None:
        return bench.reference
    return bench.reference[: end.start()] + observer + bench.reference[end.start() :]


def _instance(program: bytes, module: str) -> ModuleInstance | None:
    return next((one for one in modules(program) if one.module == module), None)


def _inputs_by_time(events: bytes) -> list[tuple[int, str]]:
    """The inputs at the end of each time step in which something happened."""
    states: list[tuple[int, str]] = []
    for line in events.decode("ascii", "replace").splitlines():
        time, given, _ = line.split(" ")
        state = (int(time), "" if given == "-" else given)
        if states and states[-1][0] == state[0]:
            states[-1] = state
        else:
            states.append(state)
    return states


def _same_inputs(trace: GoldenTrace, states: list[tuple[int, str]]) -> bool:
    """Whether the recorded stimulus and the observed one change in the same way at the same times."""
    changes: list[tuple[int, str]] = []
    held = "x" * trace.interface.input_bits
    for state in states:
        if state[1] != held:
            changes.append(state)
            held = state[1]
    wanted = trace.input_changes()
    # What happens after the last sample is not in the trace; it may differ only there.
    return [one for one in changes if one[0] <= trace.end_time] == wanted
