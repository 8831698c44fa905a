"""Recording golden traces: run a trusted bench with the reference in the design's place and write down the ports.

Everything here runs only texts of the problem itself, never a model's, and still inside the same limits.
"""

import asyncio
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus import benches
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.benches import (
    DUMMIES,
    EDGES_FILE,
    EVENTS_FILE,
    KINDS_FILE,
    OBSERVED,
    PROGRAM_FILE,
    REPLAY_FILE,
    REPLAY_ROOT,
    RESULT_FILE,
    SAMPLES_FILE,
    WORDS_FILE,
)
from verilog_taskapp.icarus.compare import compare
from verilog_taskapp.icarus.diagnostics import parse
from verilog_taskapp.icarus.execution import Run, run_fairly
from verilog_taskapp.icarus.program import ModuleInstance, modules
from verilog_taskapp.icarus.replay import answers, kinds_of, replay, written_bytes
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.trace import DELAY_BITS, GoldenTrace, Interface, TraceError, build_trace

RECORD_CPU_S = 120.0
"""CPU seconds that a bench may take to be recorded; it is trusted, so this is only against endless ones."""
DUMMY_CPU_S, DUMMY_FACTOR = 5.0, 20.0
"""What a bench may take with a dummy in the design's place: a closed-loop bench may wait for ever."""
EVENTS_BYTES = 512 * 1024**2
PROGRAM_BYTES = 64 * 1024**2
EXHAUSTIVE_BITS = 10
RANDOM_VECTORS = 1024
VECTOR_DELAY = 10
"""Time between added vectors, in units of the bench's precision."""
_ENDS_A_RUN = re.compile(r"\$(?:finish|stop|fatal)\b")
_MISMATCHES = re.compile(r"^Mismatches: (\d+) in (\d+) samples\s*$", re.M)
_SCOREBOARD = re.compile(r"\bstats1\b")


class BenchFault(Exception):
    """The problem itself does not work with this simulator; the message says why."""


class DoesNotCompile(BenchFault):
    """The compiler refuses it."""


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
    """Rows of memory to compile into a replay bench, for a public stimulus of `rows` rows.

    A power of two with room for a secret stimulus of twice the length, or for all added vectors.
    """
    return int(2 ** (max(2 * rows, 2**EXHAUSTIVE_BITS + 1, RANDOM_VECTORS + 1) - 1).bit_length())


def vector_stimulus(interface: Interface, seed: int) -> GoldenTrace:
    """Inputs for an interface without clocks: every combination where there are few, random ones else.

    Nothing is expected yet. Raises `NotReplayable` where added vectors cannot mean anything.
    """
    bits = interface.input_bits
    if interface.clocks or not bits:
        raise NotReplayable("vectors can be added to combinational interfaces only")
    rng = random.Random(seed)  # noqa: S311 - reproducible; the seed is the secret
    if bits <= EXHAUSTIVE_BITS:
        vectors = list(range(2**bits))
        rng.shuffle(vectors)
    else:
        vectors = [rng.getrandbits(bits) for _ in range(RANDOM_VECTORS)]
    first = f"00{0:0{DELAY_BITS}b}"
    later = f"10{VECTOR_DELAY:0{DELAY_BITS}b}"
    rows = [f"{later if index else first}{vector:0{bits}b}" for index, vector in enumerate(vectors)]
    rows.append(f"{later}{vectors[-1]:0{bits}b}")
    unknown = "x" * interface.output_bits + "\n"
    return GoldenTrace(
        interface, len(rows), ("\n".join(rows) + "\n").encode(), len(vectors), (unknown * len(vectors)).encode()
    )


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
        design = next((one for one in modules(program) if one.module == bench.top and len(one.path) > 1), None)
        if design is None:  # it is a root of its own then
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
        try:
            events, times, _ = await self._recorded(bench, facts, draws)
            try:
                return await self._replayed(bench, build_trace(facts.interface, events, times))
            except NotReplayable:
                if not facts.interface.clocks:
                    raise
            # The bench may change inputs with blocking assignments at the clock's edge: see what the reference saw.
            observed = replace(bench, reference=_with_observer(bench, benches.edge_observer(facts.interface)))
            events, times, edges = await self._recorded(observed, facts, draws)
            return await self._replayed(bench, build_trace(facts.interface, events, times, edges))
        except TraceError as error:
            raise NotReplayable(str(error)) from error

    async def _recorded(self, bench: Bench, facts: BenchFacts, draws: int) -> tuple[bytes, list[int], bytes]:
        """One recording run: events, times of the samples, and the edges where the reference has an observer."""
        stand_in = benches.recorder(facts.interface, bench.top, bench.reference_top)
        files = {"vt_dut.sv": stand_in, "vt_monitor.sv": benches.sample_monitor(facts.interface, facts.root)}
        try:
            run = await self._observe(bench, facts, files, draws, (EVENTS_FILE, EDGES_FILE, SAMPLES_FILE))
        except DoesNotCompile as fault:  # with the monitor, that is
            raise NotReplayable(f"the score board cannot be observed ({fault})") from fault
        line = _MISMATCHES.findall(run.step.stdout)
        if not line:
            raise NotReplayable("the testbench does not print the count of mismatches and samples")
        mismatches, samples = map(int, line[-1])
        if mismatches:
            raise BenchFault(f"the reference fails its own testbench: {mismatches} of {samples} samples mismatch")
        times = [int(one) for one in run.files.get(SAMPLES_FILE, b"").split()]
        if len(times) != samples:
            raise NotReplayable(f"{samples} samples were counted and {len(times)} observed")
        seen = [line for line in run.files.get(EDGES_FILE, b"").splitlines() if OBSERVED.encode() in line]
        return run.files.get(EVENTS_FILE, b""), times, b"\n".join(line.partition(b" ")[2] for line in seen)

    async def open_loop_fault(self, bench: Bench, facts: BenchFacts, trace: GoldenTrace) -> str | None:
        """Whether the stimulus depends on what the design answers: the reason, or None for an open-loop bench."""
        cpu_s = DUMMY_CPU_S + DUMMY_FACTOR * trace.reference_cpu_s
        limits = replace(self._limits, cpu_s=cpu_s, wall_s=cpu_s * 5)
        for kind in DUMMIES:
            files = {"vt_dut.sv": benches.dummy(facts.interface, bench.top, kind)}
            try:
                run = await self._observe(bench, facts, files, 0, (EVENTS_FILE,), limits)
            except BenchFault as fault:
                return f"with outputs that are {kind}, {fault}"
            seen = _inputs_by_time(run.files.get(EVENTS_FILE, b""))
            if not _same_inputs(trace, seen):
                return f"its stimulus changes when the outputs are {kind}"
        return None

    async def record_vectors(self, bench: Bench, facts: BenchFacts, seed: int) -> GoldenTrace:
        """Random inputs of our own with the reference's answers, for a combinational bench without randomness.

        Raises `NotReplayable` for an interface with a clock or without inputs.
        """
        trace = vector_stimulus(facts.interface, seed)
        run = await self._replay_reference(bench, trace)
        expected = _answers(run, bench, trace)
        if len(expected) != len(trace.expected):
            raise NotReplayable("the reference does not answer every added vector")
        return replace(trace, expected=expected, reference_cpu_s=run.step.cpu_s)

    async def check_replay(self, bench: Bench, trace: GoldenTrace) -> float:
        """Replay the reference; returns its CPU seconds. Raises `NotReplayable` if a sample mismatches."""
        run = await self._replay_reference(bench, trace)
        comparison = compare(trace, _answers(run, bench, trace))
        if not comparison.passed:
            what = comparison.malformation or f"{comparison.mismatches} of {comparison.samples} samples mismatch"
            raise NotReplayable(f"the reference does not replay ({what})")
        return run.step.cpu_s

    async def _replay_reference(self, bench: Bench, trace: GoldenTrace) -> Run:
        interface, depth = trace.interface, replay_depth(trace.rows)
        plan = await asyncio.to_thread(kinds_of, trace)
        fed = await asyncio.to_thread(replay, trace, plan)
        files = {
            REPLAY_FILE: benches.replay_bench(interface, bench.top, depth, trace.clock_start, plan),
            "vt_dut.sv": benches.wrapper(interface, bench.top, bench.reference_top),
            bench.REFERENCE_FILE: bench.reference,
            **bench.hidden_paths,
        }
        sources = (REPLAY_FILE, bench.REFERENCE_FILE, *bench.hidden_sources, "vt_dut.sv")
        job = Job(
            steps=(
                Step(
                    self._tools.compile_argv(sources, PROGRAM_FILE, roots=(REPLAY_ROOT,), legacy_bench=True),
                    self._limits,
                    PROGRAM_FILE,
                    "compile",
                ),
                Step((*self._tools.run_argv(PROGRAM_FILE), *fed.arguments), self._limits, RESULT_FILE),
            ),
            files={**as_bytes(files), KINDS_FILE: fed.kinds, WORDS_FILE: fed.words},
            collect={RESULT_FILE: written_bytes(trace.samples, interface)},
        )
        return await run_fairly(self._runner, job, self._limits)

    async def _replayed(self, bench: Bench, trace: GoldenTrace) -> GoldenTrace:
        trace = replace(trace, reference_cpu_s=await self.check_replay(bench, trace))
        return trace.ignoring(bench.ignored_samples)

    async def _observe(
        self,
        bench: Bench,
        facts: BenchFacts,
        files: Mapping[str, str],
        draws: int,
        collect: tuple[str, ...],
        limits: Limits | None = None,
    ) -> Run:
        roots = [facts.root]
        extra = dict(files)
        if "vt_monitor.sv" in files:
            roots.append("vt_monitor")
        if draws:
            extra["vt_predraw.sv"] = benches.predraw(draws)
            roots.append("vt_predraw")
        job = Job(
            steps=(
                self._compile_step(bench, tuple(extra), tuple(roots)),
                Step(self._tools.run_argv(PROGRAM_FILE), limits or self._limits),
            ),
            files=as_bytes(self._files(bench, extra)),
            collect=dict.fromkeys(collect, EVENTS_BYTES),
        )
        run = await run_fairly(self._runner, job, limits or self._limits)
        _check_compiled(run)
        if not run.step.succeeded:
            raise BenchFault(f"the testbench does not run to its end ({run.cause.replace('_', ' ')})")
        return run

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
        run = await run_fairly(self._runner, job, self._limits)
        _check_compiled(run)
        return run.files.get(PROGRAM_FILE, b"")

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
        return Step(argv, self._limits, PROGRAM_FILE, "compile")


def _check_compiled(run: Run) -> None:
    first = run.steps[0]
    if first.succeeded:
        return
    errors = [one.message for one in parse(first.stderr + "\n" + first.stdout) if one.severity == "error"]
    raise DoesNotCompile(f"does not compile: {errors[0] if errors else run.cause.replace('_', ' ')}")


def _answers(run: Run, bench: Bench, trace: GoldenTrace) -> bytes:
    """What the reference answered in a replay. Raises `EnvironmentFailed` when the scratch disk did not take all."""
    written = run.files.get(RESULT_FILE, b"")
    found = answers(written, trace.interface)
    texts = (bench.reference, *bench.hidden_files.values())
    cut = not found.complete and len(written) <= written_bytes(trace.samples, trace.interface)
    if cut and run.cause == "ok" and not any(_ENDS_A_RUN.search(text) for text in texts):
        raise EnvironmentFailed("a replay's result is cut off: is the scratch disk full?", stage="verdict")
    return found.samples


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
