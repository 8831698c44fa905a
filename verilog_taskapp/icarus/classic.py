"""The weaker judge, for benches that cannot be replayed: bench, reference and design in one simulation.

The verdict then has to be read from what the bench prints, so a design that may print, stop, force or touch files is
refused, and so is one that names the bench or the reference. The count of samples must be the reference's own. Problems
judged this way are marked as such wherever they are described.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from verilog_taskapp.icarus import benches, gate
from verilog_taskapp.icarus.bench import HIDDEN_FOLDER, Bench
from verilog_taskapp.icarus.benches import PROGRAM_FILE
from verilog_taskapp.icarus.compiler import Compiler
from verilog_taskapp.icarus.diagnostics import Diagnostic
from verilog_taskapp.icarus.execution import run_fairly
from verilog_taskapp.icarus.faults import Cause
from verilog_taskapp.icarus.recorder import RECORD_CPU_S, BenchFacts, BenchFault
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.verdict import REASONS, Compilation, Reason, Verdict

TRANSCRIPT_BYTES = 1024**2
MISMATCHES = re.compile(r"^Mismatches: (\d+) in (\d+) samples\s*$", re.M)

# Found alone and not under the bench, or the other way round: by that a design could tell which of them it is.
_STRAY_OVERRIDE = Diagnostic("error", "a defparam without a target is not allowed in a design judged by this testbench")


@dataclass(frozen=True)
class ClassicBaseline:
    """What the bench says of its own reference: the measure for every design."""

    samples: int | None
    """Samples that the bench counts; None for a bench that prints no count, which is then judged by `transcript`."""
    transcript: str
    cpu_s: float

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "ClassicBaseline":
        """From the store; raises KeyError or TypeError for anything else."""
        return cls(stored["samples"], stored["transcript"], stored["cpu_s"])


class ClassicJudge:
    """Judges with the bench's own output."""

    def __init__(self, runner: Runner, tools: Toolchain, compiler: Compiler) -> None:
        self._runner = runner
        self._tools = tools
        self._compiler = compiler

    async def baseline(self, bench: Bench, facts: BenchFacts) -> ClassicBaseline:
        """Run the reference as the design.

        Raises `BenchFault` when that does not pass or cannot be told from a dummy.
        """
        stand_in = benches.wrapper(facts.interface, bench.top, bench.reference_top)
        said, cpu_s = await self._transcript(bench, facts, stand_in)
        counted = MISMATCHES.findall(said)
        if counted:
            mismatches, samples = map(int, counted[-1])
            if mismatches or not samples:
                raise BenchFault(f"the reference fails its own testbench: {mismatches} of {samples} samples mismatch")
            return ClassicBaseline(samples, "", cpu_s)
        try:
            dummy, _ = await self._transcript(bench, facts, benches.dummy(facts.interface, bench.top, "x"))
        except BenchFault:  # it waits for ever for an answer: no design without outputs can pass
            dummy = None
        if said == dummy:
            raise BenchFault("the testbench prints the same for its reference and for a design without outputs")
        return ClassicBaseline(None, said, cpu_s)

    async def _transcript(self, bench: Bench, facts: BenchFacts, stand_in: str) -> tuple[str, float]:
        limits = Limits(cpu_s=RECORD_CPU_S, wall_s=RECORD_CPU_S * 5, output_bytes=TRANSCRIPT_BYTES)
        compilation, _ = await self._compile_with_bench(bench, facts, {"vt_dut.sv": stand_in}, ("vt_dut.sv",))
        if compilation.program is None:
            raise BenchFault(f"does not compile: {compilation.messages(500)}")
        run = await run_fairly(self._runner, self._job(bench, compilation, limits), limits)
        if run.cause != "ok":
            raise BenchFault(f"the testbench does not run to its end ({run.cause})")
        return run.step.stdout, run.step.cpu_s

    async def compile(
        self, bench: Bench, facts: BenchFacts, files: Mapping[str, str], sources: tuple[str, ...]
    ) -> tuple[Compilation, Cause]:
        """Elaborate a design alone, refuse what it may not do here, then compile it with bench and reference.

        Bench and reference are read before it both times, so that it sees the same macros and cannot tell which it is.
        """
        refused = self._names(bench, files)
        alone, why = await self._compile_with_bench(bench, facts, files, sources, alone=True)
        if alone.program is None:
            told = tuple(dict.fromkeys((*refused, *alone.diagnostics)))
            return replace(alone, diagnostics=told), why
        told_ports = [one for one in alone.diagnostics if one.severity == "error"]
        refused += [
            *told_ports,
            *(
                _belongs_to_the_bench(name)
                for name in sorted(gate.instantiated(alone.program) & _hidden_modules(bench))
            ),
            *(
                Diagnostic("error", f"{call} is not allowed in a design that is judged by this testbench")
                for call in sorted(gate.system_calls(alone.program) - gate.PURE_CALLS)
            ),
            *(
                Diagnostic("error", f"the design drives its own input {name}")
                for name in sorted(gate.driven_inputs(alone.program))
            ),
        ]
        if gate.has_switches(alone.program):
            refused.append(
                Diagnostic("error", "a design that is judged by this testbench may not have switches (tran)")
            )
        if alone.stray_override:
            refused.append(_STRAY_OVERRIDE)
        if refused:
            return Compilation(sources, None, "errors", tuple(refused), {}, alone.cpu_s, alone.wall_s), "exit_status"
        whole, why = await self._compile_with_bench(bench, facts, files, sources)
        if whole.stray_override and whole.program is not None:
            return replace(whole, program=None, failure="errors", diagnostics=(_STRAY_OVERRIDE,)), "exit_status"
        return whole, why

    async def run(
        self, bench: Bench, baseline: ClassicBaseline, compilation: Compilation, limits: Limits
    ) -> tuple[Verdict, Cause]:
        """Run a compiled design and read the bench's own words."""
        limits = replace(limits, output_bytes=TRANSCRIPT_BYTES)
        run = await run_fairly(self._runner, self._job(bench, compilation, limits), limits)
        if run.cause not in ("ok", "exit_status"):
            return Verdict(False, REASONS[run.cause], "classic", baseline.samples or 0, cpu_s=run.step.cpu_s), run.cause
        said = run.step.stdout
        counted = [tuple(map(int, found)) for found in MISMATCHES.findall(said)]
        if baseline.samples is None:
            passed = run.cause == "ok" and said == baseline.transcript
            verdict = Verdict(passed, "match" if passed else "mismatch", "classic", cpu_s=run.step.cpu_s)
        elif len(counted) != 1:
            verdict = Verdict(False, "malformed", "classic", baseline.samples, cpu_s=run.step.cpu_s)
        else:
            mismatches, samples = counted[0]
            passed = run.cause == "ok" and mismatches == 0 and samples == baseline.samples
            short: Reason = "missing_samples" if samples < baseline.samples else "surplus_samples"
            verdict = Verdict(
                passed,
                "match" if passed else ("mismatch" if mismatches else short),
                "classic",
                baseline.samples,
                mismatches,
                cpu_s=run.step.cpu_s,
            )
        return verdict, run.cause

    async def _compile_with_bench(
        self,
        bench: Bench,
        facts: BenchFacts,
        files: Mapping[str, str],
        sources: tuple[str, ...],
        *,
        alone: bool = False,
    ) -> tuple[Compilation, Cause]:
        """`alone`: bench and reference are only read, and the design is the root of what is elaborated."""
        return await self._compiler.compile(
            bench.top,
            facts.interface.ports,
            files,
            sources,
            judge_files={
                f"{benches.JUDGE_FOLDER}/bench.sv": bench.quiet_testbench,
                f"{benches.JUDGE_FOLDER}/reference.sv": bench.reference,
                **bench.hidden_paths,
            },
            root=bench.top if alone else facts.root,
            instance=(bench.top,) if alone else facts.design_path,
            cpu_s=bench.compile_cpu_s,
            legacy_bench=True,
        )

    def _job(self, bench: Bench, compilation: Compilation, limits: Limits) -> Job:
        hidden = {name: text.encode() for name, text in bench.hidden_paths.items()}
        return Job(
            steps=(Step(self._tools.run_argv(PROGRAM_FILE), limits),),
            files={**compilation.data_files, **hidden, PROGRAM_FILE: compilation.program or b""},
        )

    def _names(self, bench: Bench, files: Mapping[str, str]) -> list[Diagnostic]:
        hidden = _hidden_modules(bench)
        places = (benches.JUDGE_FOLDER, HIDDEN_FOLDER, *bench.hidden_files)
        return [
            *(
                _belongs_to_the_bench(name, file)
                for file, text in files.items()
                for name in sorted(gate.mentioned(text, hidden))
            ),
            *(
                Diagnostic("error", "files of the testbench cannot be included", file)
                for file, text in files.items()
                if any(place in text or file.startswith(place) for place in places)
            ),
        ]


def _hidden_modules(bench: Bench) -> frozenset[str]:
    """The modules that the bench, its reference and its further files declare."""
    texts = (bench.testbench, bench.reference, *bench.hidden_files.values())
    return frozenset().union(*map(gate.declared_modules, texts)) - {bench.top}


def _belongs_to_the_bench(name: str, file: str | None = None) -> Diagnostic:
    return Diagnostic("error", f"the name {name} belongs to the testbench: choose another", file)
