"""A training step's shape: groups of samples of one problem, a third of them exact duplicates of another sample.

16 problems times 16 samples, 64 in flight, the verdict cache on. What is no duplicate is the right design with other
comments or white space, or with one small mutation, so that some fail. The bare tools run every sample.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.agreement import mutants
from benchmarks.arena import Arena
from benchmarks.contest import Contest, Run
from benchmarks.floor import run_floor
from benchmarks.options import Options
from benchmarks.report import Figure, Report, number, quantile, spread_of
from benchmarks.tasks import Task, floor_items, prepare, right_task, table, task
from verilog_taskapp.environment.world import World, bench_of
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.designs import renamed_reference

PROBLEMS = SAMPLES = 16
DUPLICATES = 5
MUTANTS = 5
IN_FLIGHT = 64
CPU_TARGET = 1.3
SEED = 1
ORDINARY = ("match", "mismatch", "compile_error")
"""Other outcomes are runaway designs: the bare tools have nothing that ends them."""


def run(arena: Arena, options: Options) -> Report:
    """Measure; raises `BenchmarkFailed` when a rollout fails."""
    ready = prepare(arena, options.problems or (2 if options.quick else PROBLEMS))
    groups = asyncio.run(_groups(arena, ready.problems))
    tasks = [one for group in groups for one in group]
    items = floor_items(arena.fresh("floor"), ready.tools, tasks)
    kinds = list({one.key: one for one in tasks}.values())
    right = [right_task(one) for one in ready.problems]
    run_floor(items[:SAMPLES], may_fail=True)
    with arena.double(table([*kinds, *right])) as double, arena.server(VERILOG_VERDICT_CACHE="memory") as server:
        contest = Contest(server, double, must_pass=False)
        contest.warm_up(right)
        runs = [contest.run(tasks, items, IN_FLIGHT) for _ in range(options.repeats)]
    passed = sum(one.passed for one in runs[0].answers)
    facts = {
        "data set": arena.dataset.rpartition("/")[2],
        "groups": f"{len(groups)} of {SAMPLES}",
        "different designs": str(len(kinds)),
        "samples that pass": f"{passed} of {len(tasks)}",
        "Icarus": ready.tools.version,
    }
    details = {"runs": [one.to_json() for one in runs], "problems": [one.id for one in ready.problems]}
    return Report("group", facts, _figures(runs), COLUMNS, (_row(runs),), details)


async def _groups(arena: Arena, problems: Sequence[Problem]) -> list[list[Task]]:
    """The samples of every problem, in random order."""
    async with World.open(arena.settings()) as world:
        return [await group_of(world, one) for one in problems]


async def group_of(world: World, problem: Problem) -> list[Task]:
    """`SAMPLES` samples, of which `DUPLICATES` are equal to another one."""
    rng = random.Random(f"{SEED} {problem.id}")
    right = renamed_reference(problem)
    prepared = await world.judge.prepare(bench_of(problem))
    texts: list[str] = []
    for mutant in mutants(replace(problem, reference=right, reference_top=problem.top), 2 * MUTANTS, rng):
        files = {f"{problem.top}.v": mutant.text}
        verdict = await world.judge.judge(prepared, files, tuple(files))
        if verdict.reason in ORDINARY:
            texts.append(mutant.text)
    texts = texts[:MUTANTS]
    texts += [variation(right, number) for number in range(SAMPLES - DUPLICATES - len(texts))]
    kinds = [task(problem, str(number), text) for number, text in enumerate(texts)]
    samples = kinds + [rng.choice(kinds) for _ in range(DUPLICATES)]
    rng.shuffle(samples)
    return samples


def variation(design: str, number: int) -> str:
    """The same design as another writer would have written it; number 0 is the design itself."""
    if number % 3 == 1:
        return f"// Attempt {number}: this should match the specification.\n{design}"
    if number % 3 == 2:
        return design.replace("\n", f"\n{' ' * number}")
    return design + "\n" * number


def _figures(runs: Sequence[Run]) -> tuple[Figure, ...]:
    return (
        Figure("CPU, floor / service", "ratio", tuple(one.cpu_ratio for one in runs), CPU_TARGET, "more"),
        Figure("rate, service / floor", "ratio", tuple(one.rate_ratio for one in runs), better="more"),
        Figure("server's own CPU", "ms/rollout", tuple(one.server_ms for one in runs)),
    )


COLUMNS = (
    "in flight",
    "rollouts/s",
    "p50 ms",
    "p95 ms",
    "server ms",
    "children ms",
    "launchers' part",
    "floor ms",
    "others s",
)


def _row(runs: Sequence[Run]) -> tuple[str, ...]:
    latencies = [answer.latency_s * 1000 for one in runs for answer in one.answers]
    return (
        str(IN_FLIGHT),
        spread_of([one.rate for one in runs]),
        number(quantile(latencies, 0.5)),
        number(quantile(latencies, 0.95)),
        spread_of([one.server_ms for one in runs]),
        spread_of([one.children_ms for one in runs]),
        spread_of([one.launchers_ms for one in runs]),
        spread_of([one.floor_ms for one in runs]),
        spread_of([one.others_s for one in runs]),
    )
