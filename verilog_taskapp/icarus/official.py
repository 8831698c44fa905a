"""The classic VerilogEval flow, scored by the rules of its official analyser, for comparison with published numbers.

Design, bench and reference are compiled together and simulated once, and the verdict is read from what the tools and
the bench print. A design can therefore talk its way to a pass: nothing here decides a reward. The rules are those of
``sv-iv-analyze`` and of the test recipe in VerilogEval v2 (https://github.com/NVlabs/verilog-eval, state c498220).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from verilog_taskapp.errors import ProblemUnusable
from verilog_taskapp.icarus import gate
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.benches import JUDGE_FOLDER, PROGRAM_FILE
from verilog_taskapp.icarus.compiler import PROGRAM_BYTES
from verilog_taskapp.icarus.execution import Run, run_fairly
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain

Category = Literal[".", "S", "e", "0", "n", "w", "m", "c", "T", "p", "C", "R", "r"]

ROOT = "tb"
"""The bench's module that the official flow simulates, whatever the file holds."""
RUN_CPU_S = 30.0
"""The official recipe says ``timeout 30``; here it is CPU time, which a busy machine does not shorten."""
RUN_WALL_FACTOR = 3.0
TIMEOUT_LINE = "TIMEOUT"
"""What the recipe adds to the log of a simulation that it stopped; benches print the same word at their own limit."""
LOG_BYTES = 8 * 1024**2
"""Kept of each stream: the line that counts is the last one that a bench prints."""
EXCERPT_LINES = 20

CATEGORY_NAMES: Mapping[Category, str] = {
    ".": "pass",
    "S": "syntax error",
    "e": "explicit cast required",
    "0": "sized numeric constant of size zero",
    "n": "no sensitivities",
    "w": "wire declared where a register is needed",
    "m": "unknown module type",
    "c": "unable to bind clk",
    "T": "time-out",
    "p": "unable to bind a wire or register",
    "C": "compiler error",
    "R": "run-time mismatch",
    "r": "run-time mismatch with an asynchronous reset",
}

LINE_RULES: tuple[tuple[str, Category], ...] = (
    ("syntax error", "S"),
    ("error: This assignment requires an explicit cast", "e"),
    ("error: Sized numeric constant must have a size greater than zero", "0"),
    ("warning: always_comb process has no sensitivities", "n"),
    ("found no sensitivities so it will never trigger", "n"),
    ("is declared here as wire", "w"),
    ("Unknown module type", "m"),
    ("Unable to bind wire/reg/memory `clk'", "c"),
    (TIMEOUT_LINE, "T"),
)
"""The first line of the log that holds one of these texts decides; within a line, the first of them."""

FLAG_RULES: tuple[tuple[str, Category], ...] = (("Unable to bind wire/reg", "p"), ("error", "C"))
"""If no line decides: a text anywhere in the log, the first of these that occurs; they outrank a pass."""

ASYNCHRONOUS_RESETS = ("posedge reset", "negedge reset", "posedge r)")
"""In the design's text, these turn ``R`` into ``r``."""

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_MISMATCHES = re.compile(r"Mismatches: (\d+) in (\d+) samples")


@dataclass(frozen=True)
class OfficialVerdict:
    """What the official analyser would say."""

    passed: bool
    category: Category
    category_name: str
    mismatches: int | None
    """From the last line that counts them; None when there is none."""
    samples: int | None
    log_excerpt: str
    """The end of the log."""
    cpu_s: float = 0.0
    """Of compiler and simulator together, as `wall_s`."""
    wall_s: float = 0.0


def categorize(log: str, design: str) -> OfficialVerdict:
    """Apply the rules to the log of a run and to the text of the design."""
    lines = _LINE_ENDS.split(log)
    counts = [(int(found[1]), int(found[2])) for line in lines if (found := _MISMATCHES.fullmatch(line))]
    category = _category(lines, any(mismatches == 0 for mismatches, _ in counts), design)
    mismatches, samples = counts[-1] if counts else (None, None)
    excerpt = "\n".join([line for line in lines if line.strip()][-EXCERPT_LINES:])
    return OfficialVerdict(category == ".", category, CATEGORY_NAMES[category], mismatches, samples, excerpt)


def _category(lines: list[str], matched: bool, design: str) -> Category:
    for line in lines:
        for text, category in LINE_RULES:
            if text in line:
                return category
    for text, category in FLAG_RULES:
        if any(text in line for line in lines):
            return category
    if matched:
        return "."
    return "r" if any(text in design for text in ASYNCHRONOUS_RESETS) else "R"


class OfficialFlow:
    """Runs the classic flow with one toolchain; `limits` are those of the compiler, and of the run except its time."""

    def __init__(self, runner: Runner, tools: Toolchain, limits: Limits) -> None:
        self._runner = runner
        self._tools = tools
        self._compile_limits = replace(limits, output_bytes=LOG_BYTES)
        self._run_limits = replace(limits, cpu_s=RUN_CPU_S, wall_s=RUN_CPU_S * RUN_WALL_FACTOR, output_bytes=LOG_BYTES)

    async def judge(self, bench: Bench, files: Mapping[str, str], sources: tuple[str, ...]) -> OfficialVerdict:
        """Score `sources` (names in `files`) with the bench.

        Raises `ProblemUnusable` for a bench whose root is not ``tb`` and `EnvironmentFailed` for faults of ours.
        """
        if ROOT not in gate.declared_modules(bench.testbench):
            raise ProblemUnusable(f"the official flow simulates a module {ROOT}, which this testbench does not declare")
        compiled = await self._compile(bench, files, sources)
        # What the tools say comes on both streams; the compiler uses the second one, the simulator the first.
        log = [compiled.step.stderr, compiled.step.stdout]
        cpu_s, wall_s = compiled.step.cpu_s, compiled.step.wall_s
        if compiled.cause == "time_limit":
            log.append(TIMEOUT_LINE)
        program = compiled.files.get(PROGRAM_FILE)
        if program is not None and compiled.cause == "ok":
            ran = await self._run(bench, files, program)
            log += [ran.step.stdout, ran.step.stderr]
            if ran.cause == "time_limit":
                log.append(TIMEOUT_LINE)
            cpu_s, wall_s = cpu_s + ran.step.cpu_s, wall_s + ran.step.wall_s
        verdict = categorize("\n".join(log), "\n".join(files[name] for name in sources))
        return replace(verdict, cpu_s=cpu_s, wall_s=wall_s)

    async def _compile(self, bench: Bench, files: Mapping[str, str], sources: tuple[str, ...]) -> Run:
        testbench, reference = f"{JUDGE_FOLDER}/bench.sv", f"{JUDGE_FOLDER}/reference.sv"
        texts = {**files, **bench.hidden_paths, testbench: bench.testbench, reference: bench.reference}
        argv = self._tools.compile_argv(
            (*sources, testbench, reference, *bench.hidden_sources), PROGRAM_FILE, roots=(ROOT,), legacy_bench=True
        )
        job = Job(
            steps=(Step(argv, self._compile_limits, PROGRAM_FILE, "compile"),),
            files=_as_bytes(texts),
            collect={PROGRAM_FILE: PROGRAM_BYTES},
        )
        return await run_fairly(self._runner, job, self._compile_limits)

    async def _run(self, bench: Bench, files: Mapping[str, str], program: bytes) -> Run:
        job = Job(
            steps=(Step(self._tools.run_argv(PROGRAM_FILE), self._run_limits),),
            files={**_as_bytes({**files, **bench.hidden_paths}), PROGRAM_FILE: program},
        )
        return await run_fairly(self._runner, job, self._run_limits)


def _as_bytes(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}
