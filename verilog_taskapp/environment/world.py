"""Everything that episodes share in one process: the problems, the judge, and which problems are usable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.rewards import Rewards
from verilog_taskapp.environment.state import EpisodeOptions, EpisodeSnapshot
from verilog_taskapp.errors import ProblemNotFound, ProblemUnusable
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.confinement import confinement
from verilog_taskapp.icarus.judge import Judge, Prepared
from verilog_taskapp.icarus.runner import Limits, Runner
from verilog_taskapp.icarus.stimuli import SecretPool
from verilog_taskapp.icarus.toolchain import Toolchain, find
from verilog_taskapp.icarus.verdict_cache import VerdictCache, open_store
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.problems.splits import DEFAULT_SPLIT
from verilog_taskapp.settings import Settings


def bench_of(problem: Problem) -> Bench:
    """What the judge needs of a problem."""
    return Bench(
        key=problem.content_hash,
        top=problem.top,
        reference_top=problem.reference_top,
        reference=problem.reference,
        testbench=problem.testbench,
        hidden_files=problem.hidden_files,
        compile_cpu_s=problem.limits.compile_cpu_s,
        run_cpu_s=problem.limits.run_cpu_s,
        ignored_samples=problem.ignored_samples,
    )


def limits_of(settings: Settings, cpu_s: float) -> Limits:
    """The limits of a child process with `cpu_s` seconds."""
    return Limits(
        cpu_s=cpu_s,
        wall_s=cpu_s * settings.wall_factor,
        address_space_bytes=settings.address_space_bytes,
        file_size_bytes=settings.file_size_bytes,
    )


def secrets_of(settings: Settings) -> SecretPool:
    """The secret stimuli that submissions are judged on. Blocking: may read or make the kept key."""
    given = settings.stimulus_key
    return SecretPool.load(settings.cache_dir, passphrase=given.get_secret_value() if given is not None else None)


def rewards_of(settings: Settings) -> Rewards:
    """The rewards that hold where a request does not say otherwise."""
    return Rewards(
        settings.reward_compile_success,
        settings.reward_simulate_pass,
        settings.reward_submit_pass,
        settings.reward_step_penalty,
        settings.reward_partial,
    )


def options_of(settings: Settings) -> EpisodeOptions:
    """Episode options as the settings have them."""
    return EpisodeOptions(
        rewards=rewards_of(settings),
        feedback=settings.feedback,
        max_steps=settings.max_steps,
        compile_message_chars=settings.compile_message_chars,
        design_output_chars=settings.design_output_chars,
    )


@dataclass(frozen=True)
class Chosen:
    """A problem that is ready to be worked on."""

    problem: Problem
    prepared: Prepared


class World:
    """Use `World.open`; then `choose` a problem and `begin` an episode."""

    def __init__(self, settings: Settings, problems: ProblemSet, judge: Judge, runner: Runner) -> None:
        self.settings = settings
        self.problems = problems
        self.judge = judge
        self.runner = runner
        self._unusable: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["World"]:
        """Load the problems, find the simulator, start the runner; clean all of it up at the end.

        Raises `DatasetUnavailable` and `EnvironmentFailed`.
        """
        sandbox = await asyncio.to_thread(confinement, settings.sandbox, settings.iverilog)
        async with Runner(children=settings.max_children, scratch_root=settings.scratch_dir, sandbox=sandbox) as runner:
            tools, problems = await asyncio.gather(
                find(settings.iverilog, runner), asyncio.to_thread(load_problem_set, settings)
            )
            judge = Judge(
                runner,
                tools,
                compile_limits=limits_of(settings, settings.compile_cpu_s),
                run_limits=limits_of(settings, settings.run_cpu_s),
                wall_factor=settings.wall_factor,
                waveform_rows=settings.waveform_rows,
                cache_dir=settings.cache_dir,
                verdicts=VerdictCache(
                    open_store(settings.verdict_cache, settings.cache_dir, settings.verdict_cache_bytes)
                ),
                secrets=secrets_of(settings),
            )
            try:
                yield cls(settings, problems, judge, runner)
            finally:
                await judge.close()

    @property
    def tools(self) -> Toolchain:
        """The simulator in use."""
        return self.judge.tools

    async def choose(
        self, *, split: str | None = None, seed: int | None = None, problem_id: str | None = None
    ) -> Chosen:
        """The problem that an id or a seed means, checked with this simulator.

        A seed whose problem is unusable here means the next usable one of the split; an id of an unusable problem
        raises `ProblemUnusable` with the reason. Raises `ProblemNotFound` and `InvalidRequest`.
        """
        if problem_id is not None:
            problem = self.problems.get(problem_id)
            prepared = await self.judge.prepare(bench_of(problem))
            if not prepared.usable:
                raise ProblemUnusable(
                    f"problem {problem.id} cannot be used with Icarus {self.tools.version}: {prepared.reason}"
                )
            return Chosen(problem, prepared)
        while True:
            problem = self.problems.select(split or DEFAULT_SPLIT, seed, unusable=self._unusable)
            prepared = await self.judge.prepare(bench_of(problem))
            if prepared.usable:
                return Chosen(problem, prepared)
            self._unusable.add(problem.id)

    def begin(self, chosen: Chosen, options: EpisodeOptions | None = None) -> Episode:
        """A fresh episode."""
        return Episode(chosen.problem, chosen.prepared, self.judge, options or options_of(self.settings))

    async def restore(self, state: EpisodeSnapshot) -> Episode:
        """The episode that a snapshot was taken of, maybe in another process.

        Raises `ProblemNotFound` when this process has no such problem, or another text of it, and `ProblemUnusable`.
        """
        chosen = await self.choose(problem_id=state.problem_id)
        if chosen.problem.content_hash != state.problem_hash:
            raise ProblemNotFound(f"the problem {state.problem_id} is not what it was when the episode began")
        return Episode.restored(chosen.problem, chosen.prepared, self.judge, state)

    def options(self, **changes: object) -> EpisodeOptions:
        """The settings' episode options with `changes` that are not None."""
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(options_of(self.settings), **given)  # type: ignore[arg-type]
