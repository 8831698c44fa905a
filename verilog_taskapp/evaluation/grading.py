"""Verdicts on stored designs, by the golden judge and by VerilogEval's classic flow."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from verilog_taskapp.environment.world import World, bench_of, limits_of
from verilog_taskapp.errors import ProblemNotFound, ProblemUnusable
from verilog_taskapp.evaluation import categories
from verilog_taskapp.evaluation.config import JudgeName
from verilog_taskapp.evaluation.samples import Judgement
from verilog_taskapp.icarus.official import OfficialFlow
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.settings import Settings

MESSAGE_CHARS = 64 * 1024
"""Of the compiler's messages, for finding the category."""


class Grader:
    """Judges designs with one simulator. Safe to use concurrently."""

    def __init__(self, world: World, published: ProblemSet) -> None:
        self._world = world
        self._published = published
        self._flow = OfficialFlow(world.runner, world.tools, limits_of(world.settings, world.settings.compile_cpu_s))

    @classmethod
    async def over(cls, world: World) -> "Grader":
        """With the judges of `world`. The classic one judges by the set as it was published, faults included."""
        as_published = world.settings.model_copy(update={"errata": False})
        return cls(world, await asyncio.to_thread(load_problem_set, as_published))

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Grader"]:
        """With judges of its own. Raises `DatasetUnavailable` and `EnvironmentFailed`."""
        async with World.open(settings) as world:
            yield await cls.over(world)

    @property
    def world(self) -> World:
        """Problems and judge."""
        return self._world

    async def judgements(
        self, problem_id: str, files: Mapping[str, str], sources: tuple[str, ...], judges: Iterable[JudgeName]
    ) -> dict[JudgeName, Judgement]:
        """What each of `judges` says of a design. Raises `EnvironmentFailed` when there is no verdict."""
        found: dict[JudgeName, Judgement] = {}
        for judge in judges:
            try:
                if judge == "golden":
                    found[judge] = await self._golden(problem_id, files, sources)
                else:
                    found[judge] = await self._classic(problem_id, files, sources)
            except (ProblemUnusable, ProblemNotFound) as error:
                found[judge] = Judgement(passed=None, reason=error.message, category="unjudged")
        return found

    async def _golden(self, problem_id: str, files: Mapping[str, str], sources: tuple[str, ...]) -> Judgement:
        judge = self._world.judge
        chosen = await self._world.choose(problem_id=problem_id)
        compilation = await judge.compile(chosen.prepared, files, sources)
        verdict = await judge.final(chosen.prepared, compilation)
        design = "\n".join(files[name] for name in sources)
        failed = categories.of_verdict(verdict.reason, compilation.messages(MESSAGE_CHARS), design)
        return Judgement(
            passed=verdict.passed,
            reason=verdict.reason,
            category=categories.PASS if verdict.passed else failed,
            samples=verdict.samples,
            mismatches=verdict.mismatches,
        )

    async def _classic(self, problem_id: str, files: Mapping[str, str], sources: tuple[str, ...]) -> Judgement:
        verdict = await self._flow.judge(bench_of(self._published.get(problem_id)), files, sources)
        return Judgement(
            passed=verdict.passed,
            reason=verdict.category_name,
            category=verdict.category,
            samples=verdict.samples,
            mismatches=verdict.mismatches,
        )
