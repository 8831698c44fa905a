"""Running one simulation fairly: what was our machine's doing is retried once, and then an error, never a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.benches import PROGRAM_FILE
from verilog_taskapp.icarus.faults import OURS, Cause, cause
from verilog_taskapp.icarus.program import is_whole
from verilog_taskapp.icarus.runner import Job, JobResult, Limits, Runner, StepResult


@dataclass(frozen=True)
class Run:
    """How a job went, the files it left, and how its last step ended."""

    steps: tuple[StepResult, ...]
    """Those that ran: fewer than asked when one did not succeed."""
    files: Mapping[str, bytes]
    cause: Cause

    @property
    def step(self) -> StepResult:
        """The step at which the job ended."""
        return self.steps[-1]

    @property
    def output(self) -> str:
        """What all steps said: errors first, step by step."""
        return "\n".join(text for step in self.steps for text in (step.stderr, step.stdout) if text)

    @property
    def cpu_s(self) -> float:
        """User and system seconds of all steps."""
        return sum(step.cpu_s for step in self.steps)

    @property
    def wall_s(self) -> float:
        """Wall-clock seconds of all steps."""
        return sum(step.wall_s for step in self.steps)


async def run_fairly(runner: Runner, job: Job, limits: Limits) -> Run:
    """Run `job`; `limits` are those of the step whose end matters.

    Raises `EnvironmentFailed` when a step stalls without using CPU time, or is killed by somebody else, twice in a row,
    or leaves a program that is cut off.
    """
    for _ in range(2):
        result = await runner.run(job)
        why = cause(result.last, limits)
        cut = why == "ok" and _is_cut(job, result)
        if why not in OURS and not cut:
            return Run(result.steps, result.files, why)
    if cut:
        raise EnvironmentFailed("a compiled program was cut off, twice: is the scratch disk full?", stage="tool")
    raise EnvironmentFailed(f"a simulator process was {why} on this machine, twice", stage="tool")


def _is_cut(job: Job, result: JobResult) -> bool:
    """Whether a compiler left only the beginning of its program; one beyond the limit is judged elsewhere."""
    program = result.files.get(PROGRAM_FILE)
    return program is not None and len(program) <= job.collect[PROGRAM_FILE] and not is_whole(program)
