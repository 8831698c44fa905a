"""Who decides pass: the golden-trace judge, and the classic one where a bench cannot be replayed.

For each problem the bench is recorded once with the reference (trusted). A design is then compiled with a generated
replay bench that holds only stimulus, its outputs are written to a file, and that file is compared here, in Python.
Nothing that the design prints, forces, reads or ends early is evidence.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from verilog_taskapp.errors import EnvironmentFailed, ProblemUnusable
from verilog_taskapp.icarus import benches
from verilog_taskapp.icarus.behaviour import behaviour_hints, code_of
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.benches import (
    KINDS_FILE,
    PROGRAM_FILE,
    REPLAY_FILE,
    REPLAY_INSTANCE,
    REPLAY_ROOT,
    RESULT_FILE,
    WORDS_FILE,
)
from verilog_taskapp.icarus.classic import ClassicBaseline, ClassicJudge
from verilog_taskapp.icarus.compare import Comparison, compare
from verilog_taskapp.icarus.compiler import Compiler, data_files, source_texts
from verilog_taskapp.icarus.execution import run_fairly
from verilog_taskapp.icarus.faults import NEEDS_CANARY, Cause
from verilog_taskapp.icarus.processes import clock_edges
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.recorder import (
    BenchFacts,
    BenchFault,
    NotReplayable,
    Recorder,
    replay_depth,
)
from verilog_taskapp.icarus.relations import Relation, relations
from verilog_taskapp.icarus.replay import Answers, answers, kinds_of, replay, written_bytes
from verilog_taskapp.icarus.results import COMPILATIONS, VERDICTS, fingerprint
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step, StepResult
from verilog_taskapp.icarus.stimuli import PUBLIC, SecretPool
from verilog_taskapp.icarus.store import JUDGE_VERSION, GoldenStore
from verilog_taskapp.icarus.toolchain import Toolchain, self_test
from verilog_taskapp.icarus.trace import GoldenTrace, Interface
from verilog_taskapp.icarus.verdict import REASONS, Compilation, JudgeKind, Verdict, from_comparison
from verilog_taskapp.icarus.verdict_cache import VerdictCache
from verilog_taskapp.icarus.waveform import Waveform, waveform

RUN_FACTOR = 5.0
"""A design may use this many times the CPU time of the reference's replay, and at least the configured limit."""

SMALL_TRACE_ROWS = 1000
"""A trace of this length is put into the replay's form in about a millisecond, once."""
SMALL_RESULT_BYTES = 64 * 1024
"""A result of this size is compared in some ten microseconds: less than a thread costs."""

Found = TypeVar("Found")
Status = Literal["golden", "classic", "unusable"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A bench that was checked with this simulator: how it is judged, or why it cannot be used."""

    bench: Bench
    status: Status
    reason: str = ""
    """Why not golden; empty for a golden bench."""
    facts: BenchFacts | None = None
    baseline: ClassicBaseline | None = None

    @property
    def usable(self) -> bool:
        """Whether verdicts can be given."""
        return self.status != "unusable"

    @property
    def ports(self) -> tuple[Port, ...]:
        """Ports that the design must have; empty if unusable."""
        return self.facts.interface.ports if self.facts else ()


class Judge:
    """Compiles designs and gives verdicts with one simulator. All methods are safe to run concurrently.

    `gated` refuses designs that call what no design needs, with a clear message; verdicts do not depend on it.
    `secrets` None: those of the key that is kept in `cache_dir`. `verdicts` None: no result is used twice.
    """

    def __init__(
        self,
        runner: Runner,
        tools: Toolchain,
        *,
        compile_limits: Limits | None = None,
        run_limits: Limits | None = None,
        wall_factor: float = 3.0,
        waveform_rows: int = 12,
        cache_dir: Path | None = None,
        secrets: SecretPool | None = None,
        gated: bool = True,
        verdicts: VerdictCache | None = None,
    ) -> None:
        self.tools = tools
        self.verdicts = verdicts or VerdictCache(None)
        self._identities: dict[tuple[str, int], str] = {}
        self._gated = gated
        self.secrets = secrets or SecretPool.load(cache_dir)
        self._runner = runner
        self._run_limits = run_limits or Limits()
        self._wall_factor = wall_factor
        self._waveform_rows = waveform_rows
        self._compile_limits = compile_limits or Limits()
        self._compiler = Compiler(runner, tools, self._compile_limits)
        self._recorder = Recorder(runner, tools, self._compile_limits)
        self._classic = ClassicJudge(runner, tools, self._compiler)
        self._store = GoldenStore(cache_dir, tools.version)
        self._preparing: dict[str, asyncio.Task[Prepared]] = {}
        self._recording: dict[tuple[str, int], asyncio.Task[GoldenTrace]] = {}

    async def close(self) -> None:
        """Stop recordings that nobody waits for any more; call it before the runner closes."""
        tasks = [*self._preparing.values(), *self._recording.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.verdicts.close()

    # --- preparing a bench

    async def prepare(self, bench: Bench) -> Prepared:
        """Check a bench (once; concurrent callers share the work) and say how it is judged.

        Raises `EnvironmentFailed` for faults of ours; a bench at fault comes back as unusable with the reason.
        """
        task = self._preparing.get(bench.key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._preparing[bench.key] = asyncio.create_task(self._prepare(bench))
        return await asyncio.shield(task)

    async def _prepare(self, bench: Bench) -> Prepared:
        stored = await asyncio.to_thread(self._store.check, bench.key)
        if stored is not None:
            prepared = _prepared_from(bench, stored)
            if prepared is not None:
                return prepared
        prepared = await self._examine(bench)
        await asyncio.to_thread(self._store.save_check, bench.key, _facts_of(prepared))
        return prepared

    async def _examine(self, bench: Bench) -> Prepared:
        facts: BenchFacts | None = None
        try:
            facts = await self._recorder.facts(bench)
            trace = await self._recorder.record(bench, facts, PUBLIC)
            fault = await self._recorder.open_loop_fault(bench, facts, trace)
            if fault is None:
                await asyncio.to_thread(self._store.save_trace, bench.key, PUBLIC, trace)
                return Prepared(bench, "golden", facts=facts)
            not_golden = f"the testbench is not open-loop: {fault}"
        except BenchFault as error:
            return await self._unusable(bench, str(error), facts)
        except NotReplayable as error:
            not_golden = str(error)
        if facts is None:
            return await self._unusable(bench, not_golden, facts)
        try:
            baseline = await self._classic.baseline(bench, facts)
        except BenchFault as error:
            return await self._unusable(bench, f"{not_golden}; {error}", facts)
        return Prepared(bench, "classic", not_golden, facts, baseline)

    async def _unusable(self, bench: Bench, reason: str, facts: BenchFacts | None) -> Prepared:
        """A bench is at fault only if the simulator itself works: else `EnvironmentFailed`."""
        await self_test(self.tools, self._runner)
        return Prepared(bench, "unusable", reason, facts)

    async def trace(self, prepared: Prepared, draws: int = PUBLIC) -> GoldenTrace:
        """The golden trace of a stimulus, from the store or recorded now.

        Raises `ProblemUnusable` when the bench cannot be recorded (again), `EnvironmentFailed` for faults of ours.
        """
        key = (prepared.bench.key, draws)
        if (known := self._store.recent(*key)) is not None:
            return known
        task = self._recording.get(key)
        if task is None or task.done():
            task = self._recording[key] = asyncio.create_task(self._trace(prepared, draws))
            task.add_done_callback(lambda _: self._recording.pop(key, None))
        return await asyncio.shield(task)

    async def _trace(self, prepared: Prepared, draws: int) -> GoldenTrace:
        stored = await asyncio.to_thread(self._store.trace, prepared.bench.key, draws)
        if stored is not None:
            return stored
        if prepared.facts is None:
            raise ProblemUnusable(prepared.reason)
        try:
            recorded = await self._recorder.record(prepared.bench, prepared.facts, draws)
            if draws != PUBLIC and recorded.stimulus == (await self.trace(prepared)).stimulus:
                with suppress(NotReplayable):  # a clocked bench, or one without inputs: there is nothing to add
                    recorded = await self._recorder.record_vectors(prepared.bench, prepared.facts, draws)
        except (BenchFault, NotReplayable) as error:
            raise ProblemUnusable(f"the testbench cannot be recorded: {error}") from error
        await asyncio.to_thread(self._store.save_trace, prepared.bench.key, draws, recorded)
        return recorded

    async def record_secrets(self, prepared: Prepared) -> int:
        """Record all secret stimuli of a golden bench ahead of their use; returns how many there are.

        Raises `ProblemUnusable` when one cannot be recorded, `EnvironmentFailed` for faults of ours.
        """
        if prepared.status != "golden":
            return 0
        for index in range(self.secrets.size):
            await self.trace(prepared, self.secrets.draws(prepared.bench.key, index))
        return self.secrets.size

    # --- judging a design

    async def compile(self, prepared: Prepared, files: Mapping[str, str], sources: tuple[str, ...]) -> Compilation:
        """Compile `sources` (names in `files`) with the bench. Raises `EnvironmentFailed` for faults of ours."""
        _usable_facts(prepared)
        own = fingerprint(files, sources)
        found, cached = await self.verdicts.result(
            COMPILATIONS,
            f"{self._identity(prepared)}:{own}",
            lambda: self._compile(prepared, files, sources),
        )
        if not cached:
            return found
        return replace(
            found,
            sources=sources,
            data_files=data_files(files),
            texts=source_texts(files, sources),
            fingerprint=own,
            cached=True,
        )

    async def _compile(self, prepared: Prepared, files: Mapping[str, str], sources: tuple[str, ...]) -> Compilation:
        facts = _usable_facts(prepared)
        bench = prepared.bench
        if prepared.status == "classic":
            compilation, why = await self._classic.compile(bench, facts, files, sources)
        else:
            public = await self.trace(prepared)
            plan = await _worked_out(public, kinds_of, kinds_of, public)
            depth = replay_depth(public.rows)
            text = benches.replay_bench(facts.interface, bench.top, depth, public.clock_start, plan)
            compilation, why = await self._compiler.compile(
                bench.top,
                facts.interface.ports,
                files,
                sources,
                judge_files={REPLAY_FILE: text},
                root=REPLAY_ROOT,
                instance=(REPLAY_ROOT, REPLAY_INSTANCE),
                cpu_s=bench.compile_cpu_s,
                gated=self._gated,
            )
        if why in NEEDS_CANARY:
            await self._require_canary(prepared)
        return compilation

    async def run(self, prepared: Prepared, compilation: Compilation, draws: int = PUBLIC) -> Verdict:
        """Judge a compiled design on one stimulus.

        Raises `EnvironmentFailed` when there is no verdict: a run that was not brought to its end by the design itself
        or by its own limits.
        """
        _usable_facts(prepared)
        if compilation.program is None:
            kind: JudgeKind = "classic" if prepared.status == "classic" else "golden"
            return Verdict(False, "compile_error", kind, compilation=compilation)
        found, cached = await self.verdicts.result(
            VERDICTS,
            f"{self._identity(prepared)}:{compilation.fingerprint}:{draws}",
            lambda: self._run(prepared, compilation, draws),
        )
        return replace(found, compilation=compilation, cached=cached)

    async def _run(self, prepared: Prepared, compilation: Compilation, draws: int) -> Verdict:
        facts = _usable_facts(prepared)
        if prepared.status == "classic":
            if prepared.baseline is None:
                raise ProblemUnusable(prepared.reason)
            limits = self._limits(prepared.bench.run_cpu_s, prepared.baseline.cpu_s)
            verdict, why = await self._classic.run(prepared.bench, prepared.baseline, compilation, limits)
            if verdict.reason == "mismatch":
                verdict = replace(verdict, hints=await asyncio.to_thread(_advice, compilation))
        else:
            verdict, why = await self._replay(prepared, facts.interface, compilation, draws)
        # A result that is cut off is the design's doing, or that of a full disk.
        if why in NEEDS_CANARY or verdict.reason in ("missing_samples", "malformed"):
            await self._require_canary(prepared)
        return verdict

    def _identity(self, prepared: Prepared) -> str:
        """All that a result depends on beside the design and the stimulus."""
        bench = prepared.bench
        known = self._identities.get((bench.key, bench.ignored_samples))
        if known is None:
            parts = [JUDGE_VERSION, self.tools.version, self._gated, self._waveform_rows, self._wall_factor]
            parts += [bench.key, bench.ignored_samples, prepared.status, bench.compile_cpu_s, bench.run_cpu_s]
            parts += [vars(self._run_limits), vars(self._compile_limits)]
            known = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
            self._identities[bench.key, bench.ignored_samples] = known
        return known

    async def final(self, prepared: Prepared, compilation: Compilation, public: Verdict | None = None) -> Verdict:
        """The verdict that ends an episode: on the public stimulus and, if that passes, on a secret one as well.

        `public` is the verdict on the public stimulus where this compilation already has it. The waveform of the
        secret stimulus is not shown. Raises `EnvironmentFailed` when there is no verdict.
        """
        if public is None or public.compilation is not compilation:
            public = await self.run(prepared, compilation)
        if not public.passed or prepared.status != "golden":
            return public
        draws = self.secrets.chosen(prepared.bench.key, compilation.fingerprint)
        try:
            hidden = await self.run(prepared, compilation, draws)
        except ProblemUnusable as error:
            log.warning("bench %s: no secret stimulus with %d draws: %s", prepared.bench.key[:12], draws, error.message)
            return public
        return public if hidden.passed else replace(hidden, waveform=None, hints=())

    async def judge(
        self, prepared: Prepared, files: Mapping[str, str], sources: tuple[str, ...], draws: int = PUBLIC
    ) -> Verdict:
        """Compile and run in one call."""
        return await self.run(prepared, await self.compile(prepared, files, sources), draws)

    async def _replay(
        self, prepared: Prepared, interface: Interface, compilation: Compilation, draws: int
    ) -> tuple[Verdict, Cause]:
        trace = await self.trace(prepared, draws)
        public = trace if draws == PUBLIC else await self.trace(prepared)
        if trace.rows > replay_depth(public.rows):
            raise ProblemUnusable("a recorded stimulus is too long for the replay bench")
        limits = self._limits(prepared.bench.run_cpu_s, trace.reference_cpu_s)
        plan = await _worked_out(public, kinds_of, kinds_of, public)
        fed = await _worked_out(trace, plan, replay, trace, plan)
        job = Job(
            steps=(Step((*self.tools.run_argv(PROGRAM_FILE), *fed.arguments), limits),),
            files={
                **compilation.data_files,
                PROGRAM_FILE: compilation.program or b"",
                KINDS_FILE: fed.kinds,
                WORDS_FILE: fed.words,
            },
            collect={RESULT_FILE: written_bytes(trace.samples, interface)},
        )
        run = await run_fairly(self._runner, job, limits)
        written = run.files.get(RESULT_FILE, b"")
        found = answers(written, interface)
        said = _own_words(run.step, prepared.bench.top)
        self._require_whole(found, len(written) > written_bytes(trace.samples, interface), run.cause, said)
        cpu_s, wall_s = run.step.cpu_s, run.step.wall_s
        if run.cause not in ("ok", "exit_status"):
            verdict = Verdict(False, REASONS[run.cause], "golden", trace.samples, design_output=said)
            return replace(verdict, cpu_s=cpu_s, wall_s=wall_s), run.cause
        actual = found.samples
        if len(actual) <= SMALL_RESULT_BYTES:
            comparison = compare(trace, actual)
        else:
            comparison = await asyncio.to_thread(compare, trace, actual)
        shown: Waveform | None = None
        advice: tuple[str, ...] = ()
        if not comparison.passed:
            rows = self._waveform_rows
            shown, advice = await asyncio.to_thread(_shown, compilation, trace, actual, comparison, rows)
        verdict = from_comparison(comparison, shown, said, cpu_s=cpu_s, wall_s=wall_s)
        return replace(verdict, hints=advice), run.cause

    def _require_whole(self, found: Answers, surplus: bool, why: Cause, said: str) -> None:
        """Raises `EnvironmentFailed` for a result that the bench began and the scratch disk did not take.

        A gated design can end its run before the bench does in two ways: ``$fatal`` gives an exit status, and a call
        with arguments that it does not take is an error before the start, which Icarus 11 prints and ends with success.
        """
        if why == "ok" and self._gated and not (found.complete or surplus or "error" in said.lower()):
            raise EnvironmentFailed("a simulation's result is cut off: is the scratch disk full?", stage="verdict")

    def _limits(self, own_cpu_s: float | None, reference_cpu_s: float) -> Limits:
        cpu_s = own_cpu_s or max(self._run_limits.cpu_s, RUN_FACTOR * reference_cpu_s)
        return replace(self._run_limits, cpu_s=cpu_s, wall_s=cpu_s * self._wall_factor)

    async def _require_canary(self, prepared: Prepared) -> None:
        """A failure is the design's doing only if the problem's own reference runs well here and now."""
        try:
            if prepared.status == "classic" and prepared.facts is not None:
                await self._classic.baseline(prepared.bench, prepared.facts)
            else:
                await self._recorder.check_replay(prepared.bench, await self.trace(prepared))
        except (BenchFault, NotReplayable) as error:
            raise EnvironmentFailed(
                "the simulator failed, and it fails on the reference too", stage="verdict", retryable=True
            ) from error


async def _worked_out(trace: GoldenTrace, key: object, work: Callable[..., Found], *arguments: object) -> Found:
    """What `work` derives from a trace and keeps under `key`, in a thread where that may take long."""
    if trace.rows <= SMALL_TRACE_ROWS or key in trace.derived:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


def _shown(
    compilation: Compilation, trace: GoldenTrace, actual: bytes, comparison: Comparison, rows: int
) -> tuple[Waveform | None, tuple[str, ...]]:
    """What a mismatch looks like, and what it may come from."""
    advice = _advice(compilation, trace, actual, comparison) if comparison.malformation is None else ()
    return waveform(trace, actual, comparison, rows), advice


def _advice(
    compilation: Compilation,
    trace: GoldenTrace | None = None,
    actual: bytes = b"",
    comparison: Comparison | None = None,
) -> tuple[str, ...]:
    """Hints for a run that came to its end and mismatches."""
    code = code_of(compilation.texts, compilation.sources)
    found: tuple[Relation, ...] = ()
    if trace is not None and comparison is not None:
        found = relations(trace, actual, comparison, clock_edges(code))
    return behaviour_hints(compilation.diagnostics, code, found)


def _own_words(step: StepResult, top: str) -> str:
    """What a design printed, and what the simulator said about it: without the judge's names."""
    lines = (step.stdout + step.stderr).replace(f"{REPLAY_ROOT}.{REPLAY_INSTANCE}", top).splitlines(keepends=True)
    return "".join(line for line in lines if f"{benches.JUDGE_FOLDER}/" not in line)


def _usable_facts(prepared: Prepared) -> BenchFacts:
    if not prepared.usable or prepared.facts is None:
        raise ProblemUnusable(prepared.reason)
    return prepared.facts


def _facts_of(prepared: Prepared) -> dict[str, Any]:
    facts = prepared.facts
    return {
        "status": prepared.status,
        "reason": prepared.reason,
        "root": facts.root if facts else None,
        "design_path": list(facts.design_path) if facts else [],
        "ports": [[p.name, p.direction, p.width] for p in facts.interface.ports] if facts else [],
        "unit": facts.interface.unit if facts else 0,
        "precision": facts.interface.precision if facts else 0,
        "baseline": prepared.baseline.to_json() if prepared.baseline else None,
    }


def _prepared_from(bench: Bench, stored: Mapping[str, Any]) -> Prepared | None:
    """A stored check, or None when it cannot be read (it is then made again)."""
    try:
        status: Status = stored["status"]
        facts = None
        if stored["root"] is not None:
            ports = tuple(Port(name, direction, width) for name, direction, width in stored["ports"])
            facts = BenchFacts(
                Interface(ports, stored["unit"], stored["precision"]), stored["root"], tuple(stored["design_path"])
            )
        baseline = ClassicBaseline.from_json(stored["baseline"]) if stored["baseline"] else None
        return Prepared(bench, status, stored["reason"], facts, baseline)
    except (KeyError, TypeError, ValueError):
        return None
