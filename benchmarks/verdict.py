"""One verdict in the library, without HTTP, against the bare tools on the same problem: CPU time.

For every usable problem the right design is compiled and judged on the public stimulus, then compiled and simulated the
published way, in turn. Counted are this process, the launcher, compiler and simulator; on the other side a shell,
compiler and simulator. With the sandbox and with resource limits alone.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accounting import children, own_cpu_s, waited_cpu_s
from benchmarks.arena import Arena
from benchmarks.floor import run_one
from benchmarks.options import BenchmarkFailed, Options
from benchmarks.report import Figure, Report, number, quantile
from benchmarks.tasks import Task, floor_items, prepare, right_task
from verilog_taskapp.environment.world import World

SANDBOXES = ("required", "limits")
SUM_TARGET, MEDIAN_TARGET = 0.6, 1.1
WORST = 10


@dataclass(frozen=True)
class Pair:
    """CPU seconds of one problem, once per repeat."""

    problem_id: str
    ours: tuple[float, ...]
    """All of it: this process, launcher, compiler, simulator."""
    tools: tuple[float, ...]
    """Compiler and simulator of it."""
    floor: tuple[float, ...]

    def ratio(self, repeat: int) -> float:
        """Above 1 a verdict is dearer than the bare tools."""
        return self.ours[repeat] / self.floor[repeat]

    @property
    def median_ratio(self) -> float:
        """The middle one."""
        return statistics.median(self.ratio(repeat) for repeat in range(len(self.ours)))


@dataclass(frozen=True)
class Survey:
    """All problems with one sandbox."""

    pairs: tuple[Pair, ...]
    counted: float
    """Compilers and simulators by the kernel's account, over what the judge says: 1 if nothing is left out."""


def run(arena: Arena, options: Options) -> Report:
    """Measure; raises `BenchmarkFailed` when a right design does not pass."""
    ready = prepare(arena, options.problems or (3 if options.quick else None))
    tasks = [right_task(one) for one in ready.problems]
    items = floor_items(arena.fresh("floor"), ready.tools, tasks)
    found = {sandbox: asyncio.run(_survey(arena, sandbox, tasks, items, options.repeats)) for sandbox in SANDBOXES}
    facts = {
        "data set": arena.dataset.rpartition("/")[2],
        "problems": str(len(tasks)),
        "Icarus": ready.tools.version,
        "tools' CPU by the kernel / by the judge": ", ".join(f"{one.counted:.2f}" for one in found.values()),
    }
    figures = [figure for sandbox, one in found.items() for figure in figures_of(sandbox, one.pairs, options.repeats)]
    worst = [
        (sandbox, one)
        for sandbox, survey in found.items()
        for one in sorted(survey.pairs, key=lambda pair: pair.median_ratio)[: -WORST - 1 : -1]
    ]
    rows = tuple(_row(sandbox, one) for sandbox, one in worst)
    details = {
        sandbox: [{**vars(pair), "ratio": pair.median_ratio} for pair in survey.pairs]
        for sandbox, survey in found.items()
    }
    return Report("verdict", facts, tuple(figures), COLUMNS, rows, details)


async def _survey(
    arena: Arena, sandbox: str, tasks: Sequence[Task], items: Sequence[tuple[Path, str]], repeats: int
) -> Survey:
    pairs = []
    said = 0.0
    async with World.open(arena.settings(sandbox=sandbox, max_children=1)) as world:
        for one in tasks:
            await verdict(world, one)  # starts the launcher, loads the trace
        launchers = children(os.getpid())
        before = sum(map(waited_cpu_s, launchers))
        for one, (folder, command) in zip(tasks, items, strict=True):
            ours, tools, floor = [], [], []
            for _ in range(repeats):
                own_s = time.process_time() + sum(map(own_cpu_s, launchers))
                tools.append(await verdict(world, one))
                own_s = time.process_time() + sum(map(own_cpu_s, launchers)) - own_s
                ours.append(own_s + tools[-1])
                floor.append((await asyncio.to_thread(run_one, folder, command)).cpu_s)
            pairs.append(Pair(one.problem_id, tuple(ours), tuple(tools), tuple(floor)))
            said += sum(tools)
        counted = sum(map(waited_cpu_s, launchers)) - before
    return Survey(tuple(pairs), counted / said)


async def verdict(world: World, task: Task) -> float:
    """Judge a right design on the public stimulus; returns the CPU seconds of compiler and simulator."""
    prepared = await world.judge.prepare(task.bench)
    files = {task.path: task.design}
    compilation = await world.judge.compile(prepared, files, tuple(files))
    found = await world.judge.run(prepared, compilation)
    if not found.passed:
        raise BenchmarkFailed(f"{task.problem_id}: the right design does not pass: {found.reason}")
    return compilation.cpu_s + found.cpu_s


def figures_of(sandbox: str, pairs: Sequence[Pair], repeats: int) -> list[Figure]:
    """Targets hold with the sandbox."""
    judged = sandbox == "required"
    numbers = range(repeats)
    ratios = [[pair.ratio(number) for pair in pairs] for number in numbers]
    totals = [
        sum(pair.ours[number] for pair in pairs) / sum(pair.floor[number] for pair in pairs) for number in numbers
    ]
    what = f"CPU, verdict / bare tools, sandbox {sandbox}"
    return [
        Figure(f"{what}: sum", "ratio", tuple(totals), SUM_TARGET if judged else None),
        Figure(f"{what}: median", "ratio", tuple(map(statistics.median, ratios)), MEDIAN_TARGET if judged else None),
        Figure(f"{what}: p95", "ratio", tuple(quantile(one, 0.95) for one in ratios)),
        Figure(
            f"mean CPU of a verdict, sandbox {sandbox}",
            "ms",
            tuple(sum(pair.ours[number] for pair in pairs) / len(pairs) * 1000 for number in numbers),
        ),
        Figure(
            f"compiler and simulator of it, sandbox {sandbox}",
            "ms",
            tuple(sum(pair.tools[number] for pair in pairs) / len(pairs) * 1000 for number in numbers),
        ),
        Figure(
            f"mean CPU of the bare tools, sandbox {sandbox}",
            "ms",
            tuple(sum(pair.floor[number] for pair in pairs) / len(pairs) * 1000 for number in numbers),
        ),
    ]


COLUMNS = ("the worst", "sandbox", "verdict ms", "tools of it ms", "bare tools ms", "ratio")


def _row(sandbox: str, pair: Pair) -> tuple[str, ...]:
    times = (number(statistics.median(values) * 1000) for values in (pair.ours, pair.tools, pair.floor))
    return (pair.problem_id, sandbox, *times, number(pair.median_ratio))
