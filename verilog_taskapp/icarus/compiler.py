"""Compiling a model's files with a bench, and telling the model what is wrong in its own terms."""

import asyncio
import re
from collections.abc import Mapping

from verilog_taskapp.icarus import gate
from verilog_taskapp.icarus.benches import PROGRAM_FILE
from verilog_taskapp.icarus.diagnostics import (
    Diagnostic,
    for_the_model,
    missing_top,
    of_a_success,
    parse,
    port_problems,
)
from verilog_taskapp.icarus.execution import Run, run_fairly
from verilog_taskapp.icarus.faults import Cause
from verilog_taskapp.icarus.hints import compile_hints
from verilog_taskapp.icarus.program import Port, modules
from verilog_taskapp.icarus.results import fingerprint
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain, plan_steps
from verilog_taskapp.icarus.verdict import Compilation, FailedCompile

PROGRAM_BYTES = 64 * 1024**2
"""A compiled program larger than this counts as the file limit."""
DATA_SUFFIXES = (".mem", ".hex", ".dat", ".txt")
"""Files that a design may read at run time."""

_STRAY_OVERRIDE = re.compile(r"warning: (?:Scope of|parameter) .* not found")

_FAILURES: dict[Cause, FailedCompile] = {
    "ok": "errors",
    "exit_status": "errors",
    "time_limit": "time_limit",
    "memory_limit": "memory_limit",
    "file_limit": "file_limit",
    "output_limit": "output_limit",
    "crashed": "crashed",
}


def data_files(files: Mapping[str, str]) -> dict[str, bytes]:
    """Those of a design's files that it may read at run time."""
    return {name: text.encode("utf-8", "replace") for name, text in files.items() if name.endswith(DATA_SUFFIXES)}


def source_texts(files: Mapping[str, str], sources: tuple[str, ...]) -> dict[str, str]:
    """Those of a design's files that are compiled."""
    return {name: files[name] for name in sources if name in files}


class Compiler:
    """Compiles with one toolchain."""

    def __init__(self, runner: Runner, tools: Toolchain, limits: Limits) -> None:
        self._runner = runner
        self._tools = tools
        self._limits = limits

    async def compile(
        self,
        top: str,
        ports: tuple[Port, ...],
        files: Mapping[str, str],
        sources: tuple[str, ...],
        *,
        judge_files: Mapping[str, str],
        root: str,
        instance: tuple[str, ...],
        cpu_s: float | None = None,
        legacy_bench: bool = False,
        gated: bool = False,
    ) -> tuple[Compilation, Cause]:
        """Compile `judge_files` (first) and `sources` under `root`; `instance` is the path of the design in it.

        `ports` are those that the bench connects. The cause that comes back is "crashed" also for a failure that the
        compiler does not explain. Raises `EnvironmentFailed` for faults of ours.
        """
        run = await self._run(
            {**files, **judge_files},
            (*[name for name in judge_files if name.endswith((".v", ".sv"))], *sources),
            root,
            cpu_s,
            legacy_bench,
        )
        program = run.files.get(PROGRAM_FILE)
        good = run.cause == "ok" and program is not None and len(program) <= PROGRAM_BYTES
        said = parse(run.output)
        diagnostics, hidden = for_the_model(said, files, top, instance)
        refused = gate.refused_calls(program) if good and gated and program is not None else ()
        if refused:
            diagnostics = tuple(Diagnostic("error", f"{call} is not allowed in a design") for call in refused)
            good = False
        elif good and program is not None:
            diagnostics = of_a_success(diagnostics)
            found = next((one for one in modules(program) if one.path == instance), None)
            diagnostics += port_problems(ports, found.ports, top) if found is not None else ()
        elif run.cause in ("ok", "exit_status") and (hidden or not any(one.severity == "error" for one in diagnostics)):
            diagnostics = await self._explain(top, ports, files, sources, diagnostics)
        failure = None if good else _FAILURES[run.cause]
        if not good and not refused and run.cause == "ok" and program is not None:
            failure = "file_limit"
        compilation = Compilation(
            sources,
            program if good else None,
            failure,
            tuple(dict.fromkeys(diagnostics)),
            data_files(files),
            run.cpu_s,
            run.wall_s,
            fingerprint(files, sources),
            any(step.output_cut for step in run.steps) or _STRAY_OVERRIDE.search(run.output) is not None,
            hints=await self._hints(diagnostics, files, sources, top),
            texts=source_texts(files, sources),
        )
        # A compiler that fails without naming a place in a source may itself be what is broken.
        explained = good or bool(refused) or any(one.severity == "error" and one.file is not None for one in said)
        return compilation, run.cause if explained or run.cause not in ("ok", "exit_status") else "crashed"

    async def _hints(
        self, diagnostics: tuple[Diagnostic, ...], files: Mapping[str, str], sources: tuple[str, ...], top: str
    ) -> tuple[str, ...]:
        """Warnings are looked at as they are; only for errors are the texts searched, which may take a while."""
        if any(one.severity == "error" for one in diagnostics):
            return await asyncio.to_thread(compile_hints, diagnostics, files, sources, top, self._tools.major)
        return compile_hints(diagnostics, files, sources, top, self._tools.major)

    async def _explain(
        self,
        top: str,
        ports: tuple[Port, ...],
        files: Mapping[str, str],
        sources: tuple[str, ...],
        known: tuple[Diagnostic, ...],
    ) -> tuple[Diagnostic, ...]:
        """Errors that only the hidden bench shows, told through the ports of the design compiled alone."""
        run = await self._run(files, sources, top, None, False)
        program = run.files.get(PROGRAM_FILE)
        if run.cause == "ok" and program is not None:
            found = next((one for one in modules(program) if one.module == top), None)
            if found is not None:
                problems = port_problems(ports, found.ports, top)
                if problems:
                    return (*problems, *known)
        alone, _ = for_the_model(parse(run.output), files, top)
        told = tuple(dict.fromkeys((*known, *alone)))
        if any(one.severity == "error" for one in told):
            return told
        if not any(re.search(rf"\bmodule\s+{re.escape(top)}\b", text) for text in files.values()):
            return (missing_top(top), *told)
        if run.cause != "ok":  # not compiled alone either, and all errors are elsewhere
            return (Diagnostic("error", "the errors are in a file that is not in the workspace"), *told)
        return (Diagnostic("error", f"{top} cannot be connected to the testbench: check its ports"), *told)

    async def _run(
        self, files: Mapping[str, str], sources: tuple[str, ...], root: str, cpu_s: float | None, legacy_bench: bool
    ) -> Run:
        limits = self._limits
        if cpu_s is not None:
            limits = Limits(**{**vars(limits), "cpu_s": cpu_s, "wall_s": cpu_s * limits.wall_s / limits.cpu_s})
        passes = self._tools.passes
        if passes is None or legacy_bench:
            argv = self._tools.compile_argv(sources, PROGRAM_FILE, roots=(root,), legacy_bench=legacy_bench)
            steps: tuple[Step, ...] = (Step(argv, limits, PROGRAM_FILE, "compile"),)
            content = {name: text.encode("utf-8", "replace") for name, text in files.items()}
        else:
            plan = passes.plan(files, sources, PROGRAM_FILE, root)
            steps = plan_steps(plan, limits)
            needed = files if plan.needs_sources else {}
            content = {**plan.files, **{name: text.encode("utf-8", "replace") for name, text in needed.items()}}
        job = Job(steps, content, collect={PROGRAM_FILE: PROGRAM_BYTES})
        return await run_fairly(self._runner, job, limits)
