"""Running an evaluation: all samples that are not there yet, a number of them at once, each written when it is done."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from verilog_taskapp.evaluation.backend import SampleFault
from verilog_taskapp.evaluation.config import EvalConfig
from verilog_taskapp.evaluation.journal import Journal
from verilog_taskapp.evaluation.samples import Failure, Sample, Task, sample_seed
from verilog_taskapp.inference.retry import backoff_s
from verilog_taskapp.problems.model import Problem

FLOW_PATIENCE_S = 600.0
"""How long a sample stands before a service that is full or restarting, without using up its retries."""
FIRST_WAIT_S = 0.5
"""Before the second attempt; doubles, see `verilog_taskapp.inference.retry.backoff_s`."""

Draw = Callable[[Task], Awaitable[Sample]]


def tasks_of(config: EvalConfig, problems: Iterable[Problem]) -> list[Task]:
    """Every sample of the evaluation, in the order in which they are drawn: all problems once, then again."""
    listed = list(problems)
    return [
        Task(
            model=model.title,
            problem=problem.id,
            sample=number,
            seed=sample_seed(config.eval.seed, model.title, problem.id, number),
        )
        for model in config.policy.models
        for number in range(config.eval.n)
        for problem in listed
    ]


@dataclass
class Tally:
    """How far a run is; for showing."""

    total: int
    before: int = 0
    """Finished before this run began."""
    done: int = 0
    """Finished by this run, errors included."""
    passed: int = 0
    failed: int = 0
    errors: int = 0
    in_flight: int = 0

    def count(self, sample: Sample, *, earlier: bool = False) -> None:
        """Take a finished sample in."""
        if earlier:
            self.before += 1
        else:
            self.done += 1
        self.passed += sample.passed is True
        self.failed += sample.passed is False
        self.errors += sample.status == "error"


@dataclass
class Campaign:
    """One run over `tasks`. `draw` raises `SampleFault`; `show` is told of every sample that is finished."""

    tasks: list[Task]
    draw: Draw
    journal: Journal
    concurrency: int
    retries: int
    show: Callable[[Tally], None] = lambda _: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it to begin no further sample; those in flight are finished."""
    fatal: SampleFault | None = None
    """What made the run stop: a fault that every further sample would meet."""

    def __post_init__(self) -> None:
        wanted = {task.key for task in self.tasks}
        kept = {one.key for one in self.journal.finished if one.status != "error" and one.key in wanted}
        self.tally = Tally(len(self.tasks))
        for one in self.journal.finished:
            if one.key in kept:
                self.tally.count(one, earlier=True)
        self._waiting = iter([task for task in self.tasks if task.key not in kept])
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Draw what is missing. Cancellation stops at once; every sample that was finished is on the disk.

        Raises OSError when a result cannot be written, and whatever `draw` raises beside `SampleFault`.
        """
        self.show(self.tally)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.concurrency, len(self.tasks))):
                    group.create_task(self._work())
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None  # the first one ended the others

    async def _work(self) -> None:
        for task in self._waiting:
            if self.stopping.is_set():
                return
            self.tally.in_flight += 1
            try:
                sample = await self._drawn(task)
            finally:
                self.tally.in_flight -= 1
            if sample is None:
                return
            await self._keep(sample)
            self.tally.count(sample)
            self.show(self.tally)

    async def _keep(self, sample: Sample) -> None:
        """Write the line; a cancellation meanwhile waits for that, so that no line is ever torn by it."""
        async with self._writing:
            writing = asyncio.ensure_future(asyncio.to_thread(self.journal.append, sample))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait([writing])
                raise

    async def _drawn(self, task: Task) -> Sample | None:
        """The sample, or the error that is left after all attempts; None when the run stops."""
        attempts, waited = 0, 0.0
        while True:
            try:
                sample = await self.draw(task)
                return sample.model_copy(update={"attempts": attempts + 1})
            except SampleFault as fault:
                if fault.fatal:
                    self.fatal = self.fatal or fault
                    self.stopping.set()
                    return None
                if fault.is_flow_control and waited < FLOW_PATIENCE_S:
                    pause = (fault.retry_after_s or FIRST_WAIT_S) * random.uniform(1.0, 1.25)  # noqa: S311 - no secret
                    waited += pause
                else:
                    attempts += 1
                    if attempts > self.retries or not fault.retryable:
                        return _error(task, fault, attempts)
                    jitter = random.random()  # noqa: S311 - no secret
                    pause = backoff_s(FIRST_WAIT_S, attempts, jitter) + (fault.retry_after_s or 0.0)
            if await self._stopped_during(pause):
                return None

    async def _stopped_during(self, pause: float) -> bool:
        """Wait; true as soon as the run stops: a sample that waits for its next attempt is not in flight."""
        pausing = asyncio.ensure_future(self.sleep(pause))
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({pausing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return self.stopping.is_set()
        finally:
            pausing.cancel()
            stopped.cancel()


def _error(task: Task, fault: SampleFault, attempts: int) -> Sample:
    failure = Failure(code=fault.code, message=fault.message, stage=fault.stage)
    return Sample(**task.model_dump(), status="error", attempts=attempts, error=failure)
